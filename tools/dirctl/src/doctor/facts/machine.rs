//! The machine: kernel, capabilities, clock.

use std::path::Path;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// `6.18.5-amd64`; empty when it is not known.
    pub kernel: String,
    /// Capabilities in effect, a bit each.
    pub capabilities: Option<u64>,
    /// Whose they are: the running director's process, or `None` for our own.
    pub director: Option<u32>,
    /// Processor cores that a process may use.
    pub cores: usize,
    /// Whether the kernel takes its clock for synchronised.
    pub clock: Option<bool>,
    /// Packets so far whose source was an address of this machine or could not be.
    pub martians: Option<u64>,
}

/// Looks at the machine, and at the process `director` when one runs.
pub fn look(director: Option<u32>) -> Machine {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let process = director.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    Machine {
        kernel: kernel.trim().to_owned(),
        capabilities: status.ok().and_then(|status| effective(&status)),
        director,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        clock: clock(),
        martians: martians(),
    }
}

/// How many martian sources the kernel has counted on all processors. All network namespaces of a
/// machine share the count.
pub fn martians() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/stat/rt_cache").ok()?;
    let mut lines = text.lines();
    let column = lines.next()?.split_whitespace().position(|name| name == "in_martian_src")?;
    let count = |line: &str| u64::from_str_radix(line.split_whitespace().nth(column)?, 16).ok();
    lines.map(count).sum()
}

fn clock() -> Option<bool> {
    // The file says it in containers, too, where the kernel may not be asked.
    if Path::new("/run/systemd/timesync/synchronized").exists() {
        return Some(true);
    }
    netio::clock::is_synchronised().ok()
}

fn effective(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_status_of_a_process() {
        assert_eq!(effective("Name:\tx\nCapEff:\t000000c000003000\n"), Some(0xc0_0000_3000));
        assert_eq!(effective("Name:\tx\n"), None);
    }

    #[test]
    fn this_machine_has_a_kernel() {
        let machine = look(None);
        assert!(machine.kernel.contains('.'), "{machine:?}");
        assert!(machine.capabilities.is_some());
    }
}
