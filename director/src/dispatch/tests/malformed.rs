//! Packets that no sender may write: each has its drop reason. And ICMP errors that quote nonsense.

use etherparse::PacketBuilder;
use forwarding::checksum::Sum;

use super::bed::*;
use crate::control::api::{Forwarding, Protocol};
use crate::dispatch::verdict::{DropReason, PassReason, Verdict};

const CLIENT: &str = "198.51.100.7:4000";
const VIP: &str = "192.0.2.10:80";
const REAL: &str = "10.77.0.11:80";
const CLIENT_V6: &str = "[2001:db8::7]:4000";
const VIP_V6: &str = "[2001:db8:1::10]:80";

fn bed() -> Bed {
    Bed::with(key(Protocol::Tcp, VIP), &[(REAL, Forwarding::Nat)])
}

/// A SYN with these bytes changed, and the IPv4 header's sum made right unless told otherwise.
fn changed(client: &str, vip: &str, changes: &[(usize, u8)], sum: bool) -> Vec<u8> {
    let mut frame = tcp(at(client), at(vip), SYN, b"");
    for &(place, byte) in changes {
        frame[place] = byte;
    }
    if sum && frame[14] == 0x45 {
        frame[24..26].fill(0);
        let sum = Sum::default().bytes(&frame[14..34]).checksum();
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    frame
}

#[test]
fn every_kind_of_malformed_packet_is_dropped_by_its_own_reason() {
    use DropReason::{BadChecksum, BadHeader, FragmentOverlap, Truncated};
    let v4 = |changes: &[(usize, u8)]| changed(CLIENT, VIP, changes, true);
    let v6 = |changes: &[(usize, u8)]| changed(CLIENT_V6, VIP_V6, changes, true);
    let cases = [
        ("IPv4, longer than its frame", v4(&[(17, 41)]), Truncated),
        ("IPv4, shorter than its header", v4(&[(17, 19)]), BadHeader),
        ("IPv4 with a header of 16 bytes", v4(&[(14, 0x44)]), BadHeader),
        ("version 6 in a frame of IPv4", v4(&[(14, 0x65)]), BadHeader),
        ("a wrong IPv4 header checksum", changed(CLIENT, VIP, &[(22, 63)], false), BadChecksum),
        ("TCP with a header of 16 bytes", v4(&[(46, 0x40)]), BadHeader),
        ("TCP options past the end", v4(&[(46, 0xf0)]), Truncated),
        ("half a TCP header", v4(&[(17, 30)]), Truncated),
        ("a fragment over the TCP header", v4(&[(20, 0), (21, 1)]), FragmentOverlap),
        ("IPv6, longer than its frame", v6(&[(19, 21)]), Truncated),
        ("IPv6 without a length", v6(&[(19, 0)]), BadHeader),
        ("version 4 in a frame of IPv6", v6(&[(14, 0x45)]), BadHeader),
        ("IPv6, TCP options past the end", v6(&[(66, 0xf0)]), Truncated),
    ];
    let mut bed = bed();
    for (what, frame, reason) in cases {
        assert_eq!(bed.handle(&frame).verdict, Verdict::Drop(reason), "{what}");
    }
    let ends = (at(CLIENT), at(VIP));
    for (what, length, reason) in
        [("UDP of 7 bytes", 7, BadHeader), ("UDP past the end", 200, Truncated)]
    {
        let mut frame = udp(ends.0, ends.1, b"payload");
        frame[39] = length;
        assert_eq!(bed.handle(&frame).verdict, Verdict::Drop(reason), "{what}");
    }
    assert_eq!(bed.counts(), [(0, 0)], "none of them has opened a connection");
}

/// An ICMP "host unreachable" to the VIP that quotes this.
fn unreachable(quote: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([203, 0, 113, 1], [192, 0, 2, 10], 60)
        .icmpv4_raw(3, 1, [0; 4])
        .write(&mut frame, quote)
        .unwrap();
    frame
}

#[test]
fn an_icmp_error_that_quotes_nonsense_is_passed_up_as_it_is_and_counted() {
    let mut bed = bed();
    bed.establish(CLIENT, VIP);
    let quoted = tcp(at(VIP), at(CLIENT), ACK, b"")[14..].to_vec();
    assert!(bed.handle(&unreachable(&quoted)).is_sent(), "this one is no nonsense");
    let with = |place: usize, byte: u8| {
        let mut quote = quoted.clone();
        quote[place] = byte;
        quote
    };
    let cases = [
        ("nothing", vec![]),
        ("half a header", quoted[..10].to_vec()),
        ("a header and half of the ports", quoted[..22].to_vec()),
        ("another version", with(0, 0x65)),
        ("a header of 16 bytes", with(0, 0x44)),
        ("a header past the end", with(0, 0x4f)),
        ("shorter than its header", with(3, 12)),
        ("no ports within its length", with(3, 22)),
    ];
    for (what, quote) in cases {
        // The header of 60 bytes is past the end of a short quote only.
        let quote = if what == "a header past the end" { quote[..30].to_vec() } else { quote };
        let frame = unreachable(&quote);
        let out = bed.handle(&frame);
        assert_eq!(out.verdict, Verdict::Pass(PassReason::IcmpUnreadable), "{what}");
        assert_eq!(out.frame, frame, "{what}: not a byte of it is rewritten");
    }
    for (what, quote) in [("a later fragment", with(7, 1)), ("another protocol", with(9, 1))] {
        let verdict = bed.handle(&unreachable(&quote)).verdict;
        assert_eq!(verdict, Verdict::Pass(PassReason::Icmp), "{what} may have been sent");
    }
    let stranger = tcp(at(VIP), at("198.51.100.8:1"), ACK, b"")[14..].to_vec();
    let verdict = bed.handle(&unreachable(&stranger)).verdict;
    assert_eq!(verdict, Verdict::Pass(PassReason::Icmp));
}

#[test]
fn an_icmp_error_with_a_wrong_checksum_is_not_made_whole() {
    let mut bed = bed();
    bed.establish(CLIENT, VIP);
    let before = bed.table.service_views()[0].stats.in_packets;
    let quoted = tcp(at(VIP), at(CLIENT), ACK, b"")[14..].to_vec();
    let mut frame = unreachable(&quoted);
    let last = frame.len() - 1;
    frame[last] ^= 1;
    assert_eq!(bed.handle(&frame).verdict, Verdict::Drop(DropReason::IcmpChecksum));
    assert_eq!(bed.table.service_views()[0].stats.in_packets, before);
    // About nothing that we know it is the kernel's to drop.
    let stranger = tcp(at(VIP), at("198.51.100.8:1"), ACK, b"")[14..].to_vec();
    let mut frame = unreachable(&stranger);
    frame[last] ^= 1;
    assert_eq!(bed.handle(&frame).verdict, Verdict::Pass(PassReason::Icmp));
}
