//! What comes of one check.

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server passed.
    Passed(Advice),
    /// It answers, and wants no new connections; those that it has may stay.
    Soft(String),
    /// It failed, and why, in words for an operator (`connect: connection refused`).
    Failed(String),
    /// The check itself could not be done here (no file descriptor, no permission): it says nothing of
    /// the server, and counts neither way.
    Unable(String),
}

/// What a server that passed says beyond that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// Share of the configured weight that it asks for, percent, 0..=1000 (agent-check, exec).
    pub percent: Option<u16>,
}

impl Outcome {
    /// Passed, and nothing more to say.
    pub const PASSED: Outcome = Outcome::Passed(Advice { percent: None });
}
