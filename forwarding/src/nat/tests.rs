//! What NAT makes of a packet is held against the packet that the other addresses would have made
//! from the start: every byte must agree.

use std::net::SocketAddr;

use proptest::prelude::*;

use super::*;
use crate::parse;
use crate::tests::frames::{Spec, Transport, between, endpoints};
use crate::tests::oracle;

/// A packet between two, and a third that takes the place of one of them.
fn translations() -> impl Strategy<Value = (Spec, SocketAddr, End)> {
    endpoints::<3>().prop_flat_map(|[source, destination, new]| {
        let end = prop_oneof![Just(End::Source), Just(End::Destination)];
        (between(source, destination), Just(new), end)
    })
}

fn translated(spec: &Spec, end: End, new: SocketAddr) -> Spec {
    match end {
        End::Source => Spec { source: new, ..spec.clone() },
        End::Destination => Spec { destination: new, ..spec.clone() },
    }
}

fn apply(frame: &mut [u8], end: End, new: SocketAddr, partial: Option<Partial>) {
    let mut headers = parse(frame).unwrap();
    let rewrite = match end {
        End::Source => rewrite_source,
        End::Destination => rewrite_destination,
    };
    rewrite(frame, &mut headers, new.ip(), new.port(), partial);
    assert_eq!(parse(frame), Ok(headers), "headers must follow the frame");
}

/// The frame as a sender with checksum offload leaves it.
fn build_partial(spec: &Spec) -> (Vec<u8>, Partial) {
    let mut frame = spec.build();
    let headers = parse(&frame).unwrap();
    let offset = if headers.is_tcp() { 16 } else { 6 };
    let sum = headers.pseudo_header().folded();
    frame[headers.l4 + offset..][..2].copy_from_slice(&sum.to_be_bytes());
    let start = headers.l4;
    (frame, Partial { start, offset })
}

/// Clears the checksum of a UDP frame.
fn without_checksum(mut frame: Vec<u8>, spec: &Spec) -> Vec<u8> {
    frame[spec.l4() + 6..][..2].fill(0);
    frame
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_translated_packet_is_the_packet_of_the_new_address((spec, new, end) in translations()) {
        let mut frame = spec.build();
        apply(&mut frame, end, new, None);
        oracle::assert_checksums(&frame);
        prop_assert_eq!(frame, translated(&spec, end, new).build());
    }

    #[test]
    fn a_partial_packet_stays_partial((spec, new, end) in translations()) {
        prop_assume!(spec.transport != Transport::Sctp);
        let (mut frame, partial) = build_partial(&spec);
        apply(&mut frame, end, new, Some(partial));
        let (expected, _) = build_partial(&translated(&spec, end, new));
        prop_assert_eq!(&frame, &expected);

        let headers = parse(&frame).unwrap();
        checksum::complete(&mut frame, partial, headers.end);
        oracle::assert_checksums(&frame);
    }

    #[test]
    fn there_and_back_is_the_same_packet((spec, new, end) in translations()) {
        let old = match end {
            End::Source => spec.source,
            End::Destination => spec.destination,
        };
        let mut frame = spec.build();
        apply(&mut frame, end, new, None);
        apply(&mut frame, end, old, None);
        prop_assert_eq!(frame, spec.build());
    }

    #[test]
    fn udp_without_checksum_gets_a_real_one((spec, new, end) in translations()) {
        let spec = Spec { transport: Transport::Udp, ..spec };
        let mut frame = without_checksum(spec.build(), &spec);
        apply(&mut frame, end, new, None);
        prop_assert_eq!(frame, translated(&spec, end, new).build());
    }

    #[test]
    fn a_wrong_checksum_stays_wrong((spec, new, end) in translations(), damage in 1u8..) {
        // The receiver must still see that the packet was damaged on its way to us.
        let spec = Spec { transport: Transport::Tcp, ..spec };
        let right = translated(&spec, end, new).build();
        let mut frame = spec.build();
        frame[spec.l4() + 16] ^= damage;
        apply(&mut frame, end, new, None);
        // 0 and 0xffff are the same sum, so a damage of all bits could be none: this one is of 8.
        prop_assert_ne!(&frame[spec.l4() + 16..][..2], &right[spec.l4() + 16..][..2]);
    }

    #[test]
    fn fragments_are_reassembled_to_the_translated_packet((spec, new, end) in translations()) {
        // Only SCTP cannot be mended in pieces.
        prop_assume!(spec.transport != Transport::Sctp);
        let mut spec = Spec { vlan: None, padding: 0, ..spec };
        spec.payload.resize(120, 9);
        let wanted = translated(&spec, end, new);
        for (offset, more) in [(0, true), (24, true), (48, false)] {
            let mut frame = spec.build_fragment(offset, more);
            apply(&mut frame, end, new, None);
            prop_assert_eq!(frame, wanted.build_fragment(offset, more));
        }
    }
}

#[test]
fn a_udp_fragment_without_checksum_stays_without() {
    let mut spec = Spec::new(Transport::Udp, "10.0.0.1:1", "10.0.0.2:2");
    spec.payload = vec![1; 64];
    let mut frame = without_checksum(spec.build_fragment(0, true), &spec);
    apply(&mut frame, End::Destination, "10.0.0.3:3".parse().unwrap(), None);
    assert_eq!(frame[spec.l4() + 6..][..2], [0, 0]);
}

#[test]
fn udp_checksum_that_comes_out_as_zero_is_written_as_ffff() {
    // From all ports find the one whose packet has the checksum 0xffff in etherparse's eyes.
    let mut spec = Spec::new(Transport::Udp, "10.0.0.1:1", "10.0.0.2:2");
    let port = (0..=u16::MAX)
        .find(|port| {
            spec.destination.set_port(*port);
            spec.build()[spec.l4() + 6..][..2] == [0xff, 0xff]
        })
        .expect("the sum takes all values");
    let wanted = spec.clone();
    spec.destination.set_port(port ^ 0x0f0f);
    for mut frame in [spec.build(), without_checksum(spec.build(), &spec)] {
        apply(&mut frame, End::Destination, wanted.destination, None);
        assert_eq!(frame, wanted.build());
    }
}

#[test]
fn sctp_left_to_hardware_is_completed_even_when_the_port_stays() {
    let spec = Spec::new(Transport::Sctp, "10.0.0.1:1", "10.0.0.2:2");
    let mut frame = spec.build();
    frame[spec.l4() + 8..][..4].fill(0);
    let new = "10.0.0.3:2".parse().unwrap();
    apply(&mut frame, End::Destination, new, None);
    assert_eq!(frame, translated(&spec, End::Destination, new).build());
}

#[test]
fn sctp_with_a_wrong_checksum_is_not_mended_when_the_port_stays() {
    let spec = Spec::new(Transport::Sctp, "10.0.0.1:1", "10.0.0.2:2");
    let mut frame = spec.build();
    frame[spec.l4() + 8] ^= 1;
    let damaged = frame[spec.l4() + 8..][..4].to_vec();
    apply(&mut frame, End::Destination, "10.0.0.3:2".parse().unwrap(), None);
    assert_eq!(frame[spec.l4() + 8..][..4], damaged);
}

#[test]
fn icmpv6_follows_the_addresses_it_sums() {
    use etherparse::PacketBuilder;
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv6([0x20; 16], [0x21; 16], 64)
        .icmpv6_echo_request(7, 1)
        .write(&mut frame, b"ping")
        .unwrap();
    for end in [End::Source, End::Destination] {
        apply(&mut frame, end, "[fd00::99]:80".parse().unwrap(), None);
        oracle::assert_checksums(&frame);
    }
}

#[test]
fn an_address_of_the_other_family_changes_nothing() {
    let spec = Spec::new(Transport::Tcp, "10.0.0.1:1", "10.0.0.2:2");
    let mut frame = spec.build();
    apply(&mut frame, End::Destination, "[fd00::3]:3".parse().unwrap(), None);
    assert_eq!(frame, spec.build());
}

#[test]
fn a_checksum_partial_further_inside_does_not_concern_the_outer_one() {
    // VXLAN from a local machine: the outer UDP checksum is complete, the inner one is not.
    let spec = Spec::new(Transport::Udp, "10.0.0.1:1", "10.0.0.2:4789");
    let new = "10.0.0.3:4789".parse().unwrap();
    let inside = Partial { start: spec.l4() + 50, offset: 16 };
    let mut frame = spec.build();
    apply(&mut frame, End::Destination, new, Some(inside));
    assert_eq!(frame, translated(&spec, End::Destination, new).build());
}
