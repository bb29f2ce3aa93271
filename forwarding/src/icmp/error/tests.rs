use pnet::packet::Packet as _;
use pnet::packet::icmp::IcmpPacket;
use pnet::packet::icmpv6::Icmpv6Packet;
use pnet::packet::ipv4::Ipv4Packet;
use pnet::packet::ipv6::Ipv6Packet;
use proptest::prelude::*;

use super::*;
use crate::parse;
use crate::tests::frames::{CLIENT_MAC, DIRECTOR_MAC, Spec, Transport, icmp_error, specs};
use crate::tests::oracle;

const V4: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
const V6: IpAddr = IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

/// The reply to `frame`, if one may be sent.
fn reply_to(frame: &[u8], partial: Option<Partial>, about: Error) -> Option<Vec<u8>> {
    let headers = parse(frame).unwrap();
    let source = match headers.family {
        Family::V4 => V4,
        Family::V6 => V6,
    };
    let mut chunk = [0xaa; 2048];
    let mut reply = Packet::new(&mut chunk, 256, 0);
    let written = error(&mut reply, frame, &headers, partial, source, about)?;
    assert_eq!(parse(reply.bytes()), Ok(written));
    Some(reply.bytes().to_vec())
}

fn errors() -> impl Strategy<Value = Error> {
    prop_oneof![
        (68u32..100_000).prop_map(|mtu| Error::TooBig { mtu }),
        Just(Error::TimeExceeded),
        Just(Error::PortUnreachable),
        (0u8..16).prop_map(|code| Error::Unreachable { code }),
    ]
}

fn long(spec: Spec, len: usize) -> Spec {
    let payload = (0..len).map(|n| n as u8).collect();
    Spec { payload, ..spec }
}

/// Type, code and number as RFC 792, 1191 and 4443 have them.
fn expected(v4: bool, about: Error) -> (u8, u8, u32) {
    match (v4, about) {
        (true, Error::TooBig { mtu }) => (3, 4, mtu.min(65535)),
        (true, Error::TimeExceeded) => (11, 0, 0),
        (true, Error::PortUnreachable) => (3, 3, 0),
        (true, Error::Unreachable { code }) => (3, code, 0),
        (false, Error::Unreachable { code }) => (1, code, 0),
        (false, Error::TooBig { mtu }) => (2, 0, mtu),
        (false, Error::TimeExceeded) => (3, 0, 0),
        (false, Error::PortUnreachable) => (1, 4, 0),
    }
}

proptest! {
    #[test]
    fn pnet_reads_the_error_and_its_quote(spec in specs(), len in 0usize..1400, about in errors()) {
        let spec = long(spec, len);
        let frame = spec.build();
        let reply = reply_to(&frame, None, about).unwrap();
        oracle::assert_checksums(&reply);
        prop_assert_eq!(&reply[..6], CLIENT_MAC);
        prop_assert_eq!(&reply[6..12], DIRECTOR_MAC);
        prop_assert_eq!(parse(&reply).unwrap().vlan, spec.vlan);
        let subject = &frame[spec.l3()..frame.len() - spec.padding];
        let ip = &reply[spec.l3()..];
        let (message, longest) = if spec.source.is_ipv4() {
            let ip = Ipv4Packet::new(ip).unwrap();
            prop_assert_eq!(IpAddr::V4(ip.get_source()), V4);
            prop_assert_eq!(IpAddr::V4(ip.get_destination()), spec.source.ip());
            prop_assert_eq!(ip.get_next_level_protocol().0, 1);
            prop_assert_eq!(ip.get_ttl(), 64);
            let message = IcmpPacket::new(ip.payload()).unwrap();
            (message.packet().to_vec(), 576 - 28)
        } else {
            let ip = Ipv6Packet::new(ip).unwrap();
            prop_assert_eq!(IpAddr::V6(ip.get_source()), V6);
            prop_assert_eq!(IpAddr::V6(ip.get_destination()), spec.source.ip());
            prop_assert_eq!(ip.get_next_header().0, 58);
            prop_assert_eq!(ip.get_hop_limit(), 64);
            let message = Icmpv6Packet::new(ip.payload()).unwrap();
            (message.packet().to_vec(), 1280 - 48)
        };
        let rest = u32::from_be_bytes(message[4..8].try_into().unwrap());
        let found = (message[0], message[1], rest);
        prop_assert_eq!(found, expected(spec.source.is_ipv4(), about));
        prop_assert_eq!(&message[8..], &subject[..subject.len().min(longest)]);
    }

    #[test]
    fn the_quote_has_the_checksum_the_packet_would_have_gone_with(
        spec in specs(),
        len in 0usize..1400,
    ) {
        prop_assume!(spec.transport != Transport::Sctp);
        let spec = long(spec, len);
        let right = spec.build();
        let mut frame = right.clone();
        let headers = parse(&frame).unwrap();
        let offset = if headers.is_tcp() { 16 } else { 6 };
        let sum = headers.pseudo_header().folded();
        frame[headers.l4 + offset..][..2].copy_from_slice(&sum.to_be_bytes());
        let partial = checksum::partial(&frame, &headers);
        prop_assert!(partial.is_some());
        let reply = reply_to(&frame, partial, Error::TimeExceeded);
        prop_assert_eq!(reply, reply_to(&right, None, Error::TimeExceeded));
    }
}

#[test]
fn no_error_is_sent_about_an_error() {
    let quote = [0x45; 60];
    let v4 = ["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
    let v6 = ["fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()];
    for ([a, b], kinds, echo) in
        [(v4, &[3u8, 4, 5, 11, 12][..], 8), (v6, &[1, 2, 3, 4, 127, 137], 128)]
    {
        for kind in kinds {
            let frame = icmp_error(a, b, (*kind, 0), &quote);
            assert_eq!(reply_to(&frame, None, Error::TimeExceeded), None, "{kind}");
        }
        let frame = icmp_error(a, b, (echo, 0), &quote);
        assert!(reply_to(&frame, None, Error::TimeExceeded).is_some());
    }
}

#[test]
fn no_error_is_sent_about_a_later_fragment() {
    for source in ["10.0.0.1:1", "[fd00::1]:1"] {
        let spec = long(Spec::new(Transport::Tcp, source, source), 200);
        let first = spec.build_fragment(0, true);
        assert!(reply_to(&first, None, Error::TimeExceeded).is_some());
        let later = spec.build_fragment(64, false);
        assert_eq!(reply_to(&later, None, Error::TimeExceeded), None);
    }
}

#[test]
fn no_error_is_sent_to_or_about_many_hosts() {
    let answered = |source: &str, destination: &str, about| {
        let frame = Spec::new(Transport::Udp, source, destination).build();
        reply_to(&frame, None, about).is_some()
    };
    let unreachable = Error::PortUnreachable;
    for source in ["0.0.0.0:1", "127.0.0.1:1", "224.0.0.1:1", "255.255.255.255:1"] {
        assert!(!answered(source, "10.0.0.2:2", unreachable), "{source}");
    }
    assert!(!answered("10.0.0.1:1", "224.0.0.1:2", unreachable));
    assert!(!answered("10.0.0.1:1", "255.255.255.255:2", unreachable));
    for source in ["[::]:1", "[::1]:1", "[ff02::1]:1"] {
        assert!(!answered(source, "[fd00::2]:2", unreachable), "{source}");
    }
    assert!(!answered("[fd00::1]:1", "[ff02::1]:2", unreachable));
    // Path MTU discovery works for IPv6 multicast (RFC 4443 section 2.4 e.3).
    assert!(answered("[fd00::1]:1", "[ff02::1]:2", Error::TooBig { mtu: 1280 }));
}

#[test]
fn a_reply_without_room_is_not_begun() {
    let frame = Spec::new(Transport::Udp, "10.0.0.1:1", "10.0.0.2:2").build();
    let headers = parse(&frame).unwrap();
    let needed = frame.len() + 28;
    let mut chunk = [0xaa; 200];
    let mut reply = Packet::new(&mut chunk[..needed - 1], 0, 0);
    let about = Error::TimeExceeded;
    assert_eq!(error(&mut reply, &frame, &headers, None, V4, about), None);
    assert!(reply.is_empty());
    assert!(chunk.iter().all(|byte| *byte == 0xaa));
    let mut reply = Packet::new(&mut chunk[..needed], 0, 0);
    assert!(error(&mut reply, &frame, &headers, None, V6, about).is_none(), "other family");
    assert!(error(&mut reply, &frame, &headers, None, V4, about).is_some());
}

#[test]
fn an_error_may_be_fragmented_and_bears_the_number_it_is_given() {
    let spec = Spec::new(Transport::Tcp, "198.51.100.7:4000", "192.0.2.10:80");
    let frame = spec.build();
    let mut bytes = reply_to(&frame, None, Error::PortUnreachable).unwrap();
    let headers = parse(&bytes).unwrap();
    assert!(!headers.dont_fragment, "the kernel's ICMP errors leave the bit out");
    number(&mut bytes, &headers, 0x1234);
    let header = ipv4::Header::at(&bytes, headers.l3).unwrap();
    assert_eq!((header.identification(), header.flags_and_offset()), (0x1234, 0));
    parse(&bytes).expect("the header's checksum is right again");
}
