//! UDP (RFC 768).

use super::{put, u16_at};

/// Bytes of the header.
pub const LEN: usize = 8;

/// Where the checksum is, from the start of the header.
pub const CHECKSUM: usize = 6;

mod field {
    pub(super) const SOURCE_PORT: usize = 0;
    pub(super) const DESTINATION_PORT: usize = 2;
    pub(super) const LENGTH: usize = 4;
}

header! {
    /// A UDP header.
    Header, LEN
}

impl<T: std::borrow::Borrow<[u8; LEN]>> Header<T> {
    /// Source port.
    #[inline]
    pub fn source_port(&self) -> u16 {
        u16_at(self.bytes(), field::SOURCE_PORT)
    }

    /// Destination port.
    #[inline]
    pub fn destination_port(&self) -> u16 {
        u16_at(self.bytes(), field::DESTINATION_PORT)
    }

    /// Bytes of header and data of the whole datagram; less than [`LEN`] is wrong.
    #[inline]
    pub fn length(&self) -> u16 {
        u16_at(self.bytes(), field::LENGTH)
    }

    /// Checksum; 0 says that the sender computed none.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.bytes(), CHECKSUM)
    }
}

impl<T: std::borrow::BorrowMut<[u8; LEN]>> Header<T> {
    /// Sets the source port; the checksum is not touched.
    #[inline]
    pub fn set_source_port(&mut self, port: u16) {
        put(self.bytes_mut(), field::SOURCE_PORT, port.to_be_bytes());
    }

    /// Sets the destination port; the checksum is not touched.
    #[inline]
    pub fn set_destination_port(&mut self, port: u16) {
        put(self.bytes_mut(), field::DESTINATION_PORT, port.to_be_bytes());
    }

    /// Sets the bytes of header and data; the checksum is not touched.
    #[inline]
    pub fn set_length(&mut self, length: u16) {
        put(self.bytes_mut(), field::LENGTH, length.to_be_bytes());
    }

    /// Sets the checksum as it is.
    #[inline]
    pub fn set_checksum(&mut self, checksum: u16) {
        put(self.bytes_mut(), CHECKSUM, checksum.to_be_bytes());
    }

    /// Sets a computed checksum: 0, which would say "none", is written as its equal 0xffff.
    #[inline]
    pub fn set_computed_checksum(&mut self, checksum: u16) {
        self.set_checksum(if checksum == 0 { 0xffff } else { checksum });
    }
}
