//! Words and numbers for a terminal.

/// Names and messages may quote what somebody else has written; none of it shall steer a terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// `1 connection`, `2 connections`
pub fn count(number: u64, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// The two largest units: `4 d 3 h`, `3 h 0 min`, `59 s`.
pub fn duration(seconds: f64) -> String {
    // A negative or odd number becomes 0.
    let seconds = seconds as u64;
    let (days, hours) = (seconds / 86400, seconds / 3600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest} s"),
        (0, 0, _) => format!("{minutes} min {rest} s"),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_show_their_two_largest_units() {
        let texts = [0.9, 59.0, 60.0, 3600.0, 356_400.0, -1.0].map(duration);
        assert_eq!(texts, ["0 s", "59 s", "1 min 0 s", "1 h 0 min", "4 d 3 h", "0 s"]);
    }
}
