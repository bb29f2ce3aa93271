//! Cuts an IP packet that is larger than the path, and may be, into fragments: an IPv4 packet
//! without "don't fragment" as a router does (RFC 791 section 3.2), and the outer IPv6 packet of
//! a tunnel, whose source we are, with fragment headers (RFC 8200 section 4.5).
//!
//! The transport checksum must be complete before: it covers the whole datagram, and no network
//! card can complete it afterwards.

use crate::checksum::Sum;
use crate::wire::{extension, ipv4, ipv6, protocol};
use crate::{Family, Headers};

/// IPv4 option: one byte without a meaning.
const NO_OPERATION: u8 = 1;
/// IPv4 option: no more of them.
const END_OF_OPTIONS: u8 = 0;
/// Bit of an IPv4 option's type: it goes into every fragment.
const COPIED: u8 = 0x80;

/// A packet that is being cut.
///
/// ```
/// use forwarding::fragmentation::Cut;
///
/// // An IPv4 packet of 20 + 32 bytes.
/// let mut frame = [0; 14 + 52];
/// frame[..34].copy_from_slice(&[
///     2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00, // Ethernet
///     0x45, 0, 0, 52, 0, 7, 0, 0, 64, 200, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
/// ]);
/// forwarding::wire::ipv4::Header::at_mut(&mut frame, 14).unwrap().fill_checksum();
/// let headers = forwarding::parse(&frame).unwrap();
/// let mut out = [0; 64];
/// let mut cut = Cut::new(&frame, &headers, 40, 0).unwrap();
/// // 16 bytes of data in each: a multiple of 8, and 20 + 16 is not above 40.
/// assert_eq!(cut.next(&frame, &mut out), Some(14 + 20 + 16));
/// assert_eq!(cut.next(&frame, &mut out), Some(14 + 20 + 16));
/// assert_eq!(cut.next(&frame, &mut out), None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    headers: Headers,
    /// Bytes of data in each fragment but the last.
    size: usize,
    /// Bytes of data already cut off.
    done: usize,
    id: u32,
}

impl Cut {
    /// Prepares to cut `frame` so that no IP packet is longer than `mtu` bytes. `id` is what the
    /// fragments of an IPv6 packet have in common; an IPv4 packet brings its own. `None` when it
    /// may not be cut, or there is no room for data.
    pub fn new(frame: &[u8], headers: &Headers, mtu: usize, id: u32) -> Option<Cut> {
        let header = headers.l4 - headers.l3;
        let before = match headers.family {
            Family::V4 if !headers.dont_fragment => header,
            Family::V6 if is_tunnel(frame, headers) => header + extension::LEN,
            _ => return None,
        };
        let size = mtu.saturating_sub(before) & !7;
        (size > 0).then_some(Cut { headers: *headers, size, done: 0, id })
    }

    /// Writes the next fragment of `frame` (the one that `new` was shown) to the start of `out`
    /// and returns its length, Ethernet header included; `None` when there is no more, or `out` is
    /// too small.
    pub fn next(&mut self, frame: &[u8], out: &mut [u8]) -> Option<usize> {
        let total = self.headers.payload_len();
        if self.done >= total {
            return None;
        }
        let size = (total - self.done).min(self.size);
        let more = self.done + size < total;
        let from = self.headers.l4 + self.done;
        let data = match self.headers.family {
            Family::V4 => self.headers.l4,
            Family::V6 => self.headers.l4 + extension::LEN,
        };
        let len = data + size;
        let out = out.get_mut(..len)?;
        out[..self.headers.l4].copy_from_slice(frame.get(..self.headers.l4)?);
        out[data..].copy_from_slice(frame.get(from..from + size)?);
        match self.headers.family {
            Family::V4 => self.finish_ipv4(out, more)?,
            Family::V6 => self.finish_ipv6(out, more)?,
        }
        self.done += size;
        Some(len)
    }

    fn finish_ipv4(&self, out: &mut [u8], more: bool) -> Option<()> {
        let Headers { l3, l4, .. } = self.headers;
        let length = u16::try_from(out.len() - l3).ok()?;
        if self.done > 0 {
            keep_copied_options(out.get_mut(l3 + ipv4::LEN..l4)?);
        }
        let mut header = ipv4::Header::at_mut(out, l3)?;
        // What is cut may be a fragment itself.
        let before = header.flags_and_offset();
        let offset = usize::from(before & ipv4::OFFSET) + self.done / 8;
        let offset = u16::try_from(offset).ok().filter(|&offset| offset <= ipv4::OFFSET)?;
        let more = if more { ipv4::MORE_FRAGMENTS } else { before & ipv4::MORE_FRAGMENTS };
        header.set_flags_and_offset(more | offset);
        header.set_total_length(length);
        header.set_checksum(0);
        let checksum = Sum::default().bytes(out.get(l3..l4)?).checksum();
        ipv4::Header::at_mut(out, l3)?.set_checksum(checksum);
        Some(())
    }

    fn finish_ipv6(&self, out: &mut [u8], more: bool) -> Option<()> {
        let Headers { l3, l4, .. } = self.headers;
        let length = u16::try_from(out.len() - l4).ok()?;
        let offset = u16::try_from(self.done).ok()?;
        let mut header = ipv6::Header::at_mut(out, l3)?;
        let next_header = header.next_header();
        header.set_next_header(protocol::FRAGMENT);
        header.set_payload_length(length);
        let mut fragment = extension::Header::at_mut(out, l4)?;
        fragment.clear();
        fragment.set_next_header(next_header);
        fragment.set_offset_and_flags(offset | if more { extension::MORE_FRAGMENTS } else { 0 });
        fragment.set_identification(self.id);
        Some(())
    }
}

/// The packet is one of our tunnels': nothing stands between its IPv6 header and the inner packet.
fn is_tunnel(frame: &[u8], headers: &Headers) -> bool {
    headers.l4 - headers.l3 == ipv6::LEN
        && ipv6::Header::at(frame, headers.l3)
            .is_some_and(|header| matches!(header.next_header(), protocol::IPIP | protocol::IPV6))
}

/// Makes nothing of the options that only the first fragment has.
fn keep_copied_options(options: &mut [u8]) {
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        let len = match kind {
            END_OF_OPTIONS => return,
            NO_OPERATION => 1,
            _ => usize::from(options.get(at + 1).copied().unwrap_or(0)),
        };
        let end = at + len.max(1);
        let (true, Some(option)) = (len > 0, options.get_mut(at..end)) else {
            // Malformed: nobody can tell what the rest is.
            options[at..].fill(NO_OPERATION);
            return;
        };
        if kind & COPIED == 0 {
            option.fill(NO_OPERATION);
        }
        at = end;
    }
}

#[cfg(test)]
mod tests;
