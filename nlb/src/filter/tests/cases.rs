//! What becomes of each kind of frame, and that every reason is reached.

use std::cell::RefCell;
use std::collections::BTreeSet;

use forwarding::wire::protocol;

use super::cluster::*;
use super::frames::{Fragment, Spec, message};
use crate::filter::{Echo, HostState, Memory, Policy, Reason, decide};
use crate::rules::{Affinity, Mode, Protocol, Rule, Rules, Scope};
use crate::tuple::PPTP;

/// Asks for decisions and keeps a list of the reasons that came.
#[derive(Default)]
struct Asked(RefCell<BTreeSet<Reason>>);

impl Asked {
    /// The reason for a frame on a host without memory; the destination address is checked too.
    fn of(&self, policy: &Policy, spec: &Spec) -> Reason {
        self.with(policy, spec, &mut Memory::default())
    }

    fn with(&self, policy: &Policy, spec: &Spec, memory: &mut Memory) -> Reason {
        self.bytes(policy, &spec.build(), memory)
    }

    fn bytes(&self, policy: &Policy, frame: &[u8], memory: &mut Memory) -> Reason {
        let decision = decide(frame, policy, memory);
        let to_cluster = frame.get(..6) == Some(&policy.cluster_mac);
        assert_eq!(decision.to_own_mac, to_cluster && decision.reason.claims());
        assert_eq!(decision.passes(), decision.reason.passes());
        self.0.borrow_mut().insert(decision.reason);
        decision.reason
    }
}

fn to(spec: Spec, destination: &str) -> Spec {
    Spec { destination: destination.parse().unwrap(), ..spec }
}

fn from(spec: Spec, source: &str) -> Spec {
    Spec { source: source.parse().unwrap(), ..spec }
}

fn mac(spec: Spec, mac: [u8; 6]) -> Spec {
    Spec { mac, ..spec }
}

fn fragment(spec: Spec, id: u32, offset: u16, more: bool) -> Spec {
    Spec { fragment: Some(Fragment { id, offset, more }), ..spec }
}

#[test]
fn every_reason_is_reached_and_by_the_right_frame() {
    let asked = Asked::default();
    not_balanced(&asked);
    by_rule(&asked);
    by_state(&asked);
    fragments(&asked);
    messages(&asked);
    tunnels(&asked);
    datagrams(&asked);
    garbage(&asked);
    held(&asked);
    let missed: Vec<_> =
        Reason::ALL.iter().filter(|reason| !asked.0.borrow().contains(reason)).collect();
    assert!(missed.is_empty(), "no frame reached {missed:?}");
}

fn not_balanced(asked: &Asked) {
    let host = cluster(Affinity::None, 2).remove(0);
    let broadcast = [0xff; 6];
    let router = [2, 0, 0, 0, 0, 99];
    for (spec, reason) in [
        (to(udp(false, 53), "10.0.0.1"), Reason::OwnDedicatedIp),
        (mac(to(udp(false, 53), "10.0.0.1"), OWN_MAC), Reason::OwnDedicatedIp),
        (to(udp(false, 53), "10.0.0.2"), Reason::PeerDedicatedIp),
        (mac(to(udp(false, 53), "10.0.0.2"), OWN_MAC), Reason::NotCluster),
        (to(udp(false, 53), "10.9.9.9"), Reason::ForeignIp),
        (to(udp(true, 53), "2001:db8:1::99"), Reason::ForeignIp),
        (mac(to(udp(false, 53), "10.9.9.9"), router), Reason::NotCluster),
        (mac(to(udp(false, 53), "10.9.9.9"), OWN_MAC), Reason::NotCluster),
        (to(udp(false, 53), "224.0.0.1"), Reason::BcastMcast),
        (to(udp(false, 53), "255.255.255.255"), Reason::BcastMcast),
        (to(udp(true, 53), "ff02::1"), Reason::BcastMcast),
        (mac(to(udp(false, 53), "10.0.0.255"), broadcast), Reason::BcastMcast),
    ] {
        assert_eq!(asked.of(&host, &spec), reason, "{spec:?}");
    }
    for source in ["0.1.2.3", "127.0.0.1", "198.51.100.10", "224.0.0.1", "255.255.255.255"] {
        assert_eq!(asked.of(&alone(), &from(syn(false, 80), source)), Reason::MartianSource);
    }
    for source in ["::", "::1", "ff02::1", VIP6] {
        assert_eq!(asked.of(&alone(), &from(syn(true, 80), source)), Reason::MartianSource);
    }
    for ether_type in [0x0806u16, 0x886f, 0x8100] {
        let mut frame = udp(false, 53).build();
        frame[12..14].copy_from_slice(&ether_type.to_be_bytes());
        let expected = match ether_type {
            0x886f => Reason::HeartbeatConsumed,
            _ => Reason::NonIp,
        };
        assert_eq!(asked.bytes(&host, &frame, &mut Memory::default()), expected);
    }
}

/// What a rule says holds whatever MAC address and tag a frame has.
fn by_rule(asked: &Asked) {
    for ipv6 in [false, true] {
        for (tag, to_mac) in [
            (None, alone().cluster_mac),
            (Some(0x8100), alone().cluster_mac),
            (Some(0x88a8), OWN_MAC),
            (None, [0xff; 6]),
            (None, [2, 0, 0, 0, 0, 99]),
        ] {
            for make in [syn, ack, udp] {
                let of = |policy: &Policy, port| {
                    asked.of(policy, &Spec { tag, mac: to_mac, ..make(ipv6, port) })
                };
                assert_eq!(of(&alone(), SHARED), Reason::OwnBucket);
                assert_eq!(of(&alone(), SINGLE), Reason::SingleHostRule);
                assert_eq!(of(&alone(), UNCOVERED), Reason::DefaultHost);
                assert_eq!(of(&alone(), BLOCKED), Reason::RuleBlocked);
                for port in [SHARED, SINGLE, UNCOVERED] {
                    assert_eq!(of(&idle(), port), Reason::NotOwner);
                }
            }
        }
        for extensions in [vec![0], vec![60], vec![43], vec![0, 43, 60], vec![0, 60, 43, 60]] {
            let spec = Spec { extensions, ..syn(ipv6, SHARED) };
            assert_eq!(asked.of(&alone(), &spec), Reason::OwnBucket);
        }
    }
    let five = Spec { extensions: vec![0, 60, 43, 60, 60], ..syn(true, SHARED) };
    assert_eq!(asked.of(&alone(), &five), Reason::Malformed);
    let sctp = packet(false, protocol::SCTP, vec![0; 12]);
    assert_eq!(asked.of(&idle(), &sctp), Reason::UnmanagedProto);
    let control = udp(false, 2504);
    for state in [HostState::Active, HostState::Stopped, HostState::Quarantined] {
        let policy = Policy { state, ..idle() };
        assert_eq!(asked.of(&policy, &control), Reason::ControlConsumed);
    }
    assert_eq!(asked.of(&idle(), &udp(true, 2504)), Reason::NotOwner, "not the primary address");
}

/// A host that takes no part drops what is balanced and nothing else.
fn by_state(asked: &Asked) {
    for (state, reason) in
        [(HostState::Stopped, Reason::HostStopped), (HostState::Quarantined, Reason::Quarantine)]
    {
        let policy = Policy { state, ..alone() };
        for ipv6 in [false, true] {
            for make in [syn, ack, udp] {
                for port in [SHARED, SINGLE, UNCOVERED, BLOCKED] {
                    assert_eq!(asked.of(&policy, &make(ipv6, port)), reason);
                }
            }
            for spec in [ping(ipv6), gre(ipv6), fragment(udp(ipv6, SHARED), 1, 2, true)] {
                assert_eq!(asked.of(&policy, &spec), reason);
            }
            let error = ack(ipv6, SHARED).error(client(ipv6));
            assert_eq!(asked.of(&policy, &error), reason);
        }
        assert_eq!(asked.of(&policy, &to(udp(false, 53), "10.0.0.1")), Reason::OwnDedicatedIp);
        let reply = packet(false, protocol::ICMP, message(0));
        assert_eq!(asked.of(&policy, &reply), Reason::UnmanagedProto);
    }
}

/// Later fragments go where their first one went, and no others.
fn fragments(asked: &Asked) {
    for ipv6 in [false, true] {
        for (policy, first, later) in [
            (alone(), Reason::OwnBucket, Reason::FragFollow),
            (idle(), Reason::NotOwner, Reason::NotOwner),
        ] {
            let mut memory = Memory::default();
            let datagram = udp(ipv6, SHARED);
            let rest = |id, more| fragment(datagram.clone(), id, 5, more);
            assert_eq!(asked.with(&policy, &rest(7, false), &mut memory), Reason::FragUnknown);
            let head = fragment(datagram.clone(), 7, 0, true);
            assert_eq!(asked.with(&policy, &head, &mut memory), first);
            assert_eq!(asked.with(&policy, &rest(7, true), &mut memory), later);
            assert_eq!(asked.with(&policy, &rest(7, false), &mut memory), later);
            assert_eq!(asked.with(&policy, &rest(8, false), &mut memory), Reason::FragUnknown);
            let other = from(rest(7, false), if ipv6 { "2001:db8::1" } else { "192.0.2.8" });
            assert_eq!(asked.with(&policy, &other, &mut memory), Reason::FragUnknown);
        }
        let mut memory = Memory::default();
        let head = fragment(ping(ipv6), 9, 0, true);
        assert_eq!(asked.with(&alone(), &head, &mut memory), Reason::OwnBucket);
        let rest = fragment(ping(ipv6), 9, 9, false);
        assert_eq!(asked.with(&alone(), &rest, &mut memory), Reason::FragFollow);
        let esp = Spec { protocol: protocol::ESP, ..fragment(ping(ipv6), 9, 9, false) };
        assert_eq!(asked.with(&idle(), &esp, &mut memory), Reason::UnmanagedProto);
        // A tunnel's packets need no ports.
        let tunnel = fragment(gre(ipv6), 10, 9, false);
        assert_eq!(asked.of(&alone(), &tunnel), Reason::OwnBucket);
    }
    // Behind an IPv6 fragment header destination options may come before the transport.
    let mut memory = Memory::default();
    let mut head = fragment(udp(true, SHARED), 3, 0, true);
    let transport = std::mem::replace(&mut head.payload, vec![protocol::UDP, 0, 0, 0, 0, 0, 0, 0]);
    head.payload.extend(transport);
    head.protocol = protocol::DESTINATION_OPTIONS;
    assert_eq!(asked.with(&alone(), &head, &mut memory), Reason::OwnBucket);
    let rest = Spec { payload: vec![1; 8], ..fragment(head.clone(), 3, 2, false) };
    assert_eq!(asked.with(&alone(), &rest, &mut memory), Reason::FragFollow);
    let atomic = fragment(syn(true, SHARED), 4, 0, false);
    assert_eq!(asked.with(&alone(), &atomic, &mut memory), Reason::OwnBucket);
    assert_eq!(memory.fragments.len(), 1, "a whole packet with a fragment header is no fragment");
}

/// Exactly one host answers a ping; errors go to the flow they are about.
fn messages(asked: &Asked) {
    for ipv6 in [false, true] {
        assert_eq!(asked.of(&alone(), &ping(ipv6)), Reason::OwnBucket);
        assert_eq!(asked.of(&idle(), &ping(ipv6)), Reason::NotOwner);
        let all = Policy { echo: Echo::All, ..idle() };
        assert_eq!(asked.of(&all, &ping(ipv6)), Reason::UnmanagedProto);
        let router = if ipv6 { "2001:db8:9::1" } else { "203.0.113.1" };
        let router = router.parse().unwrap();
        for make in [ack, syn, udp] {
            let error = |port| make(ipv6, port).error(router);
            assert_eq!(asked.of(&alone(), &error(SHARED)), Reason::OwnBucket);
            assert_eq!(asked.of(&alone(), &error(BLOCKED)), Reason::RuleBlocked);
            assert_eq!(asked.of(&idle(), &error(SHARED)), Reason::NotOwner);
        }
        let tcp = ack(ipv6, SHARED).error(router);
        assert_eq!(asked.of(&tainted(alone()), &tcp), Reason::BucketTainted);
        for unreadable in [
            ping(ipv6).error(router),
            fragment(udp(ipv6, SHARED), 5, 3, false).error(router),
            Spec { payload: tcp.payload[..20].to_vec(), ..tcp.clone() },
            to(udp(ipv6, SHARED), if ipv6 { "2001:db8:1::99" } else { "10.9.9.9" }).error(router),
        ] {
            let unreadable = Spec { destination: vip(ipv6), ..unreadable };
            assert_eq!(asked.of(&idle(), &unreadable), Reason::UnmanagedProto);
        }
    }
    for kind in 133..=137 {
        let discovery = packet(true, protocol::ICMPV6, message(kind));
        assert_eq!(asked.of(&idle(), &discovery), Reason::NonIp);
        let other_family = packet(false, protocol::ICMPV6, message(kind));
        assert_eq!(asked.of(&idle(), &other_family), Reason::UnmanagedProto);
    }
}

/// A tunnel is where its control connection is, whatever the map says of it later.
fn tunnels(asked: &Asked) {
    for ipv6 in [false, true] {
        let mut memory = Memory::default();
        let (control, tunnel) = (syn(ipv6, PPTP), gre(ipv6));
        assert_eq!(asked.with(&idle(), &tunnel, &mut memory), Reason::NotOwner);
        assert_eq!(asked.with(&tainted(alone()), &tunnel, &mut memory), Reason::BucketTainted);
        assert_eq!(asked.with(&alone(), &tunnel, &mut memory), Reason::OwnBucket);
        assert_eq!(asked.with(&alone(), &control, &mut memory), Reason::OwnBucket);
        assert_eq!(asked.with(&idle(), &tunnel, &mut memory), Reason::Related);
        assert_eq!(asked.with(&tainted(alone()), &tunnel, &mut memory), Reason::Related);
        // The client connects anew, to another host: the tunnel is there now.
        assert_eq!(asked.with(&idle(), &control, &mut memory), Reason::NotOwner);
        assert_eq!(asked.with(&idle(), &tunnel, &mut memory), Reason::NotOwner);
        let blocked = Policy { rules: without_pptp(), ..alone() };
        assert_eq!(asked.of(&blocked, &control), Reason::RuleBlocked);
        assert_eq!(asked.of(&blocked, &tunnel), Reason::RuleBlocked);
    }
}

/// A disabled rule for the port of PPTP.
fn without_pptp() -> Rules {
    Rules::new(vec![Rule {
        scope: Scope::All,
        protocol: Protocol::Tcp,
        first_port: PPTP,
        last_port: PPTP,
        mode: Mode::Disabled,
    }])
    .unwrap()
}

/// Without pins datagrams follow the map; with pins, where there is no affinity, their flow.
fn datagrams(asked: &Asked) {
    let pinning = |policy| Policy { udp_pin: true, ..policy };
    let mut memory = Memory::default();
    let flow = udp(false, SHARED);
    assert_eq!(asked.with(&alone(), &flow, &mut memory), Reason::OwnBucket);
    assert!(memory.pins.is_empty(), "no pins unless they are wanted");
    assert_eq!(asked.with(&tainted(alone()), &flow, &mut memory), Reason::OwnBucket);
    assert_eq!(asked.with(&pinning(alone()), &flow, &mut memory), Reason::OwnBucket);
    assert_eq!(asked.with(&pinning(idle()), &flow, &mut memory), Reason::FlowPinned);
    assert_eq!(asked.with(&idle(), &flow, &mut memory), Reason::NotOwner);
    assert_eq!(asked.of(&pinning(tainted(alone())), &flow), Reason::BucketTainted);
    let affinity = Affinity::SINGLE;
    let policy = tainted(pinning(cluster(affinity, 1).remove(0)));
    assert_eq!(asked.with(&policy, &flow, &mut memory), Reason::OwnBucket, "no pin is asked");
    let mut memory = Memory::default();
    let error = flow.error(client(false));
    assert_eq!(asked.with(&pinning(alone()), &error, &mut memory), Reason::OwnBucket);
    assert!(memory.pins.is_empty(), "an error about a flow begins none");
}

fn garbage(asked: &Asked) {
    for (spec, header) in [
        (syn(false, SHARED), 20 + 20),
        (syn(true, SHARED), 40 + 20),
        (udp(false, SHARED), 20 + 8),
        (ping(true), 40 + 8),
        (Spec { extensions: vec![0], ..udp(true, SHARED) }, 40 + 8 + 8),
    ] {
        let frame = spec.build();
        assert_eq!(frame.len(), 14 + header);
        for len in 0..frame.len() {
            let reason = asked.bytes(&alone(), &frame[..len], &mut Memory::default());
            assert_eq!(reason, Reason::Malformed, "{len} bytes of {spec:?}");
        }
        for version_and_length in [0x00, 0x44, 0x15, 0x55, 0x70] {
            let mut frame = frame.clone();
            frame[14] = version_and_length;
            let reason = asked.bytes(&alone(), &frame, &mut Memory::default());
            assert_eq!(reason, Reason::Malformed, "{version_and_length:#x}");
        }
    }
}

/// The rest is told in `handover`, as it happens.
fn held(asked: &Asked) {
    let mut memory = Memory::default();
    let flow = |make: fn(bool, u16) -> Spec| make(false, SHARED);
    assert_eq!(asked.with(&tainted(alone()), &flow(syn), &mut memory), Reason::OwnBucket);
    assert_eq!(asked.with(&tainted(alone()), &flow(ack), &mut memory), Reason::FlowPinned);
    assert_eq!(asked.with(&idle(), &flow(syn), &mut memory), Reason::PinnedElsewhere);
}
