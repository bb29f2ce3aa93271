//! Port rules: who may take what, and how clients are kept together.
//!
//! A [`Rule`] names a virtual address or all of them, a protocol and ports, and a [`Mode`]: shared
//! by several hosts, one host's by priority, or nobody's. [`Rules::new`] refuses rules that
//! contradict each other, puts rules that differ only in their ports into one [`Group`] with one
//! map of buckets, and answers which map a packet goes by ([`Rules::lookup`]).
//!
//! | asked | looked for, first match wins |
//! |---|---|
//! | port of a virtual address | rule of that address, rule of all addresses, default rule |
//!
//! Everything that hosts must agree on is in the [digests](Rules::digest). Weights and handling
//! priorities are not: they may differ and travel in heartbeats.

mod digest;
mod group;
mod lookup;
mod refuse;

use std::fmt;
use std::net::IpAddr;

pub use digest::Digest;
pub use group::{Group, GroupMode};
pub use lookup::{Choice, Entry, Found, Kind};
pub use refuse::Refused;

use crate::host::HostId;
use crate::key::MapKey;
use crate::map::{self, Member, Target};
use crate::slot::{GroupId, Slot};

/// Largest weight of a host in a rule.
pub const MAX_WEIGHT: u8 = 100;
/// Most entries with more than one port; a rule of both protocols is two.
pub const MAX_RANGES: usize = 32;
/// Most entries with one port; a rule of both protocols is two.
pub const MAX_PORTS: usize = 4096;

/// Which virtual addresses a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// This one.
    Vip(IpAddr),
    /// All that have no rule of their own for the port.
    All,
}

/// Which transport protocols a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// Both.
    Both,
}

/// What of a client decides about its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Affinity {
    /// Address and ports: every connection for itself.
    None,
    /// The first bits of the address: clients that share them are with one host, in every rule of
    /// the group.
    Prefix {
        /// Bits of an IPv4 address, 1 to 32.
        ipv4: u8,
        /// Bits of an IPv6 address, 1 to 128.
        ipv6: u8,
    },
}

impl Affinity {
    /// Each client address for itself.
    pub const SINGLE: Affinity = Affinity::Prefix { ipv4: 32, ipv6: 128 };
    /// Clients of one network together, as behind several proxies of one provider: /24 and /64.
    pub const NETWORK: Affinity = Affinity::Prefix { ipv4: 24, ipv6: 64 };
}

/// How hosts share what a rule covers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Several hosts, each its part.
    Multiple {
        /// What keeps clients together.
        affinity: Affinity,
        /// The hosts and their weights, 0 to 100; 0 takes nothing.
        weights: Vec<Member>,
    },
    /// One host: of those that are alive the one with the lowest priority number, and of equal
    /// ones that with the lowest id.
    Single {
        /// The hosts and their handling priorities, 1 to 32.
        priorities: Vec<Member>,
    },
    /// No host: packets are dropped everywhere.
    Disabled,
}

/// A port rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The virtual addresses it is for.
    pub scope: Scope,
    /// The protocols it is for.
    pub protocol: Protocol,
    /// The first port, host order.
    pub first_port: u16,
    /// The last port, host order; not below the first.
    pub last_port: u16,
    /// Who takes what it covers.
    pub mode: Mode,
}

impl fmt::Display for Rule {
    /// `tcp 80-90 of 192.0.2.10`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Both => "tcp and udp",
        };
        write!(f, "{protocol} {}", self.first_port)?;
        if self.last_port != self.first_port {
            write!(f, "-{}", self.last_port)?;
        }
        match self.scope {
            Scope::Vip(vip) => write!(f, " of {vip}"),
            Scope::All => f.write_str(" of all addresses"),
        }
    }
}

/// Rules that go together, and what comes of them.
///
/// ```
/// use nlb::host::HostId;
/// use nlb::rules::{Affinity, Mode, Protocol, Rule, Rules, Scope};
///
/// let hosts = vec![(HostId::new(1).unwrap(), 50), (HostId::new(2).unwrap(), 50)];
/// let rule = |port| Rule {
///     scope: Scope::Vip("198.51.100.10".parse().unwrap()),
///     protocol: Protocol::Tcp,
///     first_port: port,
///     last_port: port,
///     mode: Mode::Multiple { affinity: Affinity::SINGLE, weights: hosts.clone() },
/// };
/// let rules = Rules::new(vec![rule(80), rule(443)]).unwrap();
/// assert_eq!(rules.groups().len(), 1, "a client is with one host for http and https");
/// assert_eq!(
///     Rules::new(vec![rule(80), rule(80)]).unwrap_err().to_string(),
///     "rule 2 (tcp 80 of 198.51.100.10) overlaps rule 1 (tcp 80 of 198.51.100.10): \
///      give every port of an address to one rule"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    rules: Vec<Rule>,
    groups: Vec<Group>,
    entries: Vec<Entry>,
}

impl Rules {
    /// Only the default rule: the default host takes everything.
    pub fn none() -> Rules {
        Rules { rules: vec![], groups: vec![], entries: vec![] }
    }

    /// Puts rules together.
    ///
    /// # Errors
    ///
    /// When rules overlap, a number is out of its range, or there are too many.
    pub fn new(rules: Vec<Rule>) -> Result<Rules, Refused> {
        refuse::each(&rules)?;
        refuse::overlaps(&rules)?;
        let groups = group::groups(&rules)?;
        let entries = lookup::entries(&rules, &groups)?;
        Ok(Rules { rules, groups, entries })
    }

    /// The rules, as they were given.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The groups, in order of their slots from 2 on.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The group of a slot; none of the two slots that are always there.
    pub fn group(&self, slot: Slot) -> Option<&Group> {
        self.groups.get(slot.index().checked_sub(2)?)
    }

    /// What the filter looks packets up in: one port or a range, one protocol each. Within a scope
    /// no two overlap.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The slots in use: default, echo, and one for each group.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        Slot::all().take(2 + self.groups.len())
    }

    /// What keeps clients together in a slot. It also says how a bucket is handed over: without
    /// affinity flow by flow, with affinity as a whole.
    pub fn affinity(&self, slot: Slot) -> Affinity {
        match self.group(slot).map(|group| group.mode) {
            Some(GroupMode::Multiple(affinity)) => affinity,
            _ => Affinity::None,
        }
    }

    /// The rule of the default slot and of echo have no hosts of their own: there it is `None`.
    /// Otherwise the hosts as the rules name them: weights, or handling priorities.
    pub fn members(&self, slot: Slot) -> Option<&[Member]> {
        self.group(slot).map(|group| &group.members[..])
    }

    /// Who owns what in a slot, of these hosts.
    ///
    /// | slot | meaning of a member's number | owner |
    /// |---|---|---|
    /// | default | 0: takes nothing | the lowest id has all buckets |
    /// | echo | 0: takes nothing | equal parts |
    /// | group, multiple | weight, 0: takes nothing | parts by weight |
    /// | group, single | handling priority, 0: takes nothing | the lowest number has all, of equal ones the lowest id |
    ///
    /// A slot that is not in use is nobody's.
    pub fn target(&self, key: MapKey, slot: Slot, members: &[Member]) -> Target {
        let willing = members.iter().filter(|&&(_, number)| number > 0);
        match (slot, self.group(slot)) {
            (Slot::DEFAULT, _) => all_to(willing.map(|&(host, _)| host).min()),
            (Slot::ECHO, _) => {
                let equal: Vec<Member> = willing.map(|&(host, _)| (host, 1)).collect();
                map::target(key, GroupId::ECHO, &equal)
            }
            (_, Some(Group { mode: GroupMode::Single, .. })) => {
                let best = willing.min_by_key(|&&(host, priority)| (priority, host));
                all_to(best.map(|&(host, _)| host))
            }
            (_, Some(group)) => map::target(key, group.id, members),
            (_, None) => Target::nobody(),
        }
    }

    /// Which map a packet to `port` of `vip` goes by. `protocol` is 6 (TCP) or 17 (UDP).
    pub fn lookup(&self, vip: IpAddr, protocol: u8, port: u16) -> Found {
        lookup::lookup(&self.entries, vip, protocol, port)
    }

    /// A digest of each rule, in the order they were given.
    pub fn rule_digests(&self) -> Vec<Digest> {
        self.rules
            .iter()
            .enumerate()
            .map(|(place, rule)| digest::of_rule(place, rule, &self.groups))
            .collect()
    }

    /// A digest of all rules, whatever their order: two hosts with the same digest agree on every
    /// slot and every bucket of a packet.
    pub fn digest(&self) -> Digest {
        digest::of_all(self.rule_digests())
    }
}

fn all_to(host: Option<HostId>) -> Target {
    host.map_or_else(Target::nobody, Target::everything)
}

#[cfg(test)]
mod tests;
