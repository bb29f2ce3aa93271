//! Tables and values of the file with their key path and place, and the checks of type and range
//! that every key shares. A getter that finds something wrong notes it and returns `None`; the
//! caller then goes on with what else there is to check.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use realserver_agent::settings::key::{KeySpec, Range as Values};
use realserver_agent::settings::spelling::{list, nearest};
use realserver_agent::settings::{duration, share};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::Report;
use super::reference;

/// The keys of a table: lists of them, since some tables have keys in common.
pub(super) type Known = &'static [&'static [KeySpec]];

/// One table whose keys are known.
pub(super) struct Fields<'a> {
    path: String,
    span: Range<usize>,
    table: &'a DeTable<'a>,
    known: Known,
}

/// One value with its key path.
#[derive(Clone)]
pub(super) struct Field<'a> {
    /// Path of the key, for error texts.
    pub(super) path: String,
    value: &'a Spanned<DeValue<'a>>,
    /// Which values are right, of this or of its items. Of an unknown key none are said to be, and what
    /// it is read as is nothing: that it is unknown has been told.
    values: Values,
}

impl<'a> Fields<'a> {
    /// The whole document.
    pub(super) fn root(
        document: &'a Spanned<DeTable<'a>>,
        known: Known,
        report: &mut Report<'_>,
    ) -> Fields<'a> {
        // The root has no header line to point at: what is missing is missing at the top.
        Fields::new(String::new(), 0..0, document.get_ref(), known, report)
    }

    fn new(
        path: String,
        span: Range<usize>,
        table: &'a DeTable<'a>,
        known: Known,
        report: &mut Report<'_>,
    ) -> Fields<'a> {
        let fields = Fields { path, span, table, known };
        for (key, _) in table.iter() {
            let word: &str = key.get_ref();
            if fields.spec(word).is_none() {
                let known: Vec<&str> = fields.specs().map(|spec| spec.name).collect();
                let remedy = match nearest(word, &known) {
                    Some(near) => format!("did you mean {near}? known are {}", list(&known)),
                    None => match reference::home(word) {
                        Some(home) => format!("{home}; known here are {}", list(&known)),
                        None => format!("remove it; known are {}", list(&known)),
                    },
                };
                let path = fields.path_of(word);
                report.add(&key.span(), path, "unknown key", remedy);
            }
        }
        fields
    }

    fn specs(&self) -> impl Iterator<Item = &'static KeySpec> {
        self.known.iter().copied().flatten()
    }

    fn spec(&self, key: &str) -> Option<&'static KeySpec> {
        self.specs().find(|spec| spec.name == key)
    }

    /// The path that a key of this table has.
    pub(super) fn path_of(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    /// The value of `key`, when it is there.
    pub(super) fn get(&self, key: &str) -> Option<Field<'a>> {
        let values = |spec: &KeySpec| spec.range;
        self.table.get(key).map(|value| Field {
            path: self.path_of(key),
            value,
            values: self.spec(key).map_or(Values::Any, values),
        })
    }

    /// Notes that the table as a whole is wrong.
    pub(super) fn wrong(
        &self,
        what: impl Into<String>,
        remedy: impl Into<String>,
        report: &mut Report<'_>,
    ) {
        report.add(&self.span, self.path.clone(), what, remedy);
    }

    /// Notes that `key` is wrong in that it is missing: the place is the head of the table.
    pub(super) fn missing(&self, key: &str, remedy: impl Into<String>, report: &mut Report<'_>) {
        report.add(&self.span, self.path_of(key), "missing", remedy);
    }
}

impl<'a> Field<'a> {
    /// Notes that the value is wrong.
    pub(super) fn wrong(
        &self,
        what: impl Into<String>,
        remedy: impl Into<String>,
        report: &mut Report<'_>,
    ) {
        report.add(&self.value.span(), self.path.clone(), what, remedy);
    }

    fn wrong_type(&self, wanted: &str, example: &str, report: &mut Report<'_>) {
        let found = match self.value.get_ref().type_str() {
            kind @ ("integer" | "array" | "inline table") => format!("an {kind}"),
            kind => format!("a {kind}"),
        };
        let what = format!("{found} stands where {wanted} belongs");
        self.wrong(what, format!("write {example}"), report);
    }

    /// Whether the value is a table, for keys that take a short and a long form.
    pub(super) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    /// Whether the value is a text, for keys that take a number or a text.
    pub(super) fn is_text(&self) -> bool {
        self.value.get_ref().is_str()
    }

    /// Whether the value is true or false, likewise.
    pub(super) fn is_boolean(&self) -> bool {
        self.value.get_ref().is_bool()
    }

    /// Whether the value says that something is not wanted.
    pub(super) fn is_false(&self) -> bool {
        self.value.get_ref().as_bool() == Some(false)
    }

    /// Whether the value is an array, for keys that take one thing or several.
    pub(super) fn is_array(&self) -> bool {
        self.value.get_ref().is_array()
    }

    /// The value of `key`, when this is a table and has it. Says nothing of the table's other keys:
    /// that is for who reads it as a [`table`](Field::table).
    pub(super) fn key(&self, key: &str) -> Option<Field<'a>> {
        let value = self.value.get_ref().as_table()?.get(key)?;
        Some(Field { path: format!("{}.{key}", self.path), value, values: Values::Any })
    }

    /// Where the value starts, in bytes.
    pub(super) fn offset(&self) -> usize {
        self.value.span().start
    }

    /// A text; `example` shows how to write it.
    pub(super) fn text(&self, example: &str, report: &mut Report<'_>) -> Option<&'a str> {
        let text = self.value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type("text in quotes", example, report);
        }
        text
    }

    /// One of the given words.
    pub(super) fn word<T: Copy>(
        &self,
        words: &[(&'static str, T)],
        report: &mut Report<'_>,
    ) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let text = self.text(&format!("one of {} in quotes", list(&names)), report)?;
        let found = words.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            let remedy = match nearest(text, &names) {
                Some(near) => format!("did you mean {near:?}? known are {}", list(&names)),
                None => format!("write one of {}", list(&names)),
            };
            self.wrong(format!("{text:?} is not known here"), remedy, report);
        }
        found.map(|(_, value)| *value)
    }

    /// `true` or `false`.
    pub(super) fn boolean(&self, report: &mut Report<'_>) -> Option<bool> {
        let value = self.value.get_ref().as_bool();
        if value.is_none() {
            self.wrong_type("true or false", "true or false without quotes", report);
        }
        value
    }

    /// A whole number that is right for the key; `meaning` is told with the range when it is not.
    pub(super) fn number<T: TryFrom<i64>>(
        &self,
        meaning: &str,
        report: &mut Report<'_>,
    ) -> Option<T> {
        let Values::Numbers(low, high) = self.values else { return None };
        T::try_from(self.integer(low..=high, meaning, report)?).ok()
    }

    /// A whole number within `range`; `meaning` is told with the range when it is not.
    pub(super) fn integer(
        &self,
        range: RangeInclusive<i64>,
        meaning: &str,
        report: &mut Report<'_>,
    ) -> Option<i64> {
        let (low, high) = (range.start(), range.end());
        let Some(number) = self.value.get_ref().as_integer() else {
            let example = format!("a number from {low} to {high} without quotes");
            self.wrong_type("a whole number", &example, report);
            return None;
        };
        let value = i64::from_str_radix(number.as_str(), number.radix()).ok();
        match value {
            Some(value) if range.contains(&value) => Some(value),
            _ => {
                self.wrong(
                    format!("{number} is out of range"),
                    format!("give a number from {low} to {high}{meaning}"),
                    report,
                );
                None
            }
        }
    }

    /// A time as it is written.
    fn any_time(&self, report: &mut Report<'_>) -> Option<(&'a str, Duration)> {
        let written = match self.value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::String(text) => text,
            _ => {
                self.wrong_type("a time", duration::GRAMMAR, report);
                return None;
            }
        };
        let Some(time) = duration::parse(written) else {
            self.wrong(
                format!("{written:?} is not a time"),
                format!("write {}", duration::GRAMMAR),
                report,
            );
            return None;
        };
        Some((written, time))
    }

    /// A time that is right for the key, to the millisecond.
    pub(super) fn time(&self, report: &mut Report<'_>) -> Option<Duration> {
        let Values::Times(low, high) = self.values else { return None };
        let (written, time) = self.any_time(report)?;
        if (low..=high).contains(&time) {
            return Some(time);
        }
        self.wrong(
            format!("{written:?} is out of range"),
            format!("give a time from {} to {}", duration::show(low), duration::show(high)),
            report,
        );
        None
    }

    /// A time that is right for the key, in whole seconds.
    pub(super) fn seconds(&self, report: &mut Report<'_>) -> Option<u32> {
        let (written, time) = self.any_time(report)?;
        if time.subsec_millis() != 0 {
            let Values::Times(low, high) = self.values else { return None };
            let (low, high) = (duration::show(low), duration::show(high));
            self.wrong(
                format!("{written:?} is not a whole number of seconds"),
                format!("connections are timed in seconds; give {low} to {high}"),
                report,
            );
            return None;
        }
        u32::try_from(self.time(report)?.as_secs()).ok()
    }

    /// A share that is right for the key, in thousandths.
    pub(super) fn share(&self, report: &mut Report<'_>) -> Option<u16> {
        let Values::Shares(low, high) = self.values else { return None };
        let text = self.text(share::GRAMMAR, report)?;
        let Some(permille) = share::parse(text) else {
            let remedy = format!("write {}", share::GRAMMAR);
            self.wrong(format!("{text:?} is not a share"), remedy, report);
            return None;
        };
        if !(low..=high).contains(&permille) {
            self.wrong(
                format!("{text:?} is out of range"),
                format!("give a share from {} to {}", share::show(low), share::show(high)),
                report,
            );
            return None;
        }
        Some(permille)
    }

    /// A table with the given keys.
    pub(super) fn table(
        &self,
        known: Known,
        example: &str,
        report: &mut Report<'_>,
    ) -> Option<Fields<'a>> {
        match self.value.get_ref() {
            DeValue::Table(table) => {
                Some(Fields::new(self.path.clone(), self.value.span(), table, known, report))
            }
            _ => {
                self.wrong_type("a table", example, report);
                None
            }
        }
    }

    /// The items of an array, their paths counted from 1.
    pub(super) fn items(&self, example: &str, report: &mut Report<'_>) -> Option<Vec<Field<'a>>> {
        match self.value.get_ref() {
            DeValue::Array(items) => Some(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, value)| Field {
                        path: format!("{}[{}]", self.path, index + 1),
                        value,
                        values: self.values,
                    })
                    .collect(),
            ),
            _ => {
                self.wrong_type("an array", example, report);
                None
            }
        }
    }
}

/// Replaces `value` by that of `key`, if it is there and right.
pub(super) fn set<'a, T>(
    value: &mut T,
    table: &Fields<'a>,
    key: &str,
    read: impl FnOnce(Field<'a>) -> Option<T>,
) {
    if let Some(new) = table.get(key).and_then(read) {
        *value = new;
    }
}
