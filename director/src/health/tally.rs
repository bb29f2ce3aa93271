//! Rise and fall: what a row of outcomes makes of one check of one server.
//!
//! Counts, and nothing else: it knows no time, no server and no other check.
//!
//! ```text
//!   passed   `rise` in a row (of a check that has never said anything: one)        -> up
//!   failed   `fall` in a row                                                       -> down
//!   soft     up, and `fall` in a row not passed                                    -> draining
//!            down, and `rise` in a row not failed                                  -> draining
//!   unable   counts neither way, and is told once
//! ```

use std::time::Duration;

use super::outcome::Outcome;
use super::plan::Check;
use crate::control::health::{CheckView, HealthState};

/// The outcomes of one check so far.
#[derive(Clone, Debug)]
pub struct Tally {
    rise: u32,
    fall: u32,
    state: HealthState,
    /// Whether the first verdict takes `rise` passes, as that of a server that was down.
    is_cautious: bool,
    /// Passed, in a row; the other three likewise.
    passed: u32,
    not_failed: u32,
    not_passed: u32,
    failed: u32,
    /// Alike, in a row.
    alike: u32,
    last: Option<Kind>,
    words: String,
    took: Duration,
    made: u64,
    failures: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Passed,
    Soft,
    Failed,
    Unable,
}

/// What an outcome has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The check says something else of the server than before.
    pub is_another_state: bool,
    /// The check cannot be made here, and could before: why.
    pub unable: Option<String>,
}

impl Tally {
    /// Of a check that has not been made. `is_cautious`: a pass is not believed before there are
    /// `rise` of them, because the server was not up when it was last heard of.
    pub fn new(check: &Check, is_cautious: bool) -> Tally {
        Tally {
            rise: check.rise.max(1),
            fall: check.fall.max(1),
            state: HealthState::Unchecked,
            is_cautious,
            passed: 0,
            not_failed: 0,
            not_passed: 0,
            failed: 0,
            alike: 0,
            last: None,
            words: String::new(),
            took: Duration::ZERO,
            made: 0,
            failures: 0,
        }
    }

    /// From now on other numbers of outcomes count; what has been counted stays.
    pub fn count_by(&mut self, check: &Check) {
        (self.rise, self.fall) = (check.rise.max(1), check.fall.max(1));
    }

    /// Counts one outcome, which took so long.
    pub fn note(&mut self, outcome: &Outcome, took: Duration) -> Change {
        let (kind, words) = match outcome {
            Outcome::Passed(_) => (Kind::Passed, "passed"),
            Outcome::Soft(words) => (Kind::Soft, words.as_str()),
            Outcome::Failed(words) => (Kind::Failed, words.as_str()),
            Outcome::Unable(words) => (Kind::Unable, words.as_str()),
        };
        let is_first = self.last != Some(kind);
        self.alike = if is_first { 1 } else { self.alike.saturating_add(1) };
        self.last = Some(kind);
        self.took = took;
        self.words.clear();
        self.words.push_str(words);
        if kind == Kind::Unable {
            let unable = is_first.then(|| words.to_owned());
            return Change { unable, ..Change::default() };
        }
        self.made += 1;
        self.failures += u64::from(kind == Kind::Failed);
        for (row, goes_on) in [
            (&mut self.passed, kind == Kind::Passed),
            (&mut self.not_failed, kind != Kind::Failed),
            (&mut self.not_passed, kind != Kind::Passed),
            (&mut self.failed, kind == Kind::Failed),
        ] {
            *row = if goes_on { row.saturating_add(1) } else { 0 };
        }
        let verdict = self.verdict();
        let before = std::mem::replace(&mut self.state, verdict);
        Change { is_another_state: before != verdict, unable: None }
    }

    fn verdict(&self) -> HealthState {
        use HealthState::{Down, Draining, Unchecked, Up};
        let is_new = self.state == Unchecked && !self.is_cautious;
        match self.state {
            _ if self.passed >= self.rise || is_new && self.passed > 0 => Up,
            _ if self.failed >= self.fall => Down,
            Up | Unchecked if self.not_passed >= self.fall => Draining,
            Down if self.not_failed >= self.rise => Draining,
            state => state,
        }
    }

    /// What the check says of the server; [`HealthState::Unchecked`] before there were enough
    /// outcomes.
    pub fn state(&self) -> HealthState {
        self.state
    }

    /// What the last outcome was, in words.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// As the control API shows it.
    pub fn view(&self, kind: &str) -> CheckView {
        CheckView {
            kind: kind.to_owned(),
            state: self.state,
            in_a_row: self.alike,
            last: self.words.clone(),
            took: self.took.as_secs_f64() * 1000.0,
            made: self.made,
            failed: self.failures,
        }
    }
}

#[cfg(test)]
mod tests {
    use HealthState::{Down, Draining, Unchecked, Up};

    use super::*;

    /// The states after each outcome of `row`: `p`assed, `s`oft, `f`ailed, `u`nable.
    fn states(tally: &mut Tally, row: &str) -> Vec<HealthState> {
        let note = |letter| {
            let words = || "words".to_owned();
            let outcome = match letter {
                'p' => Outcome::PASSED,
                's' => Outcome::Soft(words()),
                'f' => Outcome::Failed(words()),
                _ => Outcome::Unable(words()),
            };
            let before = tally.state();
            let change = tally.note(&outcome, Duration::from_millis(3));
            assert_eq!(change.is_another_state, before != tally.state(), "{row}: {letter}");
            tally.state()
        };
        row.chars().map(note).collect()
    }

    fn tally(is_cautious: bool) -> Tally {
        Tally::new(&Check { rise: 2, fall: 3, ..Check::default() }, is_cautious)
    }

    #[test]
    fn only_outcomes_in_a_row_make_a_server_fall_or_rise() {
        let mut tally = tally(false);
        assert_eq!(states(&mut tally, "pffpff"), [Up; 6], "fewer than `fall` in a row");
        assert_eq!(states(&mut tally, "f"), [Down]);
        assert_eq!(states(&mut tally, "pfpf"), [Down; 4], "fewer than `rise` in a row");
        assert_eq!(states(&mut tally, "pp"), [Down, Up]);
    }

    #[test]
    fn one_that_has_never_been_looked_at_needs_one_pass_and_one_that_was_down_rise_of_them() {
        assert_eq!(states(&mut tally(false), "p"), [Up]);
        assert_eq!(states(&mut tally(true), "pfpp"), [Unchecked, Unchecked, Unchecked, Up]);
        assert_eq!(states(&mut tally(false), "fff"), [Unchecked, Unchecked, Down]);
    }

    #[test]
    fn soft_outcomes_drain_an_up_server_after_fall_and_a_down_one_after_rise() {
        let mut tally = tally(false);
        assert_eq!(states(&mut tally, "psfs"), [Up, Up, Up, Draining], "nothing passed");
        assert_eq!(states(&mut tally, "fff"), [Draining, Draining, Down]);
        assert_eq!(states(&mut tally, "sss"), [Down, Draining, Draining]);
        assert_eq!(states(&mut tally, "psspp"), [Draining, Draining, Draining, Draining, Up]);
    }

    #[test]
    fn what_cannot_be_done_here_counts_neither_way_and_is_told_once() {
        let mut tally = tally(false);
        assert_eq!(states(&mut tally, "pff"), [Up; 3]);
        let unable = Outcome::Unable("no descriptors".to_owned());
        let told = |tally: &mut Tally| tally.note(&unable, Duration::ZERO).unable;
        assert_eq!(told(&mut tally).as_deref(), Some("no descriptors"));
        assert_eq!(told(&mut tally), None, "told twice");
        assert_eq!((tally.state(), tally.view("tcp").in_a_row), (Up, 2));
        assert_eq!(states(&mut tally, "f"), [Down], "the row goes on where it was");
        assert!(told(&mut tally).is_some(), "it has worked in between");
        let view = tally.view("tcp");
        assert_eq!((view.made, view.failed, view.last.as_str()), (4, 3, "no descriptors"));
    }
}
