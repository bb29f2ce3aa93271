use std::net::IpAddr;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;

use super::*;
use crate::tests::frames::{Spec, Transport, icmp_error, specs};
use crate::wire::ipv4 as wire4;
use crate::{Family, Fragment};

fn v4() -> Spec {
    Spec::new(Transport::Tcp, "10.0.0.1:1000", "10.0.0.2:80")
}

fn v6() -> Spec {
    Spec::new(Transport::Tcp, "[fd00::1]:1000", "[fd00::2]:80")
}

/// What `parse` says of the frame after this change (and a new IPv4 header checksum).
fn after(mut frame: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Result<Headers, Malformed> {
    change(&mut frame);
    if frame.len() > 34 && frame[14] == 0x45 {
        wire4::Header::at_mut(&mut frame, 14).unwrap().fill_checksum();
    }
    parse(&frame)
}

proptest! {
    #[test]
    fn every_field_is_what_the_sender_wrote(spec in specs()) {
        let frame = spec.build();
        let expected = Headers {
            family: if spec.source.is_ipv4() { Family::V4 } else { Family::V6 },
            vlan: spec.vlan,
            l3: spec.l3(),
            l4: spec.l4(),
            end: frame.len() - spec.padding,
            protocol: spec.protocol(),
            source: spec.source.ip(),
            destination: spec.destination.ip(),
            source_port: spec.source.port(),
            destination_port: spec.destination.port(),
            ttl: spec.ttl,
            dont_fragment: spec.dont_fragment || spec.source.is_ipv6(),
            fragment: Fragment::Whole,
            tcp_flags: if spec.transport == Transport::Tcp { spec.tcp_flags } else { 0 },
        };
        prop_assert_eq!(parse(&frame), Ok(expected));
    }

    #[test]
    fn etherparse_reads_the_same(spec in specs()) {
        let frame = spec.build();
        let headers = parse(&frame).unwrap();
        let packet = SlicedPacket::from_ethernet(&frame).unwrap();
        let (source, payload) = match packet.net.as_ref().unwrap() {
            NetSlice::Ipv4(ip) => (IpAddr::V4(ip.header().source_addr()), ip.payload()),
            NetSlice::Ipv6(ip) => (IpAddr::V6(ip.header().source_addr()), ip.payload()),
            NetSlice::Arp(_) => unreachable!(),
        };
        prop_assert_eq!(headers.source, source);
        prop_assert_eq!(headers.protocol, payload.ip_number.0);
        prop_assert_eq!(&frame[headers.l4..headers.end], payload.payload);
        let ports = match packet.transport.as_ref() {
            Some(TransportSlice::Tcp(tcp)) => (tcp.source_port(), tcp.destination_port()),
            Some(TransportSlice::Udp(udp)) => (udp.source_port(), udp.destination_port()),
            _ => return Ok(()),
        };
        prop_assert_eq!((headers.source_port, headers.destination_port), ports);
    }

    #[test]
    fn every_shorter_frame_is_truncated(spec in specs(), cut in 0usize..300) {
        let frame = spec.build();
        let end = frame.len() - spec.padding;
        let cut = cut.min(end - 1);
        prop_assert_eq!(parse(&frame[..cut]), Err(Malformed::Truncated));
    }

    #[test]
    fn one_flipped_bit_in_an_ipv4_header_is_noticed(spec in specs(), bit in 0usize..160) {
        prop_assume!(spec.source.is_ipv4());
        let mut frame = spec.build();
        frame[spec.l3() + bit / 8] ^= 1 << (bit % 8);
        prop_assert!(parse(&frame).is_err());
    }
}

#[test]
fn other_ethertypes_and_second_tags_are_not_ours() {
    for ether_type in [0x0806u16, 0x88a8, 0x886f, 0x9100] {
        let result = after(v4().build(), |f| {
            f[12..14].copy_from_slice(&ether_type.to_be_bytes());
        });
        assert_eq!(result, Err(Malformed::NotIp), "{ether_type:#x}");
    }
    let tagged = Spec { vlan: Some(5), ..v4() };
    let result = after(tagged.build(), |f| f[16..18].copy_from_slice(&[0x81, 0]));
    assert_eq!(result, Err(Malformed::NotIp));
}

#[test]
fn a_priority_tag_is_vlan_0() {
    let frame = Spec { vlan: Some(0), ..v4() };
    assert_eq!(parse(&frame.build()).unwrap().vlan, Some(0));
}

#[test]
fn impossible_ipv4_headers_are_refused() {
    let bad = Err(Malformed::BadHeader);
    assert_eq!(after(v4().build(), |f| f[14] = 0x55), bad, "version 5");
    assert_eq!(after(v4().build(), |f| f[14] = 0x44), bad, "16 bytes of header");
    assert_eq!(after(v4().build(), |f| f[17] = 19), bad, "shorter than its header");
    let truncated = Err(Malformed::Truncated);
    assert_eq!(after(v4().build(), |f| f[17] += 1), truncated);
    let result = after(v4().build(), |f| {
        f.truncate(34 + 20);
        f[14] = 0x4f;
        f[17] = 60;
    });
    assert_eq!(result, truncated, "options past the frame");
    let mut frame = v4().build();
    frame[24] ^= 1;
    assert_eq!(parse(&frame), Err(Malformed::BadChecksum));
}

#[test]
fn impossible_ipv6_headers_are_refused() {
    let bad = Err(Malformed::BadHeader);
    assert_eq!(after(v6().build(), |f| f[14] = 0x50), bad, "version 5");
    assert_eq!(after(v6().build(), |f| f[18..20].fill(0)), bad, "jumbogram");
    assert_eq!(after(v6().build(), |f| f[19] += 1), Err(Malformed::Truncated));
}

#[test]
fn impossible_transport_headers_are_refused() {
    let udp = |source: &str| Spec::new(Transport::Udp, source, source);
    let (bad, truncated) = (Err(Malformed::BadHeader), Err(Malformed::Truncated));
    for (spec, l4) in [(v4(), 34), (v6(), 54)] {
        let frame = spec.build();
        assert_eq!(after(frame.clone(), |f| f[l4 + 12] = 0x40), bad, "TCP of 16 bytes");
        assert_eq!(after(frame, |f| f[l4 + 12] = 0xf0), truncated, "TCP options past the end");
    }
    for (spec, l4) in [(udp("10.0.0.1:1"), 34), (udp("[fd00::1]:1"), 54)] {
        let frame = spec.build();
        assert_eq!(after(frame.clone(), |f| f[l4 + 5] = 7), bad, "UDP of 7 bytes");
        assert_eq!(after(frame.clone(), |f| f[l4 + 5] += 1), truncated, "UDP past the end");
        assert!(after(frame, |f| f[l4 + 5] -= 1).is_ok(), "bytes behind a datagram");
    }
}

/// An IPv4 packet of this protocol with so many bytes behind its header.
fn ipv4_of(protocol: u8, len: usize) -> Result<Headers, Malformed> {
    after(v4().build(), |f| {
        f.resize(34, 0);
        f.resize(34 + len, 0x50);
        f[17] = 20 + len as u8;
        f[23] = protocol;
    })
}

#[test]
fn a_transport_header_must_be_whole() {
    for (protocol, least) in [(1, 8), (6, 20), (17, 8), (132, 12)] {
        let short = ipv4_of(protocol, least - 1);
        assert_eq!(short, Err(Malformed::Truncated), "protocol {protocol}");
    }
    assert!(ipv4_of(1, 8).is_ok());
    assert!(ipv4_of(132, 12).is_ok());
}

#[test]
fn unknown_protocols_are_accepted_without_ports() {
    for protocol in [4, 41, 47, 50, 51, 58, 89] {
        let headers = ipv4_of(protocol, 30).unwrap();
        assert_eq!(headers.protocol, protocol);
        assert_eq!((headers.source_port, headers.destination_port), (0, 0));
        assert_eq!(headers.l4, 34);
    }
}

#[test]
fn first_fragments_have_ports_and_later_ones_have_not() {
    for (spec, id) in [(v4(), 0x4242), (v6(), 0x0102_0304)] {
        let spec = Spec { payload: vec![1; 100], ..spec };
        let first = parse(&spec.build_fragment(0, true)).unwrap();
        let length = first.payload_len() as u16;
        assert_eq!(first.fragment, Fragment::First { id, length });
        assert_eq!((first.source_port, first.destination_port), (1000, 80));
        assert_ne!(first.tcp_flags, 0);
        for more in [true, false] {
            let later = parse(&spec.build_fragment(40, more)).unwrap();
            assert_eq!(later.fragment, Fragment::Later { id, offset: 40, more });
            assert_eq!((later.source_port, later.destination_port), (0, 0));
            assert_eq!((later.protocol, later.tcp_flags), (6, 0));
            assert_eq!(later.l4, first.l4);
        }
    }
}

#[test]
fn a_fragment_over_the_transport_header_is_refused() {
    for source in ["10.0.0.1:1", "[fd00::1]:1"] {
        for (transport, header) in
            [(Transport::Tcp, 20), (Transport::Udp, 8), (Transport::Sctp, 12)]
        {
            let mut spec = Spec::new(transport, source, source);
            spec.payload = vec![1; 100];
            for offset in [8, 16, 24] {
                let read = parse(&spec.build_fragment(offset, false));
                assert_eq!(
                    read.err(),
                    (offset < header).then_some(Malformed::Overlap),
                    "{transport:?} at {offset}"
                );
            }
        }
    }
}

#[test]
fn the_udp_length_of_a_first_fragment_may_reach_past_it() {
    for source in ["10.0.0.1:1", "[fd00::1]:1"] {
        let mut spec = Spec::new(Transport::Udp, source, source);
        spec.payload = vec![1; 100];
        let mut frame = spec.build_fragment(0, true);
        let at = parse(&frame).unwrap().l4 + 4;
        frame[at..at + 2].copy_from_slice(&2000u16.to_be_bytes());
        assert!(parse(&frame).is_ok());
    }
}

#[test]
fn a_first_fragment_without_its_transport_header_is_refused() {
    let mut spec = v4();
    spec.payload.clear();
    let frame = spec.build_fragment(0, true);
    assert_eq!(frame.len(), 14 + 20 + 16);
    assert_eq!(parse(&frame), Err(Malformed::Truncated));
}

/// An IPv6 TCP packet with these extension headers, the next headers of which are set to follow on.
fn extended(kinds: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut frame = v6().build();
    let tcp = frame.split_off(54);
    let len: usize = kinds.iter().map(|(_, bytes)| bytes.len()).sum();
    frame[18..20].copy_from_slice(&((len + tcp.len()) as u16).to_be_bytes());
    frame[20] = kinds.first().map_or(6, |(kind, _)| *kind);
    for (place, (_, bytes)) in kinds.iter().enumerate() {
        let next = kinds.get(place + 1).map_or(6, |(kind, _)| *kind);
        frame.push(next);
        frame.extend_from_slice(&bytes[1..]);
    }
    frame.extend(tcp);
    frame
}

fn options(eights: u8) -> Vec<u8> {
    let mut bytes = vec![0; 8 * (usize::from(eights) + 1)];
    bytes[1] = eights;
    bytes
}

#[test]
fn ipv6_extension_headers_are_stepped_over() {
    let routing = |left: u8| vec![0, 0, 4, left, 0, 0, 0, 0];
    let frame = extended(&[
        (0, options(1)),
        (60, options(0)),
        (43, routing(0)),
        (44, vec![0; 8]),
        (60, options(3)),
    ]);
    let headers = parse(&frame).unwrap();
    assert_eq!((headers.protocol, headers.destination_port), (6, 80));
    assert_eq!(headers.l4, 54 + 16 + 8 + 8 + 8 + 32);
    assert_eq!(headers.fragment, Fragment::Whole, "an atomic fragment is none");

    let headers = parse(&extended(&[(43, routing(1))])).unwrap();
    assert_eq!((headers.protocol, headers.l4), (43, 54), "not at its destination");
    assert_eq!(headers.destination_port, 0);
}

#[test]
fn authentication_and_encryption_headers_are_not_stepped_over() {
    for kind in [50, 51] {
        let headers = parse(&extended(&[(60, options(0)), (kind, options(0))])).unwrap();
        assert_eq!((headers.protocol, headers.l4), (kind, 62));
        assert_eq!(headers.destination_port, 0);
    }
}

#[test]
fn the_walk_over_extension_headers_ends() {
    let many = |count| vec![(60, options(0)); count];
    assert!(parse(&extended(&many(8))).is_ok());
    assert_eq!(parse(&extended(&many(9))), Err(Malformed::BadHeader));
    let twice = extended(&[(44, vec![0; 8]), (44, vec![0; 8])]);
    assert_eq!(parse(&twice), Err(Malformed::BadHeader));
    let late = extended(&[(60, options(0)), (0, options(0))]);
    assert_eq!(parse(&late), Err(Malformed::BadHeader), "hop-by-hop must be first");
    let mut long = extended(&[(60, options(0))]);
    long[55] = 200;
    assert_eq!(parse(&long), Err(Malformed::Truncated));
}

#[test]
fn headers_know_icmp_errors() {
    let (a, b) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
    for (kind, error) in
        [(0, false), (3, true), (4, true), (5, false), (8, false), (11, true), (12, true)]
    {
        let frame = icmp_error(a, b, (kind, 0), &[0; 28]);
        let headers = parse(&frame).unwrap();
        assert_eq!(headers.icmp_type(&frame), Some(kind));
        assert_eq!(headers.is_icmp_error(&frame), error, "type {kind}");
    }
    let (a, b) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
    for (kind, error) in [
        (0, false),
        (1, true),
        (2, true),
        (3, true),
        (4, true),
        (5, false),
        (128, false),
        (135, false),
    ] {
        let frame = icmp_error(a, b, (kind, 0), &[0; 48]);
        let headers = parse(&frame).unwrap();
        assert_eq!(headers.is_icmp_error(&frame), error, "type {kind}");
    }
    let tcp = v4().build();
    let headers = parse(&tcp).unwrap();
    assert!(!headers.is_icmp_error(&tcp) && headers.is_tcp());
    assert_eq!(headers.ip_len(), 20 + 20 + 7);
    assert_eq!(headers.payload_len(), 20 + 7);
}
