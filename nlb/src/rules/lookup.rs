//! From a packet's destination to the map it goes by.

use std::net::IpAddr;

use forwarding::wire::protocol;

use super::{Affinity, Group, GroupMode, MAX_PORTS, MAX_RANGES, Protocol, Refused, Rule, Scope};
use crate::slot::{GroupId, Slot};

/// One line of what the filter looks packets up in: rules split by protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The virtual addresses it is for.
    pub scope: Scope,
    /// 6 TCP, 17 UDP.
    pub protocol: u8,
    /// First port, host order.
    pub first_port: u16,
    /// Last port, host order.
    pub last_port: u16,
    /// What a packet that fits has found.
    pub found: Found,
    /// The rule it comes of, from 0.
    pub rule: usize,
}

/// What a look-up ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A map to go by.
    Choice(Choice),
    /// A disabled rule.
    Blocked,
}

/// A map, and how a packet enters it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Where the map is.
    pub slot: Slot,
    /// What enters the hash for it.
    pub group: GroupId,
    /// What of the client enters the hash.
    pub affinity: Affinity,
    /// What kind of rule it is: of a packet that passes the reason.
    pub kind: Kind,
}

/// What kind of rule a packet goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Shared by several hosts.
    Multiple,
    /// One host's.
    Single,
    /// No rule: the default host's.
    Default,
}

impl Choice {
    /// What no rule covers.
    pub const DEFAULT: Choice = Choice {
        slot: Slot::DEFAULT,
        group: GroupId::DEFAULT,
        affinity: Affinity::None,
        kind: Kind::Default,
    };
    /// ICMP echo requests, where one host answers: by the client's address.
    pub const ECHO: Choice = Choice {
        slot: Slot::ECHO,
        group: GroupId::ECHO,
        affinity: Affinity::SINGLE,
        kind: Kind::Multiple,
    };
}

impl Entry {
    /// Whether it covers more than one port.
    pub fn is_range(&self) -> bool {
        self.first_port != self.last_port
    }

    fn fits(&self, scope: Scope, protocol: u8, port: u16) -> bool {
        self.scope == scope
            && self.protocol == protocol
            && (self.first_port..=self.last_port).contains(&port)
    }
}

/// A rule of the address, else a rule of all, else the default.
pub(super) fn lookup(entries: &[Entry], vip: IpAddr, protocol: u8, port: u16) -> Found {
    [Scope::Vip(vip), Scope::All]
        .into_iter()
        .find_map(|scope| entries.iter().find(|entry| entry.fits(scope, protocol, port)))
        .map_or(Found::Choice(Choice::DEFAULT), |entry| entry.found)
}

/// The entries of rules that are right, in the order of the rules.
pub(super) fn entries(rules: &[Rule], groups: &[Group]) -> Result<Vec<Entry>, Refused> {
    let mut entries = Vec::new();
    for (place, rule) in rules.iter().enumerate() {
        for (kind, number) in [(Protocol::Tcp, protocol::TCP), (Protocol::Udp, protocol::UDP)] {
            if rule.protocol == kind || rule.protocol == Protocol::Both {
                entries.push(Entry {
                    scope: rule.scope,
                    protocol: number,
                    first_port: rule.first_port,
                    last_port: rule.last_port,
                    found: groups
                        .iter()
                        .find(|group| group.covers(place, kind))
                        .map_or(Found::Blocked, |group| Found::Choice(choice(group))),
                    rule: place,
                });
            }
        }
    }
    let ranges = entries.iter().filter(|entry| entry.is_range()).count();
    let ports = entries.len() - ranges;
    if ranges > MAX_RANGES {
        return Err(Refused::Ranges { given: ranges });
    }
    if ports > MAX_PORTS {
        return Err(Refused::Ports { given: ports });
    }
    Ok(entries)
}

fn choice(group: &Group) -> Choice {
    let (kind, affinity) = match group.mode {
        GroupMode::Multiple(affinity) => (Kind::Multiple, affinity),
        GroupMode::Single => (Kind::Single, Affinity::None),
    };
    Choice { slot: group.slot, group: group.id, affinity, kind }
}
