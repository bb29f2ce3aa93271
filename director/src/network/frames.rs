//! What announcements, questions and answers about neighbours are made of: Ethernet, ARP and neighbour
//! discovery. Pure.

use std::net::{Ipv4Addr, Ipv6Addr};

pub(super) const BROADCAST: [u8; 6] = [0xff; 6];
/// Where ff02::1, all nodes, goes on Ethernet (RFC 2464 §7).
pub(super) const ALL_NODES_MAC: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];
pub(super) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Length of an Ethernet header without tags.
pub(super) const ETHERNET: usize = 14;
pub(super) const ETHERTYPE_ARP: u16 = 0x0806;
pub(super) const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_VLAN: u16 = 0x8100;
/// Ethernet frames carry at least this much after their header; cards pad, AF_XDP on veth does not.
const LEAST_PAYLOAD: usize = 46;

/// Hardware Ethernet, protocol IPv4, lengths 6 and 4 (RFC 826).
pub(super) const ARP_HEAD: [u8; 6] = [0, 1, 8, 0, 6, 4];
pub(super) const REQUEST: u16 = 1;
pub(super) const REPLY: u16 = 2;
/// In ARP, what is not known; nobody has it.
pub(super) const NO_MAC: [u8; 6] = [0; 6];

pub(super) const ICMPV6: u8 = 58;
pub(super) const NEIGHBOUR_SOLICITATION: u8 = 135;
pub(super) const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
/// The O flag: replace what you know (RFC 4861 §4.4).
pub(super) const OVERRIDE: u8 = 0x20;
/// The S flag: an answer to a question (RFC 4861 §4.4).
pub(super) const SOLICITED: u8 = 0x40;
pub(super) const SOURCE_LINK_LAYER_ADDRESS: u8 = 1;
pub(super) const TARGET_LINK_LAYER_ADDRESS: u8 = 2;

/// An Ethernet frame, padded; with `vlan` it is tagged with that id.
pub(super) fn framed(
    to: [u8; 6],
    from: [u8; 6],
    vlan: Option<u16>,
    ethertype: u16,
    body: &[u8],
) -> Vec<u8> {
    let mut frame = Vec::with_capacity(ETHERNET + 4 + body.len().max(LEAST_PAYLOAD));
    frame.extend_from_slice(&to);
    frame.extend_from_slice(&from);
    if let Some(id) = vlan {
        frame.extend_from_slice(&ETHERTYPE_VLAN.to_be_bytes());
        frame.extend_from_slice(&(id & 0x0fff).to_be_bytes());
    }
    frame.extend_from_slice(&ethertype.to_be_bytes());
    let header = frame.len();
    frame.extend_from_slice(body);
    frame.resize(frame.len().max(header + LEAST_PAYLOAD), 0);
    frame
}

/// An ARP packet for IPv4 on Ethernet (RFC 826).
pub(super) fn arp(
    operation: u16,
    sender: ([u8; 6], Ipv4Addr),
    target: ([u8; 6], Ipv4Addr),
) -> Vec<u8> {
    let mut packet = Vec::with_capacity(LEAST_PAYLOAD);
    packet.extend_from_slice(&ARP_HEAD);
    packet.extend_from_slice(&operation.to_be_bytes());
    for (mac, address) in [sender, target] {
        packet.extend_from_slice(&mac);
        packet.extend_from_slice(&address.octets());
    }
    packet
}

/// A neighbour solicitation for `target`, or an advertisement of it (RFC 4861 §4.3, §4.4), with its IPv6
/// header. `option`: what kind of link-layer address `mac` is.
pub(super) fn neighbour_message(
    (kind, flags): (u8, u8),
    target: Ipv6Addr,
    (option, mac): (u8, [u8; 6]),
    source: Ipv6Addr,
    to: Ipv6Addr,
) -> Vec<u8> {
    let mut icmp = Vec::with_capacity(32);
    icmp.extend_from_slice(&[kind, 0, 0, 0, flags, 0, 0, 0]);
    icmp.extend_from_slice(&target.octets());
    icmp.extend_from_slice(&[option, 1]);
    icmp.extend_from_slice(&mac);
    let sum = checksum(source, to, &icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());

    let mut packet = Vec::with_capacity(40 + icmp.len());
    packet.extend_from_slice(&[0x60, 0, 0, 0]);
    packet.extend_from_slice(&(icmp.len() as u16).to_be_bytes());
    // Hop limit 255 proves that no router forwarded it; anything else is ignored.
    packet.extend_from_slice(&[ICMPV6, 255]);
    packet.extend_from_slice(&source.octets());
    packet.extend_from_slice(&to.octets());
    packet.extend_from_slice(&icmp);
    packet
}

/// An advertisement of `vip` at `mac` to `to`.
pub(super) fn advertisement(mac: [u8; 6], vip: Ipv6Addr, to: Ipv6Addr, flags: u8) -> Vec<u8> {
    let option = (TARGET_LINK_LAYER_ADDRESS, mac);
    neighbour_message((NEIGHBOUR_ADVERTISEMENT, flags), vip, option, vip, to)
}

/// The link-layer address of this kind among the options of a message, if it is there and they are whole
/// that far.
pub(super) fn link_layer_address(wanted: u8, mut options: &[u8]) -> Option<[u8; 6]> {
    while let [kind, units, ..] = *options {
        let (option, rest) = options.split_at_checked(usize::from(units) * 8)?;
        if kind == wanted {
            return option.get(2..8)?.try_into().ok();
        }
        if option.is_empty() {
            return None;
        }
        options = rest;
    }
    None
}

/// ICMPv6 checksum over pseudo-header and message (RFC 4443 §2.3), for even lengths.
pub(super) fn checksum(source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) -> u16 {
    let pseudo = [message.len() as u16, u16::from(ICMPV6)];
    let words = message.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let sum: u32 = source
        .segments()
        .into_iter()
        .chain(destination.segments())
        .chain(pseudo)
        .chain(words)
        .map(u32::from)
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
