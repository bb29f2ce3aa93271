//! Digests: how hosts find out that their rules differ without sending them.
//!
//! The canonical encoding of a rule: all numbers little endian, in this order.
//!
//! | field | bytes |
//! |---|---|
//! | scope | 0 = all; 4 and 4 octets; 6 and 16 octets |
//! | protocol | 1: 1 = TCP, 2 = UDP, 3 = both |
//! | first and last port | 2, 2 |
//! | mode | 1: 0 = disabled, 1 = single, 2 = multiple; then of multiple the bits of IPv4 and IPv6 affinity (1, 1; 0, 0 = none) |
//! | hosts | 4: host `id` is bit `id - 1` |
//! | slots | of TCP and of UDP, 1 and 4 each: number, and the group's number in hashes; 0 = none |
//!
//! The digest of a rule is the first 8 bytes of SHA-256 of that, and the digest of all rules the
//! same of their sorted digests.

use std::fmt;
use std::net::IpAddr;

use sha2::{Digest as _, Sha256};

use super::{Affinity, Group, GroupMode, Mode, Protocol, Rule, Scope};
use crate::host::HostSet;

/// 64 bits of SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u64);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The first 8 bytes of SHA-256, as a little-endian number.
pub(super) fn number(bytes: &[u8]) -> u64 {
    let hash: [u8; 32] = Sha256::digest(bytes).into();
    hash.first_chunk().copied().map_or(0, u64::from_le_bytes)
}

/// Of all rules, from those of each.
pub(super) fn of_all(mut digests: Vec<Digest>) -> Digest {
    digests.sort_unstable();
    let bytes: Vec<u8> = digests.iter().flat_map(|digest| digest.0.to_le_bytes()).collect();
    Digest(number(&bytes))
}

/// Of one rule.
pub(super) fn of_rule(place: usize, rule: &Rule, groups: &[Group]) -> Digest {
    let mut bytes = Vec::new();
    scope(&mut bytes, rule.scope);
    bytes.push(match rule.protocol {
        Protocol::Tcp => 1,
        Protocol::Udp => 2,
        Protocol::Both => 3,
    });
    bytes.extend(rule.first_port.to_le_bytes());
    bytes.extend(rule.last_port.to_le_bytes());
    let members = match &rule.mode {
        Mode::Multiple { affinity, weights } => {
            group_mode(&mut bytes, GroupMode::Multiple(*affinity));
            &weights[..]
        }
        Mode::Single { priorities } => {
            group_mode(&mut bytes, GroupMode::Single);
            priorities
        }
        Mode::Disabled => {
            bytes.push(0);
            &[]
        }
    };
    let hosts: HostSet = members.iter().map(|&(host, _)| host).collect();
    bytes.extend(hosts.bits().to_le_bytes());
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let group = groups.iter().find(|group| group.covers(place, protocol));
        bytes.push(group.map_or(0, |group| group.slot.get()));
        bytes.extend(group.map_or(0, |group| group.id.0).to_le_bytes());
    }
    Digest(number(&bytes))
}

pub(super) fn scope(bytes: &mut Vec<u8>, scope: Scope) {
    match scope {
        Scope::All => bytes.push(0),
        Scope::Vip(IpAddr::V4(vip)) => {
            bytes.push(4);
            bytes.extend(vip.octets());
        }
        Scope::Vip(IpAddr::V6(vip)) => {
            bytes.push(6);
            bytes.extend(vip.octets());
        }
    }
}

pub(super) fn group_mode(bytes: &mut Vec<u8>, mode: GroupMode) {
    match mode {
        GroupMode::Single => bytes.push(1),
        GroupMode::Multiple(Affinity::None) => bytes.extend([2, 0, 0]),
        GroupMode::Multiple(Affinity::Prefix { ipv4, ipv6 }) => bytes.extend([2, ipv4, ipv6]),
    }
}
