//! What the tests of all tunnel types share.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;
use crate::tests::frames::{Spec, Transport, specs};
use crate::tests::oracle;
use crate::{Fragment, checksum, parse};

mod exact;
mod gre;
mod gue;
mod ipip;
mod mtu;

const SERVER_V4: Outer = Outer {
    source: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    destination: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)),
    id: 0x7788,
    path_mtu_discovery: true,
};
const SERVER_V6: Outer = Outer {
    source: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    destination: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)),
    id: 0x7788,
    path_mtu_discovery: true,
};

fn gue(checksum: GueChecksum) -> Encapsulation {
    Encapsulation::Gue { port: 6080, source_ports: SourcePorts::default(), checksum }
}

/// All tunnel types with all their variants.
pub(crate) const KINDS: usize = 6;
pub(crate) fn tunnel_type(index: usize) -> Encapsulation {
    match index {
        0 => Encapsulation::Ipip,
        1 => gue(GueChecksum::Nocsum),
        2 => gue(GueChecksum::Csum),
        3 => gue(GueChecksum::Remcsum),
        4 => Encapsulation::Gre { checksum: false },
        _ => Encapsulation::Gre { checksum: true },
    }
}

/// The frame in a tunnel to `outer`. The room before it is full of old bytes.
fn wrap(frame: &[u8], encapsulation: Encapsulation, outer: &Outer) -> (Vec<u8>, Encapsulated) {
    let mut chunk = vec![0xaa; 80];
    chunk.extend_from_slice(frame);
    let mut packet = Packet::new(&mut chunk, 80, frame.len());
    let headers = parse(packet.bytes()).unwrap();
    let partial = checksum::partial(packet.bytes(), &headers);
    let made =
        encapsulation.encapsulate(&mut packet, &headers, partial, 0x1234_5678, outer).unwrap();
    (packet.bytes().to_vec(), made)
}

/// The IP packet in the frame of this specification.
fn inner(spec: &Spec) -> Vec<u8> {
    let frame = spec.build();
    frame[spec.l3()..frame.len() - spec.padding].to_vec()
}

/// The frame of this specification as its sender leaves it to hardware to complete the checksum.
fn left_to_hardware(spec: &Spec) -> Vec<u8> {
    let mut frame = spec.build();
    let headers = parse(&frame).unwrap();
    let sum = headers.pseudo_header().folded();
    let offset = if spec.transport == Transport::Tcp { 16 } else { 6 };
    frame[headers.l4 + offset..][..2].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// Packets of protocols whose checksum may be left to hardware.
fn tcp_or_udp(spec: Spec) -> Spec {
    let transport = if spec.transport == Transport::Sctp { Transport::Tcp } else { spec.transport };
    Spec { transport, ..spec }
}

/// What comes out at the other end of the tunnel, as the IP packet it is.
fn unwrap(frame: &[u8], headers: &Headers, encapsulation: Encapsulation) -> Option<Vec<u8>> {
    let mut ip = frame[headers.l3..headers.end].to_vec();
    // The link may have padded the outer packet.
    match encapsulation {
        Encapsulation::Gue { .. } => {
            let payload = &mut ip[headers.l4 - headers.l3 + 8..];
            let range = decapsulate_gue(payload)?;
            Some(payload[range].to_vec())
        }
        _ => {
            ip.extend([0xee; 9]);
            let range = decapsulate(&ip)?;
            Some(ip[range].to_vec())
        }
    }
}

/// `etherparse` and `pnet` find the tunnel's own checksums right.
fn assert_checksums(frame: &[u8], headers: &Headers, encapsulation: Encapsulation) {
    let behind_ip = &frame[headers.l4..headers.end];
    match encapsulation {
        Encapsulation::Gue { checksum: GueChecksum::Nocsum, .. } => {
            assert_eq!(behind_ip[6..8], [0, 0]);
        }
        Encapsulation::Gre { checksum: true } => {
            let expected = pnet::packet::util::checksum(behind_ip, 2);
            assert_eq!(behind_ip[4..6], expected.to_be_bytes());
        }
        _ => oracle::assert_checksums(frame),
    }
}

proptest! {
    #[test]
    fn what_goes_into_any_tunnel_comes_out(
        spec in specs(),
        v6: bool,
        index in 0..KINDS,
    ) {
        let outer = if v6 { SERVER_V6 } else { SERVER_V4 };
        let (frame, made) = wrap(&spec.build(), tunnel_type(index), &outer);
        prop_assert_eq!(parse(&frame), Ok(made.headers));
        assert_checksums(&frame, &made.headers, tunnel_type(index));
        let out = unwrap(&frame, &made.headers, tunnel_type(index));
        prop_assert_eq!(out, Some(inner(&spec)));
    }

    #[test]
    fn the_inner_packet_is_found_in_a_quote_that_reaches_it_and_in_no_shorter_one(
        spec in specs().prop_map(tcp_or_udp),
        v6: bool,
        index in 0..KINDS,
        cut in 0usize..60,
    ) {
        let outer = if v6 { SERVER_V6 } else { SERVER_V4 };
        let (frame, made) = wrap(&left_to_hardware(&spec), tunnel_type(index), &outer);
        let inner = made.headers.end - inner(&spec).len();
        let quote = Headers { end: (made.headers.l4 + cut).min(made.headers.end), ..made.headers };
        let family = if spec.source.is_ipv4() { Family::V4 } else { Family::V6 };
        let expected = (quote.end > inner).then_some((family, inner));
        prop_assert_eq!(quoted(&frame, &quote), expected);
        prop_assert_eq!(quoted(&frame[..quote.end], &quote), expected);
        let fragment = Fragment::Later { id: 1, offset: 1480, more: false };
        let later = Headers { fragment, ..quote };
        prop_assert_eq!(quoted(&frame, &later), None);
    }

    #[test]
    fn a_partial_checksum_is_completed_on_the_way_through_any_tunnel(
        spec in specs().prop_map(tcp_or_udp),
        v6: bool,
        index in 0..KINDS,
    ) {
        let outer = if v6 { SERVER_V6 } else { SERVER_V4 };
        let (mut frame, made) = wrap(&left_to_hardware(&spec), tunnel_type(index), &outer);
        prop_assert_eq!(parse(&frame), Ok(made.headers));
        let remote = tunnel_type(index) == gue(GueChecksum::Remcsum);
        prop_assert_eq!(made.partial.is_none(), remote, "remcsum leaves it to the other end");
        if let Some(partial) = made.partial {
            checksum::complete(&mut frame, partial, made.headers.end);
        }
        // UDP and GRE checksum, computed before, must be right for what has been completed.
        assert_checksums(&frame, &made.headers, tunnel_type(index));
        let out = unwrap(&frame, &made.headers, tunnel_type(index));
        prop_assert_eq!(out, Some(inner(&spec)));
    }
}

#[test]
fn no_room_leaves_the_packet_as_it_was() {
    let frame = left_to_hardware(&Spec::new(Transport::Tcp, "10.0.0.1:1", "10.0.0.2:2"));
    let headers = parse(&frame).unwrap();
    let partial = checksum::partial(&frame, &headers);
    for index in 0..KINDS {
        for outer in [SERVER_V4, SERVER_V6] {
            let room = tunnel_type(index).overhead(outer.destination, true);
            let mut chunk = vec![0; room];
            chunk.extend_from_slice(&frame);
            let mut short = Packet::new(&mut chunk[1..], room - 1, frame.len());
            let made = tunnel_type(index).encapsulate(&mut short, &headers, partial, 0, &outer);
            assert_eq!(made, None);
            assert_eq!((short.start(), short.bytes()), (room - 1, &frame[..]));
            let mut enough = Packet::new(&mut chunk, room, frame.len());
            assert!(
                tunnel_type(index).encapsulate(&mut enough, &headers, partial, 0, &outer).is_some()
            );
            assert_eq!(enough.start(), 0, "{:?} needs what overhead() says", tunnel_type(index));
        }
    }
}

#[test]
fn a_packet_too_long_for_the_outer_length_field_is_refused() {
    for index in 0..KINDS {
        for (outer, counted) in [(SERVER_V4, 20), (SERVER_V6, 0)] {
            let shim = tunnel_type(index).overhead(outer.destination, false)
                - Encapsulation::Ipip.overhead(outer.destination, false);
            // The longest inner packet that fits, and one byte more.
            let longest = 65535 - counted - shim;
            for (length, fits) in [(longest, true), (longest + 1, false)] {
                if length > 65535 {
                    continue;
                }
                let spec = Spec {
                    payload: vec![0; length - 20 - 8],
                    ..Spec::new(Transport::Udp, "10.0.0.1:1", "10.0.0.2:2")
                };
                let frame = spec.build();
                let headers = parse(&frame).unwrap();
                let mut chunk = vec![0; 80];
                chunk.extend_from_slice(&frame);
                let mut packet = Packet::new(&mut chunk, 80, frame.len());
                let made = tunnel_type(index).encapsulate(&mut packet, &headers, None, 0, &outer);
                assert_eq!(made.is_some(), fits, "{length} bytes in {:?}", tunnel_type(index));
                if !fits {
                    assert_eq!(packet.bytes(), frame);
                }
            }
        }
    }
}

#[test]
fn a_partial_checksum_that_is_not_the_packets_is_not_believed() {
    let frame = Spec::new(Transport::Tcp, "10.0.0.1:1", "10.0.0.2:2").build();
    let headers = parse(&frame).unwrap();
    for index in 0..KINDS {
        for (start, offset) in [(0, 16), (13, 0), (34, 5000), (usize::MAX, 1), (34, usize::MAX)] {
            let mut chunk = vec![0; 80];
            chunk.extend_from_slice(&frame);
            let mut packet = Packet::new(&mut chunk, 80, frame.len());
            let partial = Some(Partial { start, offset });
            let made =
                tunnel_type(index).encapsulate(&mut packet, &headers, partial, 0, &SERVER_V4);
            let made = made.unwrap();
            assert_eq!(made.partial, None);
            let out = unwrap(packet.bytes(), &made.headers, tunnel_type(index));
            assert_eq!(out.as_deref(), Some(&frame[14..]));
        }
    }
}
