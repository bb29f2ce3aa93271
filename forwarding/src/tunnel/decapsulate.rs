//! Taking the outer packet off again: what a real server does.
//!
//! Strict: outer and inner headers are checked as [`parse`](fn@crate::parse) does, checksums of the
//! tunnel are verified, and what we do not know we do not guess.

use std::ops::Range;

use super::sum_completed;
use crate::checksum::{Partial, Sum, complete, partial};
use crate::parse::{Extent, ipv4, ipv6};
use crate::wire::{ethernet, gre, gue, protocol, udp};
use crate::{Family, Fragment, Headers};

/// The inner packet of an IPIP or GRE packet that has come to us: where it begins and ends in `ip`,
/// an IP packet without link header. `None` when it is not protocol 4, 41 or 47, is a fragment, or
/// is malformed. Of GRE the forms are taken that RFC 2784 knows: with or without checksum.
pub fn decapsulate(ip: &[u8]) -> Option<Range<usize>> {
    let outer = match ip.first()? >> 4 {
        4 => ipv4::network(ip, 0, Extent::Whole).ok()?,
        _ => ipv6::network(ip, 0, Extent::Whole).ok()?,
    };
    if outer.fragment != Fragment::Whole {
        return None;
    }
    let inside = ip.get(..outer.end)?;
    let inner = match outer.protocol {
        protocol::IPIP => packet(inside, outer.l4, Family::V4)?,
        protocol::IPV6 => packet(inside, outer.l4, Family::V6)?,
        protocol::GRE => behind_gre(inside, outer.l4)?,
        _ => return None,
    };
    Some(inner.l3..inner.end)
}

/// The inner packet of a GUE packet that has come to us: where it begins and ends in `payload`, the
/// data of a UDP datagram whose checksum has been verified. A checksum that the sender has left to
/// us (remcsum) is completed; one that it has left to hardware is not, see [`partial`]. `None`, and
/// no change, when it is not variant 0, is a control message, has options that we do not know, or is
/// malformed.
pub fn decapsulate_gue(payload: &mut [u8]) -> Option<Range<usize>> {
    let (family, begin) = gue_header(payload, 0)?;
    let flags = gue::Header::at(payload, 0)?.flags();
    let options = payload.get(gue::LEN..begin)?;
    let remote = match flags {
        0 => None,
        gue::PRIVATE => remote_checksum(options)?,
        _ => return None,
    };
    let inner = packet(payload, begin, family)?;
    if let Some((start, field)) = remote {
        let (start, field) = (begin + start, begin + field);
        // Not over what has just been checked, and not past the end.
        if start < inner.l4 || field < start || field + size_of::<u16>() > inner.end {
            return None;
        }
        complete(payload, Partial { start, offset: field - start }, inner.end);
    }
    Some(inner.l3..inner.end)
}

/// Where the inner packet begins, and its family, in a tunnel packet of ours that an ICMP error quotes
/// and [`quoted`](crate::icmp::quoted) has found: of IPIP, GUE to any port, and GRE. A quote is cut
/// and has been changed on its way, so no length and no checksum is looked at; `None` when it ends
/// before the inner packet begins, when it is a later fragment, or is no tunnel packet of ours.
///
/// Whether the UDP port is the server's, see `destination_port`, is for the caller to know.
pub fn quoted(frame: &[u8], quote: &Headers) -> Option<(Family, usize)> {
    if quote.is_later_fragment() {
        return None;
    }
    let bytes = frame.get(..quote.end)?;
    let (family, begin) = match quote.protocol {
        protocol::IPIP => (Family::V4, quote.l4),
        protocol::IPV6 => (Family::V6, quote.l4),
        protocol::UDP => gue_header(bytes, quote.l4 + udp::LEN)?,
        protocol::GRE => gre_header(bytes, quote.l4)?,
        _ => return None,
    };
    (begin < quote.end).then_some((family, begin))
}

/// Family and begin of the packet behind the GUE header at `at`.
fn gue_header(bytes: &[u8], at: usize) -> Option<(Family, usize)> {
    let header = gue::Header::at(bytes, at)?;
    if header.variant() != 0 || header.is_control() {
        return None;
    }
    let family = match header.protocol() {
        protocol::IPIP => Family::V4,
        protocol::IPV6 => Family::V6,
        _ => return None,
    };
    Some((family, at + gue::LEN + header.options_len()))
}

/// Family and begin of the packet behind the GRE header at `at`.
fn gre_header(bytes: &[u8], at: usize) -> Option<(Family, usize)> {
    let header = gre::Header::at(bytes, at)?;
    let flags = header.flags();
    if flags & (gre::MUST_BE_ZERO | gre::VERSION) != 0 {
        return None;
    }
    let family = match header.protocol() {
        ethernet::IPV4 => Family::V4,
        ethernet::IPV6 => Family::V6,
        _ => return None,
    };
    let checksum = if flags & gre::CHECKSUM != 0 { gre::CHECKSUM_LEN } else { 0 };
    Some((family, at + gre::LEN + checksum))
}

/// Start and field of a remote checksum, in the options that begin with private flags. `Some(None)`
/// when these announce nothing; `None` when they announce what we do not know.
fn remote_checksum(options: &[u8]) -> Option<Option<(usize, usize)>> {
    let flags = u32::from_be_bytes(*options.first_chunk::<{ gue::PRIVATE_LEN }>()?);
    match flags {
        0 => Some(None),
        gue::REMOTE_CHECKSUM => {
            let option = gue::RemoteChecksum::at(options, 0)?;
            Some(Some((usize::from(option.start()), usize::from(option.field()))))
        }
        _ => None,
    }
}

/// The packet behind the GRE header at `at`, of a GRE packet that ends with `bytes`.
fn behind_gre(bytes: &[u8], at: usize) -> Option<Headers> {
    let (family, begin) = gre_header(bytes, at)?;
    let inner = packet(bytes, begin, family)?;
    let summed = gre::Header::at(bytes, at)?.flags() & gre::CHECKSUM != 0;
    if summed && Sum::default().bytes(bytes.get(at..)?).checksum() != 0 {
        // The sender has summed the packet inside as it will be. Between machines of one host it is
        // not so yet: hardware, to which its checksum was left, has not had it.
        let partial = partial(bytes, &inner).filter(|_| inner.end == bytes.len())?;
        if sum_completed(bytes, at, inner.end, Some(partial))?.checksum() != 0 {
            return None;
        }
    }
    Some(inner)
}

/// The IP packet of this family that begins at `begin` and ends within `bytes`.
fn packet(bytes: &[u8], begin: usize, family: Family) -> Option<Headers> {
    match family {
        Family::V4 => ipv4::network(bytes, begin, Extent::Whole).ok(),
        Family::V6 => ipv6::network(bytes, begin, Extent::Whole).ok(),
    }
}
