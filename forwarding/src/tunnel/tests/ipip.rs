//! IP in IP, and the outer header, which is the same for all types.

use pnet::packet::Packet as _;
use pnet::packet::ethernet::EthernetPacket;
use pnet::packet::ipv4::Ipv4Packet;
use pnet::packet::ipv6::Ipv6Packet;
use proptest::prelude::*;

use super::*;
use crate::tests::frames::{CLIENT_MAC, DIRECTOR_MAC};

/// The frame in a tunnel to `outer`, its headers, and by how much it has grown.
fn through(frame: &[u8], outer: &Outer) -> (Vec<u8>, Headers, isize) {
    let mut chunk = vec![0xaa; 64];
    chunk.extend_from_slice(frame);
    let mut packet = Packet::new(&mut chunk, 64, frame.len());
    let headers = parse(packet.bytes()).unwrap();
    let made = Encapsulation::Ipip.encapsulate(&mut packet, &headers, None, 0, outer).unwrap();
    let (headers, growth) = (made.headers, made.growth);
    (packet.bytes().to_vec(), headers, growth)
}

/// RFC 3168 full functionality: congestion that the inner packet has met is not told to the tunnel.
fn expected_class(inner: u8) -> u8 {
    if inner & 3 == 3 { inner & !1 } else { inner }
}

proptest! {
    #[test]
    fn the_outer_packet_is_what_pnet_expects(spec in specs(), v6: bool) {
        let outer = if v6 { SERVER_V6 } else { SERVER_V4 };
        let (frame, headers, growth) = through(&spec.build(), &outer);
        prop_assert_eq!(parse(&frame), Ok(headers));
        prop_assert_eq!(growth, (14 + Encapsulation::Ipip.overhead(outer.destination, false)) as isize - spec.l3() as isize);
        let next = if spec.source.is_ipv4() { 4 } else { 41 };
        let class = expected_class(spec.traffic_class);
        let ethernet = EthernetPacket::new(&frame).unwrap();
        prop_assert_eq!(ethernet.get_source().octets(), CLIENT_MAC);
        prop_assert_eq!(ethernet.get_destination().octets(), DIRECTOR_MAC);
        if v6 {
            prop_assert_eq!(ethernet.get_ethertype().0, 0x86dd);
            let ip = Ipv6Packet::new(ethernet.payload()).unwrap();
            prop_assert_eq!(ip.get_version(), 6);
            prop_assert_eq!(ip.get_traffic_class(), class);
            prop_assert_eq!(ip.get_flow_label(), 0);
            prop_assert_eq!(usize::from(ip.get_payload_length()), inner(&spec).len());
            prop_assert_eq!(ip.get_next_header().0, next);
            prop_assert_eq!(ip.get_hop_limit(), spec.ttl);
            prop_assert_eq!(IpAddr::V6(ip.get_source()), outer.source);
            prop_assert_eq!(IpAddr::V6(ip.get_destination()), outer.destination);
            prop_assert_eq!(ip.payload(), inner(&spec));
        } else {
            prop_assert_eq!(ethernet.get_ethertype().0, 0x0800);
            let ip = Ipv4Packet::new(ethernet.payload()).unwrap();
            prop_assert_eq!((ip.get_version(), ip.get_header_length()), (4, 5));
            prop_assert_eq!(ip.get_dscp() << 2 | ip.get_ecn(), class);
            prop_assert_eq!(usize::from(ip.get_total_length()), 20 + inner(&spec).len());
            prop_assert_eq!(ip.get_identification(), 0x7788);
            let dont_fragment = spec.source.is_ipv4() && spec.dont_fragment;
            prop_assert_eq!(ip.get_flags(), if dont_fragment { 2 } else { 0 });
            prop_assert_eq!(ip.get_fragment_offset(), 0);
            prop_assert_eq!(ip.get_ttl(), spec.ttl);
            prop_assert_eq!(ip.get_next_level_protocol().0, next);
            prop_assert_eq!(IpAddr::V4(ip.get_source()), outer.source);
            prop_assert_eq!(IpAddr::V4(ip.get_destination()), outer.destination);
            prop_assert_eq!(ip.payload(), inner(&spec));
        }
        oracle::assert_checksums(&frame);
    }
}

#[test]
fn only_whole_well_formed_tunnel_packets_are_opened() {
    let spec = Spec::new(Transport::Tcp, "10.0.0.1:1", "10.0.0.2:2");
    let (frame, headers, _) = through(&spec.build(), &SERVER_V4);
    let ip = frame[headers.l3..].to_vec();
    assert_eq!(decapsulate(&ip), Some(20..ip.len()));

    let with = |at: usize, value: u8| {
        let mut changed = ip.clone();
        changed[at] = value;
        if let Some(mut header) = ipv4::Header::at_mut(&mut changed, 0)
            && at < 20
        {
            header.fill_checksum();
        }
        decapsulate(&changed)
    };
    assert_eq!(with(6, 0x20), None, "first fragment");
    assert_eq!(with(7, 1), None, "later fragment");
    assert_eq!(with(9, 6), None, "not a tunnel");
    assert_eq!(with(9, 41), None, "announces IPv6, carries IPv4");
    assert_eq!(with(20, 0x44), None, "inner header too short");
    assert_eq!(with(22, 0xff), None, "inner length past the outer end");
    assert_eq!(with(30, 0xff), None, "inner header checksum");
    assert_eq!(decapsulate(&ip[..ip.len() - 1]), None, "outer length past the end");
    assert_eq!(decapsulate(&[]), None);
    assert_eq!(decapsulate(&inner(&spec)), None, "no tunnel at all");
}

#[test]
fn an_outer_packet_with_ipv6_options_is_opened() {
    // Linux's ip6tnl puts the tunnel encapsulation limit (RFC 2473) before the inner packet.
    let spec = Spec::new(Transport::Tcp, "10.0.0.1:1", "10.0.0.2:2");
    let (frame, headers, _) = through(&spec.build(), &SERVER_V6);
    let mut ip = frame[headers.l3..headers.l4].to_vec();
    ip[6] = 60;
    ip[5] += 8;
    ip.extend([4, 0, 4, 1, 4, 1, 1, 0]);
    ip.extend(inner(&spec));
    assert_eq!(decapsulate(&ip), Some(48..ip.len()));
}
