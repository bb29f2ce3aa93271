//! What a capture sees of a worker: packets as they came, as they left, and why.

use std::sync::Arc;
use std::time::Duration;

use director::control::api::{Forwarding, Protocol};
use director::dispatch::verdict::{DropReason, Method, PassReason};
use director::worker::tap::{EVERY_DROP, EVERY_PASS, End, Outcome, Record, Tap, Wanted};

use crate::bed::{Bed, CLIENT, VIP, at};
use crate::frames::{ACK, SYN, SYN_ACK, tcp, udp};

const SERVER: &str = "10.77.0.11:80";

fn everything() -> Wanted {
    Wanted {
        forwarded: true,
        passed: EVERY_PASS,
        dropped: EVERY_DROP,
        sample: 1,
        service: None,
        snaplen: 2000,
        both: false,
    }
}

/// A worker with a tap.
fn tapped(wanted: Wanted) -> (Bed, Arc<Tap>) {
    let bed = Bed::new(1);
    bed.serve(Protocol::Tcp, VIP, &[SERVER], Forwarding::Nat);
    let tap = Arc::new(Tap::new(wanted, Duration::from_secs(1_700_000_000)));
    assert!(bed.hands[0].status.taps.add(tap.clone()));
    (bed, tap)
}

/// Port, outcome and bytes of what is in the ring.
fn taken(tap: &Tap) -> Vec<(u16, Outcome, Vec<u8>)> {
    let mut ring = Vec::new();
    tap.take(&mut ring);
    let (mut rest, mut records) = (&ring[..], Vec::new());
    while let Some((record, next)) = Record::read(rest) {
        records.push((record.port, record.outcome, record.bytes.to_vec()));
        rest = next;
    }
    assert_eq!(tap.lost(), 0);
    records
}

#[test]
fn packets_are_shown_as_they_came_by_the_long_way_and_by_the_short_one() {
    let (mut bed, tap) = tapped(everything());
    let packets = [
        (0, tcp(at(CLIENT), at(VIP), SYN), Method::Nat),
        (1, tcp(at(SERVER), at(CLIENT), SYN_ACK), Method::NatReply),
        (0, tcp(at(CLIENT), at(VIP), ACK), Method::Nat),
        // From here on the connection is established.
        (0, tcp(at(CLIENT), at(VIP), ACK), Method::Nat),
        (1, tcp(at(SERVER), at(CLIENT), ACK), Method::NatReply),
    ];
    for (port, frame, method) in packets {
        let sent = if port == 0 { bed.request(0, &frame) } else { bed.reply(0, &frame) };
        assert_eq!(sent.len(), 1);
        assert_eq!(taken(&tap), [(port, Outcome::Forwarded(method), frame)]);
    }
}

#[test]
fn what_lies_between_two_packets_is_what_the_worker_took_to_lie_between_them() {
    let (mut bed, tap) = tapped(everything());
    let mut times = Vec::new();
    for _ in 0..2 {
        bed.request(0, &tcp(at(CLIENT), at(VIP), SYN));
        bed.wait(Duration::from_millis(700));
        let mut ring = Vec::new();
        tap.take(&mut ring);
        times.push(Record::read(&ring).unwrap().0.time);
    }
    assert_eq!(times[1] - times[0], 700_000_000);
    assert_eq!(times[0], 1_700_000_001_000_000_000, "since 1970");
}

#[test]
fn with_both_each_packet_is_shown_as_it_left_too() {
    let (mut bed, tap) = tapped(Wanted { both: true, ..everything() });
    for flags in [SYN, ACK, ACK] {
        let frame = tcp(at(CLIENT), at(VIP), flags);
        let sent = bed.request(0, &frame);
        let came = (0, Outcome::Forwarded(Method::Nat), frame);
        let left = (1, Outcome::Left(Method::Nat), sent[0].bytes.clone());
        assert_eq!(taken(&tap), [came, left]);
        // The server's side, so that the next packet goes the short way.
        let answer = if flags == SYN { SYN_ACK } else { ACK };
        bed.reply(0, &tcp(at(SERVER), at(CLIENT), answer));
        assert_eq!(taken(&tap).len(), 2);
    }
}

#[test]
fn a_capture_of_drops_has_their_reasons_and_nothing_that_was_forwarded() {
    let wanted = Wanted { forwarded: false, passed: 0, both: true, ..everything() };
    let (mut bed, tap) = tapped(wanted);
    assert_eq!(bed.request(0, &tcp(at(CLIENT), at(VIP), SYN)).len(), 1);
    assert_eq!(bed.reply(0, &tcp(at(SERVER), at(CLIENT), SYN_ACK)).len(), 1);
    assert_eq!(bed.request(0, &tcp(at(CLIENT), at(VIP), ACK)).len(), 1);
    assert!(taken(&tap).is_empty());
    let mut late = tcp(at("198.51.100.7:4001"), at(VIP), SYN);
    late[14 + 8] = 1;
    late[14 + 10..14 + 12].fill(0);
    let sum = forwarding::checksum::Sum::default().bytes(&late[14..34]).checksum();
    late[14 + 10..14 + 12].copy_from_slice(&sum.to_be_bytes());
    bed.request(0, &late);
    let told = bed.hands[0].front.collect_all();
    let outcomes = [
        (0, Outcome::Answered(DropReason::TtlExceeded), late),
        (0, Outcome::Own, told[0].bytes.clone()),
    ];
    assert_eq!(taken(&tap), outcomes);
    // What is forwarded right after a packet that was taken is not taken with it, by the short way too.
    assert_eq!(bed.request(0, &tcp(at(CLIENT), at(VIP), ACK)).len(), 1);
    assert!(taken(&tap).is_empty());
}

#[test]
fn what_the_kernel_gets_is_shown_once_with_its_reason() {
    let (mut bed, tap) = tapped(everything());
    let frame = udp(at(CLIENT), at(VIP));
    bed.request(0, &frame);
    assert_eq!(taken(&tap), [(0, Outcome::Passed(PassReason::NoService), frame)]);
}

#[test]
fn a_packet_whose_next_hop_never_answers_is_shown_as_it_would_have_left() {
    let (mut bed, tap) = tapped(Wanted { forwarded: false, passed: 0, ..everything() });
    bed.serve(Protocol::Tcp, "192.0.2.10:81", &["10.77.0.99:81"], Forwarding::Nat);
    bed.request(0, &tcp(at(CLIENT), at("192.0.2.10:81"), SYN));
    assert!(taken(&tap).is_empty());
    bed.wait(Duration::from_secs(4));
    let taken = taken(&tap);
    let [(_, outcome, frame)] = &taken[..] else { panic!("{taken:?}") };
    assert_eq!(*outcome, Outcome::Lost(DropReason::NoNeighbour));
    assert_eq!(forwarding::parse(frame).unwrap().destination, at("10.77.0.99:81").ip());
}

#[test]
fn a_capture_of_one_service_has_its_packets_and_answers_only() {
    let service = End { protocol: Some(6), address: at(VIP).ip(), port: Some(at(VIP).port()) };
    let (mut bed, tap) = tapped(Wanted { service: Some(service), ..everything() });
    bed.serve(Protocol::Tcp, "192.0.2.10:81", &["10.77.0.11:81"], Forwarding::Nat);
    for (vip, server) in [(VIP, SERVER), ("192.0.2.10:81", "10.77.0.11:81")] {
        for _ in 0..2 {
            bed.request(0, &tcp(at(CLIENT), at(vip), SYN));
            bed.reply(0, &tcp(at(server), at(CLIENT), SYN_ACK));
            bed.request(0, &tcp(at(CLIENT), at(vip), ACK));
            bed.reply(0, &tcp(at(server), at(CLIENT), ACK));
        }
        let taken = taken(&tap);
        assert_eq!(taken.len(), if vip == VIP { 8 } else { 0 }, "{vip}: {taken:?}");
    }
}
