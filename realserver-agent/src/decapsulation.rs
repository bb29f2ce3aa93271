//! What to do with one packet from a tunnel: bytes in, bytes or a refusal out.
//!
//! Knows octets and the addresses we serve. Must not know sockets.

use std::net::IpAddr;
use std::ops::Range;

use forwarding::{checksum, tunnel};
use ipnet::IpNet;
use netio::raw::RawFamily;

/// IPv4 in IP.
pub const IPIP: u8 = 4;
/// IPv6 in IP.
pub const IPV6: u8 = 41;
/// Generic routing encapsulation.
pub const GRE: u8 = 47;

/// How a packet has come, and what of it the kernel gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// From a raw socket for one protocol ([`IPIP`], [`IPV6`] or [`GRE`]): the outer packet, of IPv6
    /// without its header.
    Raw {
        /// Outer family.
        family: RawFamily,
        /// Outer protocol.
        protocol: u8,
    },
    /// From a UDP socket, either family: the GUE header and what follows. The kernel has verified
    /// the UDP checksum.
    Gue,
}

/// The length of the IPv6 header, which the kernel has taken off a packet from an IPv6 raw socket
/// and which stands before it again for the checks that are the same for all outer packets. Also
/// the room before the data of a datagram.
const IPV6_HEADER: usize = 40;
/// An Ethernet header, put over the end of the outer header, for the parser that wants a frame.
const ETHERNET_HEADER: usize = 14;
/// The longest packet that a raw socket gives.
const LONGEST: usize = 65535;

/// Why a packet was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The outer source is in none of the networks that may send to us.
    #[error("it comes from an address that is not a director's (--from)")]
    Stranger,
    /// Inner or outer headers are broken, or the protocol inside is not the one announced.
    #[error("its headers are broken")]
    Malformed,
    /// The inner packet is for an address that we do not serve.
    #[error("the packet inside is not for one of our VIPs (--vip)")]
    NotServed,
}

/// Whom we serve, and from whom we take packets.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The virtual addresses.
    pub vips: Vec<IpAddr>,
    /// Networks that the outer source must be in. Empty: anybody may send.
    pub from: Vec<IpNet>,
}

/// A buffer for one packet, with the room before it that its checks need.
#[derive(Debug)]
pub struct Buffer {
    bytes: Box<[u8]>,
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer::new()
    }
}

impl Buffer {
    /// A buffer for a packet of any length.
    pub fn new() -> Buffer {
        Buffer { bytes: vec![0; IPV6_HEADER + LONGEST].into() }
    }

    /// Where the socket is to put the packet.
    pub fn space(&mut self, carrier: Carrier) -> &mut [u8] {
        match carrier {
            Carrier::Raw { family: RawFamily::V4, .. } => &mut self.bytes[..LONGEST],
            Carrier::Raw { family: RawFamily::V6, .. } | Carrier::Gue => {
                &mut self.bytes[IPV6_HEADER..]
            }
        }
    }

    /// The packet inside the `length` bytes that the socket has put into [`space`](Buffer::space),
    /// ready for the host's IP stack: a checksum that its sender left to us (GUE's remcsum) or to
    /// hardware is completed (TCP and UDP: only the pseudo-header sum stands in the field; SCTP: 0).
    ///
    /// `source` is the outer source.
    ///
    /// # Errors
    /// When it must not be delivered: see [`Refusal`].
    pub fn unpack(
        &mut self,
        carrier: Carrier,
        length: usize,
        source: IpAddr,
        policy: &Policy,
    ) -> Result<&[u8], Refusal> {
        if !policy.from.is_empty() && !policy.from.iter().any(|network| network.contains(&source)) {
            return Err(Refusal::Stranger);
        }
        let inner = match carrier {
            Carrier::Raw { family: RawFamily::V4, .. } => self.inside(length),
            Carrier::Raw { family: RawFamily::V6, protocol } => {
                self.write_ipv6_header(protocol, length, source)?;
                self.inside(IPV6_HEADER + length)
            }
            Carrier::Gue => self.inside_datagram(length),
        };
        self.finish(inner.ok_or(Refusal::Malformed)?, policy)
    }

    /// The packet inside an outer packet of this length.
    fn inside(&self, length: usize) -> Option<Range<usize>> {
        tunnel::decapsulate(self.bytes.get(..length)?)
    }

    /// The packet inside the data, of this length, of a datagram.
    fn inside_datagram(&mut self, length: usize) -> Option<Range<usize>> {
        let data = self.bytes.get_mut(IPV6_HEADER..)?.get_mut(..length)?;
        let inner = tunnel::decapsulate_gue(data)?;
        Some(IPV6_HEADER + inner.start..IPV6_HEADER + inner.end)
    }

    /// Checks where the inner packet is going and completes its checksum.
    fn finish(&mut self, inner: Range<usize>, policy: &Policy) -> Result<&[u8], Refusal> {
        let start = inner.start.checked_sub(ETHERNET_HEADER).ok_or(Refusal::Malformed)?;
        let frame = self.bytes.get_mut(start..inner.end).ok_or(Refusal::Malformed)?;
        let ether_type: u16 = match frame.get(ETHERNET_HEADER).map(|byte| byte >> 4) {
            Some(4) => 0x0800,
            _ => 0x86dd,
        };
        frame[12..14].copy_from_slice(&ether_type.to_be_bytes());
        let headers = forwarding::parse(frame).map_err(|_| Refusal::Malformed)?;
        if !policy.vips.contains(&headers.destination) {
            return Err(Refusal::NotServed);
        }
        if let Some(partial) = checksum::partial(frame, &headers) {
            checksum::complete(frame, partial, headers.end);
        }
        checksum::complete_sctp(frame, &headers);
        Ok(&self.bytes[inner])
    }

    /// Puts back what the kernel has taken off, as far as anybody looks at it.
    fn write_ipv6_header(
        &mut self,
        protocol: u8,
        length: usize,
        source: IpAddr,
    ) -> Result<(), Refusal> {
        let IpAddr::V6(source) = source else {
            return Err(Refusal::Malformed);
        };
        let payload = u16::try_from(length).map_err(|_| Refusal::Malformed)?;
        let header = &mut self.bytes[..IPV6_HEADER];
        header.fill(0);
        header[0] = 0x60;
        header[4..6].copy_from_slice(&payload.to_be_bytes());
        header[6] = protocol;
        header[7] = 1;
        header[8..24].copy_from_slice(&source.octets());
        // The destination is ours: the kernel has delivered it to us. ::1 stands for it.
        header[39] = 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
