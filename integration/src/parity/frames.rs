//! Packets written byte by byte, so that both sides get the very same.

use std::net::{IpAddr, SocketAddr};

use forwarding::checksum::{Sum, pseudo_header};

use super::step::{Kind, Packet};
use super::{errors, pieces};

/// Ethernet header.
pub(super) const ETHERNET: usize = 14;

/// A frame of `packet`'s shape with these addresses. `id` is IPv4's identification.
pub(super) fn frame(
    packet: &Packet,
    (from, to): (SocketAddr, SocketAddr),
    (source, destination): ([u8; 6], [u8; 6]),
    id: u16,
) -> Vec<u8> {
    let ip = match packet.kind {
        Kind::Error(error) => errors::packet(packet, error, (from, to), id),
        Kind::Piece(piece) => pieces::packet(packet, piece, (from.ip(), to.ip()), |whole| {
            transport(Kind::Datagram(whole), from, to)
        }),
        kind => {
            let protocol = packet.flow.protocol.number();
            ip(packet, (from.ip(), to.ip()), protocol, id, &transport(kind, from, to))
        }
    };
    let ethertype = if from.is_ipv4() { [0x08, 0x00] } else { [0x86, 0xdd] };
    [&destination[..], &source, &ethertype, &ip].concat()
}

/// An IP packet with `packet`'s TTL, class and flags around `payload`.
pub(super) fn ip(
    packet: &Packet,
    (from, to): (IpAddr, IpAddr),
    protocol: u8,
    id: u16,
    payload: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(40 + payload.len());
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header = [0; 20];
            header[0] = 0x45;
            header[1] = packet.traffic_class;
            header[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
            header[4..6].copy_from_slice(&id.to_be_bytes());
            header[6] = if packet.dont_fragment { 0x40 } else { 0 };
            header[8] = packet.ttl;
            header[9] = protocol;
            header[12..16].copy_from_slice(&from.octets());
            header[16..20].copy_from_slice(&to.octets());
            sum_header(&mut header);
            bytes.extend(header);
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            bytes.extend([0x60 | packet.traffic_class >> 4, packet.traffic_class << 4, 0, 0]);
            bytes.extend((payload.len() as u16).to_be_bytes());
            bytes.extend([protocol, packet.ttl]);
            bytes.extend(from.octets());
            bytes.extend(to.octets());
        }
        _ => unreachable!("a packet from {from} to {to}"),
    }
    bytes.extend(payload);
    bytes
}

/// Writes the checksum of an IPv4 header without options.
pub(super) fn sum_header(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum = Sum::default().bytes(&header[..20]).checksum();
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Transport header and payload, with the checksum.
pub(super) fn transport(kind: Kind, from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let sip = match kind {
        Kind::Sip(call) => message(call),
        _ => String::new(),
    };
    let (flags, length) = match kind {
        Kind::Sip(_) => (0, sip.len()),
        Kind::Syn => (0x02, 0),
        Kind::SynAck => (0x12, 0),
        Kind::Ack => (0x10, 0),
        Kind::Data(length) => (0x18, length),
        Kind::Fin => (0x11, 0),
        Kind::Rst => (0x04, 0),
        Kind::Segment(segment) => (segment.flags, segment.text.len()),
        Kind::Datagram(length) | Kind::Unsummed(length) => (0, length),
        Kind::Piece(_) | Kind::Error(_) => unreachable!("{kind:?} is no whole datagram or segment"),
        Kind::Sctp(chunks) => return chunks.packet(from, to),
    };
    let mut bytes = Vec::new();
    bytes.extend(from.port().to_be_bytes());
    bytes.extend(to.port().to_be_bytes());
    let udp = matches!(kind, Kind::Datagram(_) | Kind::Unsummed(_) | Kind::Sip(_));
    if udp {
        bytes.extend((8 + length as u16).to_be_bytes());
        bytes.extend([0, 0]);
    } else {
        let (sequence, acknowledgement) = match kind {
            Kind::Segment(segment) => (segment.sequence, segment.acknowledgement),
            // Mostly numbers are the ends' business.
            _ => (1000, if flags & 0x10 == 0 { 0 } else { 5000 }),
        };
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(acknowledgement.to_be_bytes());
        bytes.extend([0x50, flags, 0x20, 0, 0, 0, 0, 0]);
    }
    match kind {
        Kind::Segment(segment) => bytes.extend(segment.text.bytes()),
        Kind::Sip(_) => bytes.extend(sip.as_bytes()),
        _ => bytes.extend((0..length).map(|index| index as u8)),
    }
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

/// A SIP message; of call 0 it has no Call-ID.
fn message(call: u16) -> String {
    let call_id = match call {
        0 => String::new(),
        call => format!("Call-ID: {call}-a84b4c76e667@pc{call}.example.com\r\n"),
    };
    format!("OPTIONS sip:bob@example.com SIP/2.0\r\nVia: SIP/2.0/UDP pc33\r\n{call_id}\r\n")
}
