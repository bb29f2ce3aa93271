//! Groups: rules that differ only in their ports share a slot and with it a map of buckets.
//!
//! Without affinity a bucket is handed over flow by flow, and TCP knows where a flow begins while
//! UDP does not: there the protocols have slots of their own, with the same hash and so the same
//! owners. With affinity a bucket is handed over as a whole, and a client's TCP and UDP are one.
//!
//! All groups of an address with one affinity have one number in hashes. A client's bucket is then the
//! same in all of them, and the hosts' scores for it too: where groups have other hosts or weights, as
//! many clients as possible still have one host for both, and a host that is added to the rules, or a
//! rule to the file, moves no more buckets than it must.

use std::collections::BTreeMap;

use super::{Affinity, Mode, Protocol, Refused, Rule, Scope, digest};
use crate::host::HostSet;
use crate::map::Member;
use crate::slot::{GroupId, MAX_GROUPS, Slot};

/// Rules with one map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Where its map is.
    pub slot: Slot,
    /// What stands for it in hashes, and for others of its scope and mode.
    pub id: GroupId,
    /// The virtual addresses its rules are for.
    pub scope: Scope,
    /// The protocols it is for: one of them only without affinity.
    pub protocol: Protocol,
    /// How its hosts share.
    pub mode: GroupMode,
    /// Its hosts as the rules name them, in order of their ids, with weights or handling
    /// priorities.
    pub members: Vec<Member>,
    /// Its rules, by their place in what [`Rules::new`](super::Rules::new) was given, from 0.
    pub rules: Vec<usize>,
}

/// How the hosts of a group share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupMode {
    /// Parts by weight.
    Multiple(Affinity),
    /// One has all.
    Single,
}

/// What rules of one group have in common. Weights come last, and of two groups that differ only
/// in them the one with the lower ports comes first: hosts whose files name other weights still
/// number the slots alike.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Common {
    scope: Scope,
    protocol: Protocol,
    mode: GroupMode,
    hosts: u32,
    members: Vec<Member>,
}

impl Group {
    /// Whether this is the group of a rule for this protocol (not [`Protocol::Both`]).
    pub(super) fn covers(&self, rule: usize, protocol: Protocol) -> bool {
        self.rules.contains(&rule) && (self.protocol == Protocol::Both || self.protocol == protocol)
    }
}

/// The groups of rules that are right each for itself, in order of their slots.
pub(super) fn groups(rules: &[Rule]) -> Result<Vec<Group>, Refused> {
    let mut found: BTreeMap<Common, Vec<usize>> = BTreeMap::new();
    for (place, rule) in rules.iter().enumerate() {
        for common in commons(rule) {
            found.entry(common).or_default().push(place);
        }
    }
    let mut found: Vec<(Common, Vec<usize>)> = found.into_iter().collect();
    if found.len() > MAX_GROUPS {
        return Err(Refused::Groups { given: found.len() });
    }
    found.sort_by_key(|(common, places)| {
        let ports = places.iter().map(|&place| (rules[place].first_port, rules[place].protocol));
        (common.scope, common.protocol, common.mode, common.hosts, ports.min())
    });
    Ok(Slot::all()
        .skip(2)
        .zip(found)
        .map(|(slot, (common, rules))| Group {
            slot,
            id: id(&common),
            scope: common.scope,
            protocol: common.protocol,
            mode: common.mode,
            members: common.members,
            rules,
        })
        .collect())
}

/// The groups a rule belongs to: none, one, or one for each protocol.
fn commons(rule: &Rule) -> Vec<Common> {
    let (mode, members) = match &rule.mode {
        Mode::Multiple { affinity, weights } => (GroupMode::Multiple(*affinity), weights),
        Mode::Single { priorities } => (GroupMode::Single, priorities),
        Mode::Disabled => return vec![],
    };
    let mut members = members.clone();
    members.sort_unstable();
    let hosts: HostSet = members.iter().map(|&(host, _)| host).collect();
    let common = |protocol| Common {
        scope: rule.scope,
        protocol,
        mode,
        hosts: hosts.bits(),
        members: members.clone(),
    };
    let together = matches!(mode, GroupMode::Multiple(Affinity::Prefix { .. }));
    match (together, rule.protocol) {
        (true, _) => vec![common(Protocol::Both)],
        (false, Protocol::Both) => vec![common(Protocol::Tcp), common(Protocol::Udp)],
        (false, protocol) => vec![common(protocol)],
    }
}

/// What a group is called in hashes: it does not depend on other rules, nor on ports, protocol,
/// hosts and weights.
fn id(common: &Common) -> GroupId {
    let mut bytes = b"switchyard nlb group".to_vec();
    digest::scope(&mut bytes, common.scope);
    digest::group_mode(&mut bytes, common.mode);
    GroupId(digest::number(&bytes) as u32)
}
