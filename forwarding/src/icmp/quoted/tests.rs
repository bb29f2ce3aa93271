use proptest::prelude::*;

use super::*;
use crate::icmp::{Error, error};
use crate::parse;
use crate::tests::frames::{Spec, Transport, icmp_error, specs};
use crate::tests::oracle;
use crate::tunnel::{self, Outer};
use crate::{Fragment, Packet};

fn kind(spec: &Spec) -> (u8, u8) {
    if spec.source.is_ipv4() { (3, 4) } else { (2, 0) }
}

/// An error about `spec`'s packet, of which `len` bytes of the transport header are quoted.
fn error_about(spec: &Spec, len: usize) -> Vec<u8> {
    let ip = &spec.build()[spec.l3()..];
    let quoted = spec.l4() - spec.l3() + len;
    let (source, destination) = (spec.destination.ip(), spec.source.ip());
    icmp_error(source, destination, kind(spec), &ip[..quoted.min(ip.len())])
}

fn quoted_in(frame: &[u8]) -> Option<Headers> {
    quoted(frame, &parse(frame).unwrap())
}

fn is_garbled_in(frame: &[u8]) -> bool {
    is_garbled(frame, &parse(frame).unwrap())
}

proptest! {
    #[test]
    fn the_quoted_packet_is_read_as_it_was_sent(spec in specs(), len in 4usize..300) {
        let spec = Spec { padding: 0, ..spec };
        let frame = error_about(&spec, len);
        let error = parse(&frame).unwrap();
        let quote = quoted_in(&frame).unwrap();
        let sent = parse(&spec.build()).unwrap();
        prop_assert_eq!(quote, Headers {
            vlan: None,
            l3: error.l4 + 8,
            l4: error.l4 + 8 + sent.l4 - sent.l3,
            end: frame.len(),
            tcp_flags: if len > 13 { sent.tcp_flags } else { 0 },
            ..sent
        });
    }

    #[test]
    fn a_quote_without_ports_is_refused(spec in specs(), len in 0usize..4) {
        let frame = error_about(&spec, len);
        prop_assert_eq!(quoted_in(&frame), None);
        prop_assert!(is_garbled_in(&frame));
    }

    #[test]
    fn what_can_be_read_is_no_nonsense(spec in specs(), len in 4usize..300) {
        prop_assert!(!is_garbled_in(&error_about(&spec, len)));
        prop_assert!(!is_garbled_in(&spec.build()));
    }

    #[test]
    fn one_flipped_bit_of_a_message_makes_its_sum_wrong(
        spec in specs(),
        len in 0usize..300,
        bit in any::<prop::sample::Index>(),
    ) {
        let mut frame = error_about(&Spec { padding: 0, ..spec }, len);
        let headers = parse(&frame).unwrap();
        prop_assert!(has_right_sum(&frame, &headers));
        let bit = bit.index(headers.payload_len() * 8);
        frame[headers.l4 + bit / 8] ^= 1 << (bit % 8);
        prop_assert!(!has_right_sum(&frame, &headers));
    }
}

#[test]
fn an_error_that_quotes_less_than_an_ip_header_is_nonsense() {
    let (a, b) = ("10.0.0.9".parse().unwrap(), "10.0.0.1".parse().unwrap());
    let ip = &Spec::new(Transport::Udp, "10.0.0.1:1", "10.0.0.2:2").build()[14..];
    for len in 0..20 {
        assert!(is_garbled_in(&icmp_error(a, b, (3, 1), &ip[..len])), "{len} bytes");
    }
    assert!(!is_garbled_in(&icmp_error(a, b, (8, 0), &ip[..3])), "a ping quotes nothing");
}

#[test]
fn only_errors_quote() {
    let ip = &Spec::new(Transport::Tcp, "10.0.0.1:1", "10.0.0.2:2").build()[14..];
    let (a, b) = ("10.0.0.9".parse().unwrap(), "10.0.0.1".parse().unwrap());
    for (kind, quotes) in
        [(0, false), (3, true), (4, true), (5, false), (8, false), (11, true), (12, true)]
    {
        let frame = icmp_error(a, b, (kind, 0), ip);
        assert_eq!(quoted_in(&frame).is_some(), quotes, "type {kind}");
    }
    let tcp = Spec::new(Transport::Tcp, "10.0.0.1:1", "10.0.0.2:2").build();
    assert_eq!(quoted_in(&tcp), None);
}

#[test]
fn a_router_may_have_changed_the_quoted_header_without_its_checksum() {
    let mut frame = error_about(&Spec::new(Transport::Tcp, "10.0.0.1:1", "10.0.0.2:2"), 8);
    let ttl = 14 + 28 + 8;
    frame[ttl] = 1;
    assert_eq!(quoted_in(&frame).unwrap().ttl, 1);
}

#[test]
fn impossible_quotes_are_refused() {
    let spec = Spec::new(Transport::Tcp, "10.0.0.1:1", "10.0.0.2:2");
    let quote = 14 + 28;
    for (at, value) in [
        (quote, 0x65),   // version 6 in an ICMPv4 error
        (quote, 0x44),   // header of 16 bytes
        (quote, 0x4f),   // header past the end
        (quote + 3, 19), // total length shorter than the header
        (quote + 3, 23), // only 3 bytes of transport header
        (quote + 7, 1),  // a later fragment
        (quote + 9, 1),  // ICMP
    ] {
        let mut frame = error_about(&spec, 8);
        frame[at] = value;
        assert_eq!(quoted_in(&frame), None, "byte {at} = {value:#x}");
        let nothing_to_go_by = at > quote + 3;
        assert_eq!(is_garbled_in(&frame), !nothing_to_go_by, "byte {at} = {value:#x}");
    }
}

#[test]
fn a_quoted_first_fragment_is_found() {
    let spec =
        Spec { payload: vec![1; 80], ..Spec::new(Transport::Tcp, "10.0.0.1:1", "10.0.0.2:2") };
    let fragment = spec.build_fragment(0, true);
    let (a, b) = (spec.destination.ip(), spec.source.ip());
    let frame = icmp_error(a, b, (3, 4), &fragment[14..]);
    let quote = quoted_in(&frame).unwrap();
    assert!(matches!(quote.fragment, Fragment::First { id: 0x4242, .. }));
    assert_eq!(quote.destination_port, 2);
}

#[test]
fn extensions_behind_the_quote_are_no_part_of_it() {
    // RFC 4884: a router quotes 128 bytes and puts an MPLS label behind them.
    let spec =
        Spec { payload: vec![1; 1000], ..Spec::new(Transport::Tcp, "10.0.0.1:1", "10.0.0.2:2") };
    let mut message = spec.build()[14..14 + 128].to_vec();
    message.extend([0x20, 0, 0, 0, 0, 8, 1, 1, 0, 0, 0, 1]);
    let (a, b) = (spec.destination.ip(), spec.source.ip());
    let mut frame = icmp_error(a, b, (11, 0), &message);
    frame[14 + 20 + 5] = 128 / 4;
    assert_eq!(quoted_in(&frame).unwrap().end, 14 + 28 + 128);
}

/// An error about `spec`'s packet in a tunnel; `len` bytes of the tunnel's packet are quoted.
fn error_about_tunnel(spec: &Spec, len: usize) -> Vec<u8> {
    let director = "192.0.2.1".parse().unwrap();
    let server = "192.0.2.2".parse().unwrap();
    let frame = spec.build();
    let mut chunk = vec![0; 64];
    chunk.extend_from_slice(&frame);
    let mut packet = Packet::new(&mut chunk, 64, frame.len());
    let headers = parse(packet.bytes()).unwrap();
    let outer = Outer { source: director, destination: server, id: 1, path_mtu_discovery: true };
    tunnel::Encapsulation::Ipip.encapsulate(&mut packet, &headers, None, 0, &outer).unwrap();
    let ip = &packet.bytes()[14..];
    icmp_error("192.0.2.254".parse().unwrap(), director, (3, 4), &ip[..ip.len().min(len)])
}

#[test]
fn errors_about_our_tunnels_are_looked_into_and_passed_on() {
    for (source, destination, inner) in
        [("10.0.0.1:1000", "10.0.0.2:80", 20), ("[fd00::1]:1000", "[fd00::2]:80", 40)]
    {
        let spec = Spec::new(Transport::Tcp, source, destination);
        let frame = error_about_tunnel(&spec, 20 + inner + 8);
        let quote = quoted_in(&frame).unwrap();
        assert_eq!(quote.destination, "192.0.2.2".parse::<std::net::IpAddr>().unwrap());
        assert_eq!((quote.source_port, quote.destination_port), (0, 0));
        let inside = tunnelled(&frame, &quote).unwrap();
        assert_eq!((inside.source, inside.destination), (spec.source.ip(), spec.destination.ip()));
        assert_eq!((inside.source_port, inside.destination_port), (1000, 80));
        assert_eq!(inside.end, frame.len());

        // The client is told, as if the director itself had found the packet too big.
        let mut chunk = [0; 2048];
        let mut reply = Packet::new(&mut chunk, 0, 0);
        let about = Error::TooBig { mtu: 1480 };
        let vip = spec.destination.ip();
        let headers = error(&mut reply, &frame, &inside, None, vip, about).unwrap();
        assert_eq!(parse(reply.bytes()), Ok(headers));
        assert_eq!(headers.destination, spec.source.ip());
        oracle::assert_checksums(reply.bytes());
        let sent = &spec.build()[14..14 + inner + 8];
        assert_eq!(&reply.bytes()[headers.l4 + 8..], sent);
    }
}

#[test]
fn a_short_quote_of_a_tunnel_packet_names_the_server_but_nothing_inside() {
    let spec = Spec::new(Transport::Tcp, "10.0.0.1:1000", "10.0.0.2:80");
    for len in [20, 28, 20 + 20 + 3] {
        let frame = error_about_tunnel(&spec, len);
        let quote = quoted_in(&frame).unwrap();
        assert_eq!(quote.protocol, 4);
        assert_eq!(tunnelled(&frame, &quote), None, "{len} bytes quoted");
    }
    let plain = error_about(&spec, 8);
    assert_eq!(tunnelled(&plain, &quoted_in(&plain).unwrap()), None, "no tunnel");
}
