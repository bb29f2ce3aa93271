//! What is wrong with a rule, or with two together. Rules are counted from 1, as an operator does.

use super::{Affinity, MAX_PORTS, MAX_RANGES, MAX_WEIGHT, Mode, Protocol, Rule};
use crate::host::{HostId, HostSet};
use crate::map::Member;
use crate::slot::MAX_GROUPS;

/// Largest handling priority.
const MAX_PRIORITY: u8 = 32;

/// Why rules are refused. Nothing of them is taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say it.
pub enum Refused {
    #[error(
        "rule {second} ({second_rule}) overlaps rule {first} ({first_rule}): \
         give every port of an address to one rule"
    )]
    Overlap { first: usize, first_rule: String, second: usize, second_rule: String },
    #[error("rule {rule}: ports {first}-{last} run backwards: write {last}-{first}")]
    Backwards { rule: usize, first: u16, last: u16 },
    #[error(
        "rule {rule}: affinity by {ipv4} bits of IPv4 and {ipv6} of IPv6: \
         give 1 to 32 and 1 to 128"
    )]
    Prefix { rule: usize, ipv4: u8, ipv6: u8 },
    #[error("rule {rule}: weight {weight} of host {host}: give 0 to {MAX_WEIGHT}")]
    Weight { rule: usize, host: HostId, weight: u8 },
    #[error("rule {rule}: handling priority {priority} of host {host}: give 1 to {MAX_PRIORITY}")]
    Priority { rule: usize, host: HostId, priority: u8 },
    #[error("rule {rule}: host {host} is named twice: name it once")]
    Twice { rule: usize, host: HostId },
    #[error("rule {rule} has no host: name one, or disable the rule")]
    NoHost { rule: usize },
    #[error(
        "{given} groups of rules: at most {MAX_GROUPS}; rules that differ only in their ports \
         share one (a rule without affinity needs one for each protocol)"
    )]
    Groups { given: usize },
    #[error(
        "{given} port ranges: at most {MAX_RANGES}, a range of both protocols counts twice; \
         single ports are not ranges"
    )]
    Ranges { given: usize },
    #[error("{given} single ports: at most {MAX_PORTS}, a port of both protocols counts twice")]
    Ports { given: usize },
}

impl Refused {
    /// The places of the rules it is about, from 0; the second is the one to change.
    pub fn rules(&self) -> Vec<usize> {
        match *self {
            Refused::Overlap { first, second, .. } => vec![first - 1, second - 1],
            Refused::Backwards { rule, .. }
            | Refused::Prefix { rule, .. }
            | Refused::Weight { rule, .. }
            | Refused::Priority { rule, .. }
            | Refused::Twice { rule, .. }
            | Refused::NoHost { rule } => vec![rule - 1],
            Refused::Groups { .. } | Refused::Ranges { .. } | Refused::Ports { .. } => vec![],
        }
    }
}

/// Refuses a rule that is wrong in itself.
pub(super) fn each(rules: &[Rule]) -> Result<(), Refused> {
    for (rule, content) in (1..).zip(rules) {
        let (first, last) = (content.first_port, content.last_port);
        if first > last {
            return Err(Refused::Backwards { rule, first, last });
        }
        match &content.mode {
            Mode::Multiple { affinity, weights } => {
                affinity_fits(rule, *affinity)?;
                hosts(rule, weights)?;
                if let Some(&(host, weight)) = weights.iter().find(|w| w.1 > MAX_WEIGHT) {
                    return Err(Refused::Weight { rule, host, weight });
                }
            }
            Mode::Single { priorities } => {
                hosts(rule, priorities)?;
                let out = priorities.iter().find(|p| !(1..=MAX_PRIORITY).contains(&p.1));
                if let Some(&(host, priority)) = out {
                    return Err(Refused::Priority { rule, host, priority });
                }
            }
            Mode::Disabled => {}
        }
    }
    Ok(())
}

fn affinity_fits(rule: usize, affinity: Affinity) -> Result<(), Refused> {
    match affinity {
        Affinity::Prefix { ipv4, ipv6 }
            if !(1..=32).contains(&ipv4) || !(1..=128).contains(&ipv6) =>
        {
            Err(Refused::Prefix { rule, ipv4, ipv6 })
        }
        _ => Ok(()),
    }
}

fn hosts(rule: usize, members: &[Member]) -> Result<(), Refused> {
    let mut seen = HostSet::EMPTY;
    for &(host, _) in members {
        if !seen.insert(host) {
            return Err(Refused::Twice { rule, host });
        }
    }
    if seen.is_empty() { Err(Refused::NoHost { rule }) } else { Ok(()) }
}

/// Refuses the first two rules that both cover a port of the same scope.
pub(super) fn overlaps(rules: &[Rule]) -> Result<(), Refused> {
    for (second, later) in rules.iter().enumerate() {
        for (first, earlier) in rules[..second].iter().enumerate() {
            if earlier.overlaps(later) {
                return Err(Refused::Overlap {
                    first: first + 1,
                    first_rule: earlier.to_string(),
                    second: second + 1,
                    second_rule: later.to_string(),
                });
            }
        }
    }
    Ok(())
}

impl Rule {
    fn overlaps(&self, other: &Rule) -> bool {
        self.scope == other.scope
            && self.protocol.overlaps(other.protocol)
            && self.first_port <= other.last_port
            && other.first_port <= self.last_port
    }
}

impl Protocol {
    fn overlaps(self, other: Protocol) -> bool {
        self == other || self == Protocol::Both || other == Protocol::Both
    }
}
