//! What the filter remembers is listed and forgotten in time, and what is counted is counted once.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use netio::bpf::TestContext;
use nix::time::{ClockId, clock_gettime};
use nlb::buckets::BucketSet;
use nlb::filter::{Policy, Reason, SlotState};
use nlb::rules::Rules;
use nlb::slot::{SLOTS, Slot};
use nlb::tuple::Tuple;

use super::bed::{self, Bed, PRIMARY, address};
use super::frames::{ACK, FIN, Header, SYN, TCP, UDP, ip, ip_with, tcp, to_cluster, udp};
use crate::filter::{Idle, publish};

pub(super) fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).expect("the clock").into()
}

/// Serves everything, and pins everything that can be pinned.
fn pinning() -> Policy {
    let all = || SlotState { serving: BucketSet::ALL, ..SlotState::default() };
    let slots: Box<[SlotState; SLOTS]> = Box::new(std::array::from_fn(|_| all()));
    Policy { slots, track: true, udp_pin: true, ..bed::policy(Rules::none()) }
}

fn tuple(protocol: u8, client_port: u16, vip_port: u16) -> Tuple {
    let (client, vip) = (address("198.51.100.1"), address(PRIMARY));
    Tuple { protocol, client, client_port, vip, vip_port }
}

fn packet(tuple: &Tuple, flags: u8) -> Vec<u8> {
    let payload = match tuple.protocol {
        TCP => tcp(tuple.client_port, tuple.vip_port, flags),
        _ => udp(tuple.client_port, tuple.vip_port),
    };
    to_cluster(&ip(tuple.client, tuple.vip, tuple.protocol, &payload))
}

#[test]
fn every_kind_of_pin_has_its_own_time_and_a_closing_flow_little() {
    let Some(mut bed) = Bed::new(&pinning()) else { return };
    let (open, closing) = (tuple(TCP, 1, 80), tuple(TCP, 2, 80));
    let (datagram, control) = (tuple(UDP, 3, 53), tuple(TCP, 4, 1723));
    for flow in [open, closing, datagram, control] {
        bed.step(&packet(&flow, SYN)).unwrap();
    }
    bed.step(&packet(&closing, ACK | FIN)).unwrap();
    bed.step(&packet(&open, ACK)).unwrap();
    let pins = |bed: &Bed| {
        let mut pins: Vec<_> = bed
            .filter
            .pins(now())
            .unwrap()
            .into_iter()
            .map(|pin| (pin.tuple, pin.closing))
            .collect();
        pins.sort();
        pins
    };
    let mut all = vec![
        (open, false),
        (closing, true),
        (datagram, false),
        (control, false),
        (control.tunnel(), false),
    ];
    all.sort();
    assert_eq!(pins(&bed), all);
    assert!(bed.filter.pins(now()).unwrap().iter().all(|pin| pin.idle < Duration::from_secs(60)));

    let [hour, minute] = [3600, 60].map(Duration::from_secs);
    let idle = Idle { tcp: hour, tunnel: hour, closing: minute, udp: minute, ..Idle::default() };
    assert_eq!(bed.filter.expire(now(), &idle).unwrap(), 0);
    assert_eq!(bed.filter.expire(now() + minute, &idle).unwrap(), 2);
    all.retain(|(flow, closing)| !closing && flow.protocol != UDP);
    assert_eq!(pins(&bed), all);
    assert_eq!(bed.filter.expire(now() + hour, &idle).unwrap(), 3);
    assert_eq!(pins(&bed), []);
}

#[test]
fn a_packet_makes_a_pin_young_again() {
    let Some(mut bed) = Bed::new(&pinning()) else { return };
    let flow = tuple(UDP, 3, 53);
    bed.filter.pin(&flow, now() - Duration::from_secs(50)).unwrap();
    bed.twin.pins.insert(flow);
    let idle = |bed: &Bed| bed.filter.pins(now()).unwrap()[0].idle;
    assert!(idle(&bed) >= Duration::from_secs(50));
    assert_eq!(bed.step(&packet(&flow, 0)).unwrap().reason, Reason::FlowPinned);
    assert!(idle(&bed) < Duration::from_secs(50));
    assert!(bed.filter.unpin(&flow).unwrap());
    assert!(!bed.filter.unpin(&flow).unwrap());
}

#[test]
fn what_became_of_a_first_fragment_is_forgotten_in_time() {
    let Some(mut bed) = Bed::new(&pinning()) else { return };
    let fragment = |offset, more| {
        let header = Header { fragment: Some((7, offset, more)), ..Header::default() };
        let (from, to) = (address("198.51.100.1"), address(PRIMARY));
        to_cluster(&ip_with(&header, from, to, UDP, &udp(1, 53)))
    };
    let reason = |bed: &mut Bed, frame: &[u8]| bed.step(frame).unwrap().reason;
    assert_eq!(reason(&mut bed, &fragment(185, false)), Reason::FragUnknown);
    assert_eq!(reason(&mut bed, &fragment(0, true)), Reason::DefaultHost);
    assert_eq!(reason(&mut bed, &fragment(185, false)), Reason::FragFollow);
    bed.filter.expire(now(), &Idle::default()).unwrap();
    assert_eq!(reason(&mut bed, &fragment(185, false)), Reason::FragFollow);
    bed.filter.expire(now() + Duration::from_secs(30), &Idle::default()).unwrap();
    bed.twin.fragments.clear();
    assert_eq!(reason(&mut bed, &fragment(185, false)), Reason::FragUnknown);
}

#[test]
fn a_retired_flow_is_not_remembered_for_ever() {
    let Some(mut bed) = Bed::new(&pinning()) else { return };
    let flow = tuple(TCP, 1, 80);
    bed.step(&packet(&flow, SYN)).unwrap();
    let elsewhere = bed::policy(Rules::none());
    bed.filter.publish(&elsewhere).unwrap();
    assert_eq!(bed.step(&packet(&flow, SYN)).unwrap().reason, Reason::PinnedElsewhere);
    let keys = |bed: &Bed| bed.filter.memory.retired.keys().unwrap().len();
    bed.filter.expire(now(), &Idle::default()).unwrap();
    assert_eq!(keys(&bed), 1);
    bed.filter.expire(now() + Idle::default().retired, &Idle::default()).unwrap();
    assert_eq!(keys(&bed), 0);
}

#[test]
fn only_syns_that_begin_here_are_counted_as_opened() {
    let Some(mut bed) = Bed::new(&pinning()) else { return };
    for frame in [packet(&tuple(TCP, 1, 80), SYN), packet(&tuple(TCP, 1, 80), ACK)] {
        bed.step(&frame).unwrap();
    }
    bed.step(&packet(&tuple(UDP, 1, 80), 0)).unwrap();
    assert_eq!(bed.filter.opened(Slot::DEFAULT).unwrap(), 1);
    bed.filter.publish(&bed::policy(Rules::none())).unwrap();
    bed.step(&packet(&tuple(TCP, 2, 80), SYN)).unwrap();
    assert_eq!(bed.filter.opened(Slot::DEFAULT).unwrap(), 1);
    let sum: u64 = bed.filter.counters().unwrap().iter().map(|(_, count)| count).sum();
    assert_eq!(sum, 4, "every frame is counted once");
}

#[test]
fn too_many_addresses_are_refused_and_nothing_is_changed() {
    let Some(mut bed) = Bed::new(&pinning()) else { return };
    let peer = |number: u32| IpAddr::V4((0x0a00_0000 + number).into());
    let mut policy = Policy { peers: (0..1025).map(peer).collect(), ..bed::policy(Rules::none()) };
    let error = bed.filter.publish(&policy).unwrap_err().to_string();
    assert!(error.contains("1025 addresses") && error.contains("room for 1024"), "{error}");
    let begins = packet(&tuple(TCP, 1, 80), SYN);
    assert_eq!(bed.step(&begins).unwrap().reason, Reason::DefaultHost);
    policy.peers.pop();
    bed.filter.publish(&policy).unwrap();
    assert_eq!(bed.step(&begins).unwrap().reason, Reason::PinnedElsewhere);
}

/// Before and after a handover: without the bucket, and with it while another host still holds flows
/// in it. Neither lets a segment pass of which nothing is known; nor must what is between the two.
#[test]
fn no_segment_slips_through_while_a_bucket_is_taken_or_given_up() {
    let Some(bed) = Bed::new(&bed::policy(Rules::none())) else { return };
    let Bed { filter, .. } = bed;
    let without = filter.published();
    let mut with = without.clone();
    with.slots[Slot::DEFAULT.index()] =
        SlotState { serving: BucketSet::ALL, tainted: BucketSet::ALL };
    let over = AtomicBool::new(false);
    let count = |reason: Reason| filter.counters().unwrap()[usize::from(reason.number())].1;
    let is_seen = || count(Reason::NotOwner) > 0 && count(Reason::BucketTainted) > 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let frame = packet(&tuple(TCP, 1, 80), ACK);
            let context = TestContext { repeat: 1000, ..TestContext::default() };
            while !over.load(Ordering::Relaxed) {
                filter.program().test_run(&frame, &context).unwrap();
            }
        });
        // On a busy machine the other thread may come late: go on until it has seen both.
        let start = Instant::now();
        let mut rounds = 0;
        while rounds < 5_000 || !is_seen() && start.elapsed() < Duration::from_secs(60) {
            publish::change(&filter.tables, without, &with).unwrap();
            publish::change(&filter.tables, &with, without).unwrap();
            rounds += 1;
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(is_seen(), "both were seen");
    assert_eq!(count(Reason::DefaultHost), 0);
}
