//! Generic routing encapsulation (RFC 2784), without key and sequence number (RFC 2890).

use super::{put, u16_at};

/// Bytes of the header without checksum.
pub const LEN: usize = 4;

/// Bytes that the checksum, and what is reserved behind it, put between header and packet.
pub const CHECKSUM_LEN: usize = 4;

/// Bit of [`Header::flags`]: a checksum follows.
pub const CHECKSUM: u16 = 0x8000;

/// Bits of [`Header::flags`] that change what follows (RFC 1701: routing, key, sequence number,
/// strict source route, recursion). A receiver who does not know them must discard the packet; the
/// rest of the reserved bits it must not look at (RFC 2784 section 2.3).
pub const MUST_BE_ZERO: u16 = 0x7c00;

/// Bits of [`Header::flags`]: the version, 0.
pub const VERSION: u16 = 0x0007;

mod field {
    pub(super) const FLAGS: usize = 0;
    pub(super) const PROTOCOL: usize = 2;
}

mod checksum_field {
    pub(super) const CHECKSUM: usize = 0;
}

header! {
    /// A GRE header without its options.
    Header, LEN
}

impl<T: std::borrow::Borrow<[u8; LEN]>> Header<T> {
    /// Flags and version.
    #[inline]
    pub fn flags(&self) -> u16 {
        u16_at(self.bytes(), field::FLAGS)
    }

    /// EtherType of what follows.
    #[inline]
    pub fn protocol(&self) -> u16 {
        u16_at(self.bytes(), field::PROTOCOL)
    }
}

impl<T: std::borrow::BorrowMut<[u8; LEN]>> Header<T> {
    /// Sets flags and version.
    #[inline]
    pub fn set_flags(&mut self, flags: u16) {
        put(self.bytes_mut(), field::FLAGS, flags.to_be_bytes());
    }

    /// Sets the EtherType of what follows.
    #[inline]
    pub fn set_protocol(&mut self, ether_type: u16) {
        put(self.bytes_mut(), field::PROTOCOL, ether_type.to_be_bytes());
    }
}

header! {
    /// The checksum behind the header: the Internet checksum over GRE header and packet, without a
    /// pseudo header.
    Checksum, CHECKSUM_LEN
}

impl<T: std::borrow::Borrow<[u8; CHECKSUM_LEN]>> Checksum<T> {
    /// The checksum.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.bytes(), checksum_field::CHECKSUM)
    }
}

impl<T: std::borrow::BorrowMut<[u8; CHECKSUM_LEN]>> Checksum<T> {
    /// Sets the checksum, and what is reserved behind it to 0.
    #[inline]
    pub fn set(&mut self, checksum: u16) {
        *self.bytes_mut() = [0; CHECKSUM_LEN];
        put(self.bytes_mut(), checksum_field::CHECKSUM, checksum.to_be_bytes());
    }
}
