use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;

use super::*;
use crate::parse;
use crate::tests::frames::{CLIENT_MAC, DIRECTOR_MAC, Spec, Transport, specs};
use crate::tests::oracle;

/// The reset that answers `frame`, if one may be sent.
fn reset_to(frame: &[u8]) -> Option<Vec<u8>> {
    let headers = parse(frame).unwrap();
    let mut chunk = [0xaa; 256];
    let mut reply = Packet::new(&mut chunk, 100, 0);
    let written = reset(&mut reply, frame, &headers)?;
    assert_eq!(parse(reply.bytes()), Ok(written));
    Some(reply.bytes().to_vec())
}

/// Writes numbers into the segment of a frame that [`Spec`] has built.
fn number(frame: &mut [u8], spec: &Spec, sequence: u32, acknowledgement: u32) {
    frame[spec.l4() + 4..][..4].copy_from_slice(&sequence.to_be_bytes());
    frame[spec.l4() + 8..][..4].copy_from_slice(&acknowledgement.to_be_bytes());
}

proptest! {
    #[test]
    fn etherparse_reads_a_reset_that_the_sender_of_the_segment_believes(
        spec in specs(),
        sequence in prop_oneof![Just(u32::MAX - 3), any::<u32>()],
        acknowledgement in any::<u32>(),
    ) {
        let spec = Spec { transport: Transport::Tcp, ..spec };
        let mut frame = spec.build();
        number(&mut frame, &spec, sequence, acknowledgement);
        let Some(reply) = reset_to(&frame) else {
            prop_assert!(spec.tcp_flags & 4 != 0, "only a reset is not answered");
            return Ok(());
        };
        prop_assert!(spec.tcp_flags & 4 == 0, "a reset is never answered");
        oracle::assert_checksums(&reply);
        prop_assert_eq!(&reply[..6], CLIENT_MAC);
        prop_assert_eq!(&reply[6..12], DIRECTOR_MAC);
        prop_assert_eq!(parse(&reply).unwrap().vlan, spec.vlan);
        let sliced = SlicedPacket::from_ethernet(&reply).unwrap();
        match sliced.net.unwrap() {
            NetSlice::Ipv4(ip) => prop_assert!(ip.header().dont_fragment()),
            NetSlice::Ipv6(ip) => prop_assert_eq!(ip.header().hop_limit(), 64),
            NetSlice::Arp(_) => unreachable!(),
        }
        let Some(TransportSlice::Tcp(segment)) = sliced.transport else {
            panic!("not TCP");
        };
        prop_assert!(segment.rst() && !segment.syn() && !segment.fin());
        prop_assert_eq!(segment.source_port(), spec.destination.port());
        prop_assert_eq!(segment.destination_port(), spec.source.port());
        prop_assert!(segment.payload().is_empty() && segment.slice().len() == 20);
        if spec.tcp_flags & 0x10 != 0 {
            prop_assert!(!segment.ack());
            prop_assert_eq!(segment.sequence_number(), acknowledgement);
        } else {
            prop_assert!(segment.ack());
            prop_assert_eq!(segment.sequence_number(), 0);
            let syn = u32::from(spec.tcp_flags >> 1 & 1);
            let fin = u32::from(spec.tcp_flags & 1);
            let next = sequence.wrapping_add(spec.payload.len() as u32 + syn + fin);
            prop_assert_eq!(segment.acknowledgment_number(), next, "padding is no data");
        }
    }

    #[test]
    fn nothing_but_tcp_is_reset(spec in specs()) {
        prop_assume!(spec.transport != Transport::Tcp);
        prop_assert_eq!(reset_to(&spec.build()), None);
    }
}

#[test]
fn nobody_is_reset_who_is_not_one_host() {
    for source in ["0.0.0.0:5", "127.0.0.1:5", "224.0.0.1:5", "255.255.255.255:5"] {
        let spec = Spec::new(Transport::Tcp, source, "10.0.0.2:80");
        assert_eq!(reset_to(&spec.build()), None, "{source}");
        let spec = Spec::new(Transport::Tcp, "10.0.0.2:80", source);
        assert_eq!(reset_to(&spec.build()), None, "to {source}");
    }
    for source in ["[::]:5", "[::1]:5", "[ff02::1]:5"] {
        let spec = Spec::new(Transport::Tcp, source, "[fd00::2]:80");
        assert_eq!(reset_to(&spec.build()), None, "{source}");
    }
}

#[test]
fn of_fragments_only_a_first_one_with_an_ack_is_answered() {
    for (flags, offset, answered) in [(0x10, 0, true), (0x02, 0, false), (0x10, 24, false)] {
        let payload = vec![7; 64];
        let spec = Spec::new(Transport::Tcp, "10.0.0.1:5", "10.0.0.2:80");
        let spec = Spec { tcp_flags: flags, payload, ..spec };
        let reply = reset_to(&spec.build_fragment(offset, true));
        assert_eq!(reply.is_some(), answered, "flags {flags:#x} at {offset}");
    }
}

#[test]
fn a_reply_without_room_is_none() {
    let frame = Spec::new(Transport::Tcp, "10.0.0.1:5", "10.0.0.2:80").build();
    let mut chunk = [0; 53];
    let mut reply = Packet::new(&mut chunk, 0, 0);
    assert_eq!(reset(&mut reply, &frame, &parse(&frame).unwrap()), None);
}
