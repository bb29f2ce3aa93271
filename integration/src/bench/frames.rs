//! TCP segments without data, in the shortest Ethernet frame that holds them: 60 bytes with IPv4
//! (64 with the check sequence that the card adds), 74 with IPv6; and UDP datagrams of 60 bytes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use pnet::packet::Packet;
use pnet::packet::ethernet::{EtherType, EtherTypes, MutableEthernetPacket};
use pnet::packet::ip::IpNextHeaderProtocols;
use pnet::packet::ipv4::{self, MutableIpv4Packet};
use pnet::packet::ipv6::MutableIpv6Packet;
use pnet::packet::tcp::{MutableTcpPacket, ipv4_checksum, ipv6_checksum};
use pnet::packet::udp::MutableUdpPacket;
use pnet::util::MacAddr;

const ETHERNET: usize = 14;
const TCP: usize = 20;
/// Shortest frame, without check sequence.
const SHORTEST: usize = 60;

/// A segment with these flags; its checksums are right.
///
/// # Panics
/// When source and destination are of two families.
pub(super) fn tcp(source: SocketAddr, destination: SocketAddr, flags: u8) -> Vec<u8> {
    let mut segment = [0; TCP];
    let mut tcp = MutableTcpPacket::new(&mut segment).expect("20 bytes");
    tcp.set_source(source.port());
    tcp.set_destination(destination.port());
    tcp.set_sequence(1);
    tcp.set_data_offset(5);
    tcp.set_flags(flags);
    tcp.set_window(64_000);
    let (ethertype, mut ip) = match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            tcp.set_checksum(ipv4_checksum(&tcp.to_immutable(), &source, &destination));
            let mut bytes = vec![0; 20];
            let mut ip = MutableIpv4Packet::new(&mut bytes).expect("20 bytes");
            ip.set_version(4);
            ip.set_header_length(5);
            ip.set_total_length((20 + TCP) as u16);
            ip.set_flags(ipv4::Ipv4Flags::DontFragment);
            ip.set_ttl(64);
            ip.set_next_level_protocol(IpNextHeaderProtocols::Tcp);
            ip.set_source(source);
            ip.set_destination(destination);
            ip.set_checksum(ipv4::checksum(&ip.to_immutable()));
            (EtherTypes::Ipv4, bytes)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            tcp.set_checksum(ipv6_checksum(&tcp.to_immutable(), &source, &destination));
            let mut bytes = vec![0; 40];
            let mut ip = MutableIpv6Packet::new(&mut bytes).expect("40 bytes");
            ip.set_version(6);
            ip.set_payload_length(TCP as u16);
            ip.set_next_header(IpNextHeaderProtocols::Tcp);
            ip.set_hop_limit(64);
            ip.set_source(source);
            ip.set_destination(destination);
            (EtherTypes::Ipv6, bytes)
        }
        _ => panic!("{source} and {destination} are of two families"),
    };
    ip.extend_from_slice(tcp.packet());
    framed(ethertype, &ip)
}

/// A datagram with 18 bytes of zeros, between these MAC addresses (from, to), without a UDP checksum:
/// with IPv4 it may be left out, and then ports and payload can be changed at will.
pub(super) fn udp(
    macs: ([u8; 6], [u8; 6]),
    (source, source_port): (Ipv4Addr, u16),
    (destination, port): (Ipv4Addr, u16),
) -> Vec<u8> {
    let mut bytes = vec![0; SHORTEST - ETHERNET];
    let size = bytes.len() as u16;
    let mut udp = MutableUdpPacket::new(&mut bytes[20..]).expect("26 bytes");
    udp.set_source(source_port);
    udp.set_destination(port);
    udp.set_length(size - 20);
    let mut ip = MutableIpv4Packet::new(&mut bytes).expect("46 bytes");
    ip.set_version(4);
    ip.set_header_length(5);
    ip.set_total_length(size);
    ip.set_ttl(64);
    ip.set_next_level_protocol(IpNextHeaderProtocols::Udp);
    ip.set_source(source);
    ip.set_destination(destination);
    ip.set_checksum(ipv4::checksum(&ip.to_immutable()));
    let mut frame = framed(EtherTypes::Ipv4, &bytes);
    let mut ethernet = MutableEthernetPacket::new(&mut frame).expect("14 bytes");
    ethernet.set_source(macs.0.into());
    ethernet.set_destination(macs.1.into());
    frame
}

fn framed(ethertype: EtherType, ip: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; (ETHERNET + ip.len()).max(SHORTEST)];
    let mut ethernet = MutableEthernetPacket::new(&mut frame).expect("14 bytes");
    ethernet.set_source(MacAddr::new(2, 0, 0, 0, 0, 3));
    ethernet.set_destination(MacAddr::new(2, 0, 0, 0, 0, 1));
    ethernet.set_ethertype(ethertype);
    frame[ETHERNET..ETHERNET + ip.len()].copy_from_slice(ip);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_frames_are_what_the_figures_say() {
        for (source, destination, len) in
            [("20.0.0.1:1024", "192.0.2.10:80", 60), ("[2001:db8:2::1]:1024", "[fd77::1]:80", 74)]
        {
            let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
            let frame = tcp(source, destination, 0x10);
            let headers = forwarding::parse(&frame).unwrap();
            assert_eq!(frame.len(), len);
            assert_eq!((headers.source, headers.source_port), (source.ip(), 1024));
            assert_eq!((headers.destination, headers.tcp_flags), (destination.ip(), 0x10));
            let sum = headers.pseudo_header().bytes(&frame[headers.l4..headers.end]);
            assert_eq!(sum.folded(), 0xffff, "the checksum verifies");
        }
    }
    #[test]
    fn a_datagram_has_room_for_a_time_and_goes_where_it_is_sent() {
        let ends = (([192, 0, 2, 1].into(), 1024), ([192, 0, 2, 2].into(), 80));
        let frame = udp(([1; 6], [2; 6]), ends.0, ends.1);
        let headers = forwarding::parse(&frame).unwrap();
        assert_eq!((frame.len(), &frame[..6], &frame[6..12]), (60, &[2; 6][..], &[1; 6][..]));
        assert_eq!((headers.l4, headers.end), (34, 60));
        assert_eq!((headers.source_port, headers.destination_port), (1024, 80));
        assert_eq!(headers.destination, ends.1.0);
    }
}
