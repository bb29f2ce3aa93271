//! The program is held to its twin by packets that nobody thought of.

use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use super::frames::{Header, frame, icmp, ip_with, ports, tagged};
use super::*;

/// Packets tried. Each goes to the steering program and to the guard.
const PACKETS: u32 = 20_000;
/// The least share of hits and of passes, in percent: else the test would look at one side only.
const LEAST_SHARE: u32 = 25;
/// The least share of hits that are ICMP errors, in percent of all packets.
const LEAST_ERROR_SHARE: u32 = 3;

/// One end of a flow: the address in either family, the protocol, the port.
type End = (&'static str, &'static str, u8, u16);

/// Ends that are keys in one role or the other.
const KNOWN: &[End] = &[
    ("192.0.2.10", "2001:db8::10", 6, 80),
    ("192.0.2.10", "2001:db8::10", 17, 53),
    ("192.0.2.11", "2001:db8::10", 6, 80),
    ("10.0.0.21", "2001:db8:1::21", 6, 8080),
    ("10.0.0.22", "2001:db8:1::21", 6, 8080),
    ("192.0.2.12", "2001:db8::12", 6, 50000),
    ("10.0.0.23", "2001:db8:1::23", 6, 50000),
    ("10.0.0.31", "2001:db8:1::31", 4, 0),
    ("10.0.0.31", "2001:db8:1::31", 41, 0),
];
const STRANGER: End = ("198.51.100.7", "2001:db8:ff::7", 6, 40000);
const PORTS: &[u16] = &[80, 53, 5060, 8080, 0, 1023, 1024, 40000];
const PROTOCOLS: &[u8] = &[6, 17, 132, 4, 41, 47, 1, 58, 60];

/// Source and destination: mostly one that is known and a stranger, mostly the way round that
/// makes a hit.
fn ends(quoted: bool) -> impl Strategy<Value = (End, End)> {
    let known = || select(KNOWN);
    let right_way = known().prop_map(move |end| {
        let is_service = end.0.starts_with("192.");
        match is_service != quoted {
            true => (STRANGER, end),
            false => (end, STRANGER),
        }
    });
    let odd = (known(), select(PROTOCOLS), select(PORTS))
        .prop_map(|(end, protocol, port)| (end.0, end.1, protocol, port));
    prop_oneof![
        6 => right_way,
        1 => known().prop_map(|end| (STRANGER, end)),
        1 => (known(), known()),
        2 => (odd, known()),
    ]
}

/// An IP packet without its frame.
fn packet(v6: bool, quoted: bool) -> impl Strategy<Value = Vec<u8>> {
    let extension = (select(&[0_u8, 43, 60][..]), 0_u8..3);
    let fragment = prop_oneof![
        9 => Just(None),
        1 => any::<bool>().prop_map(|more| Some((0, more))),
        1 => (1_u16..0x1fff, any::<bool>()).prop_map(Some),
        1 => (select(&[1_u16, 0x100, 0x1000, 0x1fff][..]), any::<bool>()).prop_map(Some),
    ];
    let header = (
        prop_oneof![3 => Just(0), 1 => 0_usize..=10],
        prop_oneof![2 => Just(vec![]), 1 => vec(extension, 1..=5)],
        fragment,
    )
        .prop_map(|(options, extensions, fragment)| Header { options, extensions, fragment });
    (header, ends(quoted), any::<bool>()).prop_map(move |(header, (from, to), of_source)| {
        // A stranger speaks whatever the other end does.
        let strange = from == STRANGER || (to != STRANGER && !of_source);
        let protocol = if strange { to.2 } else { from.2 };
        let payload = ports(from.3, to.3);
        let (from, to) = if v6 { (from.1, to.1) } else { (from.0, to.0) };
        ip_with(&header, from, to, protocol, &payload)
    })
}

/// An ICMP error about a packet.
fn error(v6: bool) -> impl Strategy<Value = Vec<u8>> {
    let kinds: &[u8] = match v6 {
        true => &[1, 1, 2, 2, 3, 4, 5, 128, 135],
        false => &[3, 3, 4, 11, 12, 0, 5, 8],
    };
    let kind = select(kinds);
    let cut = prop_oneof![3 => Just(0_usize), 1 => 0_usize..30];
    (packet(v6, true), kind, cut).prop_map(move |(quoted, kind, cut)| {
        let quoted = &quoted[..quoted.len() - cut.min(quoted.len())];
        let (from, to, protocol) = if v6 {
            ("2001:db8:ee::1", "2001:db8::10", 58)
        } else {
            ("203.0.113.1", "192.0.2.10", 1)
        };
        let message = icmp(kind, quoted);
        ip_with(&Header::default(), from, to, protocol, &message)
    })
}

/// A frame, perhaps tagged, perhaps cut, perhaps with bytes changed; and whether it was to be an
/// ICMP error.
fn frames() -> impl Strategy<Value = (bool, Vec<u8>)> {
    let plain = prop_oneof![packet(false, false), packet(true, false)];
    let error = prop_oneof![error(false), error(true)];
    let packet = prop_oneof![
        2 => plain.prop_map(|packet| (false, packet)),
        1 => error.prop_map(|packet| (true, packet)),
    ];
    let tag =
        prop_oneof![4 => Just(None), 1 => select(&[0x8100_u16, 0x88a8, 0x9100][..]).prop_map(Some)];
    let damage = prop_oneof![
        6 => Just(vec![]),
        1 => vec((0_usize..100, any::<u8>()), 1..4),
    ];
    let cut = prop_oneof![4 => Just(0_usize), 1 => 0_usize..60];
    (packet, tag, damage, cut).prop_map(|((error, packet), tag, damage, cut)| {
        let mut frame = frame(&packet);
        if let Some(tag) = tag {
            frame = tagged(tag, frame);
        }
        for (at, byte) in damage {
            if let Some(place) = frame.get_mut(at) {
                *place = byte;
            }
        }
        // The kernel runs tests on whole Ethernet headers only.
        frame.truncate((frame.len() - cut.min(frame.len())).max(14));
        (error, frame)
    })
}

#[test]
fn program_and_guard_decide_as_their_twin_does() {
    let keys = keys();
    let Some(programs) = Programs::load(&keys, None) else {
        return;
    };
    let (hits, error_hits) = (Cell::new(0), Cell::new(0));
    let config = Config { cases: PACKETS, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&frames(), |(error, frame)| {
            let wanted = keys.wants(&frame);
            hits.set(hits.get() + u32::from(wanted));
            error_hits.set(error_hits.get() + u32::from(wanted && error));
            prop_assert_eq!(programs.steers(&frame), wanted, "steering {:02x?}", frame);
            prop_assert_eq!(programs.guards(&frame), wanted, "guarding {:02x?}", frame);
            Ok(())
        })
        .unwrap();
    let percent = |count: &Cell<u32>| count.get() * 100 / PACKETS;
    let (share, error_share) = (percent(&hits), percent(&error_hits));
    eprintln!("{share} % of {PACKETS} packets were taken, {error_share} % were errors");
    assert!((LEAST_SHARE..=100 - LEAST_SHARE).contains(&share), "{share} % taken");
    assert!(error_share >= LEAST_ERROR_SHARE, "{error_share} % errors taken");
}
