//! A segment that makes a silent peer speak: a bare ACK that fits nowhere.
//!
//! Knows RFC 9293's rule for a segment outside of the window (section 3.10.7.4): its receiver answers
//! with an ACK that has the true numbers of the connection. So nobody need know them to hear them.
//! Must not know why the peer is to speak, nor how the packet is sent.

use std::net::{IpAddr, SocketAddr};

use crate::reply::{TTL, is_one_host, write_network};
use crate::wire::{ipv4, ipv6, protocol, tcp};
use crate::{Family, Fragment, Headers};

/// Bytes of the longest such packet.
pub const LONGEST: usize = ipv6::LEN + tcp::LEN;

/// Writes into `packet` an IP packet, from its header on, with the segment `from` its peer `to` it.
/// `number` is where both of its numbers begin, and any will do: that it lies within the window of a
/// connection by chance is as unlikely as that is small, and then it says nothing that matters. Returns
/// its length, or `None` for addresses of two families, for one that is not one host's, and where there
/// is no room ([`LONGEST`]).
///
/// ```
/// use forwarding::rouse;
///
/// let mut packet = [0; rouse::LONGEST];
/// let vip = "192.0.2.10:80".parse().unwrap();
/// let client = "198.51.100.7:4000".parse().unwrap();
/// assert_eq!(rouse::segment(&mut packet, vip, client, 7), Some(40));
/// ```
pub fn segment(packet: &mut [u8], from: SocketAddr, to: SocketAddr, number: u32) -> Option<usize> {
    let (family, l4) = match (from.ip(), to.ip()) {
        (IpAddr::V4(_), IpAddr::V4(_)) => (Family::V4, ipv4::LEN),
        (IpAddr::V6(_), IpAddr::V6(_)) => (Family::V6, ipv6::LEN),
        _ => return None,
    };
    if !is_one_host(from.ip()) || !is_one_host(to.ip()) {
        return None;
    }
    let headers = Headers {
        family,
        vlan: None,
        l3: 0,
        l4,
        end: l4 + tcp::LEN,
        protocol: protocol::TCP,
        source: from.ip(),
        destination: to.ip(),
        source_port: from.port(),
        destination_port: to.port(),
        ttl: TTL,
        dont_fragment: true,
        fragment: Fragment::Whole,
        tcp_flags: tcp::ACK,
    };
    let packet = packet.get_mut(..headers.end)?;
    write_network(packet, &headers, 0)?;
    let mut segment = tcp::Header::at_mut(packet, l4)?;
    segment.clear();
    segment.set_source_port(headers.source_port);
    segment.set_destination_port(headers.destination_port);
    segment.set_sequence(number);
    segment.set_acknowledgement(number);
    segment.set_flags(headers.tcp_flags);
    let checksum = headers.pseudo_header().bytes(packet.get(l4..)?).checksum();
    tcp::Header::at_mut(packet, l4)?.set_checksum(checksum);
    Some(headers.end)
}

#[cfg(test)]
mod tests {
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    use proptest::prelude::*;

    use super::*;

    const ENDS: [[&str; 2]; 2] =
        [["192.0.2.10:80", "198.51.100.7:4000"], ["[2001:db8:1::10]:443", "[2001:db8:9::7]:65535"]];

    proptest! {
        #[test]
        fn etherparse_reads_a_bare_ack_with_right_checksums(v6: bool, number: u32) {
            let [from, to] = ENDS[usize::from(v6)].map(|end| end.parse::<SocketAddr>().unwrap());
            let mut packet = [0xaa; LONGEST + 9];
            let len = segment(&mut packet, from, to, number).unwrap();
            let sliced = SlicedPacket::from_ip(&packet[..len]).unwrap();
            let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("not TCP") };
            let header = tcp.to_header();
            let (ends, sum) = match sliced.net.unwrap() {
                NetSlice::Ipv4(ip) => {
                    let ip = ip.header();
                    prop_assert_eq!(ip.to_header().calc_header_checksum(), ip.header_checksum());
                    prop_assert_eq!(usize::from(ip.total_len()), len);
                    let sum = header.calc_checksum_ipv4_raw(ip.source(), ip.destination(), &[]);
                    ((IpAddr::from(ip.source_addr()), IpAddr::from(ip.destination_addr())), sum)
                }
                NetSlice::Ipv6(ip) => {
                    let ip = ip.header();
                    let sum = header.calc_checksum_ipv6_raw(ip.source(), ip.destination(), &[]);
                    ((ip.source_addr().into(), ip.destination_addr().into()), sum)
                }
                NetSlice::Arp(_) => unreachable!(),
            };
            prop_assert_eq!(ends, (from.ip(), to.ip()));
            prop_assert_eq!((tcp.source_port(), tcp.destination_port()), (from.port(), to.port()));
            prop_assert_eq!(tcp.checksum(), sum.unwrap());
            prop_assert!(tcp.payload().is_empty() && tcp.slice().len() == 20);
            prop_assert!(tcp.ack() && !tcp.syn() && !tcp.fin() && !tcp.rst() && !tcp.psh());
            prop_assert_eq!((tcp.sequence_number(), tcp.acknowledgment_number()), (number, number));
        }
    }

    #[test]
    fn nobody_is_roused_who_is_not_one_host_or_of_the_other_family() {
        let [[vip, client], [vip6, _]] = ENDS;
        let end = |text: &str| text.parse::<SocketAddr>().unwrap();
        let made = |from, to, room: usize| segment(&mut vec![0; room], end(from), end(to), 1);
        assert_eq!(made(vip, client, 40), Some(40));
        assert_eq!(made(vip, client, 39), None);
        assert_eq!(made(vip6, client, 60), None);
        for nobody in ["224.0.0.1:1", "255.255.255.255:1", "127.0.0.1:1", "0.0.0.0:1"] {
            assert_eq!(made(vip, nobody, 60), None, "{nobody}");
        }
    }
}
