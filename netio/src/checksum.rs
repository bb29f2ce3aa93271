//! The Internet checksum, as far as ports need it: to complete a sum that a sender left to the
//! network card, where no card will, and to cut super-frames into segments.
//!
//! Rewrites of headers are the business of another crate; here nobody knows what is summed.

use crate::PartialChecksum;

/// The folded ones' complement sum of `bytes` taken as big-endian 16-bit words (RFC 1071), not
/// inverted; an odd last byte counts as the high half of a word.
pub(crate) fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2);
    let odd = words.remainder().first().map_or(0, |byte| u64::from(*byte) << 8);
    let sum = words.map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u64>();
    fold(sum + odd)
}

/// Adds the carries back in until 16 bits are left.
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Completes the checksum of `frame` that a sender left partial: sums from `partial.start` to the
/// end and stores the inverse. `false`, and no change, when the field is not within the frame.
///
/// A sum of zero is stored as 0xffff, as the kernel's skb_checksum_help() does: zero would mean "no
/// checksum" in UDP, and the two are equal elsewhere.
pub fn complete_checksum(frame: &mut [u8], partial: PartialChecksum) -> bool {
    let start = usize::from(partial.start);
    let field = start + usize::from(partial.offset);
    if field + 2 > frame.len() {
        return false;
    }
    let sum = match !sum(&frame[start..]) {
        0 => 0xffff,
        sum => sum,
    };
    frame[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_rfc_1071_sums_as_printed_there() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
        assert_eq!(sum(&[0xff]), 0xff00);
        assert_eq!(sum(&[]), 0);
    }

    #[test]
    fn a_field_past_the_end_is_left_alone() {
        let mut frame = [1, 2, 3, 4];
        for (start, offset) in [(3, 0), (0, 3), (4, 0), (u16::MAX, u16::MAX)] {
            assert!(!complete_checksum(&mut frame, PartialChecksum { start, offset }));
        }
        assert_eq!(frame, [1, 2, 3, 4]);
    }

    #[test]
    fn a_sum_of_zero_is_sent_as_all_ones() {
        let mut frame = [0xff, 0xff, 0, 0];
        assert!(complete_checksum(&mut frame, PartialChecksum { start: 0, offset: 2 }));
        assert_eq!(frame, [0xff, 0xff, 0xff, 0xff]);
    }

    proptest! {
        /// Whoever verifies sums the pseudo-header and everything and expects all ones.
        #[test]
        fn a_completed_sum_verifies(
            mut frame in prop::collection::vec(any::<u8>(), 8..200),
            pseudo in any::<u16>(),
            start in 0_u16..3,
        ) {
            let partial = PartialChecksum { start, offset: 2 };
            let (start, field) = (usize::from(start), usize::from(start) + 2);
            frame[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
            prop_assert!(complete_checksum(&mut frame, partial));
            let verified = fold(u64::from(sum(&frame[start..])) + u64::from(pseudo));
            // Two representations of zero: only a packet of zeros alone can be the other one.
            prop_assert!(verified == 0xffff || verified == 0);
        }
    }
}
