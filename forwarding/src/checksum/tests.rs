use pnet::packet::util;
use proptest::prelude::*;

use super::*;
use crate::parse;
use crate::tests::frames::{Spec, Transport, specs};
use crate::tests::oracle;

/// The checksum field of a TCP or UDP packet, and what `etherparse` put there.
fn field(spec: &Spec) -> usize {
    match spec.transport {
        Transport::Tcp => spec.l4() + 16,
        _ => spec.l4() + 6,
    }
}

/// Makes the frame what a local sender with offload leaves.
fn make_partial(spec: &Spec, frame: &mut [u8]) {
    let length = frame.len() - spec.padding - spec.l4();
    let sum =
        pseudo_header(spec.source.ip(), spec.destination.ip(), spec.protocol(), length as u32);
    frame[field(spec)..][..2].copy_from_slice(&sum.folded().to_be_bytes());
}

proptest! {
    #[test]
    fn full_sum_agrees_with_pnet(bytes in prop::collection::vec(any::<u8>(), 1..2000)) {
        // Word 1500 is not there, so pnet leaves none out.
        prop_assert_eq!(Sum::default().bytes(&bytes).checksum(), util::checksum(&bytes, 1500));
    }

    #[test]
    fn sum_in_pieces_is_the_sum_of_the_whole(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        cut in 0usize..150,
    ) {
        let cut = (2 * cut).min(bytes.len());
        let pieces = Sum::default().bytes(&bytes[..cut]).bytes(&bytes[cut..]);
        if cut % 2 == 0 {
            prop_assert_eq!(pieces.folded(), Sum::default().bytes(&bytes).folded());
        }
    }

    #[test]
    fn update_is_the_full_checksum_of_the_changed_bytes(
        mut bytes in prop::collection::vec(any::<u8>(), 24..100),
        new in any::<(u16, u32, u128)>(),
    ) {
        // A checksum over nothing but zeros is the one value with two spellings.
        bytes[0] = 1;
        let before = Sum::default().bytes(&bytes).checksum();
        let old16 = u16::from_be_bytes(bytes[2..4].try_into().unwrap());
        let old32 = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
        let old128 = u128::from_be_bytes(bytes[8..24].try_into().unwrap());
        bytes[2..4].copy_from_slice(&new.0.to_be_bytes());
        bytes[4..8].copy_from_slice(&new.1.to_be_bytes());
        bytes[8..24].copy_from_slice(&new.2.to_be_bytes());
        let delta = Delta::default()
            .u16(old16, new.0)
            .u32(old32, new.1)
            .u128(old128, new.2);
        prop_assert_eq!(delta.apply(before), Sum::default().bytes(&bytes).checksum());
    }

    #[test]
    fn offloaded_checksum_is_recognised_and_completed(spec in specs()) {
        prop_assume!(spec.transport != Transport::Sctp);
        let right = spec.build();
        let mut frame = right.clone();
        make_partial(&spec, &mut frame);
        let headers = parse(&frame).unwrap();
        let partial = partial(&frame, &headers);
        prop_assert_eq!(
            partial,
            Some(Partial { start: spec.l4(), offset: field(&spec) - spec.l4() })
        );
        complete(&mut frame, partial.unwrap(), headers.end);
        prop_assert_eq!(frame, right);
    }

    #[test]
    fn completing_a_packet_taken_for_partial_by_chance_changes_nothing(spec in specs(), word: u16) {
        // Every checksum that equals the pseudo-header sum by chance is one over a packet whose
        // rest sums to 0xffff: make such packets, by choosing the last word.
        let mut spec = Spec { transport: Transport::Tcp, ..spec };
        spec.payload = word.to_be_bytes().to_vec();
        spec.payload.extend([0, 0]);
        let mut frame = spec.build();
        make_partial(&spec, &mut frame);
        let headers = parse(&frame).unwrap();
        let partial = partial(&frame, &headers).unwrap();
        let mut completed = frame.clone();
        complete(&mut completed, partial, headers.end);
        let field = field(&spec);
        let checksum = u16::from_be_bytes(completed[field..][..2].try_into().unwrap());
        let pseudo = headers.pseudo_header().folded();
        // The other zero of ones' complement: no sender writes it, and receivers take both.
        prop_assume!(pseudo != 0xffff);
        // The last word takes up the difference, so that the right checksum is the pseudo-header
        // sum.
        let delta = Delta::default().u16(!checksum, !pseudo);
        let last = headers.end - 2;
        let value = !delta.apply(0xffff);
        frame[last..headers.end].copy_from_slice(&value.to_be_bytes());
        oracle::assert_checksums(&frame);
        let honest = frame.clone();
        complete(&mut frame, partial, headers.end);
        prop_assert_eq!(frame, honest);
    }

    #[test]
    fn honest_packets_are_not_taken_for_partial(spec in specs()) {
        let frame = spec.build();
        let headers = parse(&frame).unwrap();
        if let Some(partial) = partial(&frame, &headers) {
            let mut completed = frame.clone();
            complete(&mut completed, partial, headers.end);
            prop_assert_eq!(completed, frame);
        }
    }

    #[test]
    fn crc32c_agrees_with_the_bitwise_definition(
        bytes in prop::collection::vec(any::<u8>(), 12..300),
    ) {
        let mut zeroed = bytes.clone();
        zeroed[8..12].fill(0);
        prop_assert_eq!(sctp(&bytes), oracle::crc32c(&zeroed));
    }
}

#[test]
fn udp_without_checksum_is_not_partial() {
    for (source, destination) in [("10.0.0.1:1", "10.0.0.2:2"), ("[fd00::1]:1", "[fd00::2]:2")] {
        let spec = Spec::new(Transport::Udp, source, destination);
        let mut frame = spec.build();
        frame[field(&spec)..][..2].fill(0);
        assert_eq!(partial(&frame, &parse(&frame).unwrap()), None);
    }
}

#[test]
fn udp_sum_of_zero_is_completed_as_ffff() {
    let mut spec = Spec::new(Transport::Udp, "10.0.0.1:1", "10.0.0.2:2");
    spec.payload = vec![0, 0];
    let frame = spec.build();
    let checksum = u16::from_be_bytes(frame[field(&spec)..][..2].try_into().unwrap());
    // The checksum as data makes the sum full, and the new checksum 0.
    spec.payload = checksum.to_be_bytes().to_vec();
    let mut frame = spec.build();
    make_partial(&spec, &mut frame);
    let headers = parse(&frame).unwrap();
    let found = partial(&frame, &headers).unwrap();
    complete(&mut frame, found, headers.end);
    assert_eq!(frame[field(&spec)..][..2], [0xff, 0xff]);
    oracle::assert_checksums(&frame);
}

#[test]
fn fragments_are_never_partial() {
    for source in ["10.0.0.1:1", "[fd00::1]:1"] {
        let mut spec = Spec::new(Transport::Tcp, source, source);
        spec.payload = vec![7; 100];
        let mut frame = spec.build_fragment(0, true);
        let headers = parse(&frame).unwrap();
        let sum = headers.pseudo_header().folded();
        frame[headers.l4 + 16..][..2].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(partial(&frame, &headers), None);
        let later = spec.build_fragment(40, false);
        assert_eq!(partial(&later, &parse(&later).unwrap()), None);
    }
}

#[test]
fn udp_with_bytes_behind_its_datagram_is_not_partial() {
    let spec = Spec::new(Transport::Udp, "10.0.0.1:1", "10.0.0.2:2");
    let mut frame = spec.build();
    let headers = parse(&frame).unwrap();
    let sum = headers.pseudo_header().folded();
    frame[field(&spec)..][..2].copy_from_slice(&sum.to_be_bytes());
    assert!(partial(&frame, &headers).is_some());
    let shorter = headers.payload_len() as u8 - 1;
    frame[spec.l4() + 5] = shorter;
    assert_eq!(partial(&frame, &headers), None);
}

#[test]
fn completing_outside_the_frame_changes_nothing() {
    let mut frame = [1; 20];
    for (start, offset, end) in
        [(0, 19, 20), (21, 0, 22), (5, 2, 4), (0, 2, 21), (usize::MAX, 6, 20)]
    {
        complete(&mut frame, Partial { start, offset }, end);
    }
    assert_eq!(frame, [1; 20]);
}

#[test]
fn the_judge_of_crc32c_knows_the_published_check_value() {
    assert_eq!(oracle::crc32c(b"123456789"), 0xe306_9283);
}

#[test]
fn sctp_left_to_hardware_is_completed_and_only_that() {
    let spec = Spec::new(Transport::Sctp, "10.0.0.1:1", "10.0.0.2:2");
    let right = spec.build();
    let headers = parse(&right).unwrap();
    let mut frame = right.clone();
    assert!(!complete_sctp(&mut frame, &headers), "it has a checksum");
    frame[spec.l4() + 8..][..4].fill(0);
    assert!(complete_sctp(&mut frame, &headers));
    assert_eq!(frame, right);
    frame[spec.l4() + 8] ^= 1;
    let damaged = frame.clone();
    assert!(!complete_sctp(&mut frame, &headers));
    assert_eq!(frame, damaged, "a wrong checksum is not ours to mend");
}
