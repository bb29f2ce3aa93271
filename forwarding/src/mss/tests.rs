use etherparse::{PacketBuilder, SlicedPacket, TcpOptionElement, TransportSlice};
use proptest::prelude::*;

use super::*;
use crate::tests::frames::{CLIENT_MAC, DIRECTOR_MAC};
use crate::tests::oracle;
use crate::{checksum, parse};

/// A segment with these bytes of options.
fn segment(v4: bool, flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let link = PacketBuilder::ethernet2(CLIENT_MAC, DIRECTOR_MAC);
    let ip = match v4 {
        true => link.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64),
        false => link.ipv6([0xfd; 16], [0xfe; 16], 64),
    };
    let mut tcp = ip.tcp(5000, 80, 1000, 64_000).options_raw(options).unwrap();
    if flags & tcp::SYN != 0 {
        tcp = tcp.syn();
    }
    if flags & tcp::ACK != 0 {
        tcp = tcp.ack(77);
    }
    let mut frame = Vec::new();
    tcp.write(&mut frame, payload).unwrap();
    frame
}

/// The MSS that `etherparse` finds.
fn announced(frame: &[u8]) -> Option<u16> {
    let Some(TransportSlice::Tcp(tcp)) = SlicedPacket::from_ethernet(frame).unwrap().transport
    else {
        panic!("not TCP");
    };
    tcp.options_iterator().find_map(|option| match option {
        Ok(TcpOptionElement::MaximumSegmentSize(size)) => Some(size),
        _ => None,
    })
}

fn clamped(frame: &[u8], most: u16) -> (Vec<u8>, bool) {
    let mut copy = frame.to_vec();
    let headers = parse(frame).unwrap();
    let partial = checksum::partial(frame, &headers);
    let changed = clamp(&mut copy, &headers, partial, most);
    assert_eq!(parse(&copy), Ok(headers), "no header that parse reads has changed");
    (copy, changed)
}

/// Options that end well, the MSS among them at an even or odd place.
fn with_mss(before: usize, mss: u16) -> Vec<u8> {
    let mut options = vec![tcp::NO_OPERATION; before];
    options.extend_from_slice(&[2, 4]);
    options.extend_from_slice(&mss.to_be_bytes());
    options.extend_from_slice(&[4, 2, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 3, 7]);
    options
}

proptest! {
    #[test]
    fn a_higher_one_is_lowered_and_all_else_is_as_the_sender_would_have_written_it(
        v4 in any::<bool>(),
        synack in any::<bool>(),
        before in 0..6_usize,
        mss in any::<u16>(),
        most in any::<u16>(),
        payload in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let flags = if synack { tcp::SYN | tcp::ACK } else { tcp::SYN };
        let frame = segment(v4, flags, &with_mss(before, mss), &payload);
        let (result, changed) = clamped(&frame, most);
        prop_assert_eq!(changed, mss > most);
        let expected = segment(v4, flags, &with_mss(before, mss.min(most)), &payload);
        prop_assert_eq!(result, expected);
    }

    #[test]
    fn a_partial_checksum_stays_the_pseudo_headers(before in 0..6_usize, v4 in any::<bool>()) {
        let mut frame = segment(v4, tcp::SYN, &with_mss(before, 1460), b"");
        let headers = parse(&frame).unwrap();
        let sum = headers.pseudo_header().folded();
        frame[headers.l4 + 16..][..2].copy_from_slice(&sum.to_be_bytes());
        let (mut result, changed) = clamped(&frame, 1300);
        prop_assert!(changed);
        prop_assert_eq!(&result[headers.l4 + 16..][..2], &sum.to_be_bytes());
        let partial = checksum::partial(&result, &headers);
        checksum::complete(&mut result, partial.unwrap(), headers.end);
        oracle::assert_checksums(&result);
        prop_assert_eq!(announced(&result), Some(1300));
    }

    #[test]
    fn whatever_stands_in_the_options_the_checksum_stays_right_and_nothing_else_changes(
        options in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..=40),
            prop::collection::vec(0..6_u8, 0..=40),
        ],
        most in any::<u16>(),
        payload in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let frame = segment(true, tcp::SYN, &options, &payload);
        let (result, changed) = clamped(&frame, most);
        oracle::assert_checksums(&result);
        let headers = parse(&frame).unwrap();
        let options = headers.l4 + 20..headers.end - payload.len();
        for (at, (old, new)) in frame.iter().zip(&result).enumerate() {
            let checksum = (headers.l4 + 16..headers.l4 + 18).contains(&at);
            prop_assert!(old == new || changed && (checksum || options.contains(&at)), "{at}");
        }
        let sizes = (announced(&frame), announced(&result));
        prop_assert!(sizes.0.map(|size| size.min(most)) == sizes.1, "{sizes:?}");
    }
}

#[test]
fn only_a_segment_that_opens_a_connection_is_clamped() {
    for flags in [0, tcp::ACK] {
        let frame = segment(true, flags, &with_mss(0, 1460), b"data");
        assert_eq!(clamped(&frame, 1000), (frame, false));
    }
}

#[test]
fn without_the_option_a_segment_is_left_alone() {
    let frame = segment(true, tcp::SYN, &[1, 1, 4, 2], b"");
    assert_eq!(clamped(&frame, 1000), (frame, false));
}

#[test]
fn a_length_that_lies_ends_the_search() {
    for options in
        [[254, 0, 2, 4, 5, 180, 0, 0], [254, 1, 2, 4, 5, 180, 0, 0], [1, 1, 1, 1, 1, 1, 1, 2]]
    {
        let frame = segment(true, tcp::SYN, &options, &[4, 5, 180]);
        assert_eq!(clamped(&frame, 1000), (frame, false), "{options:?}");
    }
}

#[test]
fn no_way_is_so_narrow_that_less_than_every_host_takes_is_announced() {
    assert_eq!(that_fits(Family::V4, 68), 536);
    assert_eq!(that_fits(Family::V6, 0), 1220);
    assert_eq!(that_fits(Family::V4, u32::MAX), u16::MAX);
}
