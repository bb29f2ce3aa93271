//! Checksums that the sender left to hardware: only the pseudo-header sum stands in the field.

use super::Sum;
use crate::wire::{protocol, tcp, udp};
use crate::{Fragment, Headers};

/// A checksum still to be completed. Both count from the first byte of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    /// First byte that the sum covers (the transport header).
    pub start: usize,
    /// Where the sum is stored, from `start` (16 in TCP, 6 in UDP).
    pub offset: usize,
}

impl Partial {
    /// The same checksum after bytes were put before it (or, `by` being negative, taken away):
    /// a tunnel's header, a VLAN tag.
    #[must_use]
    pub fn moved(self, by: isize) -> Partial {
        Partial { start: self.start.saturating_add_signed(by), offset: self.offset }
    }
}

/// Whether the transport checksum of this whole (not fragmented) TCP or UDP packet is the bare
/// pseudo-header sum, and so is still to be completed. A false match, 2^-16 of honest packets, is
/// harmless: completing the sum gives the same value again.
///
/// A UDP checksum of 0 is "none", and a UDP packet with bytes behind its datagram is never partial:
/// hardware sums to the end of the packet and would take them in.
#[inline]
pub fn partial(frame: &[u8], headers: &Headers) -> Option<Partial> {
    if headers.fragment != Fragment::Whole {
        return None;
    }
    let (stored, offset) = match headers.protocol {
        protocol::TCP => {
            let tcp = tcp::Header::at(frame, headers.l4)?;
            (tcp.checksum(), tcp::CHECKSUM)
        }
        protocol::UDP => {
            let udp = udp::Header::at(frame, headers.l4)?;
            if usize::from(udp.length()) != headers.payload_len() {
                return None;
            }
            (udp.checksum(), udp::CHECKSUM)
        }
        _ => return None,
    };
    // A pseudo header is never all 0, so neither is its sum: "no checksum" cannot match.
    (stored == headers.pseudo_header().folded()).then_some(Partial { start: headers.l4, offset })
}

/// Completes a partial checksum in software over `frame[partial.start..end]`; `end` is one past the
/// last byte of the IP packet. A UDP sum of 0 is written as 0xffff. Places outside the frame change
/// nothing.
pub fn complete(frame: &mut [u8], partial: Partial, end: usize) {
    let Some(covered) = frame.get_mut(partial.start..end) else {
        return;
    };
    let checksum = completed(covered, partial.offset);
    if let Some(field) = covered.get_mut(partial.offset..).and_then(<[u8]>::first_chunk_mut) {
        *field = checksum.to_be_bytes();
    }
}

/// The checksum over transport header and data whose field, at `offset`, holds the pseudo-header
/// sum.
pub(crate) fn completed(covered: &[u8], offset: usize) -> u16 {
    match Sum::default().bytes(covered).checksum() {
        0 if offset == udp::CHECKSUM => 0xffff,
        checksum => checksum,
    }
}
