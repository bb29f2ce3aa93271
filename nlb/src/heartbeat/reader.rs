//! Reading bytes in order; the end of them is an answer, never a panic.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is left to read.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A count of at most `most`.
    pub(super) fn count(&mut self, most: usize) -> Option<usize> {
        self.u8().map(usize::from).filter(|&count| count <= most)
    }

    /// A family byte and the address.
    pub(super) fn address(&mut self) -> Option<IpAddr> {
        match self.u8()? {
            4 => self.array().map(|octets: [u8; 4]| Ipv4Addr::from(octets).into()),
            6 => self.array().map(|octets: [u8; 16]| Ipv6Addr::from(octets).into()),
            _ => None,
        }
    }
}
