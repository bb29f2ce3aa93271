//! What [`parse`](fn@crate::parse) finds out about a frame, and why it may refuse one.

use std::net::IpAddr;

use crate::checksum::{Sum, pseudo_header};
use crate::wire::{icmp, protocol};

/// IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Which part of a datagram a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fragment {
    /// The whole datagram.
    Whole,
    /// The first fragment: it has the transport header.
    First {
        /// Identification, host order (16 bits in IPv4, 32 in IPv6).
        id: u32,
        /// Bytes of the datagram that are in it: over IPv6 all behind the fragment header, which
        /// may be more headers than the transport's.
        length: u16,
    },
    /// A later fragment: no transport header, ports are 0.
    Later {
        /// Identification, host order.
        id: u32,
        /// Where it begins, in bytes from the beginning of the datagram's payload on; at least 8.
        offset: u16,
        /// Whether it is not the last one.
        more: bool,
    },
}

/// Where the headers of a frame are and what the pipeline needs from them. Offsets are in bytes
/// from the first byte of the frame; numbers are in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// IPv4 or IPv6.
    pub family: Family,
    /// VLAN id (12 bits) when the frame has one 802.1Q tag.
    pub vlan: Option<u16>,
    /// Where the IP header begins: 14, or 18 behind a tag; of a quoted packet further behind.
    pub l3: usize,
    /// Where the transport header begins (or the payload of a later fragment).
    pub l4: usize,
    /// One past the last byte of the IP packet; Ethernet padding lies behind it.
    pub end: usize,
    /// Transport protocol: behind all IPv6 extension headers we step over. An IPv6 packet that
    /// still has to visit the segments of a routing header is not at its destination: it stays at
    /// protocol 43.
    pub protocol: u8,
    /// IP source.
    pub source: IpAddr,
    /// IP destination.
    pub destination: IpAddr,
    /// Source port of TCP, UDP, SCTP; otherwise 0.
    pub source_port: u16,
    /// Destination port of TCP, UDP, SCTP; otherwise 0.
    pub destination_port: u16,
    /// TTL or hop limit.
    pub ttl: u8,
    /// IPv4 "don't fragment"; always true for IPv6.
    pub dont_fragment: bool,
    /// Which part of a datagram this is.
    pub fragment: Fragment,
    /// TCP flags (byte 13 of the TCP header), otherwise 0.
    pub tcp_flags: u8,
}

/// Why a frame was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Neither IPv4 nor IPv6 (ARP and others): not an error, just not ours.
    #[error("not an IP packet")]
    NotIp,
    /// A header or the length it announces reaches past the frame.
    #[error("truncated packet")]
    Truncated,
    /// A header field has a value that no sender may write (version, header length).
    #[error("bad header field")]
    BadHeader,
    /// The IPv4 header checksum is wrong.
    #[error("bad IPv4 header checksum")]
    BadChecksum,
    /// A later fragment that would be put over the transport header of the first one.
    #[error("fragment over a transport header")]
    Overlap,
}

impl Headers {
    /// Bytes of the IP packet, header included, without link header and padding: what is compared
    /// with an MTU and counted in statistics.
    #[inline]
    pub fn ip_len(&self) -> usize {
        self.end - self.l3
    }

    /// Bytes behind the IP headers: transport header and data.
    #[inline]
    pub fn payload_len(&self) -> usize {
        self.end - self.l4
    }

    /// TCP.
    #[inline]
    pub fn is_tcp(&self) -> bool {
        self.protocol == protocol::TCP
    }

    /// UDP.
    #[inline]
    pub fn is_udp(&self) -> bool {
        self.protocol == protocol::UDP
    }

    /// SCTP.
    #[inline]
    pub fn is_sctp(&self) -> bool {
        self.protocol == protocol::SCTP
    }

    /// ICMP in IPv4, or ICMPv6 in IPv6.
    #[inline]
    pub fn is_icmp(&self) -> bool {
        match self.family {
            Family::V4 => self.protocol == protocol::ICMP,
            Family::V6 => self.protocol == protocol::ICMPV6,
        }
    }

    /// Type of an ICMP or ICMPv6 message; `None` of anything else and of a later fragment.
    #[inline]
    pub fn icmp_type(&self, frame: &[u8]) -> Option<u8> {
        if !self.is_icmp() || self.is_later_fragment() {
            return None;
        }
        Some(icmp::Header::at(frame, self.l4)?.kind())
    }

    /// An ICMP error that quotes the packet it is about: of IPv4 types 3, 4, 11 and 12, of IPv6
    /// types 1 to 4. Look into it with [`icmp::quoted`](crate::icmp::quoted).
    #[inline]
    pub fn is_icmp_error(&self, frame: &[u8]) -> bool {
        self.icmp_type(frame).is_some_and(|kind| icmp::quotes(self.family, kind))
    }

    /// A fragment with the transport header: others are to come.
    #[inline]
    pub fn is_first_fragment(&self) -> bool {
        matches!(self.fragment, Fragment::First { .. })
    }

    /// A fragment without the transport header: there are no ports to go by.
    #[inline]
    pub fn is_later_fragment(&self) -> bool {
        matches!(self.fragment, Fragment::Later { .. })
    }

    /// Sum over the pseudo header of this packet, as TCP, UDP and ICMPv6 use it.
    #[inline]
    pub fn pseudo_header(&self) -> Sum {
        pseudo_header(self.source, self.destination, self.protocol, self.payload_len() as u32)
    }
}
