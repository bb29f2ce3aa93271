//! The text of listings, to the byte of ipvsadm 1.31, trailing blanks and oddities included:
//! scripts read it. Pure functions of the views that the control API gives out.

use std::fmt::Write;

use director::control::api::{Protocol, ServiceKey, Timeouts};

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

/// The protocol whose port names a service's servers use; marks count as TCP.
fn protocol_of(key: &ServiceKey) -> Protocol {
    match key {
        ServiceKey::Address { protocol, .. } => *protocol,
        ServiceKey::Fwmark { .. } => Protocol::Tcp,
    }
}

/// The names of a service's scheduler flags, in order.
fn scheduler_flags(scheduler: &str, flags: u32) -> Vec<String> {
    let named = |number: u32, word: &str| match scheduler {
        "sh" | "mh" if !word.is_empty() => format!("{scheduler}-{word}"),
        _ => format!("flag-{number}"),
    };
    [(0x8, 1, "fallback"), (0x10, 2, "port"), (0x20, 3, "")]
        .into_iter()
        .filter(|(bit, ..)| flags & bit != 0)
        .map(|(_, number, word)| named(number, word))
        .collect()
}
