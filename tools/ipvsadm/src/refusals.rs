//! What ipvsadm says when the kernel refuses something, for the same refusals of the director.

use director::control::api::{Refusal, RefusalKind};
use director::control::operations::Command;

/// What to say: the words of ipvsadm, and what the director adds for a person who reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The line that scripts know.
    pub line: String,
    /// The director's reason, where the line does not give it.
    pub reason: Option<String>,
}

/// The text for a refused command; `None` for a listing.
pub fn told(command: Option<&Command>, refusal: &Refusal) -> Told {
    let line = match refusal.error {
        RefusalKind::ServiceExists => "Service already exists",
        RefusalKind::ServerExists => "Destination already exists",
        RefusalKind::NoSuchServer => "No such destination",
        RefusalKind::NoSuchScheduler => "Scheduler or persistence engine not found",
        RefusalKind::NoSuchService => match command {
            Some(
                Command::AddServer { .. }
                | Command::EditServer { .. }
                | Command::DeleteServer { .. },
            ) => "Service not defined",
            _ => "No such service",
        },
        RefusalKind::Invalid
        | RefusalKind::BadFile
        | RefusalKind::NeedsRestart
        | RefusalKind::NothingWaits
        | RefusalKind::BadRequest => {
            // Two blanks, as in the original.
            "Invalid operation.  Possibly wrong module version, address not unicast, ..."
        }
        RefusalKind::Range => "Numerical result out of range",
        RefusalKind::Busy => "Resource temporarily unavailable",
        RefusalKind::Internal => "Input/output error",
        RefusalKind::Unsupported => {
            // The kernel has one text for this and it speaks of IPv6; here it is about features.
            let line = format!("Operation not supported: {}", refusal.message);
            return Told { line, reason: None };
        }
    };
    let reason = match refusal.error {
        RefusalKind::Invalid
        | RefusalKind::BadRequest
        | RefusalKind::Range
        | RefusalKind::Busy
        | RefusalKind::Internal => Some(refusal.message.clone()),
        _ => None,
    };
    Told { line: line.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::testing::command;

    #[test]
    fn refusals_are_told_in_the_kernels_words_for_each_command() {
        for (line, error, text) in [
            ("-A -f 7", RefusalKind::ServiceExists, "Service already exists"),
            ("-A -f 7", RefusalKind::NoSuchScheduler, "Scheduler or persistence engine not found"),
            ("-E -f 7", RefusalKind::NoSuchService, "No such service"),
            ("-D -f 7", RefusalKind::NoSuchService, "No such service"),
            ("-Z -f 7", RefusalKind::NoSuchService, "No such service"),
            ("-a -f 7 -r 10.0.0.1", RefusalKind::NoSuchService, "Service not defined"),
            ("-a -f 7 -r 10.0.0.1", RefusalKind::ServerExists, "Destination already exists"),
            ("-e -f 7 -r 10.0.0.1", RefusalKind::NoSuchService, "Service not defined"),
            ("-e -f 7 -r 10.0.0.1", RefusalKind::NoSuchServer, "No such destination"),
            ("-d -f 7 -r 10.0.0.1", RefusalKind::NoSuchService, "Service not defined"),
            ("-d -f 7 -r 10.0.0.1", RefusalKind::NoSuchServer, "No such destination"),
            (
                "-A -f 7",
                RefusalKind::Invalid,
                "Invalid operation.  Possibly wrong module version, address not unicast, ...",
            ),
            ("-e -f 7 -r 10.0.0.1", RefusalKind::Range, "Numerical result out of range"),
        ] {
            let refusal = Refusal { error, message: "because".to_owned() };
            assert_eq!(told(Some(&command(line)), &refusal).line, text, "{line} {error:?}");
        }
    }
}
