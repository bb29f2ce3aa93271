//! Waits for what the kernel does later: netlink answers before an interface can be used.
//!
//! Two things happen in the background after an interface has come up. The bridge opens the port
//! when it hears of the carrier, and a host joins an IPv6 address's solicited-node group, without
//! which it hears no neighbour solicitation. A packet that is faster is lost, and is sent again
//! only a second later.

use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::Host;

const LIMIT: Duration = Duration::from_secs(5);
const INTERVAL: Duration = Duration::from_millis(1);

/// What `/sys/class/net/<port>/brport/state` says of a port that forwards.
const FORWARDING: &str = "3";

/// Waits until a port of a segment's bridge forwards. Its other end must be up.
pub(super) fn wait_for_port(segment: &Host, port: &str) -> Result<()> {
    let path = format!("/sys/class/net/{port}/brport/state");
    segment.run(|| {
        wait(&format!("{port} does not forward"), || {
            std::fs::read_to_string(&path).is_ok_and(|state| state.trim() == FORWARDING)
        })
    })?
}

/// Waits until the host answers for an address on an interface, in the calling thread's
/// namespace. Nothing to wait for with IPv4, on `lo`, or while the interface is down.
pub(super) fn wait_for_address(interface: &str, address: IpAddr) -> Result<()> {
    let IpAddr::V6(address) = address else {
        return Ok(());
    };
    if interface == "lo" || !is_up(interface) {
        return Ok(());
    }
    let group = solicited_node(address);
    wait(&format!("{interface} does not hear of {address}"), || {
        std::fs::read_to_string("/proc/thread-self/net/igmp6")
            .is_ok_and(|table| has_joined(&table, interface, &group))
    })
}

fn wait(failure: &str, ready: impl Fn() -> bool) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    while !ready() {
        if Instant::now() >= deadline {
            bail!("{failure} after {LIMIT:?}");
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(())
}

/// IFF_UP, the lowest bit of the interface's flags (hexadecimal).
fn is_up(interface: &str) -> bool {
    std::fs::read_to_string(format!("/sys/class/net/{interface}/flags"))
        .ok()
        .and_then(|flags| u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).ok())
        .is_some_and(|flags| flags & 1 == 1)
}

/// ff02::1:ff00:0/104 with the address's last 24 bits (RFC 4291), as the kernel's table has it.
fn solicited_node(address: Ipv6Addr) -> String {
    let [.., a, b, c] = address.octets();
    format!("ff0200000000000000000001ff{a:02x}{b:02x}{c:02x}")
}

/// A line is: index, interface, group, users, flags, timer.
fn has_joined(table: &str, interface: &str, group: &str) -> bool {
    table.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some(interface) && words.next() == Some(group)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
1    lo              ff020000000000000000000000000001     1 0000000C 0
2    eth0            ff0200000000000000000001ff000100     1 00000004 0
2    eth0            ff020000000000000000000000000001     1 0000000C 0
";

    #[test]
    fn a_group_counts_only_on_the_interface_that_joined_it() {
        let group = solicited_node("2001:db8:1::100".parse().unwrap());
        assert!(has_joined(TABLE, "eth0", &group));
        assert!(!has_joined(TABLE, "lo", &group));
        assert!(!has_joined(TABLE, "eth", &group));
        assert!(!has_joined(TABLE, "eth0", &solicited_node(Ipv6Addr::LOCALHOST)));
    }
}
