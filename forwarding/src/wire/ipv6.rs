//! IPv6 (RFC 8200): the fixed header. Extension headers are in [`extension`](super::extension).

use std::net::Ipv6Addr;

use super::{put, take, u16_at, u32_at};

/// Bytes of the fixed header.
pub const LEN: usize = 40;

mod field {
    pub(super) const FIRST_WORD: usize = 0;
    pub(super) const PAYLOAD_LENGTH: usize = 4;
    pub(super) const NEXT_HEADER: usize = 6;
    pub(super) const HOP_LIMIT: usize = 7;
    pub(super) const SOURCE: usize = 8;
    pub(super) const DESTINATION: usize = 24;
}

header! {
    /// An IPv6 header.
    Header, LEN
}

impl<T: std::borrow::Borrow<[u8; LEN]>> Header<T> {
    /// IP version; 6 is the only right value.
    #[inline]
    pub fn version(&self) -> u8 {
        self.bytes()[field::FIRST_WORD] >> 4
    }

    /// DSCP (6 bits) and ECN (2 bits).
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        (u16_at(self.bytes(), field::FIRST_WORD) >> 4) as u8
    }

    /// Flow label, 20 bits.
    #[inline]
    pub fn flow_label(&self) -> u32 {
        u32_at(self.bytes(), field::FIRST_WORD) & 0x000f_ffff
    }

    /// Bytes behind this header, extension headers included; 0 in a jumbogram.
    #[inline]
    pub fn payload_length(&self) -> u16 {
        u16_at(self.bytes(), field::PAYLOAD_LENGTH)
    }

    /// What follows ([`protocol`](super::protocol)).
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.bytes()[field::NEXT_HEADER]
    }

    /// Hop limit.
    #[inline]
    pub fn hop_limit(&self) -> u8 {
        self.bytes()[field::HOP_LIMIT]
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> Ipv6Addr {
        Ipv6Addr::from(take::<16, LEN>(self.bytes(), field::SOURCE))
    }

    /// Destination address.
    #[inline]
    pub fn destination(&self) -> Ipv6Addr {
        Ipv6Addr::from(take::<16, LEN>(self.bytes(), field::DESTINATION))
    }
}

impl<T: std::borrow::BorrowMut<[u8; LEN]>> Header<T> {
    /// Begins a header: version 6, all other fields 0.
    #[inline]
    pub fn clear(&mut self) {
        *self.bytes_mut() = [0; LEN];
        self.bytes_mut()[field::FIRST_WORD] = 0x60;
    }

    /// Sets DSCP and ECN.
    #[inline]
    pub fn set_traffic_class(&mut self, traffic_class: u8) {
        let rest = u16_at(self.bytes(), field::FIRST_WORD) & 0xf00f;
        let word = rest | u16::from(traffic_class) << 4;
        put(self.bytes_mut(), field::FIRST_WORD, word.to_be_bytes());
    }

    /// Sets the bytes behind this header.
    #[inline]
    pub fn set_payload_length(&mut self, length: u16) {
        put(self.bytes_mut(), field::PAYLOAD_LENGTH, length.to_be_bytes());
    }

    /// Sets what follows.
    #[inline]
    pub fn set_next_header(&mut self, protocol: u8) {
        self.bytes_mut()[field::NEXT_HEADER] = protocol;
    }

    /// Sets the hop limit.
    #[inline]
    pub fn set_hop_limit(&mut self, hop_limit: u8) {
        self.bytes_mut()[field::HOP_LIMIT] = hop_limit;
    }

    /// Sets the source address.
    #[inline]
    pub fn set_source(&mut self, address: Ipv6Addr) {
        put(self.bytes_mut(), field::SOURCE, address.octets());
    }

    /// Sets the destination address.
    #[inline]
    pub fn set_destination(&mut self, address: Ipv6Addr) {
        put(self.bytes_mut(), field::DESTINATION, address.octets());
    }
}
