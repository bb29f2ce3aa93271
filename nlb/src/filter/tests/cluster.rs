//! Clusters of hosts that have converged, and frames to them.

use std::net::IpAddr;

use forwarding::wire::{protocol, tcp};

use super::frames::{Spec, datagram, message, segment};
use crate::buckets::BucketSet;
use crate::delivery::Delivery;
use crate::filter::{HostState, Policy};
use crate::host::HostId;
use crate::key::ClusterKey;
use crate::map::Member;
use crate::rules::{Affinity, Mode, Protocol, Rule, Rules, Scope};
use crate::tuple::PPTP;

pub(super) const VIP4: [u8; 4] = [198, 51, 100, 10];
pub(super) const VIP6: &str = "2001:db8:1::10";
pub(super) const OWN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Shared by all hosts, with the affinity of the cluster, for TCP and UDP.
pub(super) const SHARED: u16 = 80;
/// One host's.
pub(super) const SINGLE: u16 = 25;
/// Nobody's.
pub(super) const BLOCKED: u16 = 23;
/// In no rule.
pub(super) const UNCOVERED: u16 = 9999;

pub(super) fn vip(ipv6: bool) -> IpAddr {
    if ipv6 { VIP6.parse().unwrap() } else { VIP4.into() }
}

pub(super) fn client(ipv6: bool) -> IpAddr {
    let address = if ipv6 { "2001:db8:2::7" } else { "192.0.2.7" };
    address.parse().unwrap()
}

pub(super) fn members(hosts: u8) -> Vec<Member> {
    (1..=hosts).map(|id| (HostId::new(id).unwrap(), id)).collect()
}

pub(super) fn rules(affinity: Affinity, hosts: u8) -> Rules {
    let equal: Vec<Member> = members(hosts).into_iter().map(|(host, _)| (host, 50)).collect();
    let rule = |port, mode| Rule {
        scope: Scope::All,
        protocol: Protocol::Both,
        first_port: port,
        last_port: port,
        mode,
    };
    Rules::new(vec![
        rule(SHARED, Mode::Multiple { affinity, weights: equal.clone() }),
        rule(PPTP, Mode::Multiple { affinity, weights: equal }),
        rule(SINGLE, Mode::Single { priorities: members(hosts) }),
        rule(BLOCKED, Mode::Disabled),
    ])
    .unwrap()
}

/// The policies of the hosts of a cluster that has converged.
pub(super) fn cluster(affinity: Affinity, hosts: u8) -> Vec<Policy> {
    let key = ClusterKey::new(b"a key of the tests").unwrap();
    let rules = rules(affinity, hosts);
    let mac = Delivery::Unicast.cluster_mac(vip(false));
    let start = Policy::new(OWN_MAC, mac, vip(false), rules.clone(), key.hash());
    let mut policies = vec![start; hosts.into()];
    for slot in rules.slots() {
        let all = members(hosts);
        let target = rules.target(key.map(), slot, rules.members(slot).unwrap_or(&all));
        for (policy, host) in policies.iter_mut().zip(HostId::all()) {
            policy.slots[slot.index()].serving = target.of(host);
        }
    }
    for (place, policy) in policies.iter_mut().enumerate() {
        policy.state = HostState::Active;
        policy.vips.push(vip(true));
        let dedicated = |place: usize| IpAddr::from([10, 0, 0, place as u8 + 1]);
        policy.own = vec![dedicated(place)];
        policy.peers = (0..hosts.into()).filter(|&other| other != place).map(dedicated).collect();
    }
    policies
}

/// A host that serves everything.
pub(super) fn alone() -> Policy {
    cluster(Affinity::None, 1).remove(0)
}

/// A host of two that serves nothing.
pub(super) fn idle() -> Policy {
    let mut policy = cluster(Affinity::None, 2).remove(0);
    for slot in policy.slots.iter_mut() {
        slot.serving = BucketSet::EMPTY;
    }
    policy
}

/// Every bucket has flows elsewhere.
pub(super) fn tainted(mut policy: Policy) -> Policy {
    for slot in policy.slots.iter_mut() {
        slot.tainted = BucketSet::ALL;
    }
    policy
}

/// A packet to the cluster, over IPv4 or IPv6.
pub(super) fn packet(ipv6: bool, protocol: u8, payload: Vec<u8>) -> Spec {
    Spec {
        mac: Delivery::Unicast.cluster_mac(vip(false)),
        tag: None,
        source: client(ipv6),
        destination: vip(ipv6),
        protocol,
        extensions: vec![],
        fragment: None,
        payload,
    }
}

pub(super) fn syn(ipv6: bool, port: u16) -> Spec {
    packet(ipv6, protocol::TCP, segment(40000, port, tcp::SYN))
}

pub(super) fn ack(ipv6: bool, port: u16) -> Spec {
    packet(ipv6, protocol::TCP, segment(40000, port, tcp::ACK))
}

pub(super) fn udp(ipv6: bool, port: u16) -> Spec {
    packet(ipv6, protocol::UDP, datagram(40000, port))
}

pub(super) fn gre(ipv6: bool) -> Spec {
    packet(ipv6, protocol::GRE, vec![0x30, 1, 0x88, 0x0b])
}

pub(super) fn ping(ipv6: bool) -> Spec {
    let (protocol, kind) = if ipv6 { (protocol::ICMPV6, 128) } else { (protocol::ICMP, 8) };
    packet(ipv6, protocol, message(kind))
}
