//! What becomes of a flow when its bucket moves: two hosts, each with its memory.

use super::cluster::*;
use super::frames::Spec;
use crate::buckets::BucketSet;
use crate::filter::{Memory, Policy, Reason, Socket, decide};
use crate::rules::Affinity;
use crate::tuple::Tuple;

struct Host {
    policy: Policy,
    memory: Memory,
}

impl Host {
    fn new(policy: Policy) -> Host {
        Host { policy, memory: Memory::default() }
    }

    fn gets(&mut self, spec: &Spec) -> Reason {
        decide(&spec.build(), &self.policy, &mut self.memory).reason
    }

    fn serves(&mut self, buckets: &BucketSet) {
        for slot in self.policy.slots.iter_mut() {
            slot.serving = buckets.clone();
        }
    }

    fn taints(&mut self, buckets: &BucketSet) {
        for slot in self.policy.slots.iter_mut() {
            slot.tainted = buckets.clone();
        }
    }

    /// The stack answered the SYN: there is a socket now.
    fn answers(&mut self, ipv6: bool) {
        self.memory.sockets.insert(flow(ipv6), Socket::Flow);
    }
}

fn flow(ipv6: bool) -> Tuple {
    Tuple {
        protocol: 6,
        client: client(ipv6),
        client_port: 40000,
        vip: vip(ipv6),
        vip_port: SHARED,
    }
}

/// A flow that began on the old host, whose buckets then all went to the new one.
fn moved(ipv6: bool) -> [Host; 2] {
    let [mut old, mut new] = [alone(), idle()].map(Host::new);
    new.memory.sockets.insert(flow(ipv6), Socket::Listening);
    assert_eq!(old.gets(&syn(ipv6, SHARED)), Reason::OwnBucket);
    assert_eq!(new.gets(&syn(ipv6, SHARED)), Reason::NotOwner);
    old.answers(ipv6);
    old.serves(&BucketSet::EMPTY);
    new.serves(&BucketSet::ALL);
    new.taints(&BucketSet::ALL);
    [old, new]
}

#[test]
fn a_flow_stays_with_its_host_when_its_bucket_moves() {
    for ipv6 in [false, true] {
        let [mut old, mut new] = moved(ipv6);
        for _ in 0..3 {
            assert_eq!(old.gets(&ack(ipv6, SHARED)), Reason::FlowPinned);
            assert_eq!(new.gets(&ack(ipv6, SHARED)), Reason::BucketTainted, "no reset");
        }
        let error = ack(ipv6, SHARED).error(client(ipv6));
        assert_eq!(old.gets(&error), Reason::FlowPinned, "path MTU discovery goes on");
        assert_eq!(new.gets(&error), Reason::BucketTainted);
    }
}

#[test]
fn the_client_of_a_dead_host_is_answered_at_once() {
    let [_, mut new] = moved(false);
    new.taints(&BucketSet::EMPTY);
    assert_eq!(new.gets(&ack(false, SHARED)), Reason::OwnBucket, "the stack resets it");
}

#[test]
fn a_new_connection_with_old_ports_is_answered_by_one_host_only() {
    for ipv6 in [false, true] {
        let [mut old, mut new] = moved(ipv6);
        assert_eq!(old.gets(&syn(ipv6, SHARED)), Reason::PinnedElsewhere);
        assert_eq!(new.gets(&syn(ipv6, SHARED)), Reason::OwnBucket);
        // The old socket is still there, and the new host's pin lets the handshake end.
        assert_eq!(old.gets(&ack(ipv6, SHARED)), Reason::NotOwner);
        assert_eq!(new.gets(&ack(ipv6, SHARED)), Reason::FlowPinned);
        // The bucket comes back, and a third connection begins.
        old.serves(&BucketSet::ALL);
        old.taints(&BucketSet::ALL);
        new.serves(&BucketSet::EMPTY);
        assert_eq!(old.gets(&syn(ipv6, SHARED)), Reason::OwnBucket);
        assert_eq!(new.gets(&syn(ipv6, SHARED)), Reason::PinnedElsewhere);
        assert_eq!(old.gets(&ack(ipv6, SHARED)), Reason::FlowPinned);
        assert_eq!(new.gets(&ack(ipv6, SHARED)), Reason::NotOwner);
    }
}

/// Flows whose sockets are in another namespace are known by their pins alone.
#[test]
fn a_tracked_flow_stays_without_a_socket() {
    let [mut old, mut new] = [alone(), idle()].map(Host::new);
    old.policy.track = true;
    assert_eq!(old.gets(&syn(false, SHARED)), Reason::OwnBucket);
    old.serves(&BucketSet::EMPTY);
    new.serves(&BucketSet::ALL);
    new.taints(&BucketSet::ALL);
    assert_eq!(old.gets(&ack(false, SHARED)), Reason::FlowPinned);
    assert_eq!(new.gets(&ack(false, SHARED)), Reason::BucketTainted);
    assert_eq!(old.gets(&syn(false, SHARED)), Reason::PinnedElsewhere);
    assert_eq!(old.gets(&ack(false, SHARED)), Reason::NotOwner);
    assert!(old.memory.pins.is_empty(), "what is given up must not be told as held");
}

#[test]
fn without_a_reason_nothing_is_pinned() {
    let mut host = Host::new(alone());
    assert_eq!(host.gets(&syn(false, SHARED)), Reason::OwnBucket);
    assert_eq!(host.memory, Memory::default(), "the socket table is enough");
}

#[test]
fn a_socket_that_listens_is_no_flow() {
    let mut host = Host::new(idle());
    host.memory.sockets.insert(flow(false), Socket::Listening);
    assert_eq!(host.gets(&ack(false, SHARED)), Reason::NotOwner);
    assert_eq!(host.gets(&syn(false, SHARED)), Reason::NotOwner);
    assert!(host.memory.retired.is_empty());
}

/// Between release and acquisition nobody serves a bucket; at no time do two.
#[test]
fn releasing_before_acquiring_never_lets_a_packet_through_twice() {
    let both = cluster(Affinity::SINGLE, 2);
    let [mut one, mut other] = [both[0].clone(), both[1].clone()].map(Host::new);
    for step in 0..3 {
        if step == 1 {
            one.serves(&BucketSet::EMPTY);
        }
        if step == 2 {
            other.serves(&BucketSet::ALL);
        }
        for port in 0..2000 {
            let spec = Spec {
                source: [192, 0, 2 + (port >> 8) as u8, port as u8].into(),
                ..udp(false, SHARED)
            };
            let takers = [one.gets(&spec), other.gets(&spec)];
            let takers = takers.into_iter().filter(|reason| reason.passes()).count();
            assert!(takers <= 1 && (step == 1 || takers == 1), "step {step}: {takers}");
        }
    }
}
