//! Tunnelling: the IP packet travels inside another one to the server, by itself (IPIP and its IPv6
//! forms), in UDP (GUE) or behind a GRE header.
//!
//! Knows what is put around a packet, and how it is taken off again. Must not know the way to the
//! server. Headers and their checksums follow the kernel's `ip_vs_tunnel_xmit`, `ipvs_gue_encap`
//! and `ipvs_gre_encap` (`ip_vs_xmit.c`) and, for ECN, the "full functionality" option of RFC 3168
//! section 9.1.1.
//!
//! ```text
//!              +----------+-----------+-------+-----+         +---------+
//!   before     | Ethernet | (VLAN tag)| inner IP packet       | padding |
//!              +----------+-----------+-------+-----+         +---------+
//!              +----------+-----------------+----------+-----------------+
//!   after      | Ethernet | outer IP header | see below| inner IP packet |
//!              +----------+-----------------+----------+-----------------+
//!
//!   type             behind the outer IP header              bytes   checksum over the inner packet
//!   ipip             nothing                                     0   none
//!   gue nocsum       UDP, GUE                                   12   none (UDP checksum 0)
//!   gue csum         UDP, GUE                                   12   UDP
//!   gue remcsum      UDP, GUE, of a partial packet 8 more    12 20   UDP
//!   gre              GRE                                         4   none
//!   gre csum         GRE, checksum                               8   GRE
//! ```
//!
//! A packet whose own checksum is [`Partial`] stays so in all of them but one. Where the tunnel's
//! checksum covers it, the sum that it will have once it is complete is known without looking at
//! its data: that of its pseudo header, complemented ("local checksum offload"). With remcsum the
//! tunnel's other end completes it, for the GUE header says where.

use std::net::IpAddr;

use crate::checksum::{Partial, Sum};
use crate::wire::{ipv4, ipv6, protocol};
use crate::{Family, Headers, Packet};

mod decapsulate;
mod gre;
mod gue;
mod outer;

pub use decapsulate::{decapsulate, decapsulate_gue, quoted};
pub use gue::SourcePorts;
pub use outer::Outer;
pub(crate) use outer::outer_traffic_class;

/// What is put around a packet: the tunnel type of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encapsulation {
    /// IP in IP: protocol 4 with IPv4 inside, 41 with IPv6 inside.
    #[default]
    Ipip,
    /// Generic UDP encapsulation.
    Gue {
        /// UDP port of the server.
        port: u16,
        /// From where the source port is taken, by the flow.
        source_ports: SourcePorts,
        /// What the UDP checksum covers.
        checksum: GueChecksum,
    },
    /// Generic routing encapsulation, protocol 47.
    Gre {
        /// Whether the GRE header has a checksum over the packet.
        checksum: bool,
    },
}

/// Checksum variants of GUE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GueChecksum {
    /// UDP checksum 0, "none": also over IPv6, as RFC 6935 allows it for tunnels.
    #[default]
    Nocsum,
    /// A UDP checksum.
    Csum,
    /// A UDP checksum, and the GUE header tells the receiver where to complete the inner packet's
    /// own, if that is partial (remote checksum offload). Of other packets the same as `Csum`.
    Remcsum,
}

/// What encapsulation has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulated {
    /// The headers of the outer packet, as [`parse`](fn@crate::parse) would find them.
    pub headers: Headers,
    /// By how many bytes offsets into the frame have grown.
    pub growth: isize,
    /// The inner packet's checksum where it is now, if it is still to be completed. A checksum of
    /// the tunnel's own is always complete, and stays right when this one is completed.
    pub partial: Option<Partial>,
}

impl Encapsulation {
    /// Bytes that encapsulation puts before a packet: what is to be taken from the MTU of the way
    /// to the server. `partial` says whether the packet's own checksum is partial, which makes a
    /// difference to remcsum.
    ///
    /// ```
    /// use forwarding::tunnel::{Encapsulation, GueChecksum};
    ///
    /// let gue = Encapsulation::Gue {
    ///     port: 6080,
    ///     source_ports: Default::default(),
    ///     checksum: GueChecksum::Remcsum,
    /// };
    /// assert_eq!(gue.overhead([10, 0, 0, 11].into(), false), 20 + 8 + 4);
    /// assert_eq!(gue.overhead([10, 0, 0, 11].into(), true), 20 + 8 + 4 + 8);
    /// ```
    #[inline]
    pub fn overhead(&self, server: IpAddr, partial: bool) -> usize {
        let ip = match server {
            IpAddr::V4(_) => ipv4::LEN,
            IpAddr::V6(_) => ipv6::LEN,
        };
        ip + self.shim_len(partial)
    }

    /// Bytes between outer IP header and inner packet.
    #[inline]
    fn shim_len(&self, partial: bool) -> usize {
        match *self {
            Encapsulation::Ipip => 0,
            Encapsulation::Gue { checksum, .. } => gue::len(checksum, partial),
            Encapsulation::Gre { checksum } => gre::len(checksum),
        }
    }

    /// Encapsulates the packet (4in4, 6in4, 4in6, 6in6). The Ethernet header moves to the new front
    /// (its type is set to the outer family, a VLAN tag is dropped), padding behind the inner packet
    /// is cut. Outer TTL = inner TTL (call after [`decrement_ttl`](crate::direct::decrement_ttl)),
    /// DSCP copied, ECN copied but inner CE goes out as ECT(0), DF copied from an IPv4 inner and 0
    /// for an IPv6 inner.
    ///
    /// `partial` is what [`partial`](crate::checksum::partial) says of the packet. `flow_hash` is
    /// the same for all packets of a flow and chooses GUE's source port, by which routers and NICs
    /// spread flows: a keyed hash, or clients choose which queue of the server they meet.
    ///
    /// Returns `None`, and changes nothing, when there is no room before the packet, the outer
    /// packet would be longer than 65535 bytes, or the outer addresses are of two families.
    pub fn encapsulate(
        &self,
        packet: &mut Packet<'_>,
        headers: &Headers,
        partial: Option<Partial>,
        flow_hash: u32,
        outer: &Outer,
    ) -> Option<Encapsulated> {
        // One that lies elsewhere is not this packet's; behind this nothing can fail half-way.
        let partial = partial.filter(|partial| lies_in(headers, partial));
        let protocol = match (self, headers.family) {
            (Encapsulation::Ipip, Family::V4) => protocol::IPIP,
            (Encapsulation::Ipip, Family::V6) => protocol::IPV6,
            (Encapsulation::Gue { .. }, _) => protocol::UDP,
            (Encapsulation::Gre { .. }, _) => protocol::GRE,
        };
        let ports = match *self {
            Encapsulation::Gue { port, source_ports, .. } => (source_ports.of(flow_hash), port),
            _ => (0, 0),
        };
        let shim = self.shim_len(partial.is_some());
        let (outside, growth) =
            outer::put_before(packet, headers, outer, &outer::Shim { protocol, ports, len: shim })?;
        let partial = partial.map(|partial| partial.moved(growth));
        let frame = packet.bytes_mut();
        let partial = match *self {
            Encapsulation::Ipip => partial,
            Encapsulation::Gue { checksum, .. } => {
                gue::write(frame, &outside, headers.family, checksum, partial)?
            }
            Encapsulation::Gre { checksum } => {
                gre::write(frame, &outside, headers.family, checksum, partial)?;
                partial
            }
        };
        Some(Encapsulated { headers: outside, growth, partial })
    }
}

/// Whether the field of this checksum is in the packet.
fn lies_in(headers: &Headers, partial: &Partial) -> bool {
    let behind = partial.start.saturating_add(partial.offset).saturating_add(size_of::<u16>());
    partial.start >= headers.l3 && behind <= headers.end
}

/// The sum over `frame[start..end]` as it will be when `partial`, which lies in there, has been
/// completed.
fn sum_completed(frame: &[u8], start: usize, end: usize, partial: Option<Partial>) -> Option<Sum> {
    let Some(partial) = partial else {
        return Some(Sum::default().bytes(frame.get(start..end)?));
    };
    // What the partial checksum covers will sum to 0xffff together with the pseudo header, of which
    // the sum is in the field now: alone it will sum to that sum's complement.
    let field = frame.get(partial.start.checked_add(partial.offset)?..end)?;
    let pseudo_header = u16::from_be_bytes(*field.first_chunk()?);
    let before = frame.get(start..partial.start)?;
    Some(Sum::default().bytes(before).word(u32::from(!pseudo_header)))
}

#[cfg(test)]
pub(crate) mod tests;
