//! Generic UDP encapsulation (draft-ietf-intarea-gue-09, variant 0), as the kernel's `net/gue.h` has
//! it: the flags differ from the draft's in that only the private ones are used.
//!
//! ```text
//!    0                   1                   2                   3
//!    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//!   +---+-+---------+---------------+-------------------------------+
//!   | 0 |C|   hlen  |   protocol    |         flags       |private| |   Header
//!   +---+-+---------+---------------+-------------------------------+
//!   |R|                private flags                                |   RemoteChecksum
//!   +-------------------------------+-------------------------------+
//!   |             start             |            field              |
//!   +-------------------------------+-------------------------------+
//! ```

use super::{put, u16_at, u32_at};

/// Bytes of the header without options.
pub const LEN: usize = 4;

/// Bytes of [`RemoteChecksum`].
pub const REMOTE_CHECKSUM_LEN: usize = 8;

/// The longest the options can be, in bytes: `hlen` has five bits and counts 32-bit words.
pub const MAX_OPTIONS: usize = 0x1f * 4;

/// Bit of [`Header::flags`]: private flags are the first option.
pub const PRIVATE: u16 = 0x0001;

/// Bit of [`RemoteChecksum::private_flags`]: start and field of a remote checksum follow.
pub const REMOTE_CHECKSUM: u32 = 0x8000_0000;

/// Bytes of the private flags, which stand before what they announce.
pub const PRIVATE_LEN: usize = 4;

mod field {
    pub(super) const VARIANT_AND_LENGTH: usize = 0;
    pub(super) const PROTOCOL: usize = 1;
    pub(super) const FLAGS: usize = 2;
}

mod option_field {
    pub(super) const PRIVATE_FLAGS: usize = 0;
    pub(super) const START: usize = 4;
    pub(super) const FIELD: usize = 6;
}

header! {
    /// A GUE header without its options.
    Header, LEN
}

impl<T: std::borrow::Borrow<[u8; LEN]>> Header<T> {
    /// Variant, 0 to 3; only that of 0 has the fields below.
    #[inline]
    pub fn variant(&self) -> u8 {
        self.bytes()[field::VARIANT_AND_LENGTH] >> 6
    }

    /// A control message follows, not a packet.
    #[inline]
    pub fn is_control(&self) -> bool {
        self.bytes()[field::VARIANT_AND_LENGTH] & 0x20 != 0
    }

    /// Bytes of the options, 0 to [`MAX_OPTIONS`].
    #[inline]
    pub fn options_len(&self) -> usize {
        usize::from(self.bytes()[field::VARIANT_AND_LENGTH] & 0x1f) * 4
    }

    /// IP protocol number of what follows.
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.bytes()[field::PROTOCOL]
    }

    /// Which options there are.
    #[inline]
    pub fn flags(&self) -> u16 {
        u16_at(self.bytes(), field::FLAGS)
    }
}

impl<T: std::borrow::BorrowMut<[u8; LEN]>> Header<T> {
    /// Makes it variant 0, no control message, no options and no flags, protocol 0.
    #[inline]
    pub fn clear(&mut self) {
        *self.bytes_mut() = [0; LEN];
    }

    /// Sets the length of the options, in bytes: a multiple of 4, up to [`MAX_OPTIONS`]. Variant and
    /// control bit become 0.
    #[inline]
    pub fn set_options_len(&mut self, len: usize) {
        self.bytes_mut()[field::VARIANT_AND_LENGTH] = (len / 4) as u8 & 0x1f;
    }

    /// Sets the protocol of what follows.
    #[inline]
    pub fn set_protocol(&mut self, protocol: u8) {
        self.bytes_mut()[field::PROTOCOL] = protocol;
    }

    /// Sets which options there are.
    #[inline]
    pub fn set_flags(&mut self, flags: u16) {
        put(self.bytes_mut(), field::FLAGS, flags.to_be_bytes());
    }
}

header! {
    /// The private flags and the remote checksum option (draft-ietf-intarea-gue-extensions section
    /// 4.4). Both places count in bytes from behind the GUE header and its options.
    RemoteChecksum, REMOTE_CHECKSUM_LEN
}

impl<T: std::borrow::Borrow<[u8; REMOTE_CHECKSUM_LEN]>> RemoteChecksum<T> {
    /// Which private options there are.
    #[inline]
    pub fn private_flags(&self) -> u32 {
        u32_at(self.bytes(), option_field::PRIVATE_FLAGS)
    }

    /// First byte that the checksum covers.
    #[inline]
    pub fn start(&self) -> u16 {
        u16_at(self.bytes(), option_field::START)
    }

    /// Where the checksum is to be written.
    #[inline]
    pub fn field(&self) -> u16 {
        u16_at(self.bytes(), option_field::FIELD)
    }
}

impl<T: std::borrow::BorrowMut<[u8; REMOTE_CHECKSUM_LEN]>> RemoteChecksum<T> {
    /// Sets which private options there are.
    #[inline]
    pub fn set_private_flags(&mut self, flags: u32) {
        put(self.bytes_mut(), option_field::PRIVATE_FLAGS, flags.to_be_bytes());
    }

    /// Sets the first byte that the checksum covers.
    #[inline]
    pub fn set_start(&mut self, start: u16) {
        put(self.bytes_mut(), option_field::START, start.to_be_bytes());
    }

    /// Sets where the checksum is to be written.
    #[inline]
    pub fn set_field(&mut self, field: u16) {
        put(self.bytes_mut(), option_field::FIELD, field.to_be_bytes());
    }
}
