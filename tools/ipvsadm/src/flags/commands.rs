//! The flags that say what to do.

use super::{Argument, Flag, Kind, NOTHING};
use crate::failure::Failure;
use crate::legality::Action;

/// In the order of the help text.
pub const ALL: &[&Flag] = &[
    &command(&['A'], "add-service", Action::AddService, "add a virtual service"),
    &command(&['E'], "edit-service", Action::EditService, "replace the options of a service"),
    &command(&['D'], "delete-service", Action::DeleteService, "delete a service with its servers"),
    &command(&['C'], "clear", Action::Flush, "delete all services"),
    &command(&['R'], "restore", Action::Restore, "carry out the commands on standard input"),
    &command(&['S'], "save", Action::Save, "print the commands that rebuild the table"),
    &command(&['a'], "add-server", Action::AddServer, "add a real server to a service"),
    &command(&['e'], "edit-server", Action::EditServer, "replace the options of a real server"),
    &command(&['d'], "delete-server", Action::DeleteServer, "take a real server from a service"),
    &LIST,
    &command(&['Z'], "zero", Action::Zero, "set counters to zero: of all, or of one service"),
    &SET,
    &START_DAEMON,
    &STOP_DAEMON,
    &HELP,
    &VERSION,
];

const fn command(
    short: &'static [char],
    long: &'static str,
    action: Action,
    help: &'static str,
) -> Flag {
    Flag { short, long, argument: Argument::None, kind: Kind::Command(action), help, take: NOTHING }
}

/// `-L`, `-l`
pub const LIST: Flag = Flag {
    short: &['L', 'l'],
    long: "list",
    argument: Argument::None,
    kind: Kind::Command(Action::List),
    help: "list services, connections (-c) or settings",
    take: NOTHING,
};

/// `--set`: its three values are plain words, so they are taken when all flags have been read.
pub const SET: Flag = Flag {
    short: &[],
    long: "set",
    argument: Argument::None,
    kind: Kind::Command(Action::Set),
    help: "set the timeouts TCP TCPFIN UDP, seconds; 0 = as it is",
    take: NOTHING,
};

/// `--start-daemon`
pub const START_DAEMON: Flag = Flag {
    short: &[],
    long: "start-daemon",
    argument: Argument::Required("master|backup"),
    kind: Kind::Command(Action::StartDaemon),
    help: "start to send or receive connections",
    take: |draft, value| {
        draft.sync_backup = sync_role(value, "illegal start-daemon parameter specified")?;
        Ok(())
    },
};

/// `--stop-daemon`
pub const STOP_DAEMON: Flag = Flag {
    short: &[],
    long: "stop-daemon",
    argument: Argument::Required("master|backup"),
    kind: Kind::Command(Action::StopDaemon),
    help: "stop to send or receive connections",
    take: |draft, value| {
        draft.sync_backup = sync_role(value, "illegal start_daemon specified")?;
        Ok(())
    },
};

fn sync_role(value: Option<&str>, complaint: &str) -> Result<bool, Failure> {
    match value {
        Some("master") => Ok(false),
        Some("backup") => Ok(true),
        _ => Err(Failure::usage(complaint)),
    }
}

/// `-h`
pub const HELP: Flag = Flag {
    short: &['h'],
    long: "help",
    argument: Argument::None,
    kind: Kind::Help,
    help: "print this",
    take: NOTHING,
};

/// `-v`
pub const VERSION: Flag = Flag {
    short: &['v'],
    long: "version",
    argument: Argument::None,
    kind: Kind::Version,
    help: "print the version",
    take: NOTHING,
};

#[cfg(test)]
mod tests {
    use crate::order::testing::{complaint, order};

    #[test]
    fn each_command_is_reached_by_both_names() {
        for (short, long) in [
            ("-A -t 10.0.0.1:80", "--add-service --tcp-service 10.0.0.1:80"),
            ("-E -t 10.0.0.1:80", "--edit-service -t 10.0.0.1:80"),
            ("-D -t 10.0.0.1:80", "--delete-service -t 10.0.0.1:80"),
            ("-C", "--clear"),
            ("-R", "--restore"),
            ("-S", "--save"),
            ("-a -t 10.0.0.1:80 -r 10.0.0.2", "--add-server -t 10.0.0.1:80 -r 10.0.0.2"),
            ("-e -t 10.0.0.1:80 -r 10.0.0.2", "--edit-server -t 10.0.0.1:80 -r 10.0.0.2"),
            ("-d -t 10.0.0.1:80 -r 10.0.0.2", "--delete-server -t 10.0.0.1:80 -r 10.0.0.2"),
            ("-L", "--list"),
            ("-l", "--list"),
            ("-Z", "--zero"),
            ("-h", "--help"),
            ("-v", "--version"),
        ] {
            assert_eq!(order(short), order(long), "{short}");
        }
    }

    #[test]
    fn sync_roles_other_than_master_and_backup_are_refused() {
        for (line, message) in [
            ("--start-daemon slave", "illegal start-daemon parameter specified"),
            ("--stop-daemon slave", "illegal start_daemon specified"),
        ] {
            assert_eq!(complaint(line), (message.to_owned(), 2));
        }
    }
}
