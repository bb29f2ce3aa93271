use proptest::prelude::*;

use super::*;
use crate::parse;
use crate::tests::frames::{CLIENT_MAC, DIRECTOR_MAC, Spec, Transport, specs};

/// The frame with 16 bytes of room before it.
fn chunk(frame: &[u8]) -> Vec<u8> {
    let mut chunk = vec![0xaa; 16];
    chunk.extend_from_slice(frame);
    chunk
}

proptest! {
    #[test]
    fn a_frame_changes_network_and_nothing_else(spec in specs(), vlan in prop::option::of(0u16..4096)) {
        let frame = spec.build();
        let mut chunk = chunk(&frame);
        let mut packet = Packet::new(&mut chunk, 16, frame.len());
        let mut headers = parse(packet.bytes()).unwrap();
        prop_assert!(set_vlan(&mut packet, &mut headers, vlan));
        prop_assert_eq!(parse(packet.bytes()), Ok(headers));
        let expected = Spec { vlan, ..spec }.build();
        prop_assert_eq!(packet.bytes(), &expected[..]);
    }
}

#[test]
fn a_replaced_tag_keeps_its_priority() {
    let mut frame =
        Spec { vlan: Some(7), ..Spec::new(Transport::Udp, "10.0.0.1:1", "10.0.0.2:2") }.build();
    frame[14] |= 0xb0;
    let len = frame.len();
    let mut packet = Packet::new(&mut frame, 0, len);
    let mut headers = parse(packet.bytes()).unwrap();
    assert!(set_vlan(&mut packet, &mut headers, Some(0x123)));
    assert_eq!(packet.bytes()[14..16], [0xb1, 0x23]);
}

#[test]
fn a_tag_without_room_or_with_too_large_an_id_is_refused_unchanged() {
    let untouched = Spec::new(Transport::Udp, "10.0.0.1:1", "10.0.0.2:2").build();
    for (room, id) in [(3, 1), (16, 4096)] {
        let mut chunk = chunk(&untouched).split_off(16 - room);
        let mut packet = Packet::new(&mut chunk, room, untouched.len());
        let mut headers = parse(packet.bytes()).unwrap();
        assert!(!set_vlan(&mut packet, &mut headers, Some(id)));
        assert_eq!(headers, parse(&untouched).unwrap());
        assert_eq!(packet.bytes(), untouched);
    }
}

#[test]
fn addresses_are_written_where_etherparse_reads_them() {
    let mut frame = Spec::new(Transport::Udp, "10.0.0.1:1", "10.0.0.2:2").build();
    let header = etherparse::Ethernet2Header::from_slice(&frame).unwrap().0;
    assert_eq!(header.source, CLIENT_MAC);
    assert_eq!(header.destination, DIRECTOR_MAC);
    set_addresses(&mut frame, [6; 6], [8; 6]);
    let header = etherparse::Ethernet2Header::from_slice(&frame).unwrap().0;
    assert_eq!(header.destination, [6; 6]);
    assert_eq!(header.source, [8; 6]);
    let mut short = [1; 13];
    set_addresses(&mut short, [6; 6], [8; 6]);
    assert_eq!(short, [1; 13]);
}
