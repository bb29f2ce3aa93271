//! The outer IP header, which is the same for all types of tunnel.

use std::net::IpAddr;

use crate::wire::{ethernet, ipv4, ipv6};
use crate::{Family, Fragment, Headers, Packet};

/// The ECN bits of a traffic class.
const ECN: u8 = 0b11;
/// ECN: congestion experienced.
const CE: u8 = 0b11;
/// ECN: capable transport, as the outer header says it in place of [`CE`].
const ECT_0: u8 = 0b10;

/// What the outer header is made with.
#[derive(Clone, Copy, Debug)]
pub struct Outer {
    /// The director's address (outer source). Same family as `destination`.
    pub source: IpAddr,
    /// The server's address (outer destination).
    pub destination: IpAddr,
    /// IPv4 identification to use.
    pub id: u16,
    /// Whether "don't fragment" of an IPv4 inner packet is copied to an IPv4 outer one, so that its
    /// sender finds out what fits the way; if not, the outer packet may be fragmented.
    pub path_mtu_discovery: bool,
}

/// What stands between outer IP header and inner packet, as far as the outer header tells of it.
pub(super) struct Shim {
    /// Protocol of the outer IP header.
    pub(super) protocol: u8,
    /// Source and destination port of a UDP header, otherwise 0.
    pub(super) ports: (u16, u16),
    /// Bytes. They are left undefined.
    pub(super) len: usize,
}

/// Puts Ethernet and outer IP header, and room for the shim, before the packet, and cuts the padding
/// behind it. `None`, and no change: see [`encapsulate`](super::Encapsulation::encapsulate).
pub(super) fn put_before(
    packet: &mut Packet<'_>,
    headers: &Headers,
    outer: &Outer,
    shim: &Shim,
) -> Option<(Headers, isize)> {
    let traffic_class = traffic_class(packet.bytes(), headers)?;
    let addresses: [u8; 2 * size_of::<ethernet::Address>()] = *packet.bytes().first_chunk()?;
    let l3 = ethernet::LEN;
    let (family, l4) = match outer.destination {
        IpAddr::V4(_) => (Family::V4, l3 + ipv4::LEN),
        IpAddr::V6(_) => (Family::V6, l3 + ipv6::LEN),
    };
    let growth = (l4 + shim.len).checked_sub(headers.l3)?;
    let headers = Headers {
        family,
        vlan: None,
        l3,
        l4,
        end: headers.end + growth,
        protocol: shim.protocol,
        source: outer.source,
        destination: outer.destination,
        source_port: shim.ports.0,
        destination_port: shim.ports.1,
        ttl: headers.ttl,
        dont_fragment: match (headers.family, family) {
            (_, Family::V6) => true,
            (Family::V4, Family::V4) => headers.dont_fragment && outer.path_mtu_discovery,
            (Family::V6, Family::V4) => false,
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
    write(frame, &headers, traffic_class, length, outer.id)?;
    Some((headers, growth as isize))
}

/// Writes EtherType and outer IP header.
fn write(
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
fn traffic_class(frame: &[u8], headers: &Headers) -> Option<u8> {
    let inner = match headers.family {
        Family::V4 => ipv4::Header::at(frame, headers.l3)?.traffic_class(),
        Family::V6 => ipv6::Header::at(frame, headers.l3)?.traffic_class(),
    };
    Some(outer_traffic_class(inner))
}

/// DSCP and ECN of the outer header of a packet that has these.
#[inline]
pub(crate) fn outer_traffic_class(inner: u8) -> u8 {
    match inner & ECN {
        CE => inner & !ECN | ECT_0,
        _ => inner,
    }
}
