//! What a change of header fields does to the checksums over them (RFC 1624).

use std::net::IpAddr;

use super::Sum;

/// The difference that replaced words make to a sum. One difference goes into every checksum that
/// covers the words: a new address into that of the IPv4 header and into that of TCP.
///
/// ```
/// use forwarding::checksum::Delta;
///
/// // The example of RFC 1624 section 4, which the older equation gets wrong: 0xffff.
/// assert_eq!(Delta::default().u16(0x5555, 0x3285).apply(0xdd2f), 0x0000);
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "the checksum has not been changed yet"]
pub struct Delta(Sum);

// Equation 3 of RFC 1624: HC' = ~(~HC + ~m + m'). The sum here is the "~m + m'" of all replaced
// words.
impl Delta {
    /// A 16-bit field at an even place was replaced.
    #[inline]
    pub fn u16(self, old: u16, new: u16) -> Delta {
        Delta(self.0.word(u32::from(!old)).word(u32::from(new)))
    }

    /// A 32-bit field at an even place was replaced.
    #[inline]
    pub fn u32(self, old: u32, new: u32) -> Delta {
        Delta(self.0.word(!old).word(new))
    }

    /// A 128-bit field at an even place was replaced.
    #[inline]
    pub fn u128(self, old: u128, new: u128) -> Delta {
        Delta(self.0.u128(!old).u128(new))
    }

    /// An address was replaced. One of the other family is no replacement and changes nothing.
    #[inline]
    pub fn address(self, old: IpAddr, new: IpAddr) -> Delta {
        match (old, new) {
            (IpAddr::V4(old), IpAddr::V4(new)) => self.u32(old.to_bits(), new.to_bits()),
            (IpAddr::V6(old), IpAddr::V6(new)) => self.u128(old.to_bits(), new.to_bits()),
            _ => self,
        }
    }

    /// Bytes whose sum was `old` were replaced by bytes whose sum is `new`.
    #[inline]
    pub fn sum(self, old: Sum, new: Sum) -> Delta {
        self.u16(old.folded(), new.folded())
    }

    /// The checksum after the change. If `checksum` was right so is this one, bit for bit the same
    /// as computed in full.
    #[inline]
    #[must_use]
    pub fn apply(self, checksum: u16) -> u16 {
        self.0.word(u32::from(!checksum)).checksum()
    }
}
