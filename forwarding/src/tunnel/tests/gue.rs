//! UDP and GUE header, made and opened.

use pnet::packet::Packet as _;
use pnet::packet::udp::UdpPacket;
use proptest::prelude::*;

use super::*;
use crate::tests::frames::specs;

proptest! {
    #[test]
    fn udp_and_gue_header_say_what_they_should(spec in specs(), v6: bool, index in 1usize..4) {
        let outer = if v6 { SERVER_V6 } else { SERVER_V4 };
        let (frame, made) = wrap(&spec.build(), tunnel_type(index), &outer);
        let datagram = UdpPacket::new(&frame[made.headers.l4..made.headers.end]).unwrap();
        prop_assert_eq!(datagram.get_source(), SourcePorts::default().of(0x1234_5678));
        prop_assert_eq!(datagram.get_destination(), 6080);
        prop_assert_eq!(usize::from(datagram.get_length()), 8 + 4 + inner(&spec).len());
        prop_assert_eq!(datagram.get_checksum() == 0, tunnel_type(index) == gue(GueChecksum::Nocsum));
        let next = if spec.source.is_ipv4() { 4 } else { 41 };
        prop_assert_eq!(&datagram.payload()[..4], &[0, next, 0, 0]);
        prop_assert_eq!(&datagram.payload()[4..], inner(&spec));
    }

    #[test]
    fn a_source_port_is_one_of_the_range(first: u16, last: u16, flow_hash: u32) {
        let port = SourcePorts { first, last }.of(flow_hash);
        if first <= last {
            prop_assert!((first..=last).contains(&port));
        } else {
            prop_assert_eq!(port, first);
        }
    }
}

#[test]
fn flows_are_spread_over_the_whole_range_by_either_half_of_the_hash() {
    let ports = SourcePorts { first: 1000, last: 1099 };
    for shift in [0, 16] {
        let mut seen = [0; 100];
        for hash in 0..=0xffffu32 {
            seen[usize::from(ports.of(hash << shift) - 1000)] += 1;
        }
        let (least, most) = (seen.iter().min().unwrap(), seen.iter().max().unwrap());
        assert!(*least > 600 && *most < 700, "{least} to {most} hashes on a port");
    }
}

/// A GUE header with these options, before an IPv4 packet of 8 bytes of UDP data.
fn payload(header: [u8; 4], options: &[u8]) -> Vec<u8> {
    let spec = Spec {
        payload: b"datagram".to_vec(),
        ..Spec::new(Transport::Udp, "10.0.0.1:1", "10.0.0.2:2")
    };
    [&header[..], options, &left_to_hardware(&spec)[14..]].concat()
}

const PRIVATE: u8 = 1;
const REMOTE: [u8; 8] = [0x80, 0, 0, 0, 0, 20, 0, 26];

#[test]
fn only_gue_headers_that_are_understood_are_opened() {
    let open = |header, options: &[u8]| {
        let mut bytes = payload(header, options);
        let before = bytes.clone();
        let range = decapsulate_gue(&mut bytes);
        assert!(range.is_some() || bytes == before, "refused must be unchanged");
        range
    };
    assert_eq!(open([0, 4, 0, 0], &[]), Some(4..40));
    assert_eq!(open([0x40, 4, 0, 0], &[]), None, "variant 1");
    assert_eq!(open([0x80, 4, 0, 0], &[]), None, "variant 2");
    assert_eq!(open([0x20, 4, 0, 0], &[]), None, "control message");
    assert_eq!(open([0, 41, 0, 0], &[]), None, "announces IPv6, carries IPv4");
    assert_eq!(open([0, 17, 0, 0], &[]), None, "not an IP packet");
    assert_eq!(open([0, 4, 0x80, 0], &[]), None, "a flag that is not known");
    assert_eq!(open([0, 4, 0, PRIVATE], &[]), None, "private flags without room");
    assert_eq!(open([1, 4, 0, PRIVATE], &[0; 4]), Some(8..44), "private flags that say nothing");
    assert_eq!(open([1, 4, 0, PRIVATE], &[0x40, 0, 0, 0]), None, "a private flag not known");
    assert_eq!(open([1, 4, 0, PRIVATE], &REMOTE[..4]), None, "remote checksum without room");
    assert_eq!(open([2, 4, 0, PRIVATE], &REMOTE), Some(12..48));
    assert_eq!(open([2, 4, 0, 0], &REMOTE), Some(12..48), "options that no flag announces");
    assert_eq!(open([31, 4, 0, 0], &[]), None, "options past the end");
    let longer = [&REMOTE[..], &[9; 4]].concat();
    assert_eq!(open([3, 4, 0, PRIVATE], &longer), Some(16..52), "more options than announced");
}

#[test]
fn a_remote_checksum_is_completed_where_the_header_says_and_nowhere_else() {
    let whole = Spec {
        payload: b"datagram".to_vec(),
        ..Spec::new(Transport::Udp, "10.0.0.1:1", "10.0.0.2:2")
    };
    let complete = |start: u16, field: u16| {
        let [a, b] = start.to_be_bytes();
        let [c, d] = field.to_be_bytes();
        let mut bytes = payload([2, 4, 0, PRIVATE], &[0x80, 0, 0, 0, a, b, c, d]);
        // What the link or an unusual sender puts behind the packet is not summed.
        bytes.extend([0xee; 3]);
        let range = decapsulate_gue(&mut bytes)?;
        Some(bytes[range].to_vec())
    };
    assert_eq!(complete(20, 26), Some(inner(&whole)));
    assert_eq!(complete(19, 26), None, "begins in the IP header");
    assert_eq!(complete(12, 16), None, "would change the address that has been checked");
    assert_eq!(complete(20, 18), None, "lies before what it covers");
    assert_eq!(complete(20, 35), None, "ends behind the packet");
    assert_eq!(complete(20, 0xffff), None);
    assert_eq!(complete(0xffff, 0xffff), None);
    assert!(complete(20, 34).is_some(), "the last two bytes are still the packet's");
}

#[test]
fn a_udp_checksum_of_zero_goes_out_as_ffff() {
    // 0 would say that there is none. The inner packet has none, so its data are free to choose.
    let spec =
        Spec { payload: vec![0, 0], ..Spec::new(Transport::Udp, "10.0.0.1:1", "10.0.0.2:2") };
    let mut frame = spec.build();
    frame[spec.l4() + 6..].fill(0);
    let checksum = |frame: &[u8]| {
        let (frame, made) = wrap(frame, gue(GueChecksum::Csum), &SERVER_V4);
        u16::from_be_bytes([frame[made.headers.l4 + 6], frame[made.headers.l4 + 7]])
    };
    let first = checksum(&frame);
    assert_ne!(first, 0xffff);
    // The checksum as data makes the sum full.
    frame[spec.l4() + 8..].copy_from_slice(&first.to_be_bytes());
    assert_eq!(checksum(&frame), 0xffff);
}
