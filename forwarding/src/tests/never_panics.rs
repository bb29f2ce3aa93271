//! Whatever arrives, nothing panics, and what was accepted stays within its frame.

use std::net::IpAddr;

use proptest::prelude::*;

use super::frames::{self, icmp_error, specs};
use crate::checksum::Partial;
use crate::fragment::Fragmenter;
use crate::icmp::{self, Translation};
use crate::tunnel::tests::{KINDS, tunnel_type};
use crate::tunnel::{self, Outer};
use crate::wire::ethernet;
use crate::{Family, Headers, Packet, checksum, direct, mss, nat, parse, reset};

const V4: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 2, 3));
const V6: IpAddr = IpAddr::V6(std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));

/// Everything the director may do to a frame that was accepted.
fn do_everything(frame: &[u8], headers: Headers) {
    assert!(14 <= headers.l3 && headers.l3 < headers.l4);
    assert!(headers.l4 <= headers.end && headers.end <= frame.len());
    let (same, other) = match headers.family {
        Family::V4 => (V4, V6),
        Family::V6 => (V6, V4),
    };
    let partial = checksum::partial(frame, &headers);
    let mut copy = frame.to_vec();
    if let Some(partial) = partial {
        checksum::complete(&mut copy, partial, headers.end);
    }
    checksum::complete_sctp(&mut copy, &headers);

    for address in [same, other] {
        for partial in [None, partial] {
            let mut copy = frame.to_vec();
            let mut changed = headers;
            nat::rewrite_destination(&mut copy, &mut changed, address, 80, partial);
            nat::rewrite_source(&mut copy, &mut changed, address, 81, partial);
            let _ = direct::decrement_ttl(&mut copy, &mut changed);
            assert_eq!(parse(&copy), Ok(changed), "headers must follow the frame");
        }
    }
    for source in [same, other] {
        for error in [
            icmp::Error::TooBig { mtu: 1400 },
            icmp::Error::TimeExceeded,
            icmp::Error::PortUnreachable,
        ] {
            for room in [0, 100, 2048] {
                let mut chunk = vec![0xaa; room];
                let mut reply = Packet::new(&mut chunk, 0, 0);
                let written = icmp::error(&mut reply, frame, &headers, partial, source, error);
                if let Some(written) = written {
                    assert_eq!(parse(reply.bytes()), Ok(written));
                }
            }
        }
    }
    for room in [0, 60, 256] {
        let mut chunk = vec![0xaa; room];
        let mut reply = Packet::new(&mut chunk, 0, 0);
        if let Some(written) = reset::reset(&mut reply, frame, &headers) {
            assert_eq!(parse(reply.bytes()), Ok(written));
            let mut nothing = [0; 256];
            let mut nothing = Packet::new(&mut nothing, 0, 0);
            assert_eq!(reset::reset(&mut nothing, reply.bytes(), &written), None);
        }
    }
    for partial in [None, partial] {
        let mut copy = frame.to_vec();
        mss::clamp(&mut copy, &headers, partial, 1000);
        assert_eq!(parse(&copy), Ok(headers));
    }
    for destination in [V4, V6] {
        for room in [0, 256] {
            for index in 0..KINDS {
                for partial in [None, partial] {
                    let outer =
                        Outer { source: destination, destination, id: 7, path_mtu_discovery: true };
                    wrap(frame, &headers, room, index, partial, &outer);
                }
            }
        }
    }
    for mtu in [0, 27, 68, 1280, u32::MAX] {
        let mut out = vec![0; frame.len() + 8];
        let Some(mut fragmenter) = Fragmenter::new(frame, &headers, mtu, 7) else { continue };
        let mut payload = 0;
        while let Some(piece) = fragmenter.next(frame, &mut out) {
            assert!(piece.ip_len() <= mtu as usize);
            payload += piece.payload_len();
        }
        assert_eq!(payload, headers.payload_len(), "every byte is in a piece");
    }
    let _ = tunnel::decapsulate_gue(&mut frame[headers.l3..].to_vec());
    let mut payload = frame[headers.l4.saturating_add(8).min(headers.end)..headers.end].to_vec();
    if let Some(inner) = tunnel::decapsulate_gue(&mut payload) {
        assert!(inner.start < inner.end && inner.end <= payload.len());
    }
    let _ = tunnel::decapsulate(&frame[headers.l3..]);
    for vlan in [None, Some(1), Some(4095), Some(4096)] {
        let mut chunk = vec![0; 4];
        chunk.extend_from_slice(frame);
        let mut packet = Packet::new(&mut chunk, 4, frame.len());
        let mut moved = headers;
        if ethernet::set_vlan(&mut packet, &mut moved, vlan) {
            assert_eq!(parse(packet.bytes()), Ok(moved));
        }
    }
    if let Some(quote) = icmp::quoted(frame, &headers) {
        translate(frame, headers, &quote, same);
        if let Some((_, begin)) = tunnel::quoted(frame, &quote) {
            assert!(quote.l4 <= begin && begin < quote.end);
        }
        if let Some(inside) = icmp::tunnelled(frame, &quote) {
            translate(frame, headers, &inside, V4);
            translate(frame, headers, &inside, V6);
            let mut chunk = [0; 2048];
            let mut reply = Packet::new(&mut chunk, 0, 0);
            let error = icmp::Error::TooBig { mtu: 1480 };
            for source in [V4, V6] {
                icmp::error(&mut reply, frame, &inside, None, source, error);
            }
        }
    }
}

fn wrap(
    frame: &[u8],
    headers: &Headers,
    room: usize,
    index: usize,
    partial: Option<Partial>,
    outer: &Outer,
) {
    let mut chunk = vec![0; room];
    chunk.extend_from_slice(frame);
    let mut packet = Packet::new(&mut chunk, room, frame.len());
    match tunnel_type(index).encapsulate(&mut packet, headers, partial, 7, outer) {
        Some(made) => {
            assert_eq!(parse(packet.bytes()), Ok(made.headers));
            assert_eq!(made.headers.end, headers.end.strict_add_signed(made.growth));
        }
        None => assert_eq!(packet.bytes(), frame, "refused must be unchanged"),
    }
}

fn translate(frame: &[u8], mut headers: Headers, quote: &Headers, address: IpAddr) {
    let translation = Translation {
        outer_source: Some(address),
        outer_destination: Some(address),
        quoted_source: Some((address, 1)),
        quoted_destination: Some((address, 2)),
    };
    let mut copy = frame.to_vec();
    icmp::translate(&mut copy, &mut headers, quote, &translation);
    assert_eq!(parse(&copy), Ok(headers), "headers must follow the frame");
}

/// Frames of every shape we know: packets, fragments, tunnels, errors, errors about tunnels.
fn shapes() -> impl Strategy<Value = Vec<u8>> {
    (specs(), 0u8..6, any::<bool>(), 8usize..200, 0..KINDS).prop_map(
        |(spec, shape, more, cut, index)| {
            let frame = spec.build();
            let ip = &frame[spec.l3()..frame.len() - spec.padding];
            let cut_ip = &ip[..ip.len().min(cut)];
            let kind = if spec.source.is_ipv4() { (3, 4) } else { (2, 0) };
            match shape {
                0 | 1 => frame,
                2 => frames::Spec { vlan: None, ..spec }.build_fragment(0, true),
                3 => {
                    let mut payload = spec.payload;
                    payload.resize(payload.len().max(24), 7);
                    frames::Spec { vlan: None, payload, ..spec }.build_fragment(24, more)
                }
                4 => icmp_error(spec.destination.ip(), spec.source.ip(), kind, cut_ip),
                _ => {
                    let mut chunk = vec![0; 64];
                    chunk.extend_from_slice(&frame);
                    let mut packet = Packet::new(&mut chunk, 64, frame.len());
                    let headers = parse(packet.bytes()).unwrap();
                    let outer =
                        Outer { source: V4, destination: V4, id: 1, path_mtu_discovery: true };
                    let partial = checksum::partial(packet.bytes(), &headers);
                    tunnel_type(index)
                        .encapsulate(&mut packet, &headers, partial, 1, &outer)
                        .unwrap();
                    if more {
                        let quote = &packet.bytes()[14..];
                        icmp_error(V4, V4, (3, 4), &quote[..quote.len().min(cut)])
                    } else {
                        packet.bytes().to_vec()
                    }
                }
            }
        },
    )
}

/// Makes the checksum of an IPv4 header without options right, so that damage behind it is reached.
fn mend(frame: &mut [u8]) {
    if let Some(mut header) = crate::wire::ipv4::Header::at_mut(frame, 14) {
        header.fill_checksum();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn random_bytes_are_refused_or_handled(mut frame in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(headers) = parse(&frame) {
            do_everything(&frame, headers);
        }
        // The same behind a link and an IP header with right lengths, which chance would not find.
        let Some(len) = frame.len().checked_sub(14) else { return Ok(()) };
        let protocol = [1, 4, 6, 17, 41, 47, 58, 132, 0, 43, 44, 60][usize::from(frame[0]) % 12];
        if frame[1] < 128 && len >= 20 {
            frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
            frame[16..18].copy_from_slice(&(len as u16).to_be_bytes());
            if frame[2] < 200 {
                frame[20] &= 0x60;
                frame[21] = 0;
            }
            frame[23] = protocol;
            mend(&mut frame);
        } else if len > 40 {
            frame[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
            frame[18..20].copy_from_slice(&(len as u16 - 40).to_be_bytes());
            frame[20] = protocol;
        }
        if let Ok(headers) = parse(&frame) {
            do_everything(&frame, headers);
        }
    }

    #[test]
    fn whatever_stands_in_a_gue_header_nothing_outside_the_transport_part_changes(
        header in any::<[u8; 4]>(),
        usual in any::<bool>(),
        options in prop::collection::vec(any::<u8>(), 0..16),
        remote in any::<bool>(),
        spec in specs(),
        cut in 0usize..300,
    ) {
        let v4 = spec.source.is_ipv4();
        let (mut header, mut options) = (header, options);
        if usual {
            options.truncate(options.len() & !3);
            header = [options.len() as u8 / 4, if v4 { 4 } else { 41 }, 0, header[3] & 1];
        }
        if remote && options.len() >= 8 {
            options[..4].copy_from_slice(&[0x80, 0, 0, 0]);
            options[4] = 0;
            options[6] = 0;
        }
        let frame = spec.build();
        let mut payload = [&header[..], &options, &frame[spec.l3()..]].concat();
        payload.truncate(cut.max(12));
        let before = payload.clone();
        match tunnel::decapsulate_gue(&mut payload) {
            Some(inner) => {
                let transport = inner.start + spec.l4() - spec.l3();
                prop_assert_eq!(&payload[..transport], &before[..transport]);
                prop_assert_eq!(&payload[inner.end..], &before[inner.end..]);
                prop_assert_eq!(inner.len(), frame.len() - spec.l3() - spec.padding);
            }
            None => prop_assert_eq!(payload, before),
        }
    }

    #[test]
    fn well_formed_frames_are_accepted_and_handled(frame in shapes()) {
        let headers = parse(&frame);
        // A first fragment may be cut before its header ends, all else has been built right.
        if let Ok(headers) = headers {
            do_everything(&frame, headers);
        } else {
            prop_assert!(frame.len() < 100, "{headers:?}");
        }
    }

    #[test]
    fn damaged_frames_are_refused_or_handled(
        mut frame in shapes(),
        damage in prop::collection::vec((0usize..120, any::<u8>()), 1..6),
        cut in prop::option::of(0usize..160),
        mended in any::<bool>(),
    ) {
        for (at, value) in damage {
            if let Some(byte) = frame.get_mut(at) {
                *byte = value;
            }
        }
        if let Some(cut) = cut {
            frame.truncate(cut);
        }
        if mended && frame.get(14) == Some(&0x45) {
            mend(&mut frame);
        }
        if let Ok(headers) = parse(&frame) {
            do_everything(&frame, headers);
        }
    }
}
