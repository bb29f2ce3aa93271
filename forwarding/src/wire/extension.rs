//! IPv6 extension headers (RFC 8200 section 4): hop-by-hop, destination options, routing, fragment.

use super::{put, u16_at, u32_at};

/// Bytes of the shortest extension header, and of every fragment header.
pub const LEN: usize = 8;

/// Bit of [`Header::offset_and_flags`]: not the last fragment.
pub const MORE_FRAGMENTS: u16 = 0x0001;
/// Bits of [`Header::offset_and_flags`]: the place of this fragment, in bytes.
pub const OFFSET: u16 = 0xfff8;

mod field {
    pub(super) const NEXT_HEADER: usize = 0;
    pub(super) const LENGTH: usize = 1;
    pub(super) const OFFSET_AND_FLAGS: usize = 2;
    pub(super) const SEGMENTS_LEFT: usize = 3;
    pub(super) const IDENTIFICATION: usize = 4;
}

header! {
    /// The first 8 bytes of an extension header. Which accessors have a meaning depends on the
    /// header's kind, which the header before it names.
    Header, LEN
}

impl<T: std::borrow::Borrow<[u8; LEN]>> Header<T> {
    /// What follows this header.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.bytes()[field::NEXT_HEADER]
    }

    /// Bytes of this header, 8 to 2048; not of a fragment header, which has 8.
    #[inline]
    pub fn header_len(&self) -> usize {
        (usize::from(self.bytes()[field::LENGTH]) + 1) * LEN
    }

    /// Of a routing header: how many nodes are still to be visited before the final destination.
    #[inline]
    pub fn segments_left(&self) -> u8 {
        self.bytes()[field::SEGMENTS_LEFT]
    }

    /// Of a fragment header: [`OFFSET`] and [`MORE_FRAGMENTS`].
    #[inline]
    pub fn offset_and_flags(&self) -> u16 {
        u16_at(self.bytes(), field::OFFSET_AND_FLAGS)
    }

    /// Of a fragment header: identification, the same in all fragments of a datagram.
    #[inline]
    pub fn identification(&self) -> u32 {
        u32_at(self.bytes(), field::IDENTIFICATION)
    }
}

impl<T: std::borrow::BorrowMut<[u8; LEN]>> Header<T> {
    /// Begins a header whose fields are all 0.
    #[inline]
    pub fn clear(&mut self) {
        *self.bytes_mut() = [0; LEN];
    }

    /// Sets [`OFFSET`] and [`MORE_FRAGMENTS`] of a fragment header together.
    #[inline]
    pub fn set_offset_and_flags(&mut self, value: u16) {
        put(self.bytes_mut(), field::OFFSET_AND_FLAGS, value.to_be_bytes());
    }

    /// Sets the identification of a fragment header.
    #[inline]
    pub fn set_identification(&mut self, id: u32) {
        put(self.bytes_mut(), field::IDENTIFICATION, id.to_be_bytes());
    }

    /// Sets what follows this header.
    #[inline]
    pub fn set_next_header(&mut self, protocol: u8) {
        self.bytes_mut()[field::NEXT_HEADER] = protocol;
    }
}
