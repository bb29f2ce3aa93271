//! One pass over a frame: every length is checked here, once, and nothing panics afterwards.
//!
//! Knows which packets are well formed. Must not know which are wanted. [`ipv4`] and [`ipv6`] find
//! the payload and say what it is, [`transport`] reads the ports; quotes in ICMP errors and packets
//! in tunnels go the same way.

use crate::wire::ethernet;
use crate::{Headers, Malformed};

pub(crate) mod ipv4;
pub(crate) mod ipv6;
pub(crate) mod transport;

/// How much of a packet is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it: a length past the end is an error, and so is a wrong header checksum.
    Whole,
    /// Its beginning, as ICMP errors quote it: a length past the end is cut. Routers change quotes
    /// before they have made their checksum right again, so that is not looked at.
    Quote,
}

/// Parses an Ethernet frame. It may be longer than its packet (padding).
///
/// Accepted are IPv4, with or without options, and IPv6, its extension headers stepped over
/// (hop-by-hop, routing, destination options, fragment; not AH, not ESP), behind at most one 802.1Q
/// tag. TCP, UDP, SCTP and ICMP must have their headers; other protocols are accepted with ports 0.
///
/// # Errors
/// See [`Malformed`].
///
/// ```
/// # let frame = {
/// #     let mut bytes = Vec::new();
/// #     etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
/// #         .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
/// #         .udp(12345, 53).write(&mut bytes, b"hello").unwrap();
/// #     bytes
/// # };
/// let headers = forwarding::parse(&frame).unwrap();
/// assert_eq!((headers.l3, headers.l4, headers.end), (14, 34, 47));
/// assert_eq!((headers.source_port, headers.destination_port), (12345, 53));
/// ```
#[inline]
pub fn parse(frame: &[u8]) -> Result<Headers, Malformed> {
    let ethernet = ethernet::Header::at(frame, 0).ok_or(Malformed::Truncated)?;
    let (ether_type, l3, vlan) = match ethernet.ether_type() {
        ethernet::VLAN => {
            let tag = ethernet::Tag::at(frame, ethernet::LEN).ok_or(Malformed::Truncated)?;
            let l3 = ethernet::LEN + ethernet::TAG_LEN;
            (tag.ether_type(), l3, Some(tag.id()))
        }
        ether_type => (ether_type, ethernet::LEN, None),
    };
    let mut headers = match ether_type {
        ethernet::IPV4 => ipv4::network(frame, l3, Extent::Whole)?,
        ethernet::IPV6 => ipv6::network(frame, l3, Extent::Whole)?,
        _ => return Err(Malformed::NotIp),
    };
    headers.vlan = vlan;
    transport::read(frame, &mut headers)?;
    Ok(headers)
}

#[cfg(test)]
mod tests;
