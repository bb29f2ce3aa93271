//! Frames as other hosts send them, and an independent reading of what comes out.

use std::net::{IpAddr, SocketAddr};

use etherparse::{
    IpHeaders, NetSlice, PacketBuilder, PacketBuilderStep, PacketHeaders, SlicedPacket,
    TransportHeader, TransportSlice,
};

pub(crate) const SYN: u8 = 0x02;
pub(crate) const ACK: u8 = 0x10;
pub(crate) const SYN_ACK: u8 = 0x12;

/// What a frame says, read by another parser than ours; its checksums have been verified.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) macs: [[u8; 6]; 2],
    pub(crate) vlan: Option<u16>,
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
}

fn network(source: SocketAddr, destination: SocketAddr) -> PacketBuilderStep<IpHeaders> {
    let ethernet = PacketBuilder::ethernet2([2, 9, 9, 9, 9, 1], [2, 9, 9, 9, 9, 2]);
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => ethernet.ipv4(from.octets(), to.octets(), 64),
        (IpAddr::V6(from), IpAddr::V6(to)) => ethernet.ipv6(from.octets(), to.octets(), 64),
        _ => panic!("mixed families"),
    }
}

/// A TCP segment with a payload of an odd length.
pub(crate) fn tcp(source: SocketAddr, destination: SocketAddr, flags: u8) -> Vec<u8> {
    let mut builder = network(source, destination).tcp(source.port(), destination.port(), 1, 9000);
    if flags & SYN != 0 {
        builder = builder.syn();
    }
    if flags & ACK != 0 {
        builder = builder.ack(77);
    }
    let mut frame = Vec::new();
    builder.write(&mut frame, b"payload").unwrap();
    frame
}

/// A UDP datagram.
pub(crate) fn udp(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let mut frame = Vec::new();
    let builder = network(source, destination).udp(source.port(), destination.port());
    builder.write(&mut frame, b"payload").unwrap();
    frame
}

/// Makes a frame what a local sender with checksum offload leaves: the field holds the
/// pseudo-header sum and no more.
pub(crate) fn make_partial(frame: &mut [u8]) {
    let headers = forwarding::parse(frame).unwrap();
    let field = headers.l4 + if headers.is_tcp() { 16 } else { 6 };
    frame[field..field + 2].copy_from_slice(&headers.pseudo_header().folded().to_be_bytes());
}

/// Reads a frame and verifies its checksums.
pub(crate) fn seen(frame: &[u8]) -> Seen {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let vlan = sliced.vlan_ids().first().map(|id| id.value());
    let (source, destination): (IpAddr, IpAddr) = match sliced.net.as_ref().unwrap() {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            assert_eq!(header.to_header().calc_header_checksum(), header.header_checksum());
            (header.source_addr().into(), header.destination_addr().into())
        }
        NetSlice::Ipv6(ip) => {
            (ip.header().source_addr().into(), ip.header().destination_addr().into())
        }
        NetSlice::Arp(_) => panic!("ARP"),
    };
    let (from, to) = match sliced.transport.as_ref().unwrap() {
        TransportSlice::Tcp(tcp) => (tcp.source_port(), tcp.destination_port()),
        TransportSlice::Udp(udp) => (udp.source_port(), udp.destination_port()),
        other => panic!("{other:?}"),
    };
    assert!(checksum_is_right(frame), "transport checksum");
    Seen {
        macs: [frame[0..6].try_into().unwrap(), frame[6..12].try_into().unwrap()],
        vlan,
        source: SocketAddr::new(source, from),
        destination: SocketAddr::new(destination, to),
    }
}

/// Whether the TCP or UDP checksum is what etherparse makes it.
pub(crate) fn checksum_is_right(frame: &[u8]) -> bool {
    let packet = PacketHeaders::from_ethernet_slice(frame).unwrap();
    let (net, payload) = (packet.net.unwrap(), packet.payload.slice());
    match (packet.transport.unwrap(), net) {
        (TransportHeader::Tcp(tcp), etherparse::NetHeaders::Ipv4(ip, _)) => {
            tcp.calc_checksum_ipv4(&ip, payload).unwrap() == tcp.checksum
        }
        (TransportHeader::Tcp(tcp), etherparse::NetHeaders::Ipv6(ip, _)) => {
            tcp.calc_checksum_ipv6(&ip, payload).unwrap() == tcp.checksum
        }
        (TransportHeader::Udp(udp), etherparse::NetHeaders::Ipv4(ip, _)) => {
            udp.calc_checksum_ipv4(&ip, payload).unwrap() == udp.checksum
        }
        (TransportHeader::Udp(udp), etherparse::NetHeaders::Ipv6(ip, _)) => {
            udp.calc_checksum_ipv6(&ip, payload).unwrap() == udp.checksum
        }
        other => panic!("{other:?}"),
    }
}
