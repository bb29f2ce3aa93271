//! Errors that the director sends.

use std::net::IpAddr;

use crate::checksum::{self, Partial, Sum};
use crate::reply::{TTL, is_one_host, link_len, write_link, write_network};
use crate::wire::{icmp, ipv4, ipv6, protocol};
use crate::{Family, Fragment, Headers, Packet};

/// Longest ICMP error packet over IPv4, in bytes (RFC 1812 section 4.3.2.3).
const LONGEST_V4: usize = 576;
/// Longest ICMPv6 error packet, in bytes: the least MTU of IPv6 (RFC 4443 section 2.4 c).
const LONGEST_V6: usize = 1280;
/// Precedence "internetwork control" (RFC 1812 section 4.3.2.5).
const INTERNETWORK_CONTROL: u8 = 0xc0;

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
    /// The server cannot be reached: type 3, or type 1 of ICMPv6.
    Unreachable {
        /// Code, of the packet's own family.
        code: u8,
    },
}

/// Writes into `reply` a whole Ethernet frame with the error about `frame`, from `source` to the
/// sender of `frame` (MAC addresses swapped, VLAN tag kept). IPv4 quotes as much as fits 576 bytes
/// (RFC 1812), IPv6 as much as fits 1280. `partial` says that the quoted checksum is incomplete; it
/// is completed in the quote. Returns the headers of the reply, or `None` when no error may be
/// sent: about an ICMP error, a later fragment, a broadcast, multicast or unspecified source, a
/// packet to a broadcast or multicast address (unless it is too big and IPv6); nor when `reply` has
/// no room, or `source` is of the other family.
///
/// Over IPv4 its identification is 0: [`number`] writes one.
///
/// `headers` may also be those of a packet within `frame`, as [`quoted`](fn@super::quoted) and
/// [`tunnelled`](super::tunnelled) return them: the error is then about that packet, and goes to
/// its sender (the MAC addresses are not its own, and are for the director to set).
pub fn error(
    reply: &mut Packet<'_>,
    frame: &[u8],
    headers: &Headers,
    partial: Option<Partial>,
    source: IpAddr,
    error: Error,
) -> Option<Headers> {
    if !may_be_answered(frame, headers, error) {
        return None;
    }
    let subject = frame.get(headers.l3..headers.end)?;
    let link = frame.get(..link_len(headers))?;
    let (header_len, longest) = match (headers.family, source) {
        (Family::V4, IpAddr::V4(_)) => (ipv4::LEN, LONGEST_V4),
        (Family::V6, IpAddr::V6(_)) => (ipv6::LEN, LONGEST_V6),
        _ => return None,
    };
    let quote = &subject[..subject.len().min(longest - header_len - icmp::LEN)];
    let l4 = link.len() + header_len;
    let quote_at = l4 + icmp::LEN;
    let headers_of_reply = Headers {
        l3: link.len(),
        l4,
        end: quote_at + quote.len(),
        protocol: match headers.family {
            Family::V4 => protocol::ICMP,
            Family::V6 => protocol::ICMPV6,
        },
        source,
        destination: headers.source,
        source_port: 0,
        destination_port: 0,
        ttl: TTL,
        // Over IPv4 it may be fragmented, as the kernel's errors may: who sends it numbers it.
        dont_fragment: headers.family == Family::V6,
        fragment: Fragment::Whole,
        tcp_flags: 0,
        ..*headers
    };
    if !reply.resize(headers_of_reply.end) {
        return None;
    }
    let bytes = reply.bytes_mut();
    write_link(bytes, link, headers.family)?;
    bytes[quote_at..].copy_from_slice(quote);
    if let Some(partial) = partial {
        complete_quote(&mut bytes[quote_at..], frame, headers, partial);
    }
    write_network(bytes, &headers_of_reply, INTERNETWORK_CONTROL)?;
    write_message(bytes, &headers_of_reply, error)?;
    Some(headers_of_reply)
}

/// Writes the identification of an IPv4 error that [`error`](fn@error) has written; those of
/// IPv6 have none.
pub fn number(reply: &mut [u8], headers: &Headers, id: u16) {
    if headers.family == Family::V4
        && let Some(mut header) = ipv4::Header::at_mut(reply, headers.l3)
    {
        header.set_identification(id);
        header.fill_checksum();
    }
}

/// RFC 1122 section 3.2.2, RFC 4443 section 2.4 e: when an error must not be sent.
fn may_be_answered(frame: &[u8], headers: &Headers, error: Error) -> bool {
    if headers.is_later_fragment() {
        return false;
    }
    if headers.is_icmp()
        && headers.icmp_type(frame).is_none_or(|kind| icmp::is_error(headers.family, kind))
    {
        return false;
    }
    let about_path = matches!(error, Error::TooBig { .. });
    is_one_host(headers.source)
        && match headers.destination {
            IpAddr::V4(destination) => destination.octets()[0] < 224,
            IpAddr::V6(destination) => about_path || !destination.is_multicast(),
        }
}

/// Writes into the quote the checksum that the packet would have gone out with.
fn complete_quote(quote: &mut [u8], frame: &[u8], headers: &Headers, partial: Partial) {
    let Some(covered) = frame.get(partial.start..headers.end) else {
        return;
    };
    let field = (partial.start + partial.offset)
        .checked_sub(headers.l3)
        .and_then(|at| quote.get_mut(at..))
        .and_then(<[u8]>::first_chunk_mut);
    if let Some(field) = field {
        *field = checksum::completed(covered, partial.offset).to_be_bytes();
    }
}

/// Type, code and rest of each error in each family.
fn message(family: Family, error: Error) -> (u8, u8, u32) {
    use icmp::{v4, v6};
    match (family, error) {
        // The field has 16 bits (RFC 1191).
        (Family::V4, Error::TooBig { mtu }) => {
            (v4::UNREACHABLE, v4::FRAGMENTATION_NEEDED, mtu.min(0xffff))
        }
        (Family::V4, Error::TimeExceeded) => (v4::TIME_EXCEEDED, 0, 0),
        (Family::V4, Error::PortUnreachable) => (v4::UNREACHABLE, v4::PORT, 0),
        (Family::V4, Error::Unreachable { code }) => (v4::UNREACHABLE, code, 0),
        (Family::V6, Error::Unreachable { code }) => (v6::UNREACHABLE, code, 0),
        (Family::V6, Error::TooBig { mtu }) => (v6::TOO_BIG, 0, mtu),
        (Family::V6, Error::TimeExceeded) => (v6::TIME_EXCEEDED, 0, 0),
        (Family::V6, Error::PortUnreachable) => (v6::UNREACHABLE, v6::PORT, 0),
    }
}

/// The ICMP header, over a quote that is already in its place.
fn write_message(reply: &mut [u8], headers: &Headers, error: Error) -> Option<()> {
    let (kind, code, rest) = message(headers.family, error);
    let mut header = icmp::Header::at_mut(reply, headers.l4)?;
    header.set_kind(kind, code);
    header.set_rest(rest);
    header.set_checksum(0);
    let sum = match headers.family {
        Family::V4 => Sum::default(),
        Family::V6 => headers.pseudo_header(),
    };
    let checksum = sum.bytes(reply.get(headers.l4..headers.end)?).checksum();
    icmp::Header::at_mut(reply, headers.l4)?.set_checksum(checksum);
    Some(())
}

#[cfg(test)]
mod tests;
