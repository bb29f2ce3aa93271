//! The Internet checksum (RFC 1071), its incremental update (RFC 1624), and partial sums.
//!
//! A frame that comes from a local veth or a VM may carry only the pseudo-header sum in its TCP or
//! UDP checksum field: its sender left the rest to hardware that does not exist. We pass that
//! partiality on: see [`partial`].

use crate::Headers;

/// A checksum still to be completed. Both count from the first byte of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    /// First byte that the sum covers (the transport header).
    pub start: usize,
    /// Where the sum is stored, from `start` (16 in TCP, 6 in UDP).
    pub offset: usize,
}

/// Whether the transport checksum of this whole (not fragmented) TCP or UDP packet is the bare
/// pseudo-header sum, and so is still to be completed. A false match, 2^-16 of honest packets, is
/// harmless: completing the sum gives the same value again.
pub fn partial(frame: &[u8], headers: &Headers) -> Option<Partial> {
    let _ = (frame, headers);
    unimplemented!()
}

/// Completes a partial checksum in software over `frame[partial.start..end]`; `end` is one past
/// the last byte of the IP packet. A UDP sum of 0 is written as 0xffff.
pub fn complete(frame: &mut [u8], partial: Partial, end: usize) {
    let _ = (frame, partial, end);
    unimplemented!()
}
