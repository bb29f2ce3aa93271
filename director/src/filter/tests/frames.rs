//! Frames in layers: each function puts a header before what it is given.

use std::net::IpAddr;

pub(super) const OWN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(super) const CLUSTER_MAC: [u8; 6] = [2, 0xbf, 192, 0, 2, 10];
pub(super) const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x77];

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const GRE: u8 = 47;

/// TCP flags.
pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const ACK: u8 = 0x10;

/// Ethernet with this type.
pub(super) fn ethernet(to: [u8; 6], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&to, &CLIENT_MAC, &ethertype.to_be_bytes()[..], payload].concat()
}

/// A VLAN tag of this type before the frame's own type.
pub(super) fn tagged(tag_type: u16, mut frame: Vec<u8>) -> Vec<u8> {
    let [high, low] = tag_type.to_be_bytes();
    frame.splice(12..12, [high, low, 0x00, 0x2a]);
    frame
}

/// Ethernet with the type that suits the IP packet, to the cluster's MAC address.
pub(super) fn to_cluster(packet: &[u8]) -> Vec<u8> {
    to(CLUSTER_MAC, packet)
}

/// Ethernet with the type that suits the IP packet.
pub(super) fn to(mac: [u8; 6], packet: &[u8]) -> Vec<u8> {
    let version = packet.first().map_or(4, |byte| byte >> 4);
    ethernet(mac, if version == 6 { 0x86dd } else { 0x0800 }, packet)
}

/// What is special about an IP header.
#[derive(Clone, Debug, Default)]
pub(super) struct Header {
    /// IPv4: words of options.
    pub(super) options: usize,
    /// IPv6: extension headers (protocol, length in units of 8 bytes) before a fragment header.
    pub(super) extensions: Vec<(u8, u8)>,
    /// Identification, offset in units of 8 bytes, and whether more follow.
    pub(super) fragment: Option<(u16, u16, bool)>,
}

/// An IP packet of the addresses' family.
pub(super) fn ip(from: IpAddr, to: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    ip_with(&Header::default(), from, to, protocol, payload)
}

/// As [`ip`], with options or as a fragment. Of addresses of two families the first counts.
pub(super) fn ip_with(
    header: &Header,
    from: IpAddr,
    to: IpAddr,
    protocol: u8,
    payload: &[u8],
) -> Vec<u8> {
    let (id, offset, more) = header.fragment.unwrap_or_default();
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let length = 20 + 4 * header.options + payload.len();
            let mut packet = vec![0x45 + header.options as u8, 0];
            packet.extend((length as u16).to_be_bytes());
            packet.extend(id.to_be_bytes());
            packet.extend((offset | u16::from(more) << 13).to_be_bytes());
            packet.extend([64, protocol, 0, 0]);
            packet.extend(from.octets());
            packet.extend(to.octets());
            packet.extend(vec![1; 4 * header.options]);
            packet.extend(payload);
            packet
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let (next, chain) = extensions(header, protocol);
            let mut packet = vec![0x60, 0, 0, 0];
            packet.extend(((chain.len() + payload.len()) as u16).to_be_bytes());
            packet.extend([next, 64]);
            packet.extend(from.octets());
            packet.extend(to.octets());
            packet.extend(chain);
            packet.extend(payload);
            packet
        }
        _ => panic!("{from} and {to} are of different families"),
    }
}

/// The extension headers, the fragment header last, and the number of the first.
fn extensions(header: &Header, protocol: u8) -> (u8, Vec<u8>) {
    let (mut next, mut chain) = (protocol, Vec::new());
    if let Some((id, offset, more)) = header.fragment {
        let [high, low] = (offset << 3 | u16::from(more)).to_be_bytes();
        chain = vec![next, 0, high, low, 0, 0];
        chain.extend(id.to_be_bytes());
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

/// A TCP header.
pub(super) fn tcp(from: u16, to: u16, flags: u8) -> Vec<u8> {
    let mut segment = udp(from, to);
    segment.extend([0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment
}

/// A UDP header.
pub(super) fn udp(from: u16, to: u16) -> Vec<u8> {
    [from.to_be_bytes(), to.to_be_bytes(), [0, 8], [0, 0]].concat()
}

/// An ICMP or ICMPv6 message.
pub(super) fn icmp(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind, 0, 0, 0, 0, 1, 0, 1], payload].concat()
}
