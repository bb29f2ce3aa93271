//! What is plain is rewritten as everything is.

use etherparse::PacketBuilder;
use proptest::prelude::*;

use super::*;
use crate::Packet;
use crate::tunnel::{Encapsulation, Outer};
use crate::{checksum, direct, nat, parse};

fn frame(v6: bool, tcp: bool, payload: &[u8], partial: bool, ttl: u8) -> Vec<u8> {
    let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
    let ip = match v6 {
        false => ethernet.ipv4([198, 51, 100, 7], [192, 0, 2, 10], ttl),
        true => ethernet.ipv6([0x20; 16], [0x21; 16], ttl),
    };
    let mut frame = Vec::new();
    match tcp {
        true => ip.tcp(40_001, 80, 7, 9).ack(5).write(&mut frame, payload),
        false => ip.udp(40_001, 53).write(&mut frame, payload),
    }
    .unwrap();
    if partial {
        let headers = parse(&frame).unwrap();
        let at = headers.l4 + if tcp { tcp::CHECKSUM } else { udp::CHECKSUM };
        let sum = headers.pseudo_header().folded();
        frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    frame
}

/// Every kind of plain packet, some with padding, some damaged somewhere.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop::collection::vec(any::<u8>(), 0..60);
    let damage = prop::option::of((any::<prop::sample::Index>(), any::<u8>()));
    let kind = (any::<bool>(), any::<bool>(), any::<bool>(), 2u8.., 0usize..8);
    (payload, damage, kind).prop_map(|(payload, damage, (v6, tcp, partial, ttl, padding))| {
        let mut frame = frame(v6, tcp, &payload, partial, ttl);
        frame.resize(frame.len() + padding, 0xee);
        if let Some((at, byte)) = damage {
            let at = at.index(frame.len());
            frame[at] = byte;
        }
        frame
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_is_plain_is_read_and_rewritten_as_everything_is(
        frame in frames(), to_server in any::<bool>(), server: [u8; 16], port: u16
    ) {
        let Some(plain) = Plain::read(&frame) else {
            return Ok(());
        };
        let mut headers = parse(&frame).unwrap();
        let partial = checksum::partial(&frame, &headers);
        prop_assert_eq!(plain.partial(), partial);
        prop_assert_eq!((plain.end(), plain.ip_len()), (headers.end, headers.ip_len()));
        if headers.ttl <= 1 {
            return Ok(());
        }
        let (mut ours, mut theirs) = (frame.clone(), frame);
        plain.lower_ttl(&mut ours);
        prop_assert!(direct::decrement_ttl(&mut theirs, &mut headers));
        prop_assert_eq!(&ours, &theirs);
        prop_assert_eq!(plain.headers(), headers);
        let bits = u128::from_be_bytes(server);
        let (address, bits): (IpAddr, u128) = match plain.family {
            Family::V4 => (Ipv4Addr::from_bits(bits as u32).into(), u128::from(bits as u32)),
            Family::V6 => (Ipv6Addr::from_bits(bits).into(), bits),
        };
        // The same packet again, as it came.
        let Some(plain) = Plain::read(&ours) else { return Ok(()) };
        if plain.ttl <= 1 {
            return Ok(());
        }
        let end = if to_server { End::Destination } else { End::Source };
        plain.translate(&mut ours, end, bits, port);
        let _ = direct::decrement_ttl(&mut theirs, &mut headers);
        match end {
            End::Destination => nat::rewrite_destination(&mut theirs, &mut headers, address, port, partial),
            End::Source => nat::rewrite_source(&mut theirs, &mut headers, address, port, partial),
        }
        prop_assert_eq!(ours, theirs);
    }
}

#[test]
fn whole_tcp_and_udp_of_both_families_are_plain_and_what_is_more_is_not() {
    for (v6, tcp, partial) in
        [(false, false, false), (false, true, true), (true, false, true), (true, true, false)]
    {
        let good = frame(v6, tcp, b"payload", partial, 64);
        let plain = Plain::read(&good).unwrap();
        assert_eq!((plain.source_port, plain.ttl, plain.is_partial), (40_001, 64, partial));
        assert!(Plain::read(&good[..good.len() - 1]).is_none(), "cut");
    }
    let mut fragment = frame(false, true, b"payload", false, 64);
    fragment[20] |= 0x20;
    assert!(Plain::read(&fragment).is_none());
    let mut without_checksum = frame(false, false, b"payload", false, 64);
    without_checksum[40..42].fill(0);
    assert!(Plain::read(&without_checksum).is_none());
}
proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_is_plain_is_put_into_ipip_as_everything_is(
        frame in frames(),
        traffic_class: u8,
        server_v6 in any::<bool>(),
        (id, path_mtu_discovery) in any::<(u16, bool)>(),
        room in prop::sample::select(vec![0_usize, 19, 20, 40, 64]),
    ) {
        let mut frame = frame;
        // Another traffic class, and the sum over it.
        match frame[12..14] {
            [0x08, 0x00] => {
                frame[15] = traffic_class;
                frame[24..26].fill(0);
                let sum = Sum::default().bytes(&frame[14..34]).checksum();
                frame[24..26].copy_from_slice(&sum.to_be_bytes());
            }
            _ => {
                frame[14] = 0x60 | traffic_class >> 4;
                frame[15] = traffic_class << 4 | frame[15] & 0x0f;
            }
        }
        let Some(plain) = Plain::read(&frame).filter(|plain| plain.ttl > 1) else { return Ok(()) };
        let outer = match server_v6 {
            false => (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 11])),
            true => (IpAddr::from([0x20; 16]), IpAddr::from([0x21; 16])),
        };
        let outer = Outer { source: outer.0, destination: outer.1, id, path_mtu_discovery };
        let chunk = |frame: &[u8]| [vec![0xaa; room], frame.to_vec()].concat();
        let (mut ours, mut theirs) = (chunk(&frame), chunk(&frame));
        let mut one = Packet::new(&mut ours, room, frame.len());
        let mut other = Packet::new(&mut theirs, room, frame.len());
        plain.lower_ttl(one.bytes_mut());
        plain.lower_ttl(other.bytes_mut());
        let (headers, partial) = (plain.headers(), plain.partial());
        let made = Encapsulation::Ipip.encapsulate(&mut other, &headers, partial, 0, &outer);
        let put = plain.put_into_ipip(&mut one, &outer);
        prop_assert_eq!(put, made.map(|made| (made.headers.end, made.partial)));
        prop_assert_eq!(one.start(), other.start());
        match put {
            // The Ethernet addresses are the caller's.
            Some(_) => prop_assert_eq!(&one.bytes()[12..], &other.bytes()[12..]),
            None => prop_assert_eq!(one.bytes(), other.bytes()),
        }
    }
}

#[test]
fn a_sum_is_what_it_folds_to_and_nothing_else() {
    for words in
        [vec![], vec![0], vec![0xffff], vec![0xffff_ffff; 9], vec![0x1_0000, 0xfffe], vec![7]]
    {
        let sum = words.iter().fold(Sum::default(), |sum, word| sum.word(*word));
        for folded in [0, 1, 7, 0xfffe, 0xffff, sum.folded()] {
            assert_eq!(sum.is(folded), sum.folded() == folded, "{words:x?} {folded:x}");
        }
    }
}
