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
    /// See [`astray`].
    pub astray: Option<u64>,
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
        astray: astray(),
    }
}

/// How many packets the kernel has dropped so far because they were for others and it does not forward,
/// or because it does and their source was an address of its own.
pub fn astray() -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{name}"));
    let of_v4 = read("snmp").ok().and_then(|text| addressed_to_others(&text))?;
    let of_v6 = read("snmp6").ok().and_then(|text| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix("Ip6InAddrErrors")?.trim().parse::<u64>().ok())
    });
    let martian = read("stat/rt_cache").ok().and_then(|text| martian_sources(&text));
    Some(of_v4 + of_v6.unwrap_or(0) + martian.unwrap_or(0))
}

/// `InAddrErrors`: the names of `Ip:` are in one line, their values in the next.
fn addressed_to_others(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter(|line| line.starts_with("Ip:"));
    let column = lines.next()?.split_whitespace().position(|name| name == "InAddrErrors")?;
    lines.next()?.split_whitespace().nth(column)?.parse().ok()
}

/// On all processors; all network namespaces of a machine share the count.
fn martian_sources(rt_cache: &str) -> Option<u64> {
    let mut lines = rt_cache.lines();
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
    fn what_goes_astray_is_read_from_the_columns_of_its_name() {
        let snmp = "Ip: Forwarding InAddrErrors X\nIp: 2 7 1\nTcp: a\nTcp: 1\n";
        assert_eq!(addressed_to_others(snmp), Some(7));
        assert_eq!(addressed_to_others("Ip: Forwarding\nIp: 2\n"), None);
        let rt_cache = "entries in_martian_dst in_martian_src\n01 02 0a\n01 02 10\n";
        assert_eq!(martian_sources(rt_cache), Some(26));
        assert_eq!(martian_sources(""), None);
    }

    #[test]
    fn this_machine_has_a_kernel() {
        let machine = look(None);
        assert!(machine.kernel.contains('.'), "{machine:?}");
        assert!(machine.capabilities.is_some());
    }
}
