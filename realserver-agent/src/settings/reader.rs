//! Tables and values with their key path and place. What is wrong is noted and `None` is given, so
//! that everything that is wrong is found at once.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::key::{KeySpec, Range as Values};
use super::spelling::{list, nearest};
use super::{Fault, duration};

/// A table.
pub(super) struct Table<'a> {
    /// Its key path; empty at the top.
    pub(super) path: String,
    pub(super) span: Range<usize>,
    entries: &'a DeTable<'a>,
    /// Lists of its keys, since some tables have keys in common; none while nobody asks for them.
    known: &'static [&'static [KeySpec]],
}

/// A value.
pub(super) struct Value<'a> {
    /// Its key path.
    pub(super) path: String,
    value: &'a Spanned<DeValue<'a>>,
    /// Which values are right, of this or of its items. Of an unknown key none are said to be, and what
    /// it is read as is nothing: that it is unknown has been told.
    values: Values,
}

impl<'a> Table<'a> {
    /// The whole document.
    pub(super) fn top(document: &'a Spanned<DeTable<'a>>) -> Table<'a> {
        Table { path: String::new(), span: 0..0, entries: document.get_ref(), known: &[] }
    }

    /// The value of a key, when it is there.
    pub(super) fn get(&self, key: &str) -> Option<Value<'a>> {
        let path = match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        };
        let values = self.specs().find(|spec| spec.name == key).map(|spec| spec.range);
        let values = values.unwrap_or(Values::Any);
        self.entries.get(key).map(|value| Value { path, value, values })
    }

    fn specs(&self) -> impl Iterator<Item = &'static KeySpec> {
        self.known.iter().copied().flatten()
    }

    /// The table with these keys. Every other one is noted.
    pub(super) fn only(
        self,
        known: &'static [&'static [KeySpec]],
        faults: &mut Vec<Fault>,
    ) -> Table<'a> {
        let table = Table { known, ..self };
        let known: Vec<&str> = table.specs().map(|spec| spec.name).collect();
        for (key, _) in table.entries.iter() {
            let word: &str = key.get_ref();
            if known.contains(&word) {
                continue;
            }
            faults.push(Fault {
                span: key.span(),
                key: format!("{}.{word}", table.path),
                what: "unknown key".to_owned(),
                remedy: match nearest(word, &known) {
                    Some(near) => format!("did you mean {near}? known are {}", list(&known)),
                    None => format!("remove it; known are {}", list(&known)),
                },
            });
        }
        table
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

    /// A whole number that is right for the key.
    pub(super) fn whole<T: TryFrom<i64>>(&self, faults: &mut Vec<Fault>) -> Option<T> {
        let Values::Numbers(low, high) = self.values else { return None };
        self.within(low..=high, faults)
    }

    /// A whole number of this range.
    pub(super) fn within<T: TryFrom<i64>>(
        &self,
        range: RangeInclusive<i64>,
        faults: &mut Vec<Fault>,
    ) -> Option<T> {
        let (low, high) = (range.start(), range.end());
        let Some(number) = self.value.get_ref().as_integer() else {
            self.kind("a whole number", &format!("a number from {low} to {high}"), faults);
            return None;
        };
        let value = i64::from_str_radix(number.as_str(), number.radix()).ok();
        let value = value.filter(|value| range.contains(value));
        if value.is_none() {
            let remedy = format!("give a number from {low} to {high}");
            self.wrong(format!("{number} is out of range"), remedy, faults);
        }
        T::try_from(value?).ok()
    }

    /// A number that is right for the key, whole or not.
    pub(super) fn number(&self, faults: &mut Vec<Fault>) -> Option<f64> {
        let Values::Numbers(low, high) = self.values else { return None };
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
        let number = number.filter(|number| (low as f64..=high as f64).contains(number));
        if number.is_none() {
            let remedy = format!("give a number from {low} to {high}");
            self.wrong(format!("{text} is out of range"), remedy, faults);
        }
        number
    }

    /// A time that is right for the key.
    pub(super) fn time(&self, faults: &mut Vec<Fault>) -> Option<Duration> {
        let Values::Times(low, high) = self.values else { return None };
        let text = match self.value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::String(text) => text,
            _ => {
                self.kind("a time", duration::GRAMMAR, faults);
                return None;
            }
        };
        let Some(time) = duration::parse(text) else {
            let remedy = format!("write {}", duration::GRAMMAR);
            self.wrong(format!("{text:?} is not a time"), remedy, faults);
            return None;
        };
        if !(low..=high).contains(&time) {
            let (low, high) = (duration::show(low), duration::show(high));
            let remedy = format!("give a time from {low} to {high}");
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
        let (path, span) = (self.path.clone(), self.value.span());
        table.map(|entries| Table { path, span, entries, known: &[] })
    }

    /// The items of an array, their paths counted from 1.
    pub(super) fn items(&self, example: &str, faults: &mut Vec<Fault>) -> Vec<Value<'a>> {
        let Some(items) = self.value.get_ref().as_array() else {
            self.kind("an array", example, faults);
            return Vec::new();
        };
        let item = |(place, value)| {
            let path = format!("{}[{}]", self.path, place + 1);
            Value { path, value, values: self.values }
        };
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
