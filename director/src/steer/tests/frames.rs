//! Frames in layers: each function puts a header before what it is given.

use std::net::IpAddr;

pub(super) const DESTINATION: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(super) const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Ethernet with this type.
pub(super) fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&DESTINATION, &SOURCE, &ethertype.to_be_bytes()[..], payload].concat()
}

/// Ethernet with a VLAN tag of this type before the frame's own.
pub(super) fn tagged(tag_type: u16, mut frame: Vec<u8>) -> Vec<u8> {
    let [high, low] = tag_type.to_be_bytes();
    frame.splice(12..12, [high, low, 0x00, 0x2a]);
    frame
}

/// Ethernet with the type that suits the IP packet.
pub(super) fn frame(packet: &[u8]) -> Vec<u8> {
    let version = packet.first().map_or(4, |byte| byte >> 4);
    ethernet(if version == 6 { 0x86dd } else { 0x0800 }, packet)
}

/// What is special about an IP header.
#[derive(Clone, Debug, Default)]
pub(super) struct Header {
    /// IPv4: words of options. IPv6: extension headers (protocol, length in units of 8 bytes).
    pub(super) options: usize,
    pub(super) extensions: Vec<(u8, u8)>,
    /// Offset in units of 8 bytes, and whether more follow.
    pub(super) fragment: Option<(u16, bool)>,
}

/// An IP packet of the addresses' family.
pub(super) fn ip(source: &str, to: &str, protocol: u8, payload: &[u8]) -> Vec<u8> {
    ip_with(&Header::default(), source, to, protocol, payload)
}

/// As [`ip`], with options or as a fragment.
pub(super) fn ip_with(
    header: &Header,
    source: &str,
    to: &str,
    protocol: u8,
    payload: &[u8],
) -> Vec<u8> {
    match (source.parse().unwrap(), to.parse().unwrap()) {
        (IpAddr::V4(source), IpAddr::V4(to)) => {
            let length = 20 + 4 * header.options + payload.len();
            let (offset, more) = header.fragment.unwrap_or_default();
            let fragment = offset | u16::from(more) << 13;
            let mut packet = vec![0x45 + header.options as u8, 0];
            packet.extend((length as u16).to_be_bytes());
            packet.extend([0, 7]);
            packet.extend(fragment.to_be_bytes());
            packet.extend([64, protocol, 0, 0]);
            packet.extend(source.octets());
            packet.extend(to.octets());
            packet.extend(vec![1; 4 * header.options]);
            let sum = checksum(&packet);
            packet[10..12].copy_from_slice(&sum);
            packet.extend(payload);
            packet
        }
        (IpAddr::V6(source), IpAddr::V6(to)) => {
            let (next, chain) = extension_chain(header, protocol);
            let mut packet = vec![0x60, 0, 0, 0];
            packet.extend(((chain.len() + payload.len()) as u16).to_be_bytes());
            packet.extend([next, 64]);
            packet.extend(source.octets());
            packet.extend(to.octets());
            packet.extend(chain);
            packet.extend(payload);
            packet
        }
        _ => panic!("{source} and {to} are of different families"),
    }
}

/// The Internet checksum of a header whose checksum field is 0.
fn checksum(header: &[u8]) -> [u8; 2] {
    let sum: u32 =
        header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    (!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes()
}

/// The extension headers, the fragment header last, and the number of the first.
fn extension_chain(header: &Header, protocol: u8) -> (u8, Vec<u8>) {
    let mut next = protocol;
    let mut chain = Vec::new();
    if let Some((offset, more)) = header.fragment {
        let [high, low] = (offset << 3 | u16::from(more)).to_be_bytes();
        chain = vec![next, 0, high, low, 0, 0, 0, 7];
        next = 44;
    }
    for (number, units) in header.extensions.iter().rev() {
        let mut extension = vec![0; 8 + 8 * usize::from(*units)];
        extension[..2].copy_from_slice(&[next, *units]);
        extension.extend(chain);
        chain = extension;
        next = *number;
    }
    (next, chain)
}

/// The beginning of TCP, UDP or SCTP, as long as a TCP header.
pub(super) fn ports(source: u16, destination: u16) -> Vec<u8> {
    let mut segment = vec![0; 20];
    segment[..2].copy_from_slice(&source.to_be_bytes());
    segment[2..4].copy_from_slice(&destination.to_be_bytes());
    segment
}

/// An ICMP or ICMPv6 message.
pub(super) fn icmp(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind, 0, 0, 0, 0, 0, 0, 0], payload].concat()
}
