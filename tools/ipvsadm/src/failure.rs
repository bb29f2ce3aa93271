//! How a run ends when it does not end well: the text for stderr and the exit code. The three codes
//! are ipvsadm's own: 2 for a usage error, 255 for an unknown option or a refused change, 1 for a
//! listing that failed.

use crate::popt::Bad;

/// Why nothing more is done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What goes to stderr, without the last newline; empty for silence.
    pub message: String,
    /// Exit code.
    pub code: u8,
    /// Whether a restore stops here rather than going on with its next line.
    pub ends_restore: bool,
}

impl Failure {
    /// A usage error: 2.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 2, ends_restore: true }
    }

    /// No command, an unknown one, or one in the wrong place: 255.
    pub fn try_help() -> Failure {
        let message = "Try `ipvsadm -h' or 'ipvsadm --help' for more information.".to_owned();
        Failure { message, code: 255, ends_restore: true }
    }

    /// An option that the scanner did not understand: 255.
    pub fn option(bad: &Bad) -> Failure {
        Failure { message: bad.to_string(), code: 255, ends_restore: false }
    }

    /// A change that was refused: 255.
    pub fn change(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 255, ends_restore: false }
    }

    /// A listing that could not be made: 1.
    pub fn listing(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 1, ends_restore: true }
    }
}
