//! Packets written byte by byte, so that both sides get the very same.

use std::net::{IpAddr, SocketAddr};

use forwarding::checksum::{Sum, pseudo_header};

use super::fragments;
use super::step::{Kind, Packet};

/// Ethernet header.
pub(super) const ETHERNET: usize = 14;

/// The frames of `packet`'s shape with these addresses: one, or its fragments. `id` is the
/// identification.
pub(super) fn frames(
    packet: &Packet,
    ends: (SocketAddr, SocketAddr),
    stations: ([u8; 6], [u8; 6]),
    id: u16,
) -> Vec<Vec<u8>> {
    let whole = frame(packet, ends, stations, id);
    match packet.kind {
        Kind::Fragmented(_) => fragments::in_two(&whole, id),
        _ => vec![whole],
    }
}

/// The frame of a packet that is not fragmented.
pub(super) fn frame(
    packet: &Packet,
    (from, to): (SocketAddr, SocketAddr),
    (source, destination): ([u8; 6], [u8; 6]),
    id: u16,
) -> Vec<u8> {
    let transport = transport(packet.kind, from, to);
    let mut frame = Vec::with_capacity(ETHERNET + 40 + transport.len());
    frame.extend(destination);
    frame.extend(source);
    match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            frame.extend([0x08, 0x00]);
            let mut header = [0; 20];
            header[0] = 0x45;
            header[1] = packet.traffic_class;
            header[2..4].copy_from_slice(&(20 + transport.len() as u16).to_be_bytes());
            header[4..6].copy_from_slice(&id.to_be_bytes());
            header[6] = if packet.dont_fragment { 0x40 } else { 0 };
            header[8] = packet.ttl;
            header[9] = packet.flow.protocol.number();
            header[12..16].copy_from_slice(&from.octets());
            header[16..20].copy_from_slice(&to.octets());
            let sum = Sum::default().bytes(&header).checksum();
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            frame.extend(header);
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            frame.extend([0x86, 0xdd]);
            frame.extend([0x60 | packet.traffic_class >> 4, packet.traffic_class << 4, 0, 0]);
            frame.extend((transport.len() as u16).to_be_bytes());
            frame.extend([packet.flow.protocol.number(), packet.ttl]);
            frame.extend(from.octets());
            frame.extend(to.octets());
        }
        _ => unreachable!("a packet from {from} to {to}"),
    }
    frame.extend(transport);
    frame
}

/// Transport header and payload, with the checksum.
fn transport(kind: Kind, from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let (flags, length) = match kind {
        Kind::Syn => (0x02, 0),
        Kind::SynAck => (0x12, 0),
        Kind::Ack => (0x10, 0),
        Kind::Data(length) => (0x18, length),
        Kind::Fin => (0x11, 0),
        Kind::Rst => (0x04, 0),
        Kind::Datagram(length) | Kind::Unsummed(length) | Kind::Fragmented(length) => (0, length),
        Kind::Sctp(chunks) => return chunks.packet(from, to),
    };
    let mut bytes = Vec::new();
    bytes.extend(from.port().to_be_bytes());
    bytes.extend(to.port().to_be_bytes());
    let udp = matches!(kind, Kind::Datagram(_) | Kind::Unsummed(_) | Kind::Fragmented(_));
    if udp {
        bytes.extend((8 + length as u16).to_be_bytes());
        bytes.extend([0, 0]);
    } else {
        // Sequence numbers are the ends' business.
        bytes.extend(1000u32.to_be_bytes());
        bytes.extend(if flags & 0x10 == 0 { 0u32 } else { 5000 }.to_be_bytes());
        bytes.extend([0x50, flags, 0x20, 0, 0, 0, 0, 0]);
    }
    bytes.extend((0..length).map(|index| index as u8));
    if !matches!(kind, Kind::Unsummed(_)) {
        let (protocol, at) = if udp { (17, 6) } else { (6, 16) };
        let pseudo = pseudo_header(from.ip(), to.ip(), protocol, bytes.len() as u32);
        let sum = match pseudo.bytes(&bytes).checksum() {
            0 if udp => 0xffff,
            sum => sum,
        };
        bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    bytes
}
