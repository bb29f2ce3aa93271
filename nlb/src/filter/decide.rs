//! Decide: parse, classify, and one reason for every frame.
//!
//! ```text
//!   frame --- heartbeat, not IP -----------------------------------------------> pass
//!     | IP destination
//!     +--- this host's, a group's, not sent to the cluster's MAC address ------> pass
//!     +--- a peer's, nobody's --------------------------------------------------> drop
//!     +--- virtual
//!            +--- from no client's address -------------------------------------> drop
//!            +--- neighbour discovery, remote control, not balanced ------------> pass
//!            +--- this host stopped or quarantined -----------------------------> drop
//!            +--- later fragment: as the first one -----------------------------> pass / drop
//!            +--- a flow this host holds (not its first packet) ----------------> pass
//!            +--- disabled rule ------------------------------------------------> drop
//!            +--- bucket this host serves
//!            |      +--- first packet, or nobody else holds flows in it --------> pass
//!            |      +--- otherwise ---------------------------------------------> drop
//!            +--- bucket another host serves -----------------------------------> drop
//! ```
//!
//! A flow's first packet always goes by the map, any other first by what the host holds: so a flow
//! stays where it began, whatever the map says later.

use std::net::IpAddr;

use forwarding::wire::ethernet;

use super::classify::{Class, classify, first_fragment};
use super::frame::{self, HEARTBEAT, Ip};
use super::{Echo, Flows, HostState, Owner, Policy, Reason, Socket};
use crate::hash;
use crate::rules::{Affinity, Choice, Kind};
use crate::tuple::Tuple;

/// What is done with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Why, and with it whether the frame goes up to the host's stack.
    pub reason: Reason,
    /// Whether its destination MAC address becomes the interface's own.
    pub to_own_mac: bool,
}

impl Decision {
    /// Whether the frame goes up to the host's stack.
    pub fn passes(self) -> bool {
        self.reason.passes()
    }
}

/// Decides about a frame as it came from the wire, of any length and content.
pub fn decide(frame: &[u8], policy: &Policy, flows: &mut impl Flows) -> Decision {
    let Some(link) = frame::link(frame) else {
        return Decision { reason: Reason::Malformed, to_own_mac: false };
    };
    let to_cluster = link.destination == policy.cluster_mac;
    let ip = match link.ether_type {
        ethernet::IPV4 => frame::ipv4(frame, link.payload),
        ethernet::IPV6 => frame::ipv6(frame, link.payload),
        HEARTBEAT => return Decision { reason: Reason::HeartbeatConsumed, to_own_mac: false },
        _ => return Decision { reason: Reason::NonIp, to_own_mac: false },
    };
    let reason = match ip {
        None => Reason::Malformed,
        Some(ip) => match policy.owner(ip.destination) {
            Some(Owner::Cluster) => balanced(frame, &ip, policy, flows),
            other => not_balanced(&ip, other, link.destination, to_cluster),
        },
    };
    Decision { reason, to_own_mac: to_cluster && reason.claims() }
}

/// A packet to an address that is not virtual.
fn not_balanced(ip: &Ip, owner: Option<Owner>, mac: ethernet::Address, to_cluster: bool) -> Reason {
    match owner {
        Some(Owner::Own) => Reason::OwnDedicatedIp,
        _ if is_group(ip.destination) => Reason::BcastMcast,
        Some(Owner::Peer) if to_cluster => Reason::PeerDedicatedIp,
        _ if to_cluster => Reason::ForeignIp,
        _ if mac[0] & 1 == 1 => Reason::BcastMcast,
        _ => Reason::NotCluster,
    }
}

/// A packet to a virtual address.
fn balanced(frame: &[u8], ip: &Ip, policy: &Policy, flows: &mut impl Flows) -> Reason {
    if is_martian(ip.source) || policy.owner(ip.source) == Some(Owner::Cluster) {
        return Reason::MartianSource;
    }
    let Some(upper) = ip.upper(frame) else { return Reason::Malformed };
    let Some(class) = classify(frame, ip, &upper, policy) else { return Reason::Malformed };
    let reason = match class {
        Class::Discovery => Reason::NonIp,
        Class::Control => Reason::ControlConsumed,
        Class::Unmanaged => Reason::UnmanagedProto,
        _ => match policy.state {
            HostState::Stopped => Reason::HostStopped,
            HostState::Quarantined => Reason::Quarantine,
            HostState::Active => active(class, policy, flows),
        },
    };
    if let Some(key) = first_fragment(ip, &upper) {
        flows.note_fragment(&key, reason);
    }
    reason
}

/// A packet that is balanced, on a host that takes part.
fn active(class: Class, policy: &Policy, flows: &mut impl Flows) -> Reason {
    match class {
        Class::Later(key) => match flows.fragment(&key) {
            None => Reason::FragUnknown,
            Some(first) if first.passes() => Reason::FragFollow,
            Some(first) => first,
        },
        Class::Echo(_) if policy.echo == Echo::All => Reason::UnmanagedProto,
        Class::Echo(tuple) => echo(&tuple, policy),
        Class::Tcp { tuple, begins: true } => tcp_begins(&tuple, policy, flows),
        Class::Tcp { tuple, begins: false } => tcp_goes_on(&tuple, policy, flows),
        Class::Udp { tuple, begins } => udp(&tuple, begins, policy, flows),
        Class::Gre(tuple) => gre(&tuple, policy, flows),
        Class::Discovery | Class::Control | Class::Unmanaged => Reason::UnmanagedProto,
    }
}

fn echo(tuple: &Tuple, policy: &Policy) -> Reason {
    let Choice { slot, group, affinity, .. } = Choice::ECHO;
    let bucket = hash::bucket(policy.hash, group, affinity, tuple);
    if policy.serves(slot, bucket) { Reason::OwnBucket } else { Reason::NotOwner }
}

/// A SYN goes by the map. Where another host serves it, a flow with the same ports that this host
/// still holds is over: its socket must not answer beside the new owner's.
fn tcp_begins(tuple: &Tuple, policy: &Policy, flows: &mut impl Flows) -> Reason {
    let Some((choice, bucket)) = policy.place(tuple) else { return Reason::RuleBlocked };
    let tunnel = hash::is_pptp(tuple).then(|| tuple.tunnel());
    if policy.serves(choice.slot, bucket) {
        flows.unretire(tuple);
        // The pin lets the rest of the handshake through where no socket tells of it.
        if policy.track || policy.is_tainted(choice.slot, bucket) {
            flows.pin(tuple);
        }
        if let Some(tunnel) = tunnel {
            flows.pin(&tunnel);
        }
        return taken(choice.kind);
    }
    if let Some(tunnel) = tunnel {
        flows.unpin(&tunnel);
    }
    if flows.socket(tuple) == Some(Socket::Flow) || flows.is_pinned(tuple) {
        flows.unpin(tuple);
        flows.retire(tuple);
        return Reason::PinnedElsewhere;
    }
    Reason::NotOwner
}

fn tcp_goes_on(tuple: &Tuple, policy: &Policy, flows: &mut impl Flows) -> Reason {
    if !flows.is_retired(tuple)
        && (flows.socket(tuple) == Some(Socket::Flow) || flows.is_pinned(tuple))
    {
        return Reason::FlowPinned;
    }
    let Some((choice, bucket)) = policy.place(tuple) else { return Reason::RuleBlocked };
    match (policy.serves(choice.slot, bucket), policy.is_tainted(choice.slot, bucket)) {
        (true, false) => taken(choice.kind),
        (true, true) => Reason::BucketTainted,
        (false, _) => Reason::NotOwner,
    }
}

/// A datagram does not show whether it begins a flow. Pins count only without affinity: with it a
/// bucket is handed over when no flow is left in it, which is the better way to keep them.
fn udp(tuple: &Tuple, begins: bool, policy: &Policy, flows: &mut impl Flows) -> Reason {
    let Some((choice, bucket)) = policy.place(tuple) else { return Reason::RuleBlocked };
    let by_pins = policy.udp_pin && choice.affinity == Affinity::None;
    if by_pins && flows.is_pinned(tuple) {
        if begins {
            flows.pin(tuple);
        }
        return Reason::FlowPinned;
    }
    if !policy.serves(choice.slot, bucket) {
        return Reason::NotOwner;
    }
    if by_pins && policy.is_tainted(choice.slot, bucket) {
        return Reason::BucketTainted;
    }
    if policy.udp_pin && begins {
        flows.pin(tuple);
    }
    taken(choice.kind)
}

fn gre(tuple: &Tuple, policy: &Policy, flows: &mut impl Flows) -> Reason {
    if flows.is_pinned(tuple) {
        return Reason::Related;
    }
    let Some((choice, bucket)) = policy.place(tuple) else { return Reason::RuleBlocked };
    match (policy.serves(choice.slot, bucket), policy.is_tainted(choice.slot, bucket)) {
        (true, false) => taken(choice.kind),
        (true, true) => Reason::BucketTainted,
        (false, _) => Reason::NotOwner,
    }
}

fn taken(kind: Kind) -> Reason {
    match kind {
        Kind::Multiple => Reason::OwnBucket,
        Kind::Single => Reason::SingleHostRule,
        Kind::Default => Reason::DefaultHost,
    }
}

/// Multicast, or the broadcast address of IPv4.
fn is_group(address: IpAddr) -> bool {
    address.is_multicast() || address == IpAddr::V4(std::net::Ipv4Addr::BROADCAST)
}

/// No client's address: of this network or host, loopback, multicast and what lies above it.
fn is_martian(source: IpAddr) -> bool {
    match source {
        IpAddr::V4(source) => matches!(source.octets()[0], 0 | 127 | 224..),
        IpAddr::V6(source) => {
            source.is_unspecified() || source.is_loopback() || source.is_multicast()
        }
    }
}
