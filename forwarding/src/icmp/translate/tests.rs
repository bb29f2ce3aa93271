//! A translated error is held against the error that would have come about the untranslated packet:
//! every byte must agree.

use std::net::SocketAddr;

use proptest::prelude::*;

use super::*;
use crate::icmp::quoted;
use crate::parse;
use crate::tests::frames::{Spec, Transport, between, endpoints, icmp_error};
use crate::tests::oracle;

/// An error from `from` to `to` about the packet of `spec`, with `len` bytes of transport quoted.
fn error_about(spec: &Spec, from: IpAddr, to: IpAddr, len: usize, code: u8) -> Vec<u8> {
    let frame = spec.build();
    let ip = &frame[spec.l3()..frame.len() - spec.padding];
    let quoted = (spec.l4() - spec.l3() + len).min(ip.len());
    let kind = if from.is_ipv4() { 3 } else { 1 };
    icmp_error(from, to, (kind, code), &ip[..quoted])
}

/// Client, virtual service, real server; the packet that the client sends to the service.
fn scenes() -> impl Strategy<Value = (Spec, SocketAddr, usize)> {
    endpoints::<3>().prop_flat_map(|[client, service, server]| {
        // 8 bytes are the short quotes of RFC 792. Of 17 bytes the last is half a TCP checksum,
        // which can be neither updated nor left out.
        let len = prop_oneof![Just(8usize), 8usize..17, 18usize..40, Just(300)];
        (between(client, service), Just(server), len)
    })
}

fn apply(frame: &mut [u8], translation: &Translation) {
    let mut headers = parse(frame).unwrap();
    let quote = quoted(frame, &headers).unwrap();
    translate(frame, &mut headers, &quote, translation);
    assert_eq!(parse(frame), Ok(headers), "headers must follow the frame");
    oracle::assert_checksums(frame);
}

/// SCTP's CRC in a quote cannot be updated: leave it out of the comparison.
fn without_crc(mut frame: Vec<u8>, spec: &Spec) -> Vec<u8> {
    if spec.transport == Transport::Sctp {
        let quote = parse(&frame).unwrap();
        let quote = quoted(&frame, &quote).unwrap();
        let icmp = parse(&frame).unwrap().l4;
        frame[icmp + 2..icmp + 4].fill(0);
        frame.truncate(quote.l4 + 8);
    }
    frame
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The server (or a router before it) complains about what we sent it; the client must hear
    /// about what it sent to the service.
    #[test]
    fn an_error_from_the_server_side_reaches_the_client(
        (spec, server, len) in scenes(),
        code in 0u8..5,
    ) {
        let (client, service) = (spec.source, spec.destination);
        let sent = Spec { destination: server, ..spec.clone() };
        let mut frame = error_about(&sent, server.ip(), client.ip(), len, code);
        apply(&mut frame, &Translation {
            outer_source: Some(service.ip()),
            quoted_destination: Some((service.ip(), service.port())),
            ..Translation::default()
        });
        let expected = error_about(&spec, service.ip(), client.ip(), len, code);
        prop_assert_eq!(without_crc(frame, &spec), without_crc(expected, &spec));
    }

    /// The client complains about the service's reply; the server must hear about its own.
    #[test]
    fn an_error_from_the_client_side_reaches_the_server(
        (spec, server, len) in scenes(),
        code in 0u8..5,
    ) {
        let (client, service) = (spec.source, spec.destination);
        let reply = Spec { source: server, destination: client, ..spec };
        let heard = Spec { source: service, ..reply.clone() };
        let mut frame = error_about(&heard, client.ip(), service.ip(), len, code);
        apply(&mut frame, &Translation {
            outer_destination: Some(server.ip()),
            quoted_source: Some((server.ip(), server.port())),
            ..Translation::default()
        });
        let expected = error_about(&reply, client.ip(), server.ip(), len, code);
        prop_assert_eq!(without_crc(frame, &reply), without_crc(expected, &reply));
    }

    #[test]
    fn a_udp_packet_quoted_without_checksum_stays_without((spec, server, len) in scenes()) {
        let spec = Spec { transport: Transport::Udp, ..spec };
        let (client, service) = (spec.source, spec.destination);
        let mut ip = spec.build()[spec.l3()..].to_vec();
        let checksum = spec.l4() - spec.l3() + 6;
        ip[checksum..][..2].fill(0);
        ip.truncate(checksum + 2 + len);
        let kind = if client.is_ipv4() { (3, 3) } else { (1, 4) };
        let mut frame = icmp_error(service.ip(), client.ip(), kind, &ip);
        apply(&mut frame, &Translation {
            quoted_destination: Some((server.ip(), server.port())),
            ..Translation::default()
        });
        let quote = quoted(&frame, &parse(&frame).unwrap()).unwrap();
        prop_assert_eq!(&frame[quote.l4 + 6..][..2], [0, 0]);
        prop_assert_eq!(quote.destination, server.ip());
        prop_assert_eq!(quote.destination_port, server.port());
    }
}

#[test]
fn nothing_to_translate_changes_nothing() {
    for source in ["10.0.0.1:1", "[fd00::1]:1"] {
        let spec = Spec::new(Transport::Tcp, source, source);
        let frame = error_about(&spec, spec.source.ip(), spec.source.ip(), 20, 3);
        let mut copy = frame.clone();
        apply(&mut copy, &Translation::default());
        assert_eq!(copy, frame);
    }
}

#[test]
fn addresses_of_the_other_family_change_nothing() {
    let spec = Spec::new(Transport::Tcp, "10.0.0.1:1", "10.0.0.2:2");
    let frame = error_about(&spec, spec.destination.ip(), spec.source.ip(), 20, 3);
    let other = "fd00::1".parse().unwrap();
    let mut copy = frame.clone();
    apply(
        &mut copy,
        &Translation {
            outer_source: Some(other),
            outer_destination: Some(other),
            quoted_source: Some((other, 7)),
            quoted_destination: Some((other, 8)),
        },
    );
    assert_eq!(copy, frame);
}

#[test]
fn a_wrong_icmp_checksum_stays_wrong() {
    let spec = Spec::new(Transport::Tcp, "10.0.0.1:1", "10.0.0.2:2");
    let mut frame = error_about(&spec, spec.destination.ip(), spec.source.ip(), 20, 3);
    frame[14 + 20 + 2] ^= 1;
    let mut headers = parse(&frame).unwrap();
    let quote = quoted(&frame, &headers).unwrap();
    let translation = Translation {
        outer_source: Some("10.0.0.3".parse().unwrap()),
        quoted_destination: Some(("10.0.0.3".parse().unwrap(), 3)),
        ..Translation::default()
    };
    translate(&mut frame, &mut headers, &quote, &translation);
    let message = &frame[headers.l4..headers.end];
    assert_ne!(Sum::default().bytes(message).folded(), 0xffff);
}
