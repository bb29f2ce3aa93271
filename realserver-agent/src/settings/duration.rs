//! Spans of time as operators write them: `"500ms"`, `"90s"`, `"15m"`, `"2h"`, `"1d"`, or a plain
//! number of seconds.

use std::time::Duration;

/// The units, largest last, in milliseconds.
const UNITS: &[(&str, u64)] =
    &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// How to write one, for error texts.
pub const GRAMMAR: &str =
    "a whole number with ms, s, m, h or d (\"90s\", \"15m\", \"2h\"), or a plain number of seconds";

/// Reads `text`; `None` when it is not a time or too large to count in milliseconds.
pub fn parse(text: &str) -> Option<Duration> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let unit = match unit.trim() {
        "" => 1_000,
        unit => UNITS.iter().find(|(name, _)| *name == unit)?.1,
    };
    number.checked_mul(unit).map(Duration::from_millis)
}

/// Writes a time in the largest unit that needs no fraction, milliseconds at least.
pub fn show(time: Duration) -> String {
    let milliseconds = time.as_millis();
    let fits = |(_, unit): &&(&str, u64)| milliseconds.is_multiple_of(u128::from(*unit));
    match UNITS.iter().rev().find(fits) {
        Some((name, unit)) if milliseconds > 0 => {
            format!("{}{name}", milliseconds / u128::from(*unit))
        }
        _ => "0s".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{parse, show};
    use std::time::Duration;

    #[test]
    fn every_unit_and_a_bare_number_are_understood() {
        assert_eq!(parse("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(parse("90s"), Some(Duration::from_secs(90)));
        assert_eq!(parse("15m"), Some(Duration::from_secs(900)));
        assert_eq!(parse("2h"), Some(Duration::from_secs(7200)));
        assert_eq!(parse("31d"), Some(Duration::from_secs(2_678_400)));
        assert_eq!(parse("300"), Some(Duration::from_secs(300)));
        assert_eq!(parse("5 m"), Some(Duration::from_secs(300)));
    }

    #[test]
    fn what_is_not_a_time_is_refused_and_nothing_overflows() {
        for text in ["", "m", "1.5h", "-3s", "5 minutes", "1h30m", "٣s", "5m "] {
            let expected = (text == "5m ").then_some(Duration::from_secs(300));
            assert_eq!(parse(text), expected, "{text:?}");
        }
        assert_eq!(parse("18446744073709551615d"), None);
        assert_eq!(parse("99999999999999999999"), None);
    }

    #[test]
    fn a_time_is_shown_in_the_unit_a_person_would_use() {
        for text in ["0s", "250ms", "1500ms", "2s", "90s", "2m", "15m", "2h", "31d", "123457s"] {
            assert_eq!(parse(text).map(show).as_deref(), Some(text));
        }
    }
}
