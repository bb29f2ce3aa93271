//! IPv4 (RFC 791): the fixed header. Options, where there are any, lie between it and the payload.

use std::net::Ipv4Addr;

use super::{put, take, u16_at, u32_at};
use crate::checksum::Sum;

/// Bytes of the header without options.
pub const LEN: usize = 20;

/// Bit of [`Header::flags_and_offset`]: may not be fragmented.
pub const DONT_FRAGMENT: u16 = 0x4000;
/// Bit of [`Header::flags_and_offset`]: not the last fragment.
pub const MORE_FRAGMENTS: u16 = 0x2000;
/// Bits of [`Header::flags_and_offset`]: the place of this fragment, in units of 8 bytes.
pub const OFFSET: u16 = 0x1fff;

mod field {
    pub(super) const VERSION_AND_LENGTH: usize = 0;
    pub(super) const TRAFFIC_CLASS: usize = 1;
    pub(super) const TOTAL_LENGTH: usize = 2;
    pub(super) const IDENTIFICATION: usize = 4;
    pub(super) const FLAGS_AND_OFFSET: usize = 6;
    pub(super) const TTL: usize = 8;
    pub(super) const PROTOCOL: usize = 9;
    pub(super) const CHECKSUM: usize = 10;
    pub(super) const SOURCE: usize = 12;
    pub(super) const DESTINATION: usize = 16;
}

header! {
    /// The fixed part of an IPv4 header.
    Header, LEN
}

impl<T: std::borrow::Borrow<[u8; LEN]>> Header<T> {
    /// Version and header length as they stand together: 0x45 is "IPv4 without options".
    #[inline]
    pub fn version_and_length(&self) -> u8 {
        self.bytes()[field::VERSION_AND_LENGTH]
    }

    /// IP version; 4 is the only right value.
    #[inline]
    pub fn version(&self) -> u8 {
        self.version_and_length() >> 4
    }

    /// Bytes of the header with its options, 0 to 60; less than [`LEN`] is wrong.
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.version_and_length() & 0x0f) * 4
    }

    /// DSCP (6 bits) and ECN (2 bits).
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        self.bytes()[field::TRAFFIC_CLASS]
    }

    /// Bytes of the packet, header included.
    #[inline]
    pub fn total_length(&self) -> u16 {
        u16_at(self.bytes(), field::TOTAL_LENGTH)
    }

    /// Identification, the same in all fragments of a datagram.
    #[inline]
    pub fn identification(&self) -> u16 {
        u16_at(self.bytes(), field::IDENTIFICATION)
    }

    /// [`DONT_FRAGMENT`], [`MORE_FRAGMENTS`] and [`OFFSET`].
    #[inline]
    pub fn flags_and_offset(&self) -> u16 {
        u16_at(self.bytes(), field::FLAGS_AND_OFFSET)
    }

    /// Time to live, in hops.
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.bytes()[field::TTL]
    }

    /// Protocol of the payload ([`protocol`](super::protocol)).
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.bytes()[field::PROTOCOL]
    }

    /// The TTL and protocol as one word: the word that changes when the TTL does.
    #[inline]
    pub fn ttl_and_protocol(&self) -> u16 {
        u16_at(self.bytes(), field::TTL)
    }

    /// Header checksum.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.bytes(), field::CHECKSUM)
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from(take::<4, LEN>(self.bytes(), field::SOURCE))
    }

    /// Destination address.
    #[inline]
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from(take::<4, LEN>(self.bytes(), field::DESTINATION))
    }

    /// The sum over these 20 bytes; with that over the options it is 0xffff when the checksum is
    /// right.
    #[inline]
    pub fn sum(&self) -> Sum {
        // Every packet comes through here: five words without a loop.
        let bytes = self.bytes();
        Sum::default()
            .word(u32_at(bytes, 0))
            .word(u32_at(bytes, 4))
            .word(u32_at(bytes, 8))
            .word(u32_at(bytes, 12))
            .word(u32_at(bytes, 16))
    }
}

impl<T: std::borrow::BorrowMut<[u8; LEN]>> Header<T> {
    /// Begins a header without options: version 4, all other fields 0.
    #[inline]
    pub fn clear(&mut self) {
        *self.bytes_mut() = [0; LEN];
        self.bytes_mut()[field::VERSION_AND_LENGTH] = 0x45;
    }

    /// Sets DSCP and ECN.
    #[inline]
    pub fn set_traffic_class(&mut self, traffic_class: u8) {
        self.bytes_mut()[field::TRAFFIC_CLASS] = traffic_class;
    }

    /// Sets the bytes of the packet, header included.
    #[inline]
    pub fn set_total_length(&mut self, length: u16) {
        put(self.bytes_mut(), field::TOTAL_LENGTH, length.to_be_bytes());
    }

    /// Sets the identification.
    #[inline]
    pub fn set_identification(&mut self, id: u16) {
        put(self.bytes_mut(), field::IDENTIFICATION, id.to_be_bytes());
    }

    /// Sets flags and fragment offset together.
    #[inline]
    pub fn set_flags_and_offset(&mut self, value: u16) {
        put(self.bytes_mut(), field::FLAGS_AND_OFFSET, value.to_be_bytes());
    }

    /// Sets the time to live.
    #[inline]
    pub fn set_ttl(&mut self, ttl: u8) {
        self.bytes_mut()[field::TTL] = ttl;
    }

    /// Sets the protocol of the payload.
    #[inline]
    pub fn set_protocol(&mut self, protocol: u8) {
        self.bytes_mut()[field::PROTOCOL] = protocol;
    }

    /// Sets the header checksum.
    #[inline]
    pub fn set_checksum(&mut self, checksum: u16) {
        put(self.bytes_mut(), field::CHECKSUM, checksum.to_be_bytes());
    }

    /// Computes the checksum of a header without options and sets it.
    #[inline]
    pub fn fill_checksum(&mut self) {
        self.set_checksum(0);
        let checksum = self.sum().checksum();
        self.set_checksum(checksum);
    }

    /// Sets the source address; the checksum is not touched.
    #[inline]
    pub fn set_source(&mut self, address: Ipv4Addr) {
        put(self.bytes_mut(), field::SOURCE, address.octets());
    }

    /// Sets the destination address; the checksum is not touched.
    #[inline]
    pub fn set_destination(&mut self, address: Ipv4Addr) {
        put(self.bytes_mut(), field::DESTINATION, address.octets());
    }
}
