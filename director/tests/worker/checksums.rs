//! Checksums that the sender left to hardware: passed on to a port that can tell the kernel, and
//! completed in software for every other one.

use director::control::api::{Forwarding, Protocol};
use netio::PartialChecksum;

use crate::bed::{Bed, CLIENT, CLIENT6, Options, VIP, VIP6, at};
use crate::frames::{SYN, checksum_is_right, make_partial, seen, tcp, udp};

fn bed(plain_ports: bool, forwarding: Forwarding) -> Bed {
    let bed = Bed::with(vec![Options { plain_ports, ..Options::default() }]);
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        bed.serve(protocol, VIP, &["10.77.0.11:80"], forwarding);
        bed.serve(protocol, VIP6, &["[fd77::11]:80"], forwarding);
    }
    bed
}

/// A TCP and a UDP packet of each family with nothing but the pseudo-header sum.
fn partial_frames() -> Vec<Vec<u8>> {
    let mut frames = vec![
        tcp(at(CLIENT), at(VIP), SYN),
        udp(at(CLIENT), at(VIP)),
        tcp(at(CLIENT6), at(VIP6), SYN),
        udp(at(CLIENT6), at(VIP6)),
    ];
    frames.iter_mut().for_each(|frame| make_partial(frame));
    frames
}

#[test]
fn a_port_that_completes_nothing_gets_whole_checksums() {
    for forwarding in [Forwarding::Nat, Forwarding::Direct] {
        let mut bed = bed(true, forwarding);
        for frame in partial_frames() {
            assert!(!checksum_is_right(&frame), "the frame is partial");
            let out = bed.request(0, &frame);
            seen(&out[0].bytes);
            assert_eq!(out[0].partial, None);
        }
    }
}

#[test]
fn a_port_that_completes_checksums_is_told_where_they_are() {
    for forwarding in [Forwarding::Nat, Forwarding::Direct] {
        let mut bed = bed(false, forwarding);
        for frame in partial_frames() {
            let mut out = bed.request(0, &frame);
            let headers = forwarding::parse(&out[0].bytes).unwrap();
            let offset = if headers.is_tcp() { 16 } else { 6 };
            let expected = PartialChecksum { start: headers.l4 as u16, offset };
            assert_eq!(out[0].partial, Some(expected));
            assert!(netio::complete_checksum(&mut out[0].bytes, expected));
            seen(&out[0].bytes);
        }
    }
}

#[test]
fn a_checksum_inside_a_tunnel_is_completed_or_told_of_where_it_now_lies() {
    for plain_ports in [true, false] {
        let mut bed = bed(plain_ports, Forwarding::Tunnel);
        for frame in partial_frames() {
            let mut out = bed.request(0, &frame);
            assert_eq!(out[0].partial.is_none(), plain_ports);
            if let Some(partial) = out[0].partial {
                assert!(netio::complete_checksum(&mut out[0].bytes, partial));
            }
            let inner = forwarding::tunnel::decapsulate(&out[0].bytes[14..]).unwrap();
            let mut carried = frame[..14].to_vec();
            carried.extend_from_slice(&out[0].bytes[14..][inner]);
            seen(&carried);
        }
    }
}

#[test]
fn a_tag_on_the_way_in_moves_the_place_of_a_partial_checksum() {
    let mut bed = bed(false, Forwarding::Direct);
    let mut frame = tcp(at(CLIENT), at(VIP), SYN);
    make_partial(&mut frame);
    frame.splice(12..12, [0x81, 0, 0, 7]);
    let out = bed.request(0, &frame);
    assert_eq!(out[0].partial, Some(PartialChecksum { start: 34, offset: 16 }));
}

#[test]
fn what_goes_up_to_the_kernel_has_its_checksum_completed() {
    let mut bed = Bed::new(1);
    for mut frame in [tcp(at(CLIENT), at(VIP), SYN), udp(at(CLIENT6), at(VIP6))] {
        let whole = frame.clone();
        make_partial(&mut frame);
        bed.request(0, &frame);
        let passed = bed.hands[0].passed.lock().unwrap().pop().expect("it went up");
        assert_eq!(passed, whole);
    }
    assert_eq!(bed.count(0, "passed_no_service"), 2);
}
