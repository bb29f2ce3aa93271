//! Which packets get a firewall mark that some service is named by: the rules as data, and the
//! decision in plain Rust. The instructions are written in `marked_program.rs`.
//!
//! A packet is taken when the last rule that matches it has such a mark. Later fragments show
//! neither ports nor, for certain, their protocol: of them every packet is taken that could match.

use crate::control::api::Protocol;
use crate::fwmark::{PortRange, Prefix, Rule};

/// Address and mask, IPv4 mapped into IPv6.
pub(super) type Network = (u128, u128);

/// The rules of both families in the order in which they count: the last one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkedSet {
    pub(super) v4: Vec<Marked>,
    pub(super) v6: Vec<Marked>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marked {
    /// Whether its packets are ours; else it keeps packets from the rules behind it.
    pub(super) taken: bool,
    pub(super) protocol: Option<u8>,
    pub(super) source: Network,
    pub(super) destination: Network,
    pub(super) ports: Vec<PortRange>,
    pub(super) source_ports: Vec<PortRange>,
}

/// One end of a packet: its address, IPv4 mapped into IPv6, and port.
pub(super) type End = (u128, u16);

impl MarkedSet {
    /// `rules` in the order in which they are written; `is_ours` tells of a mark and a family
    /// (whether it is IPv6) if there is a service.
    pub fn new<'a>(
        rules: impl DoubleEndedIterator<Item = &'a Rule> + Clone,
        is_ours: impl Fn(u32, bool) -> bool,
    ) -> MarkedSet {
        let of_family = |ipv6| {
            let concerned = rules.clone().rev().filter(|rule| rule.concerns(ipv6));
            let mut marked: Vec<Marked> =
                concerned.map(|rule| Marked::new(rule, is_ours(rule.mark, ipv6))).collect();
            let last = marked.iter().rposition(|rule| rule.taken);
            marked.truncate(last.map_or(0, |last| last + 1));
            marked
        };
        MarkedSet { v4: of_family(false), v6: of_family(true) }
    }

    /// Whether no packet is ours for its mark.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    fn family(&self, ipv6: bool) -> &[Marked] {
        if ipv6 { &self.v6 } else { &self.v4 }
    }

    /// Whether a packet is ours for its mark.
    pub(super) fn takes(&self, ipv6: bool, protocol: u8, from: End, to: End) -> bool {
        let mut rules = self.family(ipv6).iter();
        rules.find(|rule| rule.matches(protocol, from, to)).is_some_and(|rule| rule.taken)
    }

    /// Whether a later fragment may be one of a packet that is ours for its mark.
    pub(super) fn may_take_fragment(&self, ipv6: bool, from: u128, to: u128) -> bool {
        let mut taken = self.family(ipv6).iter().filter(|rule| rule.taken);
        taken.any(|rule| within(rule.source, from) && within(rule.destination, to))
    }
}

impl Marked {
    fn new(rule: &Rule, taken: bool) -> Marked {
        let network = |prefix: Option<Prefix>| prefix.map_or((0, 0), |prefix| prefix.mapped());
        Marked {
            taken,
            protocol: rule.protocol.map(Protocol::number),
            source: network(rule.source),
            destination: network(rule.destination),
            ports: rule.ports.clone(),
            source_ports: rule.source_ports.clone(),
        }
    }

    fn matches(&self, protocol: u8, from: End, to: End) -> bool {
        self.protocol.is_none_or(|wanted| wanted == protocol)
            && within(self.source, from.0)
            && within(self.destination, to.0)
            && has(&self.source_ports, from.1)
            && has(&self.ports, to.1)
    }
}

fn within((network, mask): Network, address: u128) -> bool {
    address & mask == network
}

fn has(ranges: &[PortRange], port: u16) -> bool {
    ranges.is_empty() || ranges.iter().any(|range| range.has(port))
}
