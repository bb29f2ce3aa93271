//! ICMP (RFC 792) and ICMPv6 (RFC 4443): the first 8 bytes, which both lay out alike.

use super::{put, u16_at, u32_at};
use crate::Family;

/// Bytes before the quoted packet of an error, or before the data of an echo.
pub const LEN: usize = 8;

/// ICMP types and codes.
pub mod v4 {
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 3;
    /// Code of [`UNREACHABLE`]: the host does not answer.
    pub const HOST: u8 = 1;
    /// Code of [`UNREACHABLE`]: nobody listens.
    pub const PORT: u8 = 3;
    /// Code of [`UNREACHABLE`]: fragmentation needed but not allowed; carries the MTU (RFC 1191).
    pub const FRAGMENTATION_NEEDED: u8 = 4;
    /// Source quench (deprecated by RFC 6633).
    pub const SOURCE_QUENCH: u8 = 4;
    /// Redirect.
    pub const REDIRECT: u8 = 5;
    /// Time exceeded; code 0 is "in transit".
    pub const TIME_EXCEEDED: u8 = 11;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 12;
}

/// ICMPv6 types and codes.
pub mod v6 {
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 1;
    /// Code of [`UNREACHABLE`]: the host does not answer.
    pub const ADDRESS: u8 = 3;
    /// Code of [`UNREACHABLE`]: nobody listens.
    pub const PORT: u8 = 4;
    /// Packet too big; carries the MTU.
    pub const TOO_BIG: u8 = 2;
    /// Time exceeded; code 0 is "in transit".
    pub const TIME_EXCEEDED: u8 = 3;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 4;
    /// The first type that is not an error.
    pub const FIRST_INFORMATIONAL: u8 = 128;
    /// Redirect.
    pub const REDIRECT: u8 = 137;
}

mod field {
    pub(super) const TYPE: usize = 0;
    pub(super) const CODE: usize = 1;
    pub(super) const CHECKSUM: usize = 2;
    pub(super) const REST: usize = 4;
}

header! {
    /// The first 8 bytes of an ICMP or ICMPv6 message.
    Header, LEN
}

impl<T: std::borrow::Borrow<[u8; LEN]>> Header<T> {
    /// Type.
    #[inline]
    pub fn kind(&self) -> u8 {
        self.bytes()[field::TYPE]
    }

    /// Code.
    #[inline]
    pub fn code(&self) -> u8 {
        self.bytes()[field::CODE]
    }

    /// Checksum; that of ICMPv6 covers a pseudo header.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.bytes(), field::CHECKSUM)
    }

    /// The four bytes behind the checksum, whose meaning depends on type and code. "Fragmentation
    /// needed" has the MTU in the lower 16 bits, "packet too big" in all 32.
    #[inline]
    pub fn rest(&self) -> u32 {
        u32_at(self.bytes(), field::REST)
    }

    /// Bytes of the quoted packet where the sender says so, because extensions lie behind it
    /// (RFC 4884, which demands at least 128).
    #[inline]
    pub fn quote_len(&self, family: Family) -> Option<usize> {
        let len = match (family, self.kind()) {
            (Family::V4, v4::UNREACHABLE | v4::TIME_EXCEEDED | v4::PARAMETER_PROBLEM) => {
                usize::from(self.bytes()[field::REST + 1]) * 4
            }
            (Family::V6, v6::UNREACHABLE | v6::TIME_EXCEEDED) => {
                usize::from(self.bytes()[field::REST]) * 8
            }
            _ => 0,
        };
        (len >= 128).then_some(len)
    }
}

impl<T: std::borrow::BorrowMut<[u8; LEN]>> Header<T> {
    /// Sets type and code.
    #[inline]
    pub fn set_kind(&mut self, kind: u8, code: u8) {
        self.bytes_mut()[field::TYPE] = kind;
        self.bytes_mut()[field::CODE] = code;
    }

    /// Sets the checksum.
    #[inline]
    pub fn set_checksum(&mut self, checksum: u16) {
        put(self.bytes_mut(), field::CHECKSUM, checksum.to_be_bytes());
    }

    /// Sets the four bytes behind the checksum.
    #[inline]
    pub fn set_rest(&mut self, rest: u32) {
        put(self.bytes_mut(), field::REST, rest.to_be_bytes());
    }
}

/// Whether messages of this type quote the packet that they are an error about: what
/// [`icmp::quoted`](crate::icmp::quoted) looks into. Redirects, which do not concern a connection,
/// are not among them.
#[inline]
pub fn quotes(family: Family, kind: u8) -> bool {
    match family {
        Family::V4 => matches!(
            kind,
            v4::UNREACHABLE | v4::SOURCE_QUENCH | v4::TIME_EXCEEDED | v4::PARAMETER_PROBLEM
        ),
        Family::V6 => (v6::UNREACHABLE..=v6::PARAMETER_PROBLEM).contains(&kind),
    }
}

/// Whether no ICMP error may be sent about a message of this type (RFC 1812 section 4.3.2.7, RFC
/// 4443 section 2.4): it is an error itself, or a redirect.
#[inline]
pub fn is_error(family: Family, kind: u8) -> bool {
    match family {
        Family::V4 => quotes(family, kind) || kind == v4::REDIRECT,
        Family::V6 => kind < v6::FIRST_INFORMATIONAL || kind == v6::REDIRECT,
    }
}
