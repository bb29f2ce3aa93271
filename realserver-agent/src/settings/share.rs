//! Shares as operators write them: `"10%"`, `"2.5%"`. In thousandths inside.

/// How to write one, for error texts.
pub const GRAMMAR: &str = "a number with % in quotes, of one decimal at most: \"10%\" or \"2.5%\"";

/// Reads `text`, to a tenth of a percent; `None` when it is no share, or above 6553.5 %.
pub fn parse(text: &str) -> Option<u16> {
    let number = text.strip_suffix('%')?.trim_end();
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || tenth.len() != 1 || !are_digits(whole) || !are_digits(tenth) {
        return None;
    }
    let permille = whole.parse::<u32>().ok()?.checked_mul(10)? + tenth.parse::<u32>().ok()?;
    u16::try_from(permille).ok()
}

/// Writes it as it is read.
pub fn show(permille: u16) -> String {
    match permille % 10 {
        0 => format!("{}%", permille / 10),
        tenth => format!("{}.{tenth}%", permille / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_to_a_tenth_of_a_percent_and_nothing_overflows() {
        for (text, permille) in [
            ("10%", 100),
            ("2.5%", 25),
            ("0.1 %", 1),
            ("100%", 1000),
            ("0%", 0),
            ("6553.5%", 65_535),
        ] {
            assert_eq!(parse(text), Some(permille), "{text}");
        }
        for text in
            ["10", "%", ".5%", "1.%", "1.25%", "-1%", "+1%", "6553.6%", "99999999999%", "1e2%"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!([25, 100, 65_535].map(show), ["2.5%", "10%", "6553.5%"]);
    }
}
