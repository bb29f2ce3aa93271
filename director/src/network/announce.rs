//! The frames that tell a segment which Ethernet address a VIP has now: gratuitous ARP, and
//! unsolicited neighbour advertisement. Pure: the caller sends them.
//!
//! The kernel announces an address by itself only when a link comes up (`arp_notify`,
//! `ndisc_notify`), not when an address is added, so a VIP that moves would stay with the old
//! director in every neighbour table until it expires.

use std::net::IpAddr;

use super::frames::{
    ALL_NODES, ALL_NODES_MAC, BROADCAST, ETHERTYPE_ARP, ETHERTYPE_IPV6, NO_MAC, OVERRIDE, REQUEST,
    advertisement, arp, framed,
};

/// The frame that announces `vip` at `mac`: for IPv4 a gratuitous ARP request (RFC 5227 §3: sender
/// and target are both the VIP, which every host takes), for IPv6 an unsolicited neighbour
/// advertisement with override to all nodes (RFC 4861 §7.2.6). With `vlan` it is tagged with that
/// id, to be sent on the interface below.
///
/// Send it several times, at once and again after a few seconds: nothing confirms it, and the first
/// frames of an interface that has just come up are lost.
pub fn announcement(mac: [u8; 6], vip: IpAddr, vlan: Option<u16>) -> Vec<u8> {
    match vip {
        IpAddr::V4(v4) => {
            let body = arp(REQUEST, (mac, v4), (NO_MAC, v4));
            framed(BROADCAST, mac, vlan, ETHERTYPE_ARP, &body)
        }
        IpAddr::V6(v6) => {
            let body = advertisement(mac, v6, ALL_NODES, OVERRIDE);
            framed(ALL_NODES_MAC, mac, vlan, ETHERTYPE_IPV6, &body)
        }
    }
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
