//! Spans of time as operators write them: `"500ms"`, `"90s"`, `"15m"`, `"2h"`, `"1d"`, or a plain
//! number of seconds.

use std::time::Duration;

/// The units, largest last, in milliseconds.
const UNITS: &[(&str, u64)] =
    &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// How to write one, for error texts.
pub(super) const GRAMMAR: &str =
    "a number with ms, s, m, h or d (\"90s\", \"15m\", \"2h\"), or a plain number of seconds";

/// Reads `text`; `None` when it is not a time or too large to count in milliseconds.
pub(super) fn parse(text: &str) -> Option<Duration> {
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
pub(super) fn show_fine(time: Duration) -> String {
    match u32::try_from(time.as_secs()) {
        Ok(seconds) if time.subsec_millis() == 0 => show(seconds),
        _ => format!("{}ms", time.as_millis()),
    }
}

/// Writes whole seconds in the largest unit that needs no fraction.
pub(super) fn show(seconds: u32) -> String {
    let milliseconds = u64::from(seconds) * 1_000;
    let (name, unit) =
        UNITS.iter().rev().find(|(_, unit)| milliseconds % unit == 0).unwrap_or(&UNITS[1]);
    match milliseconds {
        0 => "0s".to_owned(),
        _ => format!("{}{name}", milliseconds / unit),
    }
}

#[cfg(test)]
mod tests {
    use super::{parse, show, show_fine};
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
        assert_eq!(show(0), "0s");
        assert_eq!(
            [250, 1500, 2000, 120_000].map(Duration::from_millis).map(show_fine),
            ["250ms", "1500ms", "2s", "2m"]
        );
        assert_eq!(show(90), "90s");
        assert_eq!(show(900), "15m");
        assert_eq!(show(7200), "2h");
        assert_eq!(show(2_678_400), "31d");
        assert_eq!(parse(&show(123_457)), Some(Duration::from_secs(123_457)));
    }
}
