//! The Internet checksum in full (RFC 1071).

use std::net::IpAddr;

/// A ones' complement sum of 16-bit words in the making.
///
/// ```
/// use forwarding::checksum::Sum;
///
/// // The example of RFC 1071 section 3.
/// let sum = Sum::default().bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
/// assert_eq!(sum.folded(), 0xddf2);
/// assert_eq!(sum.checksum(), 0x220d);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds one word, or the two words of a 32-bit number (their carry is folded in later).
    #[inline]
    pub fn word(self, word: u32) -> Sum {
        // 2^32 of these fit before the accumulator overflows; no packet has as many.
        Sum(self.0 + u64::from(word))
    }

    /// Adds bytes. They must begin at an even place of what is summed; an odd last byte is padded
    /// with 0, so nothing may be added behind it.
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        // A ones' complement sum does not care for byte order (RFC 1071 section 2.B): add as the
        // machine reads, swap once at the end. Each 8 bytes go in as two halves of 32 bits, whose
        // carries have 32 more bits to gather in.
        let (chunks, tail) = bytes.as_chunks::<8>();
        let mut sum: u64 = 0;
        for chunk in chunks {
            let word = u64::from_ne_bytes(*chunk);
            sum += (word & 0xffff_ffff) + (word >> 32);
        }
        // By halves, not through a zeroed buffer: headers are short and the copy would be a call.
        let mut tail = tail;
        if let Some((word, rest)) = tail.split_first_chunk() {
            sum += u64::from(u32::from_ne_bytes(*word));
            tail = rest;
        }
        if let Some((word, rest)) = tail.split_first_chunk() {
            sum += u64::from(u16::from_ne_bytes(*word));
            tail = rest;
        }
        if let [last] = tail {
            sum += u64::from(u16::from_ne_bytes([*last, 0]));
        }
        self.word(u32::from(u16::from_be(fold(sum))))
    }

    /// Adds an address.
    #[inline]
    pub fn address(self, address: IpAddr) -> Sum {
        match address {
            IpAddr::V4(address) => self.word(address.to_bits()),
            IpAddr::V6(address) => self.u128(address.to_bits()),
        }
    }

    /// Adds the eight words of a 128-bit number.
    #[inline]
    pub(crate) fn u128(self, value: u128) -> Sum {
        self.word(value as u32)
            .word((value >> 32) as u32)
            .word((value >> 64) as u32)
            .word((value >> 96) as u32)
    }

    /// The sum, carries folded in. It is 0 only when all that was added was 0.
    #[inline]
    pub fn folded(self) -> u16 {
        fold(self.0)
    }

    /// Whether [`folded`](Sum::folded) is this, sooner told than folded.
    #[inline]
    pub fn is(self, folded: u16) -> bool {
        match self.0 {
            0 => folded == 0,
            // Folding keeps the remainder by 0xffff, of which 0 is never what is left of more than 0.
            sum => folded != 0 && (sum + u64::from(!folded)).is_multiple_of(0xffff),
        }
    }

    /// What a checksum field is filled with: the complement of the sum.
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// Adds the carries back in until 16 bits are left.
#[inline]
fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    sum as u16
}

/// The sum over the pseudo header of TCP, UDP or ICMPv6: of IPv4 as in RFC 9293 section 3.1, of
/// IPv6 as in RFC 8200 section 8.1. `length` is that of transport header and data, in bytes.
#[inline]
pub fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, length: u32) -> Sum {
    Sum::default().address(source).address(destination).word(u32::from(protocol)).word(length)
}
