//! How this host stands: what the agent says of it, and why.
//!
//! Others write here what they find (checks, load, the operator, a signal); who answers reads it.

use std::cell::{Cell, RefCell};

use crate::load::Report;
use crate::protocol::{Answer, State};

/// How this host stands. Belongs to one thread.
#[derive(Debug, Default)]
pub struct Standing {
    /// The operator has said `drain`.
    pub drained: Cell<bool>,
    /// SIGTERM has come.
    pub stopping: Cell<bool>,
    failures: RefCell<Vec<String>>,
    report: RefCell<Report>,
}

impl Standing {
    /// Sets what the local checks find wrong, in words; nothing = all is well.
    pub fn set_failures(&self, failures: Vec<String>) {
        self.failures.replace(failures);
    }

    /// Sets what has been measured.
    pub fn set_report(&self, report: Report) {
        self.report.replace(report);
    }

    /// What has been measured.
    pub fn report(&self) -> Report {
        self.report.borrow().clone()
    }

    /// The state, and why it is so; empty when all is well.
    pub fn state(&self) -> (State, String) {
        let failures = self.failures.borrow();
        let drains = match () {
            () if self.stopping.get() => "the agent is stopping",
            () if self.drained.get() => "drained by the operator",
            () => "",
        };
        let state = match () {
            () if !failures.is_empty() => State::Down,
            () if !drains.is_empty() => State::Draining,
            () => State::Up,
        };
        let reasons = failures.iter().map(String::as_str).chain([drains]);
        (state, reasons.filter(|it| !it.is_empty()).collect::<Vec<_>>().join("; "))
    }

    /// The answer to a challenge.
    pub fn answer(&self, challenge: u64, boot: u64) -> Answer {
        let report = self.report.borrow();
        Answer {
            challenge,
            boot,
            state: self.state().0,
            load: report.load,
            connections: report.connections,
            queue: report.queue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_check_counts_more_than_a_drain_and_a_drain_ends() {
        let standing = Standing::default();
        assert_eq!(standing.state(), (State::Up, String::new()));
        standing.drained.set(true);
        assert_eq!(standing.state().0, State::Draining);
        standing.set_failures(vec!["tcp 192.0.2.10:80: refused".to_owned()]);
        let reason = "tcp 192.0.2.10:80: refused; drained by the operator";
        assert_eq!(standing.state(), (State::Down, reason.to_owned()), "both are told");
        standing.set_failures(Vec::new());
        standing.drained.set(false);
        assert_eq!(standing.state().0, State::Up);
        standing.stopping.set(true);
        assert_eq!(standing.answer(1, 2).state, State::Draining);
    }
}
