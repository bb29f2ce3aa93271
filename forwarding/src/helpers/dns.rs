//! DNS over UDP (RFC 1035): the name of a question, by which queries for one name go to one server.
//!
//! Only a plain query counts, since a datagram that is anything else is no reason to look longer:
//!
//! * a query (QR 0) of the standard kind (opcode 0) with one question and no other record, but for
//!   one that EDNS adds (RFC 6891), which then fills the rest of the datagram;
//! * its name is labels of 1..=63 bytes, at most 255 bytes with the root's 0, without compression: no
//!   name precedes it that it could refer to, and a pointer to itself is the classic trap;
//! * type and class follow, and no bytes without meaning.
//!
//! Type, class and the other flags are not judged. The scan takes as many steps as the name has labels,
//! at most 127, and nothing is copied but one label at a time.

use std::hash::Hasher;

/// Bytes of the header: id, flags, and the numbers of the four kinds of records.
const HEADER: usize = 12;
/// The longest label.
const MAX_LABEL: usize = 63;
/// The longest name on the wire, length bytes and the root's 0 included.
const MAX_NAME: usize = 255;
/// QR and opcode in the flags.
const KIND: u8 = 0xf8;
/// Bytes of type and class behind a name.
const TYPE_AND_CLASS: usize = 4;
/// The type of EDNS's record.
const OPT: [u8; 2] = 41_u16.to_be_bytes();

/// Finishes `hasher` over the name of the question in the data of a UDP datagram: every label with its
/// length before it, A-Z as a-z, and the root's 0. `None` when it is no plain query, see the
/// [module](self).
///
/// What the hasher gets does not depend on how the client spells the name, and may come in any number
/// of pieces.
///
/// ```
/// use forwarding::helpers::dns::question_name_hash;
/// use std::hash::DefaultHasher;
///
/// let query = |name: &[u8]| {
///     [&[0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0], name, &[0, 1, 0, 1]].concat()
/// };
/// let hash = |packet: &[u8]| question_name_hash(packet, DefaultHasher::new());
/// let plain = hash(&query(b"\x03www\x07example\0"));
/// assert!(plain.is_some());
/// assert_eq!(hash(&query(b"\x03wWw\x07EXAMPLE\0")), plain);
/// assert_ne!(hash(&query(b"\x03ftp\x07example\0")), plain);
/// assert_eq!(hash(&query(b"\x03www\xc0\x0c")), None);
/// ```
pub fn question_name_hash(payload: &[u8], mut hasher: impl Hasher) -> Option<u64> {
    let name = question_name(payload)?;
    let mut rest = name;
    while let Some((&length, tail)) = rest.split_first() {
        // `question_name` has seen that each label is all there.
        let (label, tail) = tail.split_at_checked(usize::from(length))?;
        let mut folded = [0; 1 + MAX_LABEL];
        let folded = folded.get_mut(..=label.len())?;
        folded[0] = length;
        folded[1..].copy_from_slice(label);
        folded[1..].make_ascii_lowercase();
        hasher.write(folded);
        rest = tail;
    }
    Some(hasher.finish())
}

/// The name of the question as it is on the wire, with the root's 0 and as the client spells it. `None`
/// when it is no plain query.
pub fn question_name(payload: &[u8]) -> Option<&[u8]> {
    let (header, body) = payload.split_at_checked(HEADER)?;
    let [_, _, kind, _, counts @ ..] = header else { return None };
    if kind & KIND != 0 {
        return None;
    }
    let has_more = match counts {
        [0, 1, 0, 0, 0, 0, 0, more @ (0 | 1)] => *more == 1,
        _ => return None,
    };
    let (name, rest) = body.split_at_checked(name_len(body)?)?;
    let (_, rest) = rest.split_at_checked(TYPE_AND_CLASS)?;
    let is_plain = if has_more { is_opt(rest) } else { rest.is_empty() };
    is_plain.then_some(name)
}

/// Bytes of the name that `body` begins with.
fn name_len(body: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let length = usize::from(*body.get(at)?);
        // Pointers and the two kinds of labels that never came to be have larger first bytes.
        if length > MAX_LABEL {
            return None;
        }
        at += 1 + length;
        if at > MAX_NAME {
            return None;
        }
        if length == 0 {
            return Some(at);
        }
    }
}

/// Whether `record` is that of EDNS and nothing else: root, type, payload size, flags, and data.
fn is_opt(record: &[u8]) -> bool {
    match record {
        [0, high, low, _, _, _, _, _, _, len_high, len_low, data @ ..] => {
            [*high, *low] == OPT
                && data.len() == usize::from(u16::from_be_bytes([*len_high, *len_low]))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
