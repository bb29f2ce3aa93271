//! Keys of the configuration file as data: what may stand there, and what the reference says of it.
//!
//! The parser takes a key's range from here and nowhere else, and the tables of
//! `docs/configuration.md` and of the manual page are written from here, so that what is read there is
//! what holds. Knows the words of the file; must not know what becomes of a value.

use std::fmt;
use std::time::Duration;

use super::{duration, share};

/// One key of a table. Texts are Markdown of one line without `|`.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// The key.
    pub name: &'static str,
    /// What it does.
    pub does: &'static str,
    /// The types that its value may have: `number`, `text or table`.
    pub kind: &'static str,
    /// What its absence means; empty when it means nothing that could be written.
    pub default: &'static str,
    /// The values of it that are right.
    pub range: Range,
    /// What else has to hold, and of what the range is when it is of one of several types.
    pub note: &'static str,
}

/// Which values of a key are right, both ends included.
#[derive(Clone, Copy)]
pub enum Range {
    /// All of the type, or what the note says.
    Any,
    /// Numbers.
    Numbers(i64, i64),
    /// Times.
    Times(Duration, Duration),
    /// Shares, in thousandths.
    Shares(u16, u16),
    /// These words.
    Words(fn() -> Vec<&'static str>),
}

/// A key called `name`, which `does` this: text of any kind, for a start.
pub const fn key(name: &'static str, does: &'static str) -> KeySpec {
    KeySpec { name, does, kind: "text", default: "none", range: Range::Any, note: "" }
}

/// The words of a table of words and their values, for [`KeySpec::words`].
pub fn names<T>(words: &[(&'static str, T)]) -> Vec<&'static str> {
    words.iter().map(|(name, _)| *name).collect()
}

/// Milliseconds, for [`KeySpec::times`].
pub const fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// Seconds, for [`KeySpec::times`].
pub const fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

impl KeySpec {
    /// A number within this range.
    pub const fn numbers(self, low: i64, high: i64) -> KeySpec {
        KeySpec { range: Range::Numbers(low, high), kind: "number", ..self }
    }

    /// A time within this range.
    pub const fn times(self, low: Duration, high: Duration) -> KeySpec {
        KeySpec { range: Range::Times(low, high), kind: "time", ..self }
    }

    /// A share within this range, in thousandths.
    pub const fn shares(self, low: u16, high: u16) -> KeySpec {
        KeySpec { range: Range::Shares(low, high), kind: "share", ..self }
    }

    /// One of these words.
    pub const fn words(self, words: fn() -> Vec<&'static str>) -> KeySpec {
        KeySpec { range: Range::Words(words), kind: "text", ..self }
    }

    /// True or false.
    pub const fn boolean(self) -> KeySpec {
        KeySpec { kind: "true/false", ..self }
    }

    /// Of these types; the range, when there is one, is that of the items or of one of the types.
    pub const fn of(self, kind: &'static str) -> KeySpec {
        KeySpec { kind, ..self }
    }

    /// What its absence means.
    pub const fn default(self, default: &'static str) -> KeySpec {
        KeySpec { default, ..self }
    }

    /// It must be there.
    pub const fn required(self) -> KeySpec {
        self.default("required")
    }

    /// What else has to hold, in place of a range or behind it.
    pub const fn note(self, note: &'static str) -> KeySpec {
        KeySpec { note, ..self }
    }

    /// The range as the reference tells it, with the note.
    pub fn values(&self) -> String {
        match (self.range.to_string(), self.note) {
            (range, "") => range,
            (range, note) if range.is_empty() => note.to_owned(),
            (range, note) => format!("{range}, {note}"),
        }
    }
}

impl fmt::Display for Range {
    /// Markdown; nothing when all is right.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Range::Any => Ok(()),
            Range::Numbers(low, high) => write!(f, "{low} to {high}"),
            Range::Times(low, high) => {
                write!(f, "`\"{}\"` to `\"{}\"`", duration::show(low), duration::show(high))
            }
            Range::Shares(low, high) => {
                write!(f, "`\"{}\"` to `\"{}\"`", share::show(low), share::show(high))
            }
            Range::Words(words) => {
                let quoted: Vec<String> =
                    words().iter().map(|word| format!("`\"{word}\"`")).collect();
                f.write_str(&quoted.join(", "))
            }
        }
    }
}

impl fmt::Debug for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
