//! Tunnelling: the IP packet travels inside another one to the server (IPIP and its IPv6 forms).

use std::net::IpAddr;

use crate::{Headers, Packet};

/// Bytes that encapsulation puts before the packet: 20 to an IPv4 server, 40 to an IPv6 one.
pub fn overhead(server: IpAddr) -> usize {
    match server {
        IpAddr::V4(_) => 20,
        IpAddr::V6(_) => 40,
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
/// frame have grown (for a partial checksum), or `None`, and no change, when there is no room.
pub fn encapsulate(
    packet: &mut Packet<'_>,
    headers: &Headers,
    outer: &Outer,
) -> Option<(Headers, isize)> {
    let _ = (packet, headers, outer);
    unimplemented!()
}

/// The inner packet of an IPIP packet that has come to us: where it begins and ends in `ip`, an
/// IP packet without link header. `None` when it is not protocol 4 or 41, is a fragment, or is
/// malformed.
pub fn decapsulate(ip: &[u8]) -> Option<std::ops::Range<usize>> {
    let _ = ip;
    unimplemented!()
}
