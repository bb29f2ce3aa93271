//! SCTP (RFC 9260): the common header. Its checksum is a CRC32c without a pseudo header, so
//! addresses may change under it, ports may not.

use super::{put, take, u16_at};

/// Bytes of the common header.
pub const LEN: usize = 12;

/// Where the checksum is, from the start of the header.
pub const CHECKSUM: usize = 8;

mod field {
    pub(super) const SOURCE_PORT: usize = 0;
    pub(super) const DESTINATION_PORT: usize = 2;
}

header! {
    /// An SCTP common header.
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

    /// CRC32c, as [`checksum::sctp`](crate::checksum::sctp) computes it (on the wire its bytes are
    /// the other way round: RFC 9260 appendix A).
    #[inline]
    pub fn checksum(&self) -> u32 {
        u32::from_le_bytes(take(self.bytes(), CHECKSUM))
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

    /// Sets the CRC32c.
    #[inline]
    pub fn set_checksum(&mut self, checksum: u32) {
        put(self.bytes_mut(), CHECKSUM, checksum.to_le_bytes());
    }
}
