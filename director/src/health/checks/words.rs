//! Text of a server's, made fit for a line of log.

/// The most letters of a server's text that are repeated.
const MOST: usize = 200;

/// The first line that has something in it, without control characters and cut to 200 letters.
pub(super) fn first_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.split(['\n', '\r']).map(|line| {
        let letters = line.chars().filter(|letter| !letter.is_control()).take(MOST);
        letters.collect::<String>().trim().to_owned()
    });
    lines.find(|line| !line.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_long_lines_do_not_reach_the_log() {
        assert_eq!(first_line(b"\n \r\n\x1b[31mred\x07\tand \xff\nmore"), "[31mredand \u{fffd}");
        assert_eq!(first_line(&[b'x'; 5000]).len(), MOST);
        assert_eq!(first_line(b""), "");
    }
}
