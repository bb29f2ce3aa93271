//! The rule of a time zone in one line, `CET-1CEST,M3.5.0,M10.5.0/3` (POSIX `TZ`), and the calendar
//! that it needs.

/// What it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Seconds east of Greenwich.
    standard: i64,
    summer: Option<Summer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Summer {
    offset: i64,
    start: Change,
    end: Change,
}

/// When the clock is changed: a day of the year, and seconds after its midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    day: Day,
    time: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Day {
    /// 1..=365, the 29th of February not counted.
    Julian(i64),
    /// 0..=365
    OfYear(i64),
    /// Month, week (5 = the last), day of the week from Sunday = 0.
    OfWeek(i64, i64, i64),
}

impl Rule {
    /// Reads one; `None` when it is none.
    pub(super) fn parse(text: &str) -> Option<Rule> {
        let (standard, rest) = offset(name(text)?)?;
        if rest.is_empty() {
            return Some(Rule { standard: -standard, summer: None });
        }
        let rest = name(rest)?;
        let (summer, rest) = match rest.strip_prefix(',') {
            Some(_) => (standard - 3600, rest),
            None => offset(rest)?,
        };
        let (start, end) = rest.strip_prefix(',')?.split_once(',')?;
        let summer = Summer { offset: -summer, start: change(start)?, end: change(end)? };
        Some(Rule { standard: -standard, summer: Some(summer) })
    }

    /// Seconds east of Greenwich at `time`, seconds since 1970-01-01 UTC.
    pub(super) fn offset(&self, time: i64) -> i64 {
        let Some(summer) = &self.summer else { return self.standard };
        let (year, ..) = date(time.saturating_add(self.standard).div_euclid(86_400));
        let start = summer.start.in_year(year) - self.standard;
        let end = summer.end.in_year(year) - summer.offset;
        // In the south summer lies around the turn of the year.
        let is_summer =
            if start < end { (start..end).contains(&time) } else { !(end..start).contains(&time) };
        if is_summer { summer.offset } else { self.standard }
    }
}

impl Change {
    /// Seconds since 1970-01-01, by the clock that goes before the change.
    fn in_year(self, year: i64) -> i64 {
        let first = days(year, 1, 1);
        let is_leap = days(year + 1, 1, 1) - first == 366;
        let day = match self.day {
            Day::Julian(day) => first + day - 1 + i64::from(is_leap && day >= 60),
            Day::OfYear(day) => first + day,
            Day::OfWeek(month, week, weekday) => {
                let first = days(year, month, 1);
                // 1970-01-01 was a Thursday.
                let ahead = (weekday - (first + 4)).rem_euclid(7);
                let next =
                    if month == 12 { days(year + 1, 1, 1) } else { days(year, month + 1, 1) };
                let day = first + ahead + 7 * (week - 1);
                if day >= next { day - 7 } else { day }
            }
        };
        day * 86_400 + self.time
    }
}

/// What follows the name of a zone.
fn name(text: &str) -> Option<&str> {
    if let Some(quoted) = text.strip_prefix('<') {
        return quoted.split_once('>').map(|(_, rest)| rest);
    }
    let end = text.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(text.len());
    (end >= 3).then(|| &text[end..])
}

/// `[+-]hh[:mm[:ss]]` in seconds, and what follows.
fn offset(text: &str) -> Option<(i64, &str)> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let is_part = |letter: char| letter.is_ascii_digit() || letter == ':';
    let end = digits.find(|letter: char| !is_part(letter)).unwrap_or(digits.len());
    let mut seconds = 0;
    let mut unit = 3600;
    for part in digits[..end].split(':') {
        let number: i64 = part.parse().ok().filter(|number| *number < 168)?;
        seconds += number * unit;
        unit /= 60;
    }
    Some((sign * seconds, &digits[end..]))
}

fn change(text: &str) -> Option<Change> {
    let (day, time) = text.split_once('/').unwrap_or((text, "2"));
    let within = |text: &str, low, high| {
        text.parse::<i64>().ok().filter(|number| (low..=high).contains(number))
    };
    let day = if let Some(day) = day.strip_prefix('J') {
        Day::Julian(within(day, 1, 365)?)
    } else if let Some(day) = day.strip_prefix('M') {
        let mut parts = day.split('.');
        let mut part = |low, high| within(parts.next()?, low, high);
        Day::OfWeek(part(1, 12)?, part(1, 5)?, part(0, 6)?)
    } else {
        Day::OfYear(within(day, 0, 365)?)
    };
    let (time, rest) = offset(time)?;
    rest.is_empty().then_some(Change { day, time })
}

/// Days from 1970-01-01 to a day of the Gregorian calendar. Years begin in March here, so that the
/// day of the leap is the last of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month < 3 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leaps + of_year - 719_468
}

/// Year, month and day of a day counted from 1970-01-01.
pub(super) fn date(day: i64) -> (i64, i64, i64) {
    // 400 years have 146097 days; the estimate is off by one year at most.
    let mut year = 1970 + (day.saturating_mul(400)).div_euclid(146_097);
    while days(year, 1, 1) > day {
        year -= 1;
    }
    while days(year + 1, 1, 1) <= day {
        year += 1;
    }
    let month = (1..=12).rev().find(|month| days(year, *month, 1) <= day).unwrap_or(1);
    (year, month, day - days(year, month, 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_goes_to_and_fro() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(-1), (1969, 12, 31));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(20_788), (2026, 12, 1));
        for day in (-200_000..200_000).step_by(17) {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), day);
        }
    }

    #[test]
    fn clocks_change_at_the_second() {
        let berlin = Rule::parse("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        // 2026-03-29 01:00 and 2026-10-25 01:00 UTC
        for (time, offset) in [
            (1_774_745_999, 3600),
            (1_774_746_000, 7200),
            (1_792_889_999, 7200),
            (1_792_890_000, 3600),
        ] {
            assert_eq!(berlin.offset(time), offset, "{time}");
        }
        let sydney = Rule::parse("AEST-10AEDT,M10.1.0,M4.1.0/3").unwrap();
        // 2026-01-01 and 2026-07-01 UTC
        assert_eq!((sydney.offset(1_767_225_600), sydney.offset(1_782_864_000)), (39_600, 36_000));
        assert_eq!(Rule::parse("<+0545>-5:45").unwrap().offset(0), 20_700);
        let days = Rule::parse("AAA0BBB,J60,300").unwrap();
        // 2024-03-01 02:00 UTC: J60 is the first of March in leap years too.
        assert_eq!((days.offset(1_709_258_399), days.offset(1_709_258_400)), (0, 3600));
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in [
            "",
            "CET",
            "CE-1",
            "CET-1CEST",
            "CET-1CEST,M3.5.0",
            "CET-1CEST,M13.1.0,M1.1.0",
            "CET-1CEST,M3.5.0,M10.5.0/x",
            "<CET-1",
            "CET-999999999999999999999",
            "CET-1CEST,M3.5,J1",
        ] {
            assert_eq!(Rule::parse(text), None, "{text}");
        }
    }
}
