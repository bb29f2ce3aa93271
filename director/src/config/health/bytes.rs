//! Bytes as operators write them: text in which `\xNN` is a byte, or `hex:` and digits.

/// How to write them, for error texts.
pub(super) const GRAMMAR: &str =
    "ASCII text in single quotes where \\xNN is a byte, 'PING\\x0d\\x0a', or \"hex:50494e47\"";

/// Reads `text`. Letters beyond ASCII are refused: which bytes they are is not for a reader to guess.
pub(super) fn parse(text: &str) -> Result<Vec<u8>, String> {
    if let Some(digits) = text.strip_prefix("hex:") {
        return hexadecimal(digits);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        bytes.push(match letter {
            '\\' => escape(&mut rest)?,
            letter if letter.is_ascii() => letter as u8,
            letter => return Err(format!("{letter:?} is not ASCII")),
        });
    }
    Ok(bytes)
}

/// What stands behind a backslash.
fn escape(rest: &mut std::str::Chars<'_>) -> Result<u8, String> {
    match rest.next() {
        Some('x') => {
            let digits: String = rest.by_ref().take(2).collect();
            let is_whole =
                digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let byte = u8::from_str_radix(&digits, 16).ok().filter(|_| is_whole);
            byte.ok_or_else(|| format!("\\x{digits} is no byte"))
        }
        Some('n') => Ok(b'\n'),
        Some('r') => Ok(b'\r'),
        Some('t') => Ok(b'\t'),
        Some('\\') => Ok(b'\\'),
        Some(letter) => Err(format!("\\{} is not known here", letter.escape_debug())),
        None => Err("a backslash stands at the end".to_owned()),
    }
}

fn hexadecimal(digits: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = digits.bytes().filter(|&digit| digit != b' ').collect();
    let pairs = digits.chunks(2).map(|pair| {
        let is_pair = pair.len() == 2 && pair.iter().all(u8::is_ascii_hexdigit);
        let pair = std::str::from_utf8(pair).ok().filter(|_| is_pair);
        pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())
    });
    let bytes: Option<Vec<u8>> = pairs.collect();
    bytes.ok_or_else(|| "is no even number of hexadecimal digits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn escapes_and_hexadecimal_are_bytes() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("PING", b"PING"),
            (r"\x00a\xFF\n\r\t\\", b"\x00a\xff\n\r\t\\"),
            ("hex:", b""),
            ("hex:00ff Ab", b"\x00\xff\xab"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_byte_is_named() {
        for (text, what) in [
            (r"\x0", r"\x0 is no byte"),
            (r"\x+1", r"\x+1 is no byte"),
            (r"\xé0", r"\xé0 is no byte"),
            (r"a\q", r"\q is not known here"),
            ("\\", "a backslash stands at the end"),
            ("ÿ", "'ÿ' is not ASCII"),
            ("hex:0", "is no even number of hexadecimal digits"),
            ("hex:+1", "is no even number of hexadecimal digits"),
            ("hex:é", "is no even number of hexadecimal digits"),
        ] {
            assert_eq!(parse(text), Err(what.to_owned()));
        }
    }
}
