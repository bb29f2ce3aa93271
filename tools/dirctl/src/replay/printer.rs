//! What a replay says, for people or programs, and what is to be done when nobody can be told.

use std::io::{self, BufWriter, Write};

use super::arguments::Replay;
use super::lines::{self, Line};
use super::summary;
use crate::outlet::{USAGE, paint};
use crate::paint::Paint;

/// Standard output, for people or programs.
pub(super) struct Printer {
    to: BufWriter<io::Stdout>,
    json: bool,
    quiet: bool,
    paint: Paint,
    /// Nothing more can be written.
    over: Option<io::Error>,
}

impl Printer {
    pub(super) fn new(words: &Replay) -> Printer {
        let to = BufWriter::with_capacity(1 << 16, io::stdout());
        Printer { to, json: words.json, quiet: words.quiet, paint: paint(), over: None }
    }

    pub(super) fn packet(&mut self, line: &Line<'_>) {
        if self.quiet || self.over.is_some() {
            return;
        }
        let written = match self.json {
            true => lines::json(&mut self.to, line),
            false => lines::text(&mut self.to, line, self.paint),
        };
        self.over = written.err();
    }

    pub(super) fn summary(&mut self, whole: &summary::Whole<'_>) {
        if self.over.is_some() {
            return;
        }
        let text = match self.json {
            true => summary::json(whole),
            false => summary::text(whole, self.paint, !self.quiet),
        };
        self.over = self.to.write_all(text.as_bytes()).and_then(|()| self.to.flush()).err();
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// A reader that has left is no concern of ours; that not all could be written is told.
    pub(super) fn code(self) -> u8 {
        match self.over {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                let _ = writeln!(io::stderr(), "dirctl: standard output: {error}");
                USAGE
            }
            _ => 0,
        }
    }
}
