//! Judges that our code had no part in.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pnet::packet::icmp::IcmpPacket;
use pnet::packet::icmpv6::Icmpv6Packet;
use pnet::packet::ipv4::Ipv4Packet;
use pnet::packet::tcp::TcpPacket;
use pnet::packet::udp::UdpPacket;
use pnet::packet::{icmp, icmpv6, ipv4, tcp, udp};

/// Bit by bit, as RFC 9260 appendix A defines it.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
        }
    }
    !crc
}

/// Asserts that `etherparse` and `pnet` both find every checksum of the frame right: IPv4 header,
/// TCP, UDP, ICMP, ICMPv6 (for SCTP there is [`crc32c`]).
pub(crate) fn assert_checksums(frame: &[u8]) {
    let packet = SlicedPacket::from_ethernet(frame).expect("etherparse refuses the frame");
    match packet.net.as_ref().expect("an IP packet") {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            let stored = header.header_checksum();
            assert_eq!(stored, header.to_header().calc_header_checksum());
            assert_eq!(stored, ipv4::checksum(&Ipv4Packet::new(header.slice()).unwrap()));
            let (source, destination) = (header.source_addr(), header.destination_addr());
            match packet.transport.as_ref() {
                Some(TransportSlice::Tcp(segment)) => {
                    let bytes = TcpPacket::new(segment.slice()).unwrap();
                    let expected = tcp::ipv4_checksum(&bytes, &source, &destination);
                    assert_eq!(segment.checksum(), expected);
                    let expected =
                        segment.calc_checksum_ipv4(source.octets(), destination.octets());
                    assert_eq!(segment.checksum(), expected.unwrap());
                }
                Some(TransportSlice::Udp(datagram)) => {
                    let bytes = UdpPacket::new(datagram.slice()).unwrap();
                    let expected = udp::ipv4_checksum(&bytes, &source, &destination);
                    assert_eq!(datagram.checksum(), nonzero(expected));
                }
                Some(TransportSlice::Icmpv4(message)) => {
                    let bytes = IcmpPacket::new(message.slice()).unwrap();
                    assert_eq!(message.checksum(), icmp::checksum(&bytes));
                }
                _ => {}
            }
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header();
            let (source, destination) = (header.source_addr(), header.destination_addr());
            match packet.transport.as_ref() {
                Some(TransportSlice::Tcp(segment)) => {
                    let bytes = TcpPacket::new(segment.slice()).unwrap();
                    let expected = tcp::ipv6_checksum(&bytes, &source, &destination);
                    assert_eq!(segment.checksum(), expected);
                    let expected =
                        segment.calc_checksum_ipv6(source.octets(), destination.octets());
                    assert_eq!(segment.checksum(), expected.unwrap());
                }
                Some(TransportSlice::Udp(datagram)) => {
                    let bytes = UdpPacket::new(datagram.slice()).unwrap();
                    let expected = udp::ipv6_checksum(&bytes, &source, &destination);
                    assert_eq!(datagram.checksum(), nonzero(expected));
                }
                Some(TransportSlice::Icmpv6(message)) => {
                    let bytes = Icmpv6Packet::new(message.slice()).unwrap();
                    let expected = icmpv6::checksum(&bytes, &source, &destination);
                    assert_eq!(message.checksum(), expected);
                    assert!(message.is_checksum_valid(source.octets(), destination.octets()));
                }
                _ => {}
            }
        }
        NetSlice::Arp(_) => panic!("not an IP packet"),
    }
}

/// A UDP checksum of 0 goes out as 0xffff.
fn nonzero(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}
