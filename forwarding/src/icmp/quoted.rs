//! The packet that an ICMP error is about.

use crate::checksum::Sum;
use crate::parse::{Extent, ipv4, ipv6, transport};
use crate::wire::{icmp, protocol};
use crate::{Family, Fragment, Headers, tunnel};

/// The packet that an ICMP error quotes. Its `Headers` have offsets into the whole frame, `end` is
/// cut to what is quoted, and at least the ports of TCP, UDP, SCTP are there, or of IPIP and GRE the
/// outer header. `None` when `frame` is no such error, or quotes a later fragment or another protocol.
///
/// `frame` must be what `headers` were parsed from.
pub fn quoted(frame: &[u8], headers: &Headers) -> Option<Headers> {
    let (bytes, begin) = quote(frame, headers)?;
    // An ICMP error quotes a packet of its own family.
    read(bytes, begin, headers.family, headers)
}

/// Whether `frame` is an ICMP error that quotes nothing which could be a packet: too little, another
/// IP version than its own, a header length or a total length that cannot be, no ports of TCP, UDP
/// or SCTP. A quoted later fragment or another protocol is no nonsense, but nothing to go by.
///
/// `frame` must be what `headers` were parsed from.
pub fn is_garbled(frame: &[u8], headers: &Headers) -> bool {
    let Some((bytes, begin)) = quote(frame, headers) else { return false };
    let quoted = match headers.family {
        Family::V4 => ipv4::network(bytes, begin, Extent::Quote),
        Family::V6 => ipv6::network(bytes, begin, Extent::Quote),
    };
    let Ok(mut quoted) = quoted else { return true };
    matches!(quoted.protocol, protocol::TCP | protocol::UDP | protocol::SCTP)
        && !quoted.is_later_fragment()
        && transport::read_quoted(bytes, &mut quoted).is_none()
}

/// Whether the checksum of an ICMP message is right. That of a fragment covers what is not here: it
/// counts as right.
///
/// `frame` must be what `headers` were parsed from.
pub fn has_right_sum(frame: &[u8], headers: &Headers) -> bool {
    if headers.fragment != Fragment::Whole {
        return true;
    }
    let before = match headers.family {
        Family::V4 => Sum::default(),
        Family::V6 => headers.pseudo_header(),
    };
    frame.get(headers.l4..headers.end).is_some_and(|all| before.bytes(all).checksum() == 0)
}

/// The bytes up to the end of what an ICMP error quotes, and where that begins.
fn quote<'a>(frame: &'a [u8], headers: &Headers) -> Option<(&'a [u8], usize)> {
    if !headers.is_icmp_error(frame) {
        return None;
    }
    let message = icmp::Header::at(frame, headers.l4)?;
    let begin = headers.l4 + icmp::LEN;
    let end = match message.quote_len(headers.family) {
        Some(len) => headers.end.min(begin + len),
        None => headers.end,
    };
    Some((frame.get(..end)?, begin))
}

/// The packet inside a quoted tunnel packet (IPIP, GUE, GRE), as `quote` ([`quoted`]) of an error
/// about our own tunnel describes it; of it again at least the ports of TCP, UDP or SCTP are there.
/// `None` when it is no tunnel's packet, or too little of it is quoted (RFC 792 routers quote 8
/// bytes: nothing to go by). Whether a UDP packet goes to a server's GUE port is for the caller to
/// know.
pub fn tunnelled(frame: &[u8], quote: &Headers) -> Option<Headers> {
    let (family, begin) = tunnel::quoted(frame, quote)?;
    read(frame.get(..quote.end)?, begin, family, quote)
}

/// Reads the cut packet that begins at `begin` and may reach to the end of `bytes`.
fn read(bytes: &[u8], begin: usize, family: Family, around: &Headers) -> Option<Headers> {
    let mut headers = match family {
        Family::V4 => ipv4::network(bytes, begin, Extent::Quote).ok()?,
        Family::V6 => ipv6::network(bytes, begin, Extent::Quote).ok()?,
    };
    headers.vlan = around.vlan;
    if !matches!(headers.protocol, protocol::IPIP | protocol::IPV6 | protocol::GRE) {
        transport::read_quoted(bytes, &mut headers)?;
    }
    Some(headers)
}

#[cfg(test)]
mod tests;
