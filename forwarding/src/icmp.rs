//! ICMP and ICMPv6: errors that we send, and errors about packets that we forwarded.

use std::net::IpAddr;

use crate::checksum::Partial;
use crate::{Headers, Packet};

/// An error that the director sends to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Type 3 code 4, or ICMPv6 packet too big, with the MTU that would have fitted.
    TooBig {
        /// Bytes of IP packet, header included.
        mtu: u32,
    },
    /// TTL or hop limit ran out.
    TimeExceeded,
    /// No server for the service.
    PortUnreachable,
}

/// Writes into `reply` a whole Ethernet frame with the error about `frame`, from `source` to the
/// sender of `frame` (MAC addresses swapped, VLAN tag kept). IPv4 quotes as much as fits 576 bytes
/// (RFC 1812), IPv6 as much as fits 1280. `partial` says that the quoted checksum is incomplete; it is
/// completed in the quote when the whole packet is quoted. Returns the headers of the reply, or `None` when no error may be sent:
/// about an ICMP error, a later fragment, a broadcast, multicast or unspecified source.
pub fn error(
    reply: &mut Packet<'_>,
    frame: &[u8],
    headers: &Headers,
    partial: Option<Partial>,
    source: IpAddr,
    error: Error,
) -> Option<Headers> {
    let _ = (reply, frame, headers, partial, source, error);
    unimplemented!()
}

/// The packet that an ICMP error quotes. Its `Headers` have offsets into the whole frame, `end`
/// is cut to what is quoted, and at least 8 bytes of TCP, UDP, SCTP are there, or of IPIP the
/// outer header.
pub fn quoted(frame: &[u8], headers: &Headers) -> Option<Headers> {
    let _ = (frame, headers);
    unimplemented!()
}

/// Translates an ICMP error: the outer address `from -> to` and the quoted address and port.
///
/// `outer_source`/`outer_destination`: new outer addresses, where given. `quoted_source` /
/// `quoted_destination`: new address and port in the quote, where given. The quoted IPv4 header
/// checksum, the quoted transport checksum where it is quoted, and the ICMP checksum are updated.
pub fn translate(
    frame: &mut [u8],
    headers: &mut Headers,
    quote: &Headers,
    translation: &Translation,
) {
    let _ = (frame, headers, quote, translation);
    unimplemented!()
}

/// What [`translate`] replaces. Addresses must be of the packet's family.
#[derive(Clone, Copy, Debug, Default)]
pub struct Translation {
    /// New source of the outer packet.
    pub outer_source: Option<IpAddr>,
    /// New destination of the outer packet.
    pub outer_destination: Option<IpAddr>,
    /// New source of the quoted packet.
    pub quoted_source: Option<(IpAddr, u16)>,
    /// New destination of the quoted packet.
    pub quoted_destination: Option<(IpAddr, u16)>,
}
