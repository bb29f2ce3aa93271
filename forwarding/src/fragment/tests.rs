use etherparse::defrag::IpDefragPool;
use etherparse::{NetSlice, SlicedPacket};
use proptest::prelude::*;

use super::*;
use crate::parse;
use crate::tests::frames::{Spec, Transport, specs};

/// All pieces of a frame, and their headers.
fn cut(frame: &[u8], headers: &Headers, mtu: u32) -> Vec<(Vec<u8>, Headers)> {
    let mut fragmenter = Fragmenter::new(frame, headers, mtu, 0x0708_090a).unwrap();
    let mut pieces = Vec::new();
    let mut out = vec![0xaa; 18 + mtu as usize];
    while let Some(headers) = fragmenter.next(frame, &mut out) {
        pieces.push((out[..headers.end].to_vec(), headers));
    }
    pieces
}

fn large(address: &str, other: &str, payload: usize) -> Spec {
    let mut spec = Spec::new(Transport::Udp, address, other);
    spec.payload = (0..payload).map(|place| (place * 7) as u8).collect();
    spec.dont_fragment = false;
    spec
}

proptest! {
    /// etherparse puts the datagram together again, in whatever order the pieces come.
    #[test]
    fn pieces_fit_and_make_the_whole(
        mut spec in specs(),
        payload in 600usize..3000,
        mtu in 100u32..600,
        backwards: bool,
    ) {
        spec.payload.resize(payload, 0x5a);
        // IPv6 is cut as its sender cuts it: the director adds no extension headers.
        spec.options &= spec.source.is_ipv4();
        let frame = spec.build();
        let whole = parse(&frame).unwrap();
        let mut pieces = cut(&frame, &whole, mtu);
        for (piece, headers) in &pieces {
            prop_assert!(headers.ip_len() <= mtu as usize);
            prop_assert_eq!(parse(piece), Ok(*headers));
            prop_assert_eq!(&piece[..14], &frame[..14]);
            if let Some(NetSlice::Ipv4(ip)) = SlicedPacket::from_ethernet(piece).unwrap().net {
                let header = ip.header();
                prop_assert_eq!(header.to_header().calc_header_checksum(), header.header_checksum());
                prop_assert_eq!(header.identification(), 0x4242);
            }
        }
        // None is smaller than it must be.
        let full = pieces[0].1.payload_len();
        prop_assert!(full + 8 > mtu as usize - (pieces[0].1.l4 - pieces[0].1.l3));
        prop_assert_eq!(pieces.len(), whole.payload_len().div_ceil(full));
        if backwards {
            pieces.reverse();
        }
        let mut pool: IpDefragPool = IpDefragPool::new();
        let mut datagram = None;
        for (piece, _) in &pieces {
            let sliced = SlicedPacket::from_ethernet(piece).unwrap();
            let complete = pool.process_sliced_packet(&sliced, (), ()).unwrap();
            prop_assert!(datagram.is_none());
            datagram = complete;
        }
        let datagram = datagram.expect("every piece has come");
        prop_assert_eq!(datagram.ip_number.0, spec.protocol());
        prop_assert_eq!(&datagram.payload[..], &frame[whole.l4..whole.end]);
    }
}

#[test]
fn a_fragment_that_is_still_too_large_keeps_its_place_in_the_datagram() {
    let spec = large("10.0.0.1:53", "10.0.0.2:4000", 3000);
    for (more, last) in [(true, true), (false, false)] {
        let frame = spec.build_fragment(1480, more);
        let headers = parse(&frame).unwrap();
        let pieces = cut(&frame, &headers, 576);
        let places: Vec<_> = pieces
            .iter()
            .map(|(piece, _)| {
                let sliced = SlicedPacket::from_ethernet(piece).unwrap();
                let Some(NetSlice::Ipv4(ip)) = sliced.net else { panic!("IPv4") };
                let header = ip.header();
                (usize::from(header.fragments_offset().byte_offset()), header.more_fragments())
            })
            .collect();
        let expected: Vec<_> =
            [0, 552, 1104].into_iter().map(|place| (1480 + place, place < 1104 || last)).collect();
        assert_eq!(places, expected);
        assert!(pieces.iter().all(|(_, headers)| headers.is_later_fragment()));
    }
}

#[test]
fn options_for_the_first_fragment_only_are_blanked_in_the_others() {
    let mut spec = large("10.0.0.1:53", "10.0.0.2:4000", 1000);
    spec.options = true;
    let mut frame = spec.build();
    // A router alert, which is copied, then a (short) record route, which is not.
    frame[34..42].copy_from_slice(&[0x94, 4, 0, 0, 0x07, 3, 4, 0]);
    let mut header = ipv4::Header::at_mut(&mut frame, 14).unwrap();
    header.set_checksum(0);
    let sum = ipv4::Header::at(&frame, 14).unwrap().sum().bytes(&frame[34..42]);
    ipv4::Header::at_mut(&mut frame, 14).unwrap().set_checksum(sum.checksum());
    let headers = parse(&frame).unwrap();
    let pieces = cut(&frame, &headers, 576);
    assert_eq!(pieces.len(), 2);
    assert_eq!(pieces[0].0[34..42], [0x94, 4, 0, 0, 0x07, 3, 4, 0]);
    assert_eq!(pieces[1].0[34..42], [0x94, 4, 0, 0, 1, 1, 1, 0]);
    assert_eq!(parse(&pieces[1].0), Ok(pieces[1].1));
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let frame = large("10.0.0.1:53", "10.0.0.2:4000", 100).build();
    let headers = parse(&frame).unwrap();
    assert!(Fragmenter::new(&frame, &headers, 27, 0).is_none(), "no 8 bytes of payload fit");
    assert!(Fragmenter::new(&frame, &headers, 28, 0).is_some());
    // "Ping of death": its end is past the longest datagram.
    let mut frame = large("10.0.0.1:53", "10.0.0.2:4000", 1000).build();
    let mut header = ipv4::Header::at_mut(&mut frame, 14).unwrap();
    header.set_flags_and_offset(ipv4::OFFSET);
    header.fill_checksum();
    let headers = parse(&frame).unwrap();
    assert!(Fragmenter::new(&frame, &headers, 576, 0).is_none());
    let mut spec = large("[fd00::1]:53", "[fd00::2]:4000", 2000);
    spec.options = true;
    let frame = spec.build();
    let headers = parse(&frame).unwrap();
    assert!(Fragmenter::new(&frame, &headers, 1280, 0).is_none(), "has extension headers");
}

#[test]
fn a_buffer_that_is_too_small_gets_nothing() {
    let frame = large("10.0.0.1:53", "10.0.0.2:4000", 1000).build();
    let headers = parse(&frame).unwrap();
    let mut fragmenter = Fragmenter::new(&frame, &headers, 576, 0).unwrap();
    let mut small = [0xaa; 100];
    assert!(fragmenter.next(&frame, &mut small).is_none());
    assert_eq!(small, [0xaa; 100]);
    assert!(fragmenter.next(&frame, &mut [0; 600]).is_some(), "it can be tried again");
}
