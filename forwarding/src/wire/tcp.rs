//! TCP (RFC 9293): the fixed header. Options, where there are any, lie between it and the data.

use super::{put, u16_at, u32_at};

/// Bytes of the header without options.
pub const LEN: usize = 20;

/// Where the checksum is, from the start of the header.
pub const CHECKSUM: usize = 16;
/// Where the flags are, from the start of the header.
pub const FLAGS: usize = 13;

/// Option: the end of the options; one byte.
pub const END_OF_OPTIONS: u8 = 0;
/// Option: nothing, to align what follows; one byte.
pub const NO_OPERATION: u8 = 1;
/// Option: the largest segment that the sender takes (RFC 9293 section 3.7.1), in bytes of data.
pub const MAXIMUM_SEGMENT_SIZE: u8 = 2;

/// Flag: the sender has no more data.
pub const FIN: u8 = 0x01;
/// Flag: the connection begins.
pub const SYN: u8 = 0x02;
/// Flag: the connection is torn down.
pub const RST: u8 = 0x04;
/// Flag: hand the data on without waiting.
pub const PSH: u8 = 0x08;
/// Flag: the acknowledgement number counts.
pub const ACK: u8 = 0x10;
/// Flag: the urgent pointer counts.
pub const URG: u8 = 0x20;

mod field {
    pub(super) const SOURCE_PORT: usize = 0;
    pub(super) const DESTINATION_PORT: usize = 2;
    pub(super) const SEQUENCE: usize = 4;
    pub(super) const ACKNOWLEDGEMENT: usize = 8;
    pub(super) const DATA_OFFSET: usize = 12;
}

header! {
    /// The fixed part of a TCP header.
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

    /// Sequence number.
    #[inline]
    pub fn sequence(&self) -> u32 {
        u32_at(self.bytes(), field::SEQUENCE)
    }

    /// Acknowledgement number.
    #[inline]
    pub fn acknowledgement(&self) -> u32 {
        u32_at(self.bytes(), field::ACKNOWLEDGEMENT)
    }

    /// Bytes of the header with its options, 0 to 60; less than [`LEN`] is wrong.
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.bytes()[field::DATA_OFFSET] >> 4) * 4
    }

    /// [`SYN`], [`ACK`] and the others.
    #[inline]
    pub fn flags(&self) -> u8 {
        self.bytes()[FLAGS]
    }

    /// Checksum.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.bytes(), CHECKSUM)
    }
}

impl<T: std::borrow::BorrowMut<[u8; LEN]>> Header<T> {
    /// Begins a header without options: its length, all other fields 0.
    #[inline]
    pub fn clear(&mut self) {
        *self.bytes_mut() = [0; LEN];
        self.bytes_mut()[field::DATA_OFFSET] = (LEN as u8 / 4) << 4;
    }

    /// Sets the sequence number; the checksum is not touched.
    #[inline]
    pub fn set_sequence(&mut self, sequence: u32) {
        put(self.bytes_mut(), field::SEQUENCE, sequence.to_be_bytes());
    }

    /// Sets the acknowledgement number; the checksum is not touched.
    #[inline]
    pub fn set_acknowledgement(&mut self, acknowledgement: u32) {
        put(self.bytes_mut(), field::ACKNOWLEDGEMENT, acknowledgement.to_be_bytes());
    }

    /// Sets [`SYN`], [`ACK`] and the others; the checksum is not touched.
    #[inline]
    pub fn set_flags(&mut self, flags: u8) {
        self.bytes_mut()[FLAGS] = flags;
    }

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

    /// Sets the checksum.
    #[inline]
    pub fn set_checksum(&mut self, checksum: u16) {
        put(self.bytes_mut(), CHECKSUM, checksum.to_be_bytes());
    }
}
