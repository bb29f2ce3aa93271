//! SIP over UDP (RFC 3261): the Call-ID, by which the `sip` persistence engine keeps all messages of
//! a call on one server.
//!
//! Reads as the kernel's engine does (`ip_vs_pe_sip.c` with `nf_conntrack_sip.c`): lines may end in
//! CR, LF or CRLF; the name is `Call-ID` or its compact form `i` in any case; the value is a word,
//! or two with `@` between, and ends with its line. Between name and value there may be spaces and
//! folds; the value itself is not folded. Nothing else of the message is judged.

use std::ops::Range;

/// The longest Call-ID that counts, in bytes (`IP_VS_PEDATA_MAXLEN` of the kernel).
pub const MAX_CALL_ID: usize = 255;

/// Where the Call-ID stands in the data of a UDP datagram. `None` when it has none, or when it is
/// empty, malformed, cut off, or longer than [`MAX_CALL_ID`]: persistence then goes by the client's
/// address.
///
/// ```
/// let message = b"BYE sip:bob@example.com SIP/2.0\r\ni: a84b4c76e66710@pc33\r\n\r\n";
/// let range = forwarding::helpers::sip::call_id(message).unwrap();
/// assert_eq!(&message[range], b"a84b4c76e66710@pc33");
/// ```
pub fn call_id(payload: &[u8]) -> Option<Range<usize>> {
    // A header follows a line end, so the request or status line is never one.
    let mut at = 0;
    loop {
        at += payload.get(at..)?.iter().position(|byte| is_line_end(*byte))?;
        at = behind_line_end(payload, at);
        let Some(name) = name_len(payload.get(at..)?) else {
            continue;
        };
        // A longer name that only begins alike ends the search, as it does in the kernel.
        at = skip_space(payload, at + name)?;
        if payload.get(at) != Some(&b':') {
            return None;
        }
        let start = skip_space(payload, at + 1)?;
        let len = value_len(payload.get(start..)?);
        if len == 0 {
            // An empty or malformed one does not end it: there may be another.
            at = start;
            continue;
        }
        let terminated = payload.get(start + len).is_some_and(|byte| is_line_end(*byte));
        return (len <= MAX_CALL_ID && terminated).then_some(start..start + len);
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// The place behind the line end at `at`: CR, LF or CRLF.
fn behind_line_end(payload: &[u8], at: usize) -> usize {
    match payload.get(at..at + 2) {
        Some(b"\r\n") => at + 2,
        _ => at + 1,
    }
}

/// Bytes of the header's name, when `line` begins with it. The compact form is one only when no
/// letter follows.
fn name_len(line: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"Call-ID";
    if line.get(..NAME.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(NAME)) {
        return Some(NAME.len());
    }
    match line {
        [b'i' | b'I', next, ..] if !next.is_ascii_alphabetic() => Some(1),
        _ => None,
    }
}

/// The place behind spaces and folds (a line end, then a space or tab). `None` when the header ends
/// here.
fn skip_space(payload: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match payload.get(at)? {
            b' ' => at += 1,
            byte if is_line_end(*byte) => {
                at = behind_line_end(payload, at);
                let folded = payload.get(at..)?;
                let blanks = folded.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
                if blanks == 0 {
                    return None;
                }
                at += blanks;
            }
            _ => return Some(at),
        }
    }
}

/// Bytes of the Call-ID at the beginning of `value`: `word` or `word@word`. 0 when it is neither.
fn value_len(value: &[u8]) -> usize {
    let local = word_len(value);
    match value.get(local..) {
        Some([b'@', host @ ..]) if local > 0 => match word_len(host) {
            0 => 0,
            host => local + 1 + host,
        },
        _ => local,
    }
}

/// Bytes of the word at the beginning of `text`, as the kernel takes the grammar's `word` (RFC 3261
/// section 25.1, and a comma).
fn word_len(text: &[u8]) -> usize {
    let is_word = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'('..=b'/' | b'['..=b']')
            || b"!\"%:<>?_`{}~".contains(byte)
    };
    text.iter().take_while(|byte| is_word(byte)).count()
}

#[cfg(test)]
mod tests;
