//! Tables and values with their key path and place. What is wrong is noted and `None` is given, so
//! that everything that is wrong is found at once.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Fault;

/// Units of a time, in milliseconds: the director's.
const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// A table.
pub(super) struct Table<'a> {
    /// Its key path; empty at the top.
    pub(super) path: String,
    pub(super) span: Range<usize>,
    entries: &'a DeTable<'a>,
}

/// A value.
pub(super) struct Value<'a> {
    /// Its key path.
    pub(super) path: String,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Table<'a> {
    /// The whole document.
    pub(super) fn top(document: &'a Spanned<DeTable<'a>>) -> Table<'a> {
        Table { path: String::new(), span: 0..0, entries: document.get_ref() }
    }

    /// The value of a key, when it is there.
    pub(super) fn get(&self, key: &str) -> Option<Value<'a>> {
        let path = match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        };
        self.entries.get(key).map(|value| Value { path, value })
    }

    /// Notes every key that is none of these.
    pub(super) fn only(&self, known: &[&str], faults: &mut Vec<Fault>) {
        for (key, _) in self.entries.iter() {
            let word: &str = key.get_ref();
            if known.contains(&word) {
                continue;
            }
            let listed = known.join(", ");
            faults.push(Fault {
                span: key.span(),
                key: format!("{}.{word}", self.path),
                what: "unknown key".to_owned(),
                remedy: match nearest(word, known) {
                    Some(near) => format!("did you mean {near}? known are {listed}"),
                    None => format!("remove it; known are {listed}"),
                },
            });
        }
    }

    /// Notes that a key is missing.
    pub(super) fn missing(&self, key: &str, remedy: &str, faults: &mut Vec<Fault>) {
        faults.push(Fault {
            span: self.span.clone(),
            key: format!("{}.{key}", self.path),
            what: "missing".to_owned(),
            remedy: remedy.to_owned(),
        });
    }
}

impl<'a> Value<'a> {
    /// Notes that it is wrong.
    pub(super) fn wrong(
        &self,
        what: impl Into<String>,
        remedy: impl Into<String>,
        faults: &mut Vec<Fault>,
    ) {
        faults.push(Fault {
            span: self.value.span(),
            key: self.path.clone(),
            what: what.into(),
            remedy: remedy.into(),
        });
    }

    fn kind(&self, wanted: &str, example: &str, faults: &mut Vec<Fault>) {
        let found = self.value.get_ref().type_str();
        self.wrong(
            format!("this is of type {found}, and {wanted} belongs here"),
            format!("write {example}"),
            faults,
        );
    }

    /// Whether it is a text.
    pub(super) fn is_text(&self) -> bool {
        self.value.get_ref().is_str()
    }

    /// Whether it is a table.
    pub(super) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    /// Whether it is an array.
    pub(super) fn is_array(&self) -> bool {
        self.value.get_ref().is_array()
    }

    /// Whether it is true or false, and which.
    pub(super) fn as_boolean(&self) -> Option<bool> {
        self.value.get_ref().as_bool()
    }

    /// A text.
    pub(super) fn text(&self, example: &str, faults: &mut Vec<Fault>) -> Option<&'a str> {
        let text = self.value.get_ref().as_str();
        if text.is_none() {
            self.kind("text in quotes", example, faults);
        }
        text
    }

    /// One of these words.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)], faults: &mut Vec<Fault>) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let text = self.text(&format!("one of {} in quotes", names.join(", ")), faults)?;
        let found = words.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            let remedy = match nearest(text, &names) {
                Some(near) => format!("did you mean {near:?}? known are {}", names.join(", ")),
                None => format!("write one of {}", names.join(", ")),
            };
            self.wrong(format!("{text:?} is not known here"), remedy, faults);
        }
        found.map(|(_, value)| *value)
    }

    /// A whole number of this range.
    pub(super) fn whole(&self, range: RangeInclusive<u32>, faults: &mut Vec<Fault>) -> Option<u32> {
        let (low, high) = (range.start(), range.end());
        let Some(number) = self.value.get_ref().as_integer() else {
            self.kind("a whole number", &format!("a number from {low} to {high}"), faults);
            return None;
        };
        let value = u32::from_str_radix(number.as_str(), number.radix()).ok();
        let value = value.filter(|value| range.contains(value));
        if value.is_none() {
            let remedy = format!("give a number from {low} to {high}");
            self.wrong(format!("{number} is out of range"), remedy, faults);
        }
        value
    }

    /// A number of this range, whole or not.
    pub(super) fn number(
        &self,
        range: RangeInclusive<f64>,
        faults: &mut Vec<Fault>,
    ) -> Option<f64> {
        let value = self.value.get_ref();
        let text = match (value.as_integer(), value.as_float()) {
            (Some(whole), _) => whole.as_str(),
            (_, Some(float)) => float.as_str(),
            _ => {
                self.kind("a number", "a number like 1 or 0.5", faults);
                return None;
            }
        };
        let number = text.replace('_', "").parse::<f64>().ok();
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let remedy = format!("give a number from {} to {}", range.start(), range.end());
            self.wrong(format!("{text} is out of range"), remedy, faults);
        }
        number
    }

    /// A time of this range: a number of seconds, or text with a unit.
    pub(super) fn time(
        &self,
        range: RangeInclusive<Duration>,
        faults: &mut Vec<Fault>,
    ) -> Option<Duration> {
        const EXAMPLE: &str = "a number with ms, s, m, h or d (\"500ms\", \"30s\"), or of seconds";
        let text = match self.value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::String(text) => text,
            _ => {
                self.kind("a time", EXAMPLE, faults);
                return None;
            }
        };
        let Some(time) = time(text) else {
            self.wrong(format!("{text:?} is not a time"), format!("write {EXAMPLE}"), faults);
            return None;
        };
        if !range.contains(&time) {
            let remedy = format!("give a time from {:?} to {:?}", range.start(), range.end());
            self.wrong(format!("{text:?} is out of range"), remedy, faults);
            return None;
        }
        Some(time)
    }

    /// A table.
    pub(super) fn table(&self, example: &str, faults: &mut Vec<Fault>) -> Option<Table<'a>> {
        let table = self.value.get_ref().as_table();
        if table.is_none() {
            self.kind("a table", example, faults);
        }
        table.map(|entries| Table { path: self.path.clone(), span: self.value.span(), entries })
    }

    /// The items of an array, their paths counted from 1.
    pub(super) fn items(&self, example: &str, faults: &mut Vec<Fault>) -> Vec<Value<'a>> {
        let Some(items) = self.value.get_ref().as_array() else {
            self.kind("an array", example, faults);
            return Vec::new();
        };
        let item = |(place, value)| Value { path: format!("{}[{}]", self.path, place + 1), value };
        items.iter().enumerate().map(item).collect()
    }

    /// A command with its arguments: at least the program, by its path.
    pub(super) fn command(&self, faults: &mut Vec<Fault>) -> Option<Vec<String>> {
        const EXAMPLE: &str = "[\"/path/of/program\", \"argument\"]";
        let items = self.items(EXAMPLE, faults);
        let words: Vec<String> = items
            .iter()
            .filter_map(|item| item.text("\"text\"", faults).map(str::to_owned))
            .collect();
        if words.len() != items.len() || !self.is_array() {
            return None;
        }
        if !words.first().is_some_and(|program| program.starts_with('/')) {
            let remedy = format!("write {EXAMPLE}: no shell is between, so no PATH is searched");
            self.wrong("a command begins with the whole path of a program", remedy, faults);
            return None;
        }
        Some(words)
    }
}

/// `None` when it is not a time.
fn time(text: &str) -> Option<Duration> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "" => 1_000,
        unit => UNITS.iter().find(|(name, _)| *name == unit)?.1,
    };
    number.parse::<u64>().ok()?.checked_mul(unit).map(Duration::from_millis)
}

/// The known word that a slip of the keyboard (one letter in three) may have been meant for.
fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let far = |candidate: &str| slips(&word.to_lowercase(), candidate);
    let near = |candidate: &&str| far(candidate) <= (candidate.len() / 3).max(1);
    // Nothing of ours is that long, and the work grows with the square.
    let known = known.iter().copied().filter(|_| word.len() <= 40);
    known.filter(near).min_by_key(|candidate| far(candidate))
}

/// Letters to insert, delete or replace to make one of the other.
fn slips(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (above, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (place, other) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[row.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_every_unit_and_nothing_overflows() {
        for (text, milliseconds) in
            [("500ms", 500), ("30s", 30_000), ("2", 2_000), ("1 h", 3_600_000)]
        {
            assert_eq!(time(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "s", "1.5s", "-1s", "1h30m", "18446744073709551615d"] {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn a_slip_finds_its_word_and_a_strange_word_finds_none() {
        let known = ["listen", "key_file", "drain_deadline"];
        assert_eq!(nearest("lisen", &known), Some("listen"));
        assert_eq!(nearest("Key-file", &known), Some("key_file"));
        assert_eq!(nearest("banana", &known), None);
        assert_eq!(nearest(&"x".repeat(10_000), &known), None);
    }
}
