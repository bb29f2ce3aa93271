//! Fragmentation: an IP packet that is larger than the way out allows, cut into pieces that fit.
//!
//! Knows how IPv4 (RFC 791 section 3.2) and a sender of IPv6 (RFC 8200 section 4.5) cut. Must not
//! know whether a packet may be cut: a router asks before, by
//! [`dont_fragment`](crate::Headers::dont_fragment), and IPv6 is cut by its sender only, which the
//! director is of what it puts into a tunnel.
//!
//! ```text
//!            +----------+----+-----------------------------+
//!   whole    | Ethernet | IP |  first  |  second  |  third |
//!            +----------+----+-----------------------------+
//!            +----------+----+---------+  +----------+----+----------+  +----------+----+-------+
//!   pieces   | Ethernet | IP |  first  |  | Ethernet | IP |  second  |  | Ethernet | IP | third |
//!            +----------+----+---------+  +----------+----+----------+  +----------+----+-------+
//! ```

use std::ops::Range;

use crate::wire::{extension, ipv4, ipv6, protocol};
use crate::{Family, Fragment, Headers};

/// Bytes of the longest datagram.
const LONGEST: usize = 65_535;
/// Places of fragments count in units of this many bytes.
const UNIT: usize = 8;
/// Bit of an IPv4 option's type: it is in every fragment (RFC 791 section 3.1).
const COPIED: u8 = 0x80;
/// IPv4 options that are a single byte: end of list, no operation.
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;

/// A packet about to be cut, and how far.
#[derive(Clone, Debug)]
pub struct Fragmenter {
    headers: Headers,
    /// Bytes of payload in each piece but the last: a multiple of 8.
    size: usize,
    /// What is still to be cut off, as places in the frame.
    rest: Range<usize>,
    /// Place of the packet's own payload in its datagram: it may be a fragment itself.
    offset: usize,
    /// Whether the packet is not the last fragment of its datagram.
    more: bool,
    /// Identification: an IPv4 packet's own.
    id: u32,
}

impl Fragmenter {
    /// Looks at the packet of `frame`, which `headers` were parsed from (or describe as the
    /// rewrite left it), to be cut into IP packets of at most `mtu` bytes. `id` is the
    /// identification for IPv6, where the packet has none yet; an IPv4 packet keeps its own. A
    /// checksum that is still partial must be completed before: no piece could be.
    ///
    /// `None` when it cannot be cut: less than 8 bytes fit beside the header, it is IPv6 and has
    /// extension headers, or it is a fragment that claims to lie past the end of any datagram.
    ///
    /// ```
    /// use forwarding::fragment::Fragmenter;
    /// # let frame = {
    /// #     let mut bytes = Vec::new();
    /// #     etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
    /// #         .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
    /// #         .udp(1, 2).write(&mut bytes, &[0; 1000]).unwrap();
    /// #     bytes
    /// # };
    /// let headers = forwarding::parse(&frame).unwrap();
    /// let mut fragmenter = Fragmenter::new(&frame, &headers, 576, 0).unwrap();
    /// let mut piece = [0; 600];
    /// let mut lengths = Vec::new();
    /// while let Some(headers) = fragmenter.next(&frame, &mut piece) {
    ///     lengths.push(headers.ip_len());
    /// }
    /// assert_eq!(lengths, [20 + 552, 20 + 456]);
    /// ```
    pub fn new(frame: &[u8], headers: &Headers, mtu: u32, id: u32) -> Option<Fragmenter> {
        let (header_len, offset, more, id) = match headers.family {
            Family::V4 => {
                let header = ipv4::Header::at(frame, headers.l3)?;
                let place = header.flags_and_offset();
                (
                    headers.l4.checked_sub(headers.l3)?,
                    usize::from(place & ipv4::OFFSET) * UNIT,
                    place & ipv4::MORE_FRAGMENTS != 0,
                    u32::from(header.identification()),
                )
            }
            Family::V6 if headers.l4 == headers.l3 + ipv6::LEN => {
                (ipv6::LEN + extension::LEN, 0, false, id)
            }
            Family::V6 => return None,
        };
        let size = (mtu as usize).checked_sub(header_len)? / UNIT * UNIT;
        let payload = headers.end.checked_sub(headers.l4)?;
        let fits = size > 0 && headers.end <= frame.len() && offset + payload <= LONGEST;
        fits.then_some(Fragmenter {
            headers: *headers,
            size,
            rest: headers.l4..headers.end,
            offset,
            more,
            id,
        })
    }

    /// Writes the next piece of `frame` (the one that `new` was shown) to the start of `out`, as a
    /// frame with the same link header, and returns its headers. `None` when there is none left,
    /// or `out` is too small for it: up to `mtu` bytes and the link header.
    pub fn next(&mut self, frame: &[u8], out: &mut [u8]) -> Option<Headers> {
        if self.rest.is_empty() {
            return None;
        }
        let length = self.rest.len().min(self.size);
        let part = frame.get(self.rest.start..self.rest.start + length)?;
        let is_first = self.offset == 0 && self.rest.start == self.headers.l4;
        let more = self.more || length < self.rest.len();
        let offset = self.offset + (self.rest.start - self.headers.l4);
        let l4 = match self.headers.family {
            Family::V4 => self.headers.l4,
            Family::V6 => self.headers.l4 + extension::LEN,
        };
        let mut headers = Headers { l4, end: l4 + length, ..self.headers };
        headers.fragment = match is_first {
            true => Fragment::First { id: self.id, length: length as u16 },
            false => Fragment::Later { id: self.id, offset: offset as u16, more },
        };
        // Whoever has us cut an IPv4 packet has seen that it may be, as every next router will.
        headers.dont_fragment = headers.family == Family::V6;
        if !is_first {
            (headers.source_port, headers.destination_port, headers.tcp_flags) = (0, 0, 0);
        }
        let out = out.get_mut(..headers.end)?;
        out.get_mut(..self.headers.l4)?.copy_from_slice(frame.get(..self.headers.l4)?);
        out.get_mut(l4..)?.copy_from_slice(part);
        match headers.family {
            Family::V4 => write_v4(out, &headers, offset, more)?,
            Family::V6 => write_v6(out, &headers, offset, more, self.id)?,
        }
        self.rest.start += length;
        Some(headers)
    }
}

/// Length, place and checksum of an IPv4 fragment, over the header of the whole packet.
fn write_v4(out: &mut [u8], headers: &Headers, offset: usize, more: bool) -> Option<()> {
    let options = headers.l3 + ipv4::LEN..headers.l4;
    if headers.is_later_fragment() {
        blank_options(out.get_mut(options.clone())?);
    }
    let mut header = ipv4::Header::at_mut(out, headers.l3)?;
    header.set_total_length(u16::try_from(headers.ip_len()).ok()?);
    let place = u16::try_from(offset / UNIT).ok()?;
    header.set_flags_and_offset(place | if more { ipv4::MORE_FRAGMENTS } else { 0 });
    header.set_checksum(0);
    let sum = ipv4::Header::at(out, headers.l3)?.sum().bytes(out.get(options)?);
    ipv4::Header::at_mut(out, headers.l3)?.set_checksum(sum.checksum());
    Some(())
}

/// Makes nothing of the options that belong in the first fragment only: the header keeps its length.
fn blank_options(options: &mut [u8]) {
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        let length = match kind {
            END_OF_OPTIONS => return,
            NO_OPERATION => 1,
            _ => options.get(at + 1).map_or(0, |length| usize::from(*length)),
        };
        // A length that cannot be: what follows is nobody's.
        let Some(option) = options.get_mut(at..at + length).filter(|option| !option.is_empty())
        else {
            return;
        };
        if kind & COPIED == 0 {
            option.fill(NO_OPERATION);
        }
        at += length;
    }
}

/// The fragment header, and what the header before it says of it.
fn write_v6(out: &mut [u8], headers: &Headers, offset: usize, more: bool, id: u32) -> Option<()> {
    let mut header = ipv6::Header::at_mut(out, headers.l3)?;
    let payload = headers.end - headers.l3 - ipv6::LEN;
    header.set_payload_length(u16::try_from(payload).ok()?);
    header.set_next_header(protocol::FRAGMENT);
    let mut header = extension::Header::at_mut(out, headers.l3 + ipv6::LEN)?;
    header.clear();
    header.set_next_header(headers.protocol);
    let place = u16::try_from(offset).ok()? & extension::OFFSET;
    header.set_offset_and_flags(place | if more { extension::MORE_FRAGMENTS } else { 0 });
    header.set_identification(id);
    Some(())
}

#[cfg(test)]
mod tests;
