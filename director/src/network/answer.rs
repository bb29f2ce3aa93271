//! Who has this address? The answers of a host whose VIPs have an Ethernet address that is not its
//! own: the cluster's. Pure: frame in, frame out.
//!
//! The Ethernet address that is told stands in the body of the answer. The frame itself comes from
//! the host's own address: a switch that saw the cluster's as a source would learn where it is, and
//! bring frames to it to one host only.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::frames::{
    ALL_NODES, ALL_NODES_MAC, ARP_HEAD, BROADCAST, ETHERNET, ETHERTYPE_ARP, ETHERTYPE_IPV6, ICMPV6,
    NEIGHBOUR_SOLICITATION, NO_MAC, OVERRIDE, REPLY, REQUEST, SOLICITED, SOURCE_LINK_LAYER_ADDRESS,
    advertisement, arp, checksum, framed, link_layer_address,
};

/// Length of an ARP packet for IPv4 on Ethernet (RFC 826).
const ARP: usize = 28;

/// The answer to `frame`, when that asks for the Ethernet address of one of `is_vip`: an ARP reply
/// or a neighbour advertisement that says `cluster`, sent by `own`. `None` for every other frame,
/// whatever is in it.
///
/// Announcements by others (gratuitous ARP, probes for duplicates) get no answer: all hosts of a
/// cluster have the same VIPs, and none of them disputes another's.
pub fn answer(
    frame: &[u8],
    own: [u8; 6],
    cluster: [u8; 6],
    is_vip: impl Fn(IpAddr) -> bool,
) -> Option<Vec<u8>> {
    let (header, body) = frame.split_at_checked(ETHERNET)?;
    match u16::from_be_bytes([header[12], header[13]]) {
        ETHERTYPE_ARP => arp_reply(body.get(..ARP)?, own, cluster, is_vip),
        ETHERTYPE_IPV6 => solicited(body, header[6..12].try_into().ok()?, own, cluster, is_vip),
        _ => None,
    }
}

/// The frames that tell a segment that the `vip` is at `cluster` now, sent by `own`.
pub fn cluster_announcement(own: [u8; 6], cluster: [u8; 6], vip: IpAddr) -> Vec<u8> {
    match vip {
        IpAddr::V4(v4) => {
            let body = arp(REQUEST, (cluster, v4), (NO_MAC, v4));
            framed(BROADCAST, own, None, ETHERTYPE_ARP, &body)
        }
        IpAddr::V6(v6) => {
            let body = advertisement(cluster, v6, ALL_NODES, OVERRIDE);
            framed(ALL_NODES_MAC, own, None, ETHERTYPE_IPV6, &body)
        }
    }
}

fn arp_reply(
    arp_packet: &[u8],
    own: [u8; 6],
    cluster: [u8; 6],
    is_vip: impl Fn(IpAddr) -> bool,
) -> Option<Vec<u8>> {
    let operation = u16::from_be_bytes([arp_packet[6], arp_packet[7]]);
    if arp_packet[..6] != ARP_HEAD || operation != REQUEST {
        return None;
    }
    let mac: [u8; 6] = arp_packet[8..14].try_into().ok()?;
    let asker = Ipv4Addr::from(<[u8; 4]>::try_from(&arp_packet[14..18]).ok()?);
    let target = Ipv4Addr::from(<[u8; 4]>::try_from(&arp_packet[24..28]).ok()?);
    if asker == target || !is_unicast(mac) || !is_vip(target.into()) {
        return None;
    }
    let body = arp(REPLY, (cluster, target), (mac, asker));
    Some(framed(mac, own, None, ETHERTYPE_ARP, &body))
}

/// The answer to a neighbour solicitation (RFC 4861 §7.1.1 says which are valid).
fn solicited(
    packet: &[u8],
    from: [u8; 6],
    own: [u8; 6],
    cluster: [u8; 6],
    is_vip: impl Fn(IpAddr) -> bool,
) -> Option<Vec<u8>> {
    let (ip, rest) = packet.split_at_checked(40)?;
    let length = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
    let icmp = rest.get(..length).filter(|icmp| icmp.len() >= 24)?;
    if ip[0] >> 4 != 6 || ip[6] != ICMPV6 || ip[7] != 255 {
        return None;
    }
    if icmp[0] != NEIGHBOUR_SOLICITATION || icmp[1] != 0 {
        return None;
    }
    let source = Ipv6Addr::from(<[u8; 16]>::try_from(&ip[8..24]).ok()?);
    let destination = Ipv6Addr::from(<[u8; 16]>::try_from(&ip[24..40]).ok()?);
    let target = Ipv6Addr::from(<[u8; 16]>::try_from(&icmp[8..24]).ok()?);
    // The sum over a message with a right checksum in it is zero; ours is for even lengths, and all
    // options have those.
    if !length.is_multiple_of(2)
        || checksum(source, destination, icmp) != 0
        || !is_vip(target.into())
    {
        return None;
    }
    // Without a source it is somebody's probe for duplicates.
    if source.is_unspecified() {
        return None;
    }
    let to = link_layer_address(SOURCE_LINK_LAYER_ADDRESS, &icmp[24..]).unwrap_or(from);
    if !is_unicast(to) {
        return None;
    }
    let body = advertisement(cluster, target, source, SOLICITED | OVERRIDE);
    Some(framed(to, own, None, ETHERTYPE_IPV6, &body))
}

fn is_unicast(mac: [u8; 6]) -> bool {
    mac[0] & 1 == 0 && mac != [0; 6]
}

#[cfg(test)]
mod tests {
    use pnet::packet::Packet;
    use pnet::packet::arp::ArpPacket;
    use pnet::packet::ethernet::EthernetPacket;
    use pnet::packet::icmpv6::ndp::NeighborAdvertPacket;
    use pnet::packet::icmpv6::{Icmpv6Packet, Icmpv6Types};
    use pnet::packet::ipv6::Ipv6Packet;
    use proptest::prelude::*;

    use super::*;

    const OWN: [u8; 6] = [2, 0, 0, 0, 0, 9];
    const CLUSTER: [u8; 6] = [2, 0xbf, 192, 0, 2, 10];
    const CLIENT: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const VIP: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
    const ASKER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const VIP6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x10);
    const ASKER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

    fn is_vip(address: IpAddr) -> bool {
        address == VIP || address == VIP6
    }

    fn ask(frame: &[u8]) -> Option<Vec<u8>> {
        answer(frame, OWN, CLUSTER, is_vip)
    }

    fn who_has(target: Ipv4Addr, asker: Ipv4Addr) -> Vec<u8> {
        let body = arp(REQUEST, (CLIENT, asker), ([0; 6], target));
        framed(BROADCAST, CLIENT, None, ETHERTYPE_ARP, &body)
    }

    fn solicitation(target: Ipv6Addr, source: Ipv6Addr, options: &[u8]) -> Vec<u8> {
        let mut icmp = vec![NEIGHBOUR_SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
        icmp.extend_from_slice(&target.octets());
        icmp.extend_from_slice(options);
        let to: Ipv6Addr = "ff02::1:ff00:10".parse().unwrap();
        let sum = checksum(source, to, &icmp);
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut packet = vec![0x60, 0, 0, 0, 0, icmp.len() as u8, ICMPV6, 255];
        packet.extend_from_slice(&source.octets());
        packet.extend_from_slice(&to.octets());
        packet.extend_from_slice(&icmp);
        framed([0x33, 0x33, 0xff, 0, 0, 0x10], CLIENT, None, ETHERTYPE_IPV6, &packet)
    }

    #[test]
    fn arp_for_a_vip_is_answered_with_the_clusters_address_from_our_own() {
        let frame = ask(&who_has(VIP, ASKER)).expect("an answer");
        let ethernet = EthernetPacket::new(&frame).unwrap();
        assert_eq!(
            (ethernet.get_destination().octets(), ethernet.get_source().octets()),
            (CLIENT, OWN)
        );
        let arp = ArpPacket::new(ethernet.payload()).unwrap();
        assert_eq!(arp.get_operation().0, REPLY);
        assert_eq!(arp.get_sender_hw_addr().octets(), CLUSTER);
        assert_eq!(arp.get_sender_proto_addr(), VIP);
        assert_eq!(
            (arp.get_target_hw_addr().octets(), arp.get_target_proto_addr()),
            (CLIENT, ASKER)
        );
    }

    #[test]
    fn arp_for_others_replies_and_announcements_get_no_answer() {
        assert_eq!(ask(&who_has(ASKER, VIP)), None);
        assert_eq!(ask(&who_has(VIP, VIP)), None);
        let mut reply = who_has(VIP, ASKER);
        reply[ETHERNET + 7] = REPLY as u8;
        assert_eq!(ask(&reply), None);
        let mut from_a_group = who_has(VIP, ASKER);
        from_a_group[ETHERNET + 8] |= 1;
        assert_eq!(ask(&from_a_group), None);
    }

    #[test]
    fn a_solicitation_for_a_vip_is_answered_with_the_clusters_address_from_our_own() {
        for options in
            [&[][..], &[1, 1, 2, 0, 0, 0, 0, 1], &[14, 1, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1]]
        {
            let frame = ask(&solicitation(VIP6, ASKER6, options)).expect("an answer");
            let ethernet = EthernetPacket::new(&frame).unwrap();
            assert_eq!(ethernet.get_destination().octets(), CLIENT);
            assert_eq!(ethernet.get_source().octets(), OWN);
            let ip = Ipv6Packet::new(ethernet.payload()).unwrap();
            assert_eq!(
                (ip.get_source(), ip.get_destination(), ip.get_hop_limit()),
                (VIP6, ASKER6, 255)
            );
            let icmp = Icmpv6Packet::new(ip.payload()).unwrap();
            assert_eq!(icmp.get_icmpv6_type(), Icmpv6Types::NeighborAdvert);
            assert_eq!(checksum(VIP6, ASKER6, ip.payload()), 0);
            let advert = NeighborAdvertPacket::new(ip.payload()).unwrap();
            assert_eq!((advert.get_target_addr(), advert.get_flags()), (VIP6, 0x60));
            assert_eq!(advert.get_options()[0].data, CLUSTER);
        }
    }

    #[test]
    fn wrong_forwarded_or_foreign_solicitations_get_no_answer() {
        assert_eq!(ask(&solicitation(ASKER6, VIP6, &[])), None, "not a VIP");
        assert_eq!(ask(&solicitation(VIP6, Ipv6Addr::UNSPECIFIED, &[])), None, "a probe");
        let right = solicitation(VIP6, ASKER6, &[]);
        for (at, what) in
            [(ETHERNET + 7, "hop limit"), (ETHERNET + 6, "protocol"), (ETHERNET + 42, "sum")]
        {
            let mut wrong = right.clone();
            wrong[at] ^= 1;
            assert_eq!(ask(&wrong), None, "{what}");
        }
    }

    #[test]
    fn an_announcement_tells_the_clusters_address_and_comes_from_our_own() {
        let frame = cluster_announcement(OWN, CLUSTER, VIP.into());
        let ethernet = EthernetPacket::new(&frame).unwrap();
        assert_eq!(ethernet.get_source().octets(), OWN);
        let arp = ArpPacket::new(ethernet.payload()).unwrap();
        assert_eq!(arp.get_sender_hw_addr().octets(), CLUSTER);
        let frame = cluster_announcement(OWN, CLUSTER, VIP6.into());
        assert_eq!(EthernetPacket::new(&frame).unwrap().get_source().octets(), OWN);
        assert_eq!(&frame[ETHERNET + 40 + 26..][..6], CLUSTER);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_frame_makes_it_panic(mut frame in prop::collection::vec(any::<u8>(), 0..120), kind in 0..3u8, cut in any::<prop::sample::Index>()) {
            let base = match kind {
                0 => who_has(VIP, ASKER),
                1 => solicitation(VIP6, ASKER6, &[1, 1, 2, 0, 0, 0, 0, 1]),
                _ => Vec::new(),
            };
            for (to, from) in frame.iter_mut().zip(&base) {
                *to = if *to & 0xf == 0 { *to } else { *from };
            }
            let cut = cut.index(frame.len() + 1);
            let _ = ask(&frame[..cut]);
        }
    }
}
