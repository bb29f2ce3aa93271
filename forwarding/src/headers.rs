//! One pass over a frame: every length is checked here, once, and nothing panics afterwards.

use std::net::IpAddr;

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
    },
    /// A later fragment: no transport header, ports are 0.
    Later {
        /// Identification, host order.
        id: u32,
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
    /// Where the IP header begins: 14, or 18 behind a tag.
    pub l3: usize,
    /// Where the transport header begins (or the payload of a later fragment).
    pub l4: usize,
    /// One past the last byte of the IP packet; Ethernet padding lies behind it.
    pub end: usize,
    /// Transport protocol: behind all IPv6 extension headers we step over.
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

impl Headers {
    /// Bytes of the IP packet, header included.
    pub fn ip_len(&self) -> usize {
        self.end - self.l3
    }
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
}

/// Parses an Ethernet frame.
///
/// # Errors
/// See [`Malformed`].
pub fn parse(frame: &[u8]) -> Result<Headers, Malformed> {
    let _ = frame;
    unimplemented!()
}
