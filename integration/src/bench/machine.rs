//! What the machine has: named beside the figures, and asked before memory is used up.

use std::fmt;
use std::fs::read_to_string;

use anyhow::{Context, Result};

/// Memory that is left to the rest of the machine.
pub(super) const RESERVE: u64 = 1 << 30;

/// Why a size is left out.
#[derive(Debug)]
pub(super) struct TooLittleMemory {
    /// How far it went.
    pub(super) connections: u32,
}

impl fmt::Display for TooLittleMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooLittleMemory { connections } = self;
        write!(f, "no memory left after {connections} connections (1 GiB is kept for others)")
    }
}

impl std::error::Error for TooLittleMemory {}

/// Bytes that can be had without swapping.
pub(super) fn available_memory() -> Option<u64> {
    kibibytes(&read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// Bytes of this process that are in memory.
pub(super) fn resident() -> Option<u64> {
    kibibytes(&read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// The most bytes of a process that have been in memory at a time.
pub(super) fn peak_of(process: u32) -> Option<u64> {
    kibibytes(&read_to_string(format!("/proc/{process}/status")).ok()?, "VmHWM:")
}

/// Has [`peak_of`] begin anew, with the bytes that are in memory now, which are returned.
pub(super) fn forget_peak_of(process: u32) -> Result<u64> {
    let file = format!("/proc/{process}/clear_refs");
    std::fs::write(&file, "5").with_context(|| file)?;
    peak_of(process).with_context(|| format!("process {process} has no VmHWM"))
}

fn kibibytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(key))?;
    let number: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(number * 1024)
}

/// Processor, cores, memory, kernel, and how busy it was: one line.
pub fn describe() -> String {
    let read = |path| read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split(": ").nth(1)).unwrap_or("unknown processor");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = kibibytes(&read("/proc/meminfo"), "MemTotal:").unwrap_or(0) >> 30;
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("?");
    format!("{model}, {cores} cores, {memory} GiB, Linux {}, load {load}", kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_proc_are_kibibytes() {
        let text = "MemTotal:       24683520 kB\nMemAvailable:   23331968 kB\n";
        assert_eq!(kibibytes(text, "MemAvailable:"), Some(23_331_968 * 1024));
        assert_eq!(kibibytes(text, "SwapFree:"), None);
        assert!(resident().unwrap() > 1 << 20);
    }
}
