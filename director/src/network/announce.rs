//! The frames that tell a segment which Ethernet address a VIP has now: gratuitous ARP, and
//! unsolicited neighbour advertisement. Pure: the caller sends them.
//!
//! The kernel announces an address by itself only when a link comes up (`arp_notify`,
//! `ndisc_notify`), not when an address is added, so a VIP that moves would stay with the old
//! director in every neighbour table until it expires.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) const BROADCAST: [u8; 6] = [0xff; 6];
/// Where ff02::1, all nodes, goes on Ethernet (RFC 2464 §7).
pub(super) const ALL_NODES_MAC: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];
pub(super) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

pub(super) const ETHERTYPE_ARP: u16 = 0x0806;
pub(super) const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_VLAN: u16 = 0x8100;

pub(super) const ICMPV6: u8 = 58;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
/// The O flag: replace what you know (RFC 4861 §4.4).
pub(super) const OVERRIDE: u8 = 0x20;
const TARGET_LINK_LAYER_ADDRESS: u8 = 2;

/// Ethernet frames carry at least this much after their header; cards pad, AF_XDP on veth does not.
pub(super) const LEAST_PAYLOAD: usize = 46;

/// The frame that announces `vip` at `mac`: for IPv4 a gratuitous ARP request (RFC 5227 §3: sender
/// and target are both the VIP, which every host takes), for IPv6 an unsolicited neighbour
/// advertisement with override to all nodes (RFC 4861 §7.2.6). With `vlan` it is tagged with that
/// id, to be sent on the interface below.
///
/// Send it several times, at once and again after a few seconds: nothing confirms it, and the first
/// frames of an interface that has just come up are lost.
pub fn announcement(mac: [u8; 6], vip: IpAddr, vlan: Option<u16>) -> Vec<u8> {
    let (to, ethertype, payload) = match vip {
        IpAddr::V4(v4) => (BROADCAST, ETHERTYPE_ARP, arp(mac, v4)),
        IpAddr::V6(v6) => {
            (ALL_NODES_MAC, ETHERTYPE_IPV6, advertisement(mac, v6, ALL_NODES, OVERRIDE))
        }
    };
    let mut frame = Vec::with_capacity(18 + payload.len().max(LEAST_PAYLOAD));
    frame.extend_from_slice(&to);
    frame.extend_from_slice(&mac);
    if let Some(id) = vlan {
        frame.extend_from_slice(&ETHERTYPE_VLAN.to_be_bytes());
        frame.extend_from_slice(&(id & 0x0fff).to_be_bytes());
    }
    frame.extend_from_slice(&ethertype.to_be_bytes());
    let header = frame.len();
    frame.extend_from_slice(&payload);
    frame.resize(frame.len().max(header + LEAST_PAYLOAD), 0);
    frame
}

fn arp(mac: [u8; 6], vip: Ipv4Addr) -> Vec<u8> {
    let mut arp = Vec::with_capacity(LEAST_PAYLOAD);
    arp.extend_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]); // Ethernet, IPv4, lengths, request
    arp.extend_from_slice(&mac);
    arp.extend_from_slice(&vip.octets());
    arp.extend_from_slice(&[0; 6]);
    arp.extend_from_slice(&vip.octets());
    arp
}

/// A neighbour advertisement of `vip` to `to`, with its IPv6 header.
pub(super) fn advertisement(mac: [u8; 6], vip: Ipv6Addr, to: Ipv6Addr, flags: u8) -> Vec<u8> {
    let mut icmp = Vec::with_capacity(32);
    icmp.extend_from_slice(&[NEIGHBOUR_ADVERTISEMENT, 0, 0, 0, flags, 0, 0, 0]);
    icmp.extend_from_slice(&vip.octets());
    icmp.extend_from_slice(&[TARGET_LINK_LAYER_ADDRESS, 1]);
    icmp.extend_from_slice(&mac);
    let sum = checksum(vip, to, &icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());

    let mut packet = Vec::with_capacity(40 + icmp.len());
    packet.extend_from_slice(&[0x60, 0, 0, 0]);
    packet.extend_from_slice(&(icmp.len() as u16).to_be_bytes());
    // Hop limit 255 proves that no router forwarded it; anything else is ignored.
    packet.extend_from_slice(&[ICMPV6, 255]);
    packet.extend_from_slice(&vip.octets());
    packet.extend_from_slice(&to.octets());
    packet.extend_from_slice(&icmp);
    packet
}

/// ICMPv6 checksum over pseudo-header and message (RFC 4443 §2.3), for this file's even lengths.
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

#[cfg(test)]
mod tests {
    use pnet::packet::Packet;
    use pnet::packet::arp::{ArpOperations, ArpPacket};
    use pnet::packet::ethernet::{EtherTypes, EthernetPacket};
    use pnet::packet::icmpv6::ndp::{NdpOptionTypes, NeighborAdvertPacket};
    use pnet::packet::icmpv6::{Icmpv6Packet, Icmpv6Types, checksum};
    use pnet::packet::ipv6::Ipv6Packet;
    use pnet::packet::vlan::VlanPacket;
    use pnet::util::MacAddr;

    use super::announcement;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];

    #[test]
    fn every_host_takes_the_arp_frame_as_news_of_the_vip() {
        let frame = announcement(MAC, [192, 0, 2, 10].into(), None);
        assert_eq!(frame.len(), 60);
        let ethernet = EthernetPacket::new(&frame).unwrap();
        assert_eq!(ethernet.get_destination(), MacAddr::broadcast());
        assert_eq!(ethernet.get_source(), MAC);
        assert_eq!(ethernet.get_ethertype(), EtherTypes::Arp);
        let arp = ArpPacket::new(ethernet.payload()).unwrap();
        assert_eq!(arp.get_operation(), ArpOperations::Request);
        assert_eq!(arp.get_sender_hw_addr(), MAC);
        assert_eq!(arp.get_sender_proto_addr().octets(), [192, 0, 2, 10]);
        assert_eq!(arp.get_target_proto_addr().octets(), [192, 0, 2, 10]);
    }

    #[test]
    fn every_host_takes_the_advertisement_as_news_of_the_vip() {
        let vip = "2001:db8::10".parse().unwrap();
        let frame = announcement(MAC, vip, None);
        let ethernet = EthernetPacket::new(&frame).unwrap();
        assert_eq!(ethernet.get_destination().octets(), [0x33, 0x33, 0, 0, 0, 1]);
        let packet = Ipv6Packet::new(ethernet.payload()).unwrap();
        assert_eq!(packet.get_hop_limit(), 255);
        assert_eq!(packet.get_payload_length(), 32);
        assert_eq!(packet.get_source(), vip);
        let icmp = Icmpv6Packet::new(packet.payload()).unwrap();
        assert_eq!(icmp.get_icmpv6_type(), Icmpv6Types::NeighborAdvert);
        let (from, to) = (packet.get_source(), packet.get_destination());
        assert_eq!(icmp.get_checksum(), checksum(&icmp, &from, &to));
        let advert = NeighborAdvertPacket::new(packet.payload()).unwrap();
        assert_eq!(advert.get_target_addr(), vip);
        assert_eq!(advert.get_flags(), 0x20);
        let option = &advert.get_options()[0];
        assert_eq!(option.option_type, NdpOptionTypes::TargetLLAddr);
        assert_eq!(option.data, MAC);
    }

    #[test]
    fn on_a_vlan_the_announcement_is_tagged() {
        let frame = announcement(MAC, [192, 0, 2, 10].into(), Some(17));
        let ethernet = EthernetPacket::new(&frame).unwrap();
        assert_eq!(ethernet.get_ethertype(), EtherTypes::Vlan);
        let vlan = VlanPacket::new(ethernet.payload()).unwrap();
        assert_eq!(vlan.get_vlan_identifier(), 17);
        assert_eq!(vlan.get_ethertype(), EtherTypes::Arp);
    }
}
