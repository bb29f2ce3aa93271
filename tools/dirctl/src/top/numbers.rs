//! Numbers in few columns, and lines of small bars.

use std::collections::VecDeque;

/// At most five columns: `0`, `0.4`, `999`, `1.23k`, `45.6M`. Negative and odd numbers are shown as 0.
pub fn short(number: f64) -> String {
    if number.is_nan() || number <= 0.0 {
        return "0".to_owned();
    }
    if number < 9.95 && number.fract() > 0.049 {
        return format!("{number:.1}");
    }
    if number < 999.5 {
        return format!("{number:.0}");
    }
    let mut rest = number;
    for unit in ['k', 'M', 'G', 'T', 'P'] {
        rest /= 1000.0;
        if rest < 9.995 {
            return format!("{rest:.2}{unit}");
        }
        if rest < 99.95 {
            return format!("{rest:.1}{unit}");
        }
        if rest < 999.5 {
            return format!("{rest:.0}{unit}");
        }
    }
    "much".to_owned()
}

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The latest `width` values as bars, the largest of them as high as a bar can be; 0 is blank where
/// others are not.
pub fn sparkline(values: &VecDeque<f64>, width: usize) -> String {
    let shown = values.iter().skip(values.len().saturating_sub(width));
    let most = shown.clone().copied().fold(0.0, f64::max);
    let bars = shown.map(|value| {
        if *value <= 0.0 || most <= 0.0 {
            return ' ';
        }
        // 0 < value <= most: 0 to 7.
        let height = (value / most * 8.0).ceil() as usize;
        BARS[height.clamp(1, 8) - 1]
    });
    let bars: String = bars.collect();
    format!("{bars:>width$}")
}

/// `text` in exactly `width` columns: filled up, or with … where its middle is left out.
pub fn fit(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return format!("{text:<width$}");
    }
    if width == 0 {
        return String::new();
    }
    let (head, tail) = ((width - 1).div_ceil(2), (width - 1) / 2);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_takes_more_than_five_columns() {
        let numbers = [0.0, 0.4, 1.0, 9.96, 999.4, 999.6, 1234.0, 9996.0, 45_600.0, 999_600.0];
        let texts = numbers.map(short);
        let expected = ["0", "0.4", "1", "10", "999", "1.00k", "1.23k", "10.0k", "45.6k", "1.00M"];
        assert_eq!(texts, expected);
        for power in -3..30 {
            for digits in [1.0, 1.006, 9.94, 9.96, 9.996] {
                let text = short(digits * 10_f64.powi(power));
                assert!(text.chars().count() <= 5, "{text}");
            }
        }
        assert_eq!([-1.0, f64::NAN, f64::INFINITY].map(short), ["0", "0", "much"]);
    }

    #[test]
    fn bars_are_as_high_as_the_largest_value_shown() {
        let values = VecDeque::from([1000.0, 0.0, 1.0, 4.0, 8.0]);
        assert_eq!(sparkline(&values, 4), " ▁▄█");
        assert_eq!(sparkline(&values, 7), "  █ ▁▁▁");
        assert_eq!(sparkline(&VecDeque::from([0.0, f64::NAN]), 3), "   ");
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(fit("192.0.2.10:80/tcp", 9), "192.…/tcp");
        assert_eq!(fit("ab", 4), "ab  ");
        assert_eq!([fit("abc", 1), fit("abc", 0)], ["…", ""]);
    }
}
