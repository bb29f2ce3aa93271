//! Tunnelling: the IP packet travels inside another one to the server (IPIP and its IPv6 forms).
//!
//! Knows the outer header. Must not know the way to the server. The outer header follows the
//! kernel's `ip_vs_tunnel_xmit` (`ip_vs_xmit.c`) and, for ECN, the "full functionality" option of
//! RFC 3168 section 9.1.1.
//!
//! ```text
//!              +----------+-----------+-------+-----+         +---------+
//!   before     | Ethernet | (VLAN tag)| inner IP packet       | padding |
//!              +----------+-----------+-------+-----+         +---------+
//!              +----------+-----------------+-----------------+
//!   after      | Ethernet | outer IP header | inner IP packet |
//!              +----------+-----------------+-----------------+
//! ```

use std::net::IpAddr;
use std::ops::Range;

use crate::parse::{Extent, ipv4 as parse4, ipv6 as parse6};
use crate::wire::{ethernet, ipv4, ipv6, protocol};
use crate::{Family, Fragment, Headers, Packet};

/// The ECN bits of a traffic class.
const ECN: u8 = 0b11;
/// ECN: congestion experienced.
const CE: u8 = 0b11;
/// ECN: capable transport, as the outer header says it in place of [`CE`].
const ECT_0: u8 = 0b10;

/// Bytes that encapsulation puts before the packet: 20 to an IPv4 server, 40 to an IPv6 one.
pub fn overhead(server: IpAddr) -> usize {
    match server {
        IpAddr::V4(_) => ipv4::LEN,
        IpAddr::V6(_) => ipv6::LEN,
    }
}

/// What the outer header is made with.
#[derive(Clone, Copy, Debug)]
pub struct Outer {
    /// The director's address (outer source). Same family as `destination`.
    pub source: IpAddr,
    /// The server's address (outer destination).
    pub destination: IpAddr,
    /// IPv4 identification to use.
    pub id: u16,
}

/// Encapsulates the packet (4in4, 6in4, 4in6, 6in6). The Ethernet header moves to the new front
/// (its type is set to the outer family, a VLAN tag is dropped), padding behind the inner packet
/// is cut. Outer TTL = inner TTL (call after [`decrement_ttl`](crate::direct::decrement_ttl)),
/// DSCP copied, ECN copied but inner CE goes out as ECT(0), DF copied from an IPv4 inner and 0 for
/// an IPv6 inner. Returns the headers of the outer packet and by how many bytes offsets into the
/// frame have grown (for a partial checksum), or `None`, and no change, when there is no room, the
/// outer packet would be longer than 65535 bytes, or the outer addresses are of two families.
pub fn encapsulate(
    packet: &mut Packet<'_>,
    headers: &Headers,
    outer: &Outer,
) -> Option<(Headers, isize)> {
    let traffic_class = outer_traffic_class(packet.bytes(), headers)?;
    let addresses: [u8; 2 * size_of::<ethernet::Address>()] = *packet.bytes().first_chunk()?;
    let l3 = ethernet::LEN;
    let l4 = l3 + overhead(outer.destination);
    let growth = l4.checked_sub(headers.l3)?;
    let headers = Headers {
        family: match outer.destination {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        },
        vlan: None,
        l3,
        l4,
        end: headers.end + growth,
        protocol: match headers.family {
            Family::V4 => protocol::IPIP,
            Family::V6 => protocol::IPV6,
        },
        source: outer.source,
        destination: outer.destination,
        source_port: 0,
        destination_port: 0,
        ttl: headers.ttl,
        dont_fragment: match (headers.family, outer.destination) {
            (_, IpAddr::V6(_)) => true,
            (Family::V4, IpAddr::V4(_)) => headers.dont_fragment,
            (Family::V6, IpAddr::V4(_)) => false,
        },
        fragment: Fragment::Whole,
        tcp_flags: 0,
    };
    let length = match (outer.source, outer.destination) {
        (IpAddr::V4(_), IpAddr::V4(_)) => u16::try_from(headers.ip_len()).ok()?,
        (IpAddr::V6(_), IpAddr::V6(_)) => u16::try_from(headers.payload_len()).ok()?,
        _ => return None,
    };
    if packet.len() + growth < headers.end || !packet.grow_front(growth) {
        return None;
    }
    // Not longer than it is now, so there is room for it.
    let _ = packet.resize(headers.end);
    let frame = packet.bytes_mut();
    frame[..addresses.len()].copy_from_slice(&addresses);
    write_outer(frame, &headers, traffic_class, length, outer.id)?;
    Some((headers, growth as isize))
}

/// Writes EtherType and outer IP header.
fn write_outer(
    frame: &mut [u8],
    headers: &Headers,
    traffic_class: u8,
    length: u16,
    id: u16,
) -> Option<()> {
    let mut ethernet = ethernet::Header::at_mut(frame, 0)?;
    match (headers.source, headers.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            ethernet.set_ether_type(ethernet::IPV4);
            let mut header = ipv4::Header::at_mut(frame, headers.l3)?;
            header.clear();
            header.set_traffic_class(traffic_class);
            header.set_total_length(length);
            header.set_identification(id);
            if headers.dont_fragment {
                header.set_flags_and_offset(ipv4::DONT_FRAGMENT);
            }
            header.set_ttl(headers.ttl);
            header.set_protocol(headers.protocol);
            header.set_source(source);
            header.set_destination(destination);
            header.fill_checksum();
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            ethernet.set_ether_type(ethernet::IPV6);
            let mut header = ipv6::Header::at_mut(frame, headers.l3)?;
            header.clear();
            header.set_traffic_class(traffic_class);
            header.set_payload_length(length);
            header.set_next_header(headers.protocol);
            header.set_hop_limit(headers.ttl);
            header.set_source(source);
            header.set_destination(destination);
        }
        _ => return None,
    }
    Some(())
}

/// DSCP and ECN of the outer header.
fn outer_traffic_class(frame: &[u8], headers: &Headers) -> Option<u8> {
    let inner = match headers.family {
        Family::V4 => ipv4::Header::at(frame, headers.l3)?.traffic_class(),
        Family::V6 => ipv6::Header::at(frame, headers.l3)?.traffic_class(),
    };
    Some(match inner & ECN {
        CE => inner & !ECN | ECT_0,
        _ => inner,
    })
}

/// The inner packet of an IPIP packet that has come to us: where it begins and ends in `ip`, an
/// IP packet without link header. `None` when it is not protocol 4 or 41, is a fragment, or is
/// malformed: outer and inner IP headers are checked as [`parse`](fn@crate::parse) does.
pub fn decapsulate(ip: &[u8]) -> Option<Range<usize>> {
    let outer = match ip.first()? >> 4 {
        4 => parse4::network(ip, 0, Extent::Whole).ok()?,
        _ => parse6::network(ip, 0, Extent::Whole).ok()?,
    };
    if outer.fragment != Fragment::Whole {
        return None;
    }
    let inside = ip.get(..outer.end)?;
    let inner = match outer.protocol {
        protocol::IPIP => parse4::network(inside, outer.l4, Extent::Whole).ok()?,
        protocol::IPV6 => parse6::network(inside, outer.l4, Extent::Whole).ok()?,
        _ => return None,
    };
    Some(inner.l3..inner.end)
}

#[cfg(test)]
mod tests;
