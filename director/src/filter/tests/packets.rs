//! Packets that nobody thought of, to and from addresses that matter to the filter.

use std::net::IpAddr;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::bed::{OWN, PEER, PRIMARY, PRIMARY_IPV6, address};
use super::frames::{
    ACK, CLIENT_MAC, CLUSTER_MAC, FIN, GRE, Header, OWN_MAC, RST, SYN, TCP, UDP, ethernet, icmp,
    ip_with, tagged, tcp, to, udp,
};

/// Addresses of both families.
type Pair = (&'static str, &'static str);

pub(super) const OTHER_VIP: Pair = ("192.0.2.11", "2001:db8::11");
pub(super) const OWNS: Pair = (OWN, "2001:db8::21");
pub(super) const PEERS: Pair = (PEER, "2001:db8::22");

const CLIENTS: &[Pair] = &[
    ("198.51.100.1", "2001:db8:1::1"),
    ("198.51.100.2", "2001:db8:1::2"),
    ("198.51.200.2", "2001:db8:1:1::2"),
    ("10.1.2.3", "2001:db8:ffff::1"),
    ("203.0.113.200", "fe80::1"),
];
const VIPS: &[Pair] = &[(PRIMARY, PRIMARY_IPV6), OTHER_VIP];
const OTHERS: &[Pair] = &[
    OWNS,
    PEERS,
    ("192.0.2.99", "2001:db8::99"),
    ("224.0.0.5", "ff02::1"),
    ("239.255.2.10", "ff0e::10"),
    ("240.0.0.1", "fe80::2"),
    ("255.255.255.255", "ff05::2"),
    ("192.0.2.255", "::"),
];
/// No clients.
const MARTIANS: &[Pair] = &[
    ("0.0.0.0", "::"),
    ("0.1.2.3", "::1"),
    ("127.0.0.1", "ff02::1"),
    ("224.0.0.1", "ff0e::1"),
    ("255.255.255.255", "::2"),
    (PRIMARY, PRIMARY_IPV6),
    OTHER_VIP,
];

/// At the edges of rules, of PPTP and of remote control.
pub(super) const PORTS: &[u16] =
    &[80, 443, 53, 1723, 2504, 8000, 8001, 8999, 9000, 5000, 5999, 6000, 22, 0, 65535];
const CLIENT_PORTS: &[u16] = &[40_000, 40_001, 1723, 0];

const FLAGS: &[u8] = &[SYN, SYN, ACK, ACK, ACK | FIN, RST, SYN | ACK, SYN | FIN, 0, 0xff];
const OTHER_PROTOCOLS: &[u8] = &[50, 51, 132, 0, 43, 44, 60, 1, 58, 59, 4];

fn pick(v6: bool, pair: Pair) -> IpAddr {
    address(if v6 { pair.1 } else { pair.0 })
}

/// Source and destination, mostly a client and a virtual address.
fn ends() -> impl Strategy<Value = (Pair, Pair)> {
    let from = prop_oneof![14 => select(CLIENTS), 1 => select(MARTIANS), 1 => select(OTHERS)];
    let to = prop_oneof![9 => select(VIPS), 1 => select(OTHERS)];
    (from, to)
}

/// A protocol number and what it carries.
fn transport(v6: bool) -> impl Strategy<Value = (u8, Vec<u8>)> {
    let ports = || (select(CLIENT_PORTS), select(PORTS));
    let segment =
        (ports(), select(FLAGS)).prop_map(|((from, to), flags)| (TCP, tcp(from, to, flags)));
    let datagram = ports().prop_map(|(from, to)| (UDP, udp(from, to)));
    let tunnel = Just((GRE, vec![0x30, 0x01, 0x88, 0x0b, 0, 0, 0, 7]));
    let other =
        (select(OTHER_PROTOCOLS), 0_usize..24).prop_map(|(number, len)| (number, vec![1; len]));
    let message = message(v6);
    prop_oneof![10 => segment, 4 => datagram, 2 => tunnel, 3 => message, 1 => other]
}

fn message(v6: bool) -> impl Strategy<Value = (u8, Vec<u8>)> {
    let number = if v6 { 58 } else { 1 };
    let kinds: &[u8] = if v6 { &[128, 128, 129, 133, 135, 137, 138, 0] } else { &[8, 8, 0, 5, 13] };
    let errors: &[u8] = if v6 { &[1, 2, 3, 4] } else { &[3, 4, 11, 12] };
    let plain = select(kinds).prop_map(|kind| icmp(kind, b"ping"));
    let cut = prop_oneof![4 => Just(0_usize), 1 => 0_usize..30];
    let error = (select(errors), quote(v6), cut)
        .prop_map(|(kind, quote, cut)| icmp(kind, &quote[..quote.len() - cut.min(quote.len())]));
    prop_oneof![1 => plain, 1 => error].prop_map(move |payload| (number, payload))
}

/// A packet that a virtual address may have sent.
fn quote(v6: bool) -> impl Strategy<Value = Vec<u8>> {
    let from = prop_oneof![8 => select(VIPS), 1 => select(OTHERS)];
    let number = prop_oneof![6 => Just(TCP), 3 => Just(UDP), 1 => select(OTHER_PROTOCOLS)];
    (header(), from, select(CLIENTS), number, select(CLIENT_PORTS), select(PORTS)).prop_map(
        move |(header, from, to, number, client, vip)| {
            ip_with(&header, pick(v6, from), pick(v6, to), number, &tcp(vip, client, ACK))
        },
    )
}

fn header() -> impl Strategy<Value = Header> {
    let id = select(&[7_u16, 8][..]);
    let fragment = prop_oneof![
        16 => Just(None),
        2 => id.clone().prop_map(|id| Some((id, 0, true))),
        1 => id.clone().prop_map(|id| Some((id, 0, false))),
        2 => (id.clone(), any::<bool>()).prop_map(|(id, more)| Some((id, 185, more))),
        1 => (id, select(&[1_u16, 0x100, 0x1000, 0x1fff][..]), any::<bool>()).prop_map(Some),
    ];
    let extension = (select(&[0_u8, 43, 60, 44][..]), 0_u8..3);
    (
        prop_oneof![6 => Just(0), 1 => 0_usize..=10],
        prop_oneof![4 => Just(vec![]), 1 => vec(extension, 1..=5)],
        fragment,
    )
        .prop_map(|(options, extensions, fragment)| Header { options, extensions, fragment })
}

fn packet(v6: bool) -> impl Strategy<Value = Vec<u8>> {
    (header(), ends(), transport(v6)).prop_map(move |(header, (from, to), (number, payload))| {
        ip_with(&header, pick(v6, from), pick(v6, to), number, &payload)
    })
}

/// A frame, perhaps tagged, perhaps cut, perhaps with bytes changed.
pub(super) fn frames() -> impl Strategy<Value = Vec<u8>> {
    let mac = prop_oneof![
        12 => Just(CLUSTER_MAC),
        1 => Just(OWN_MAC),
        1 => Just(CLIENT_MAC),
        1 => Just([0xff; 6]),
        1 => Just([0x01, 0, 0x5e, 0x7f, 2, 10]),
    ];
    let ip = prop_oneof![1 => packet(false), 1 => packet(true)];
    let other = (mac.clone(), select(&[0x0806_u16, 0x886f, 0x88cc, 0x8100, 0x0800][..]))
        .prop_map(|(mac, kind)| ethernet(mac, kind, &[0; 46]));
    let frame = prop_oneof![24 => (mac, ip).prop_map(|(mac, packet)| to(mac, &packet)), 1 => other];
    let tag = prop_oneof![
        8 => Just(None),
        1 => select(&[0x8100_u16, 0x88a8, 0x9100][..]).prop_map(Some)
    ];
    let damage = prop_oneof![8 => Just(vec![]), 1 => vec((0_usize..100, any::<u8>()), 1..4)];
    let cut = prop_oneof![8 => Just(0_usize), 1 => 0_usize..60];
    (frame, tag, damage, cut).prop_map(|(mut frame, tag, damage, cut)| {
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
        frame
    })
}
