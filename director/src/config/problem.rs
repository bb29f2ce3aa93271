//! What is wrong in a file, where, and what to do about it.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

/// One thing that is wrong in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The key with its path, services and servers counted from 1: `service[2].server[1].weight`.
    /// Empty when the text is not TOML.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {path}: {source}\n    check the path and that the director may read it (it must be UTF-8 text)", path = path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file says something wrong; every problem is listed.
    #[error("{}", listing(file, problems))]
    Wrong {
        /// The name of the file.
        file: String,
        /// All problems in the order of their lines; at least one.
        problems: Vec<Problem>,
    },
}

impl ConfigError {
    /// The problems in the file; none when it could not be read.
    pub fn problems(&self) -> &[Problem] {
        match self {
            ConfigError::Unreadable { .. } => &[],
            ConfigError::Wrong { problems, .. } => problems,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}\n    {}", self.what, self.remedy)
    }
}

fn listing(file: &str, problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(|problem| format!("{file}:{problem}")).collect();
    lines.join("\n")
}

/// Collects the problems of one text, so that all are reported at once.
pub(super) struct Report<'a> {
    text: &'a str,
    /// Where each line but the first begins: every service asks for its line, and a file of ten
    /// thousand servers is not to be read from its beginning for each.
    lines: Vec<usize>,
    problems: Vec<Problem>,
}

impl<'a> Report<'a> {
    /// Nothing wrong yet.
    pub(super) fn new(text: &'a str) -> Report<'a> {
        let lines = text.match_indices('\n').map(|(end, _)| end + 1).collect();
        Report { text, lines, problems: Vec::new() }
    }

    /// Whether nothing has been found wrong.
    pub(super) fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// Notes a problem at the byte range `span` of the text.
    pub(super) fn add(
        &mut self,
        span: &Range<usize>,
        key: impl Into<String>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let (line, column) = self.place(span.start);
        self.problems.push(Problem {
            line,
            column,
            key: key.into(),
            what: what.into(),
            remedy: remedy.into(),
        });
    }

    /// Notes a problem of a whole `line`.
    pub(super) fn add_line(
        &mut self,
        line: usize,
        key: impl Into<String>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let start = line.checked_sub(2).map_or(0, |above| self.lines[above]);
        self.add(&(start..start), key, what, remedy);
    }

    /// Notes what the TOML parser found.
    pub(super) fn syntax(&mut self, fault: &toml::de::Error) {
        let span = fault.span().unwrap_or(0..0);
        let what = fault.message().replace('\n', ", ");
        let remedy = if what.contains("duplicate key") {
            "give each key once in its table; a further service starts with a line [[service]], a further server with [[service.server]]"
        } else {
            "write TOML: key = value, text in \"double quotes\", tables as [[service]] and [[service.server]]"
        };
        self.add(&span, "", format!("this is not TOML: {what}"), remedy);
    }

    /// The line of a byte offset, from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.place(offset).0
    }

    /// Line and column of a byte offset. An offset inside a character or behind the end is taken
    /// back to where a character starts: spans come from a parser that is not ours.
    fn place(&self, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let above = self.lines.partition_point(|start| *start <= offset);
        let start = above.checked_sub(1).map_or(0, |last| self.lines[last]);
        (above + 1, self.text[start..offset].chars().count() + 1)
    }

    /// The error that tells all.
    pub(super) fn into_error(mut self, file: &str) -> ConfigError {
        self.problems.sort_by_key(|problem| (problem.line, problem.column));
        ConfigError::Wrong { file: file.to_owned(), problems: self.problems }
    }
}
