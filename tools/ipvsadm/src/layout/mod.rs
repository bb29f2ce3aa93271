//! The text of listings, to the byte of ipvsadm 1.31, trailing blanks and oddities included:
//! scripts read it. Pure functions of the views that the control API gives out.

use std::fmt::Write;

use director::control::api::{HashKey, Protocol, ServiceKey, ServiceSpec, Timeouts};

pub mod connections;
pub mod counters;
pub mod rules;
pub mod sort;
pub mod table;
#[cfg(test)]
mod tests;

/// How to list. Of several layouts the first of these counts: stats, rate, thresholds, persistent,
/// tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Numbers instead of names.
    pub numeric: bool,
    /// Counters.
    pub stats: bool,
    /// Rates.
    pub rate: bool,
    /// All digits of counters and rates.
    pub exact: bool,
    /// Thresholds.
    pub thresholds: bool,
    /// Persistence templates.
    pub persistent: bool,
    /// Kinds of tunnel.
    pub tunnel: bool,
    /// JSON.
    pub json: bool,
    /// The director's order rather than by address.
    pub unsorted: bool,
}

/// Answer to `-L --timeout`.
pub fn timeouts(timeouts: &Timeouts) -> String {
    let Timeouts { tcp, tcp_fin, udp } = timeouts;
    format!("Timeout (tcp tcpfin udp): {tcp} {tcp_fin} {udp}\n")
}

/// Adds a line. Writing into a `String` cannot fail.
fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(line);
    text.push('\n');
}

fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Sctp => "SCTP",
    }
}

/// The protocol whose port names a service's servers use. Marked packets are of any, so their
/// servers' ports have no names.
fn protocol_of(key: &ServiceKey) -> Option<Protocol> {
    match key {
        ServiceKey::Address { protocol, .. } => Some(*protocol),
        ServiceKey::Fwmark { .. } => None,
    }
}

/// The flags of a service's scheduler: with dht also those that say what the configuration file has
/// asked for in its own words.
fn flags_of(spec: &ServiceSpec) -> u32 {
    let placement = spec.placement();
    let key = match placement.key {
        _ if spec.scheduler != "dht" => 0,
        Some(HashKey::SourcePort) => 0x10,
        Some(HashKey::DnsName) => 0x20,
        _ => 0,
    };
    spec.flags | key | if placement.sticky { 0x8 } else { 0 }
}

/// The names of a service's scheduler flags, in order. The two schedulers that have names of their own
/// for flags in ipvsadm have two: it neither lists nor saves their third.
fn scheduler_flags(scheduler: &str, flags: u32) -> Vec<String> {
    let names: [(u32, String); 3] = match scheduler {
        "sh" | "mh" => [
            (0x8, format!("{scheduler}-fallback")),
            (0x10, format!("{scheduler}-port")),
            (0, String::new()),
        ],
        "dht" => [
            (0x8, "dht-sticky".to_owned()),
            (0x10, "dht-port".to_owned()),
            (0x20, "dht-dns-name".to_owned()),
        ],
        _ => [0x8, 0x10, 0x20].map(|bit: u32| (bit, format!("flag-{}", bit.ilog2() - 2))),
    };
    names.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| name).collect()
}
