//! Datagrams in pieces: those that come so, and packets that are too large for their way out.

use std::time::Duration;

use director::control::api::{Forwarding, Protocol};
use director::network::{Change, Interface};
use etherparse::defrag::IpDefragPool;
use etherparse::{
    IpFragOffset, IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, NetSlice, PacketBuilder,
    SlicedPacket,
};
use netio::Packet;

use crate::bed::{Bed, CLIENT, Options, VIP, at};
use crate::frames::{make_partial, seen};
use crate::network::{BACK, neighbour, own_mac};

const REAL: &str = "10.77.0.11:80";
const DATAGRAM: usize = 1480;

/// Client and director, as frames have them.
const MACS: [[u8; 6]; 2] = [[2, 9, 9, 9, 9, 1], [2, 9, 9, 9, 9, 2]];

/// An IP packet as a frame.
fn framed(header: Ipv4Header, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(MACS[0], MACS[1])
        .ip(IpHeaders::Ipv4(header, Ipv4Extensions::default()))
        .write(&mut frame, IpNumber(protocol), payload)
        .unwrap();
    frame
}

/// The header of the client's datagram, which may be fragmented.
fn header() -> Ipv4Header {
    let source = [198, 51, 100, 7];
    let mut header = Ipv4Header::new(0, 64, IpNumber::UDP, source, [192, 0, 2, 10]).unwrap();
    header.identification = 0x4242;
    header.dont_fragment = false;
    header
}

fn payload() -> Vec<u8> {
    (0..DATAGRAM - 8).map(|place| (place * 7) as u8).collect()
}

/// The client's datagram as one packet of 1500 bytes.
fn large() -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(MACS[0], MACS[1])
        .ip(IpHeaders::Ipv4(header(), Ipv4Extensions::default()))
        .udp(at(CLIENT).port(), at(VIP).port())
        .write(&mut frame, &payload())
        .unwrap();
    frame
}

/// The same in two packets.
pub(crate) fn in_two() -> [Vec<u8>; 2] {
    let datagram = &large()[34..];
    [(0, 800), (800, DATAGRAM)].map(|(from, to)| {
        let mut header = header();
        header.fragment_offset = IpFragOffset::try_new(from as u16 / 8).unwrap();
        header.more_fragments = to < DATAGRAM;
        framed(header, 17, &datagram[from..to])
    })
}

/// Puts pieces together: the protocol in them, and what they carry.
fn reassemble(pieces: &[Packet]) -> (u8, Vec<u8>) {
    let mut pool: IpDefragPool = IpDefragPool::new();
    let mut whole = None;
    for piece in pieces {
        let sliced = SlicedPacket::from_ethernet(&piece.bytes).unwrap();
        if let Some(NetSlice::Ipv4(ip)) = &sliced.net {
            let header = ip.header();
            assert_eq!(header.to_header().calc_header_checksum(), header.header_checksum());
        }
        assert!(whole.is_none(), "complete before the last");
        whole = pool.process_sliced_packet(&sliced, (), ()).unwrap();
    }
    let whole = whole.expect("all pieces");
    (whole.ip_number.0, whole.payload)
}

/// The one packet that the receiver of these pieces makes of them, as a frame.
fn whole(pieces: &[Packet]) -> Vec<u8> {
    let (protocol, payload) = reassemble(pieces);
    let sliced = SlicedPacket::from_ethernet(&pieces[0].bytes).unwrap();
    let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("IPv4") };
    framed(Ipv4Header { more_fragments: false, ..ip.header().to_header() }, protocol, &payload)
}

fn serve(bed: &Bed, forwarding: Forwarding, server: &str) {
    bed.serve(Protocol::Udp, VIP, &[server], forwarding);
}

/// The way to the servers takes packets of `mtu` bytes only.
fn narrow(bed: &Bed, mtu: u32) {
    bed.learn(Change::Interface(Interface {
        index: BACK,
        name: "eth1".to_owned(),
        mac: own_mac(BACK),
        mtu,
        up: true,
        carrier: true,
        vlan: None,
    }));
}

#[test]
fn a_datagram_too_large_for_the_way_to_its_server_arrives_in_pieces_that_fit() {
    for (forwarding, destination) in [(Forwarding::Nat, REAL), (Forwarding::Direct, VIP)] {
        for (plain_ports, partial) in [(false, false), (false, true), (true, true)] {
            let mut bed = Bed::with(vec![Options { plain_ports, ..Options::default() }]);
            serve(&bed, forwarding, REAL);
            narrow(&bed, 576);
            let mut frame = large();
            if partial {
                make_partial(&mut frame);
            }
            let out = bed.request(0, &frame);
            assert_eq!(out.len(), 3);
            assert!(out.iter().all(|piece| piece.bytes.len() <= 14 + 576));
            assert!(out.iter().all(|piece| piece.partial.is_none()), "no sum is left to a port");
            let whole = whole(&out);
            assert_eq!(seen(&whole).destination, at(destination), "and the checksum is right");
            assert_eq!(whole[42..], payload());
            let sent = bed.count(0, "sent_nat") + bed.count(0, "sent_direct");
            assert_eq!((sent, bed.count(0, "too_big")), (1, 0), "one packet, whatever its pieces");
        }
    }
}

#[test]
fn a_packet_too_large_for_its_tunnel_goes_in_pieces_of_the_outer_packet() {
    for (server, families) in [(REAL, 4), ("[fd77::11]:80", 6)] {
        let mut bed = Bed::new(1);
        serve(&bed, Forwarding::Tunnel, server);
        let frame = large();
        let out = bed.request(0, &frame);
        assert_eq!(out.len(), 2, "in IPv{families}");
        assert!(out.iter().all(|piece| piece.bytes.len() <= 14 + 1500));
        let (protocol, inner) = reassemble(&out);
        assert_eq!(protocol, 4);
        // The server's end of the tunnel has the packet as it was, but for its TTL.
        let mut received = frame[..14].to_vec();
        received.extend_from_slice(&inner);
        assert_eq!(seen(&received).destination, at(VIP));
        assert_eq!(inner[20..], frame[34..]);
        assert_eq!(bed.count(0, "sent_tunnel"), 1);
    }
}

#[test]
fn pieces_wait_together_for_their_next_hop() {
    let mut bed = Bed::new(1);
    serve(&bed, Forwarding::Nat, "10.77.0.99:80");
    narrow(&bed, 576);
    assert!(bed.request(0, &large()).is_empty());
    bed.learn(neighbour(BACK, "10.77.0.99"));
    bed.breath(0);
    assert_eq!(seen(&whole(&bed.hands[0].back.collect_all())).destination, at("10.77.0.99:80"));
    assert_eq!(bed.count(0, "sent_nat"), 1);
}

#[test]
fn a_fragment_that_overtakes_the_first_one_waits_for_it() {
    // By the same queue, and by that of another worker.
    for workers in [1, 2] {
        let mut bed = Bed::new(workers);
        serve(&bed, Forwarding::Nat, REAL);
        let [first, second] = in_two();
        let other = workers - 1;
        assert!(bed.request(other, &second).is_empty());
        assert_eq!(bed.hands[other].worker.frames().waiting, 1);
        let mut out = bed.request(0, &first);
        bed.now += Duration::from_millis(5);
        bed.breath(other);
        out.extend(bed.hands[other].back.collect_all());
        assert_eq!(out.len(), 2);
        assert_eq!(seen(&whole(&out)).destination, at(REAL));
        assert_eq!(bed.hands[other].worker.frames().waiting, 0);
    }
}

/// A fragment over the end of the first one of `in_two` and the beginning of the second.
pub(crate) fn across() -> Vec<u8> {
    let mut header = header();
    header.fragment_offset = IpFragOffset::try_new(792 / 8).unwrap();
    header.more_fragments = true;
    framed(header, 17, &[0xee; 16])
}

#[test]
fn a_fragment_over_one_that_another_worker_has_sent_is_dropped_by_both() {
    let mut bed = Bed::new(2);
    serve(&bed, Forwarding::Nat, REAL);
    let [first, second] = in_two();
    assert_eq!(bed.request(0, &first).len(), 1);
    assert!(bed.request(1, &across()).is_empty());
    assert!(bed.request(0, &second).is_empty());
    assert_eq!([0, 1].map(|worker| bed.count(worker, "fragment_overlap")), [1, 1]);
}

#[test]
fn fragments_that_waited_for_the_first_one_are_judged_by_it_and_each_other() {
    for workers in [1, 2] {
        let mut bed = Bed::new(workers);
        serve(&bed, Forwarding::Nat, REAL);
        let [first, second] = in_two();
        let other = workers - 1;
        // The second one, twice, and what overlaps both.
        for early in [&second, &second, &across()] {
            assert!(bed.request(other, early).is_empty());
        }
        assert_eq!(bed.hands[other].worker.frames().waiting, 3);
        let mut out = bed.request(0, &first);
        bed.now += Duration::from_millis(5);
        bed.breath(other);
        out.extend(bed.hands[other].back.collect_all());
        assert_eq!(seen(&whole(&out)).destination, at(REAL), "the datagram and nothing else");
        // When it was complete, the others had no datagram any more: they are the host's.
        bed.now += Duration::from_millis(10);
        bed.breath(other);
        assert_eq!(bed.count(other, "passed_fragment"), 2);
        assert_eq!(bed.hands[other].worker.frames().waiting, 0);
    }
}

#[test]
fn a_fragment_of_a_datagram_that_is_none_of_ours_reaches_the_kernel() {
    let mut bed = Bed::new(1);
    serve(&bed, Forwarding::Nat, REAL);
    let [_, second] = in_two();
    assert!(bed.request(0, &second).is_empty());
    bed.now += Duration::from_millis(10);
    bed.breath(0);
    assert_eq!(*bed.hands[0].passed.lock().unwrap(), [second]);
    assert_eq!(bed.count(0, "passed_fragment"), 1);
}

#[test]
fn a_flood_of_fragments_that_wait_keeps_no_more_than_64_frames() {
    let mut bed = Bed::new(1);
    serve(&bed, Forwarding::Nat, REAL);
    let [_, second] = in_two();
    for _ in 0..200 {
        bed.request(0, &second);
    }
    assert_eq!(bed.hands[0].worker.frames().waiting, 64);
    assert_eq!(bed.count(0, "passed_fragment"), 200 - 64);
}
