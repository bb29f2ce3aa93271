//! What every packet has in common that the director itself sends back to who has sent it a frame:
//! ICMP errors and TCP resets.

use std::net::IpAddr;

use crate::wire::{ethernet, ipv4, ipv6};
use crate::{Family, Headers};

/// TTL and hop limit of what we send.
pub(crate) const TTL: u8 = 64;

/// Whether an address can be that of a single host on a wire (RFC 1122 section 3.2.1.3, RFC 4291
/// section 2.4): who sends from another is not answered.
pub(crate) fn is_one_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let first = address.octets()[0];
            // 0/8 is "this network", 127/8 never on a wire, 224/3 multicast, reserved, broadcast.
            (1..224).contains(&first) && first != 127
        }
        IpAddr::V6(address) => {
            !address.is_unspecified() && !address.is_loopback() && !address.is_multicast()
        }
    }
}

/// Bytes of Ethernet header, and of its tag.
pub(crate) fn link_len(headers: &Headers) -> usize {
    match headers.vlan {
        Some(_) => ethernet::LEN + ethernet::TAG_LEN,
        None => ethernet::LEN,
    }
}

/// The frame's own link header back to its sender; the innermost type is that of the reply.
pub(crate) fn write_link(reply: &mut [u8], link: &[u8], family: Family) -> Option<()> {
    let received = ethernet::Header::at(link, 0)?;
    reply.get_mut(..link.len())?.copy_from_slice(link);
    let mut header = ethernet::Header::at_mut(reply, 0)?;
    header.set_destination(received.source());
    header.set_source(received.destination());
    // A quote of the other family than the frame's: the type is the reply's.
    let ether_type = match family {
        Family::V4 => ethernet::IPV4,
        Family::V6 => ethernet::IPV6,
    };
    if link.len() == ethernet::LEN {
        header.set_ether_type(ether_type);
    } else {
        ethernet::Tag::at_mut(reply, ethernet::LEN)?.set_ether_type(ether_type);
    }
    Some(())
}

/// The IP header that `headers` describes. `precedence` is the traffic class over IPv4; over IPv6
/// it is 0. The identification is 0.
pub(crate) fn write_network(reply: &mut [u8], headers: &Headers, precedence: u8) -> Option<()> {
    match (headers.source, headers.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut header = ipv4::Header::at_mut(reply, headers.l3)?;
            header.clear();
            header.set_traffic_class(precedence);
            header.set_total_length(headers.ip_len() as u16);
            header.set_flags_and_offset(match headers.dont_fragment {
                true => ipv4::DONT_FRAGMENT,
                false => 0,
            });
            header.set_ttl(headers.ttl);
            header.set_protocol(headers.protocol);
            header.set_source(source);
            header.set_destination(destination);
            header.fill_checksum();
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut header = ipv6::Header::at_mut(reply, headers.l3)?;
            header.clear();
            header.set_payload_length(headers.payload_len() as u16);
            header.set_next_header(headers.protocol);
            header.set_hop_limit(headers.ttl);
            header.set_source(source);
            header.set_destination(destination);
        }
        _ => return None,
    }
    Some(())
}
