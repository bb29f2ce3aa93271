//! Segments are held to what a receiver would check: sums, lengths, a stream without gaps.

use proptest::prelude::*;

use super::*;
use crate::complete_checksum;

const ETHERNET: usize = 14;

/// A super-frame as a kernel would leave it: the transport checksum is the pseudo-header's sum.
fn super_frame(v6: bool, vlan: bool, transport: Transport, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x02; 12];
    if vlan {
        frame.extend([0x81, 0x00, 0x00, 0x07]);
    }
    let header = if transport == Transport::Tcp { 32 } else { 8 };
    let l4_len = header + payload.len();
    let addresses = if v6 { 32 } else { 8 };
    if v6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((l4_len as u16).to_be_bytes());
        frame.extend([protocol(transport), 64]);
    } else {
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend((20 + l4_len as u16).to_be_bytes());
        frame.extend([0xff, 0xfe, 0x40, 0, 64, protocol(transport), 0, 0]);
    }
    frame.extend((0..addresses).map(|byte| 0xc0 ^ byte));
    let l4 = frame.len();
    let pseudo = pseudo(&frame[l4 - addresses as usize..], transport, l4_len);
    match transport {
        Transport::Tcp => {
            frame.extend([0x1f, 0x90, 0xc0, 0x01]);
            frame.extend(0xffff_ff00_u32.to_be_bytes());
            frame.extend([0, 0, 0, 1, 0x80, flags, 0x10, 0]);
            frame.extend(pseudo.to_be_bytes());
            frame.extend([0, 0, 1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
        }
        Transport::Udp => {
            frame.extend([0x1f, 0x90, 0xc0, 0x01]);
            frame.extend((l4_len as u16).to_be_bytes());
            frame.extend(pseudo.to_be_bytes());
        }
    }
    assert_eq!(frame.len(), l4 + header);
    frame.extend(payload);
    frame
}

fn protocol(transport: Transport) -> u8 {
    if transport == Transport::Tcp { 6 } else { 17 }
}

fn pseudo(addresses: &[u8], transport: Transport, len: usize) -> u16 {
    fold(u64::from(sum(addresses)) + u64::from(protocol(transport)) + len as u64)
}

fn cut(frame: &[u8], transport: Transport, l4: usize, size: usize) -> Vec<(Vec<u8>, Segment)> {
    let mut segmenter = Segmenter::new(frame, transport, l4, size).unwrap();
    let mut segments = Vec::new();
    let mut out = [0xee; 2048];
    while let Some(segment) = segmenter.next(frame, &mut out) {
        segments.push((out[..segment.len].to_vec(), segment));
    }
    segments
}

/// What a receiver with no mercy would find wrong.
fn verify(segment: &mut [u8], partial: PartialChecksum, ip: usize, v6: bool, transport: Transport) {
    let l4 = usize::from(partial.start);
    if v6 {
        assert_eq!(usize::from(get(segment, ip + 4)), segment.len() - ip - 40);
    } else {
        assert_eq!(usize::from(get(segment, ip + 2)), segment.len() - ip);
        assert_eq!(sum(&segment[ip..l4]), 0xffff, "IPv4 header checksum");
    }
    assert!(complete_checksum(segment, partial));
    let addresses = if v6 { l4 - 32 } else { l4 - 8 };
    let pseudo = pseudo(&segment[addresses..l4], transport, segment.len() - l4);
    assert_eq!(fold(u64::from(sum(&segment[l4..])) + u64::from(pseudo)), 0xffff, "L4 checksum");
}

#[test]
fn only_the_last_segment_ends_the_stream_and_only_the_first_reduces_the_window() {
    let frame = super_frame(false, false, Transport::Tcp, CWR | 0x10 | PSH | FIN, &[7; 2500]);
    let segments = cut(&frame, Transport::Tcp, ETHERNET + 20, 1000);
    let flags: Vec<u8> = segments.iter().map(|(bytes, _)| bytes[ETHERNET + 20 + 13]).collect();
    assert_eq!(flags, [CWR | 0x10, 0x10, 0x10 | PSH | FIN]);
}

#[test]
fn identifications_count_up_and_wrap() {
    let frame = super_frame(false, false, Transport::Tcp, 0x10, &[7; 3500]);
    let segments = cut(&frame, Transport::Tcp, ETHERNET + 20, 1000);
    let ids: Vec<u16> = segments.iter().map(|(bytes, _)| get(bytes, ETHERNET + 4)).collect();
    assert_eq!(ids, [0xfffe, 0xffff, 0, 1]);
}

#[test]
fn a_frame_of_one_segment_passes_unchanged() {
    let frame = super_frame(false, false, Transport::Tcp, 0x18, &[7; 100]);
    let segments = cut(&frame, Transport::Tcp, ETHERNET + 20, 1448);
    assert_eq!(segments.len(), 1);
    let ip_checksum = ETHERNET + 10..ETHERNET + 12;
    assert_eq!(segments[0].0[..ip_checksum.start], frame[..ip_checksum.start]);
    assert_eq!(segments[0].0[ip_checksum.end..], frame[ip_checksum.end..]);
}

#[test]
fn what_is_not_a_super_frame_is_not_cut() {
    let frame = super_frame(false, false, Transport::Tcp, 0x10, &[7; 100]);
    let refused =
        |frame: &[u8], l4, size| Segmenter::new(frame, Transport::Tcp, l4, size).is_none();
    assert!(refused(&frame, ETHERNET + 20, 0), "segments without payload");
    assert!(refused(&frame, ETHERNET + 16, 1000), "transport within the IP header");
    assert!(refused(&frame, frame.len(), 1000), "transport past the end");
    assert!(refused(&frame[..40], ETHERNET + 20, 1000), "cut off within TCP");
    assert!(refused(&[], 0, 1000));
    let mut arp = frame.clone();
    arp[13] = 6;
    assert!(refused(&arp, ETHERNET + 20, 1000), "not IP");
}

#[test]
fn a_segment_larger_than_the_buffer_is_refused() {
    let frame = super_frame(false, false, Transport::Tcp, 0x10, &[7; 3000]);
    let mut segmenter = Segmenter::new(&frame, Transport::Tcp, ETHERNET + 20, 1448).unwrap();
    assert_eq!(segmenter.next(&frame, &mut [0; 1400]), None);
}

proptest! {
    #[test]
    fn segments_are_the_stream_without_gaps_and_every_sum_verifies(
        v6: bool,
        vlan: bool,
        udp: bool,
        payload in prop::collection::vec(any::<u8>(), 1..20_000),
        size in 100_usize..1500,
    ) {
        let transport = if udp { Transport::Udp } else { Transport::Tcp };
        let frame = super_frame(v6, vlan, transport, 0x18, &payload);
        let ip = ETHERNET + if vlan { 4 } else { 0 };
        let l4 = ip + if v6 { 40 } else { 20 };
        let header = if udp { 8 } else { 32 };
        let segments = cut(&frame, transport, l4, size);
        prop_assert_eq!(segments.len(), payload.len().div_ceil(size));
        let mut stream = Vec::new();
        for (mut bytes, segment) in segments {
            if !udp {
                let sequence = u32::from_be_bytes(bytes[l4 + 4..l4 + 8].try_into().unwrap());
                prop_assert_eq!(sequence, 0xffff_ff00_u32.wrapping_add(stream.len() as u32));
            }
            verify(&mut bytes, segment.partial, ip, v6, transport);
            stream.extend_from_slice(&bytes[l4 + header..]);
        }
        prop_assert_eq!(stream, payload);
    }

    #[test]
    fn no_bytes_make_it_panic(
        frame in prop::collection::vec(any::<u8>(), 0..200),
        ethertype in prop::sample::select(vec![[8_u8, 0], [0x86, 0xdd], [0x81, 0]]),
        l4 in 0_usize..300,
        size in 0_usize..100,
        udp: bool,
    ) {
        let mut frame = frame;
        if frame.len() > 14 {
            frame[12..14].copy_from_slice(&ethertype);
        }
        let transport = if udp { Transport::Udp } else { Transport::Tcp };
        if let Some(mut segmenter) = Segmenter::new(&frame, transport, l4, size) {
            while segmenter.next(&frame, &mut [0; 2048]).is_some() {}
        }
    }
}
