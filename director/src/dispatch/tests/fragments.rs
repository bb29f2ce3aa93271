//! Fragments that do not fit together, and identifications that come back.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use etherparse::{
    IpFragOffset, IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, Ipv6Extensions,
    Ipv6FragmentHeader, Ipv6Header, PacketBuilder,
};

use super::bed::*;
use crate::control::api::{Forwarding, Protocol};
use crate::dispatch::verdict::{DropReason, PassReason, Verdict};

const PAIRS: [(&str, &str, &str); 2] = [
    ("198.51.100.7:4000", "192.0.2.10:53", "10.77.0.11:5353"),
    ("[2001:db8::7]:4000", "[2001:db8:1::10]:53", "[fd77::11]:5353"),
];
const V4: (&str, &str, &str) = PAIRS[0];

/// Datagrams are this long, UDP header and all.
const LENGTH: usize = 64;

fn bed((_, vip, server): (&str, &str, &str)) -> Bed {
    Bed::with(key(Protocol::Udp, vip), &[(server, Forwarding::Nat)])
}

/// A fragment of a UDP datagram: these of its bytes, one of the last ones being the last.
fn piece(from: &str, to: &str, id: u32, begin: usize, end: usize) -> Vec<u8> {
    fragment(at(from), at(to), id, (begin, end, end != LENGTH))
}

fn fragment(
    from: SocketAddr,
    to: SocketAddr,
    id: u32,
    (begin, end, more): (usize, usize, bool),
) -> Vec<u8> {
    let mut datagram = vec![0xda; LENGTH.max(end)];
    let words = [from.port(), to.port(), LENGTH as u16, 0x1234];
    datagram[..8].copy_from_slice(&words.map(u16::to_be_bytes).concat());
    let offset = IpFragOffset::try_new(begin as u16 / 8).unwrap();
    let ip = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header =
                Ipv4Header::new(0, 64, IpNumber::UDP, from.octets(), to.octets()).unwrap();
            (header.identification, header.fragment_offset) = (id as u16, offset);
            (header.more_fragments, header.dont_fragment) = (more, false);
            IpHeaders::Ipv4(header, Ipv4Extensions::default())
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let (source, destination) = (from.octets(), to.octets());
            let header = Ipv6Header { hop_limit: 64, source, destination, ..Default::default() };
            let fragment = Some(Ipv6FragmentHeader::new(IpNumber::UDP, offset, more, id));
            IpHeaders::Ipv6(header, Ipv6Extensions { fragment, ..Default::default() })
        }
        _ => panic!("mixed families"),
    };
    let mut frame = Vec::new();
    let link = PacketBuilder::ethernet2([2; 6], [4; 6]);
    link.ip(ip).write(&mut frame, IpNumber::UDP, &datagram[begin..end]).unwrap();
    frame
}

/// What became of a fragment: `None` when it went on.
fn dropped(bed: &mut Bed, frame: &[u8]) -> Option<DropReason> {
    match bed.handle(frame).verdict {
        Verdict::Transmit { .. } => None,
        Verdict::Drop(reason) => Some(reason),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_fragment_over_another_one_is_dropped_with_all_that_follow() {
    for ends in PAIRS {
        let (client, vip, server) = ends;
        let mut bed = bed(ends);
        // From the client and, translated back, from the server.
        for (from, to) in [(client, vip), (server, client)] {
            let mut fate = |begin, end| dropped(&mut bed, &piece(from, to, 7, begin, end));
            let overlap = Some(DropReason::FragmentOverlap);
            let fates = [fate(0, 32), fate(24, 48), fate(32, 64), fate(0, 32)];
            assert_eq!(fates, [None, overlap, overlap, overlap], "{from}");
            assert_eq!(dropped(&mut bed, &piece(from, to, 8, 0, 32)), None, "another datagram");
        }
    }
}

#[test]
fn a_dropped_fragment_counts_for_no_connection() {
    let (client, vip, _) = V4;
    let mut bed = bed(V4);
    for (begin, end) in [(0, 32), (0, 32), (24, 48), (32, 64)] {
        bed.handle(&piece(client, vip, 7, begin, end));
    }
    assert_eq!(bed.table.service_views()[0].stats.in_packets, 1);
}

#[test]
fn a_duplicate_is_dropped_and_the_datagram_goes_on() {
    for ends in PAIRS {
        let (client, vip, _) = ends;
        let mut bed = bed(ends);
        let mut fate = |begin, end| dropped(&mut bed, &piece(client, vip, 7, begin, end));
        let twice = Some(DropReason::FragmentDuplicate);
        let fates = [fate(0, 16), fate(0, 16), fate(16, 48), fate(24, 32), fate(48, 64)];
        assert_eq!(fates, [None, twice, None, twice, None]);
    }
}

#[test]
fn a_fragment_past_the_end_is_dropped() {
    for ends in PAIRS {
        let (client, vip, _) = ends;
        let mut bed = bed(ends);
        let mut fate = |begin, end, more| {
            dropped(&mut bed, &fragment(at(client), at(vip), 7, (begin, end, more)))
        };
        assert_eq!((fate(0, 16, true), fate(48, 64, false)), (None, None));
        assert_eq!(fate(64, 80, true), Some(DropReason::BadFragment));
        // Over IPv6 it leaves the others alone, as in the kernel.
        let then = if vip == V4.1 { Some(DropReason::BadFragment) } else { None };
        assert_eq!(fate(16, 48, true), then);
    }
}

#[test]
fn a_datagram_longer_than_any_can_be_is_dropped() {
    for ends in PAIRS {
        let (client, vip, _) = ends;
        let mut bed = bed(ends);
        assert_eq!(dropped(&mut bed, &piece(client, vip, 7, 0, 16)), None);
        let far = fragment(at(client), at(vip), 7, (65_520, 65_540, false));
        assert_eq!(dropped(&mut bed, &far), Some(DropReason::BadFragment));
    }
}

#[test]
fn a_datagram_with_too_many_holes_is_dropped() {
    let (client, vip, _) = V4;
    let mut bed = bed(V4);
    let mut fate = |place: usize| {
        let part = (place * 16, place * 16 + 8, true);
        dropped(&mut bed, &fragment(at(client), at(vip), 7, part))
    };
    assert!((0..16).all(|place| fate(place).is_none()));
    assert_eq!(fate(16), Some(DropReason::FragmentScattered));
}

#[test]
fn the_number_of_a_complete_datagram_is_free_again_at_once() {
    for ends in PAIRS {
        let (client, vip, _) = ends;
        let mut bed = bed(ends);
        for _ in 0..3 {
            // Cut in other places each time would not matter either.
            for (begin, end) in [(0, 32), (48, 64), (32, 48)] {
                assert_eq!(dropped(&mut bed, &piece(client, vip, 7, begin, end)), None);
            }
        }
    }
}

/// Sends so many fragments of other datagrams.
fn others(bed: &mut Bed, client: &str, vip: &str, count: u32) {
    for id in 0..count / 2 {
        for (begin, end) in [(0, 32), (32, 64)] {
            assert_eq!(dropped(bed, &piece(client, vip, 100 + id, begin, end)), None);
        }
    }
}

#[test]
fn a_number_that_has_come_round_is_a_new_datagrams_over_ipv4() {
    let (client, vip, _) = V4;
    for (between, new) in [(62, false), (64, true)] {
        let mut bed = bed(V4);
        // The rest of the first datagram is lost.
        assert_eq!(dropped(&mut bed, &piece(client, vip, 7, 0, 32)), None);
        others(&mut bed, client, vip, between);
        // The next one is cut elsewhere.
        let fate = dropped(&mut bed, &piece(client, vip, 7, 0, 40));
        assert_eq!(fate, (!new).then_some(DropReason::FragmentOverlap), "{between} between");
    }
    let (client, vip, _) = PAIRS[1];
    let mut bed = bed(PAIRS[1]);
    assert_eq!(dropped(&mut bed, &piece(client, vip, 7, 0, 32)), None);
    others(&mut bed, client, vip, 200);
    let fate = dropped(&mut bed, &piece(client, vip, 7, 0, 40));
    assert_eq!(fate, Some(DropReason::FragmentOverlap), "32 bits do not come round");
}

#[test]
fn fragments_of_other_senders_bring_no_number_round() {
    let (client, vip, _) = V4;
    let mut bed = bed(V4);
    assert_eq!(dropped(&mut bed, &piece(client, vip, 7, 0, 32)), None);
    others(&mut bed, "198.51.100.8:4000", vip, 1000);
    assert_eq!(dropped(&mut bed, &piece(client, vip, 7, 32, 64)), None);
}

#[test]
fn a_spoilt_datagram_is_remembered_as_long_as_its_receiver_may_hold_some_of_it() {
    for (ends, seconds) in [(PAIRS[0], 30), (PAIRS[1], 60)] {
        let (client, vip, _) = ends;
        let mut bed = bed(ends);
        bed.handle(&piece(client, vip, 7, 0, 32));
        bed.handle(&piece(client, vip, 7, 24, 48));
        others(&mut bed, client, vip, 200);
        bed.now += Duration::from_secs(seconds) - Duration::from_millis(1);
        let refused = Some(DropReason::FragmentOverlap);
        assert_eq!(dropped(&mut bed, &piece(client, vip, 7, 32, 64)), refused);
        assert_eq!(dropped(&mut bed, &piece(client, vip, 7, 0, 32)), refused);
        bed.now += Duration::from_millis(1);
        assert_eq!(dropped(&mut bed, &piece(client, vip, 7, 0, 32)), None);
        assert_eq!(dropped(&mut bed, &piece(client, vip, 7, 32, 64)), None);
    }
}

#[test]
fn what_is_not_for_a_service_is_passed_up_and_not_judged() {
    let (client, _, _) = V4;
    let other = "192.0.2.10:54";
    let mut bed = bed(V4);
    let up = Verdict::Pass(PassReason::NoService);
    for (begin, end) in [(0, 32), (0, 32), (24, 48), (0, 40), (32, 64), (64, 80)] {
        let frame = fragment(at(client), at(other), 7, (begin, end, true));
        assert_eq!(bed.handle(&frame).verdict, up, "{begin} to {end}");
    }
    // A service's datagram with the same number, which is for the same address.
    assert_eq!(dropped(&mut bed, &piece(client, V4.1, 7, 0, 32)), None);
    assert_eq!(bed.handle(&piece(client, other, 7, 0, 40)).verdict, up);
    assert_eq!(dropped(&mut bed, &piece(client, V4.1, 7, 32, 64)), None);
}
