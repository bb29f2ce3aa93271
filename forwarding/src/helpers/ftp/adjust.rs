//! Writes the numbers of [`SequenceAdjustment`] into segments, and keeps their checksums right.

use super::SequenceAdjustment;
use crate::Headers;
use crate::checksum::{Delta, Partial, Sum};
use crate::wire::tcp;

/// Where the numbers are in a TCP header.
const SEQUENCE: usize = 4;
const ACKNOWLEDGEMENT: usize = 8;

/// Kinds of TCP options that the walk must know (RFC 9293 section 3.1, RFC 2018).
const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_SACK: u8 = 5;

/// Gives a segment from the sender of `adjustment`'s stream the receiver's sequence number. The
/// checksum is updated incrementally, unless `partial` says that it is still to be completed: the
/// pseudo-header sum does not cover it. Anything but the beginning of a TCP segment is left alone.
pub fn adjust_sequence(
    frame: &mut [u8],
    headers: &Headers,
    adjustment: &SequenceAdjustment,
    partial: Option<Partial>,
) {
    edit(frame, headers, adjustment, partial, |header| {
        replace(header, SEQUENCE, |sequence| adjustment.sequence(sequence));
    });
}

/// Gives a segment from the receiver of `adjustment`'s stream the sender's numbers: the
/// acknowledgement number, and those in its SACK option (RFC 2018). Otherwise as
/// [`adjust_sequence`].
pub fn adjust_acknowledgement(
    frame: &mut [u8],
    headers: &Headers,
    adjustment: &SequenceAdjustment,
    partial: Option<Partial>,
) {
    // Without ACK the number means nothing, and no SACK may stand there.
    if headers.tcp_flags & tcp::ACK == 0 {
        return;
    }
    edit(frame, headers, adjustment, partial, |header| {
        replace(header, ACKNOWLEDGEMENT, |number| adjustment.acknowledgement(number));
        if let Some(options) = header.get_mut(tcp::LEN..) {
            adjust_blocks(options, adjustment);
        }
    });
}

/// Changes a TCP header with `change` and its checksum with it.
fn edit(
    frame: &mut [u8],
    headers: &Headers,
    adjustment: &SequenceAdjustment,
    partial: Option<Partial>,
    change: impl FnOnce(&mut [u8]),
) {
    if adjustment.is_idle() || !headers.is_tcp() || headers.is_later_fragment() {
        return;
    }
    let Some(len) = tcp::Header::at(frame, headers.l4).map(|header| header.header_len()) else {
        return;
    };
    let Some(header) = frame.get_mut(headers.l4..headers.l4 + len) else {
        return;
    };
    let before = Sum::default().bytes(header);
    change(header);
    let after = Sum::default().bytes(header);
    if partial.is_some_and(|partial| partial.start == headers.l4) {
        return;
    }
    if let Some(mut header) = tcp::Header::at_mut(header, 0) {
        header.set_checksum(Delta::default().sum(before, after).apply(header.checksum()));
    }
}

/// Replaces the 32-bit number at `at`.
fn replace(bytes: &mut [u8], at: usize, new: impl FnOnce(u32) -> u32) {
    if let Some(place) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = new(u32::from_be_bytes(*place)).to_be_bytes();
    }
}

/// Gives the blocks of a SACK option, wherever it stands among the options, the sender's numbers.
fn adjust_blocks(mut options: &mut [u8], adjustment: &SequenceAdjustment) {
    while let [kind, rest @ ..] = options {
        match *kind {
            OPTION_END => return,
            OPTION_NOP => options = rest,
            kind => {
                let Some((len, rest)) = rest.split_first_mut() else {
                    return;
                };
                // The length counts kind and length.
                let Some(data_len) = usize::from(*len).checked_sub(2) else {
                    return;
                };
                let Some((data, behind)) = rest.split_at_mut_checked(data_len) else {
                    return;
                };
                if kind == OPTION_SACK {
                    for block in data.as_chunks_mut::<8>().0 {
                        *block = selective(*block, adjustment);
                    }
                }
                options = behind;
            }
        }
    }
}

/// A block of a SACK option: the first number and the one behind the last.
fn selective(block: [u8; 8], adjustment: &SequenceAdjustment) -> [u8; 8] {
    let edges = u64::from_be_bytes(block);
    let (left, right) = adjustment.selective((edges >> 32) as u32, edges as u32);
    (u64::from(left) << 32 | u64::from(right)).to_be_bytes()
}
