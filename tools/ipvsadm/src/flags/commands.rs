//! The flags that say what to do.

use super::{Argument, Flag, Kind, NOTHING};
use crate::failure::Failure;
use crate::legality::Action;

/// In the order of the manual page.
pub const ALL: &[&Flag] = &[
    &ADD_SERVICE,
    &EDIT_SERVICE,
    &DELETE_SERVICE,
    &CLEAR,
    &RESTORE,
    &SAVE,
    &ADD_SERVER,
    &EDIT_SERVER,
    &DELETE_SERVER,
    &LIST,
    &ZERO,
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
    help: &'static [&'static str],
    about: &'static str,
) -> Flag {
    let kind = Kind::Command(action);
    Flag { short, long, argument: Argument::None, kind, help, about, take: NOTHING }
}

/// `-A`
pub const ADD_SERVICE: Flag = command(
    &['A'],
    "add-service",
    Action::AddService,
    &["add virtual service with options"],
    "Add a virtual service.",
);

/// `-E`
pub const EDIT_SERVICE: Flag = command(
    &['E'],
    "edit-service",
    Action::EditService,
    &["edit virtual service with options"],
    "Replace the options of a service. Those that are not given go back to their defaults.",
);

/// `-D`
pub const DELETE_SERVICE: Flag = command(
    &['D'],
    "delete-service",
    Action::DeleteService,
    &["delete virtual service"],
    "Delete a service with its servers.",
);

/// `-C`
pub const CLEAR: Flag = command(
    &['C'],
    "clear",
    Action::Flush,
    &["clear the whole table"],
    "Delete all services, at once and without a question.",
);

/// `-R`
pub const RESTORE: Flag = command(
    &['R'],
    "restore",
    Action::Restore,
    &["restore rules from stdin"],
    "Carry out the commands on standard input, one to a line, each before the next.",
);

/// `-S`
pub const SAVE: Flag = command(
    &['S'],
    "save",
    Action::Save,
    &["save rules to stdout"],
    "Print the commands that rebuild the table.",
);

/// `-a`
pub const ADD_SERVER: Flag = command(
    &['a'],
    "add-server",
    Action::AddServer,
    &["add real server with options"],
    "Add a real server to a service.",
);

/// `-e`
pub const EDIT_SERVER: Flag = command(
    &['e'],
    "edit-server",
    Action::EditServer,
    &["edit real server with options"],
    "Replace the options of a real server. Those that are not given go back to their defaults.",
);

/// `-d`
pub const DELETE_SERVER: Flag = command(
    &['d'],
    "delete-server",
    Action::DeleteServer,
    &["delete real server"],
    "Take a real server from a service.",
);

/// `-Z`
pub const ZERO: Flag = command(
    &['Z'],
    "zero",
    Action::Zero,
    &["zero counters in a service or all services"],
    "Set the counters to zero, of one service with its servers or of all.",
);

/// `-L`, `-l`
pub const LIST: Flag = Flag {
    short: &['L', 'l'],
    long: "list",
    argument: Argument::None,
    kind: Kind::Command(Action::List),
    help: &["list the table"],
    about: "List services, connections, timeouts or sync daemons. It is what is done without any command.",
    take: NOTHING,
};

/// `--set`: its three values are plain words, so they are taken when all flags have been read.
pub const SET: Flag = Flag {
    short: &[],
    long: "set",
    argument: Argument::Words("tcp tcpfin udp"),
    kind: Kind::Command(Action::Set),
    help: &["set connection timeout values"],
    about: "Set three timeouts, seconds: of established TCP connections, of those that have seen a FIN, and of UDP. 0 leaves one as it is.",
    take: NOTHING,
};

/// `--start-daemon`
pub const START_DAEMON: Flag = Flag {
    short: &[],
    long: "start-daemon",
    argument: Argument::Required("{master|backup}"),
    kind: Kind::Command(Action::StartDaemon),
    help: &["start connection sync daemon"],
    about: "Start to send connections to other directors, or to receive them.",
    take: |draft, value| {
        draft.sync_backup = sync_role(value, "illegal start-daemon parameter specified")?;
        Ok(())
    },
};

/// `--stop-daemon`
pub const STOP_DAEMON: Flag = Flag {
    short: &[],
    long: "stop-daemon",
    argument: Argument::Required("{master|backup}"),
    kind: Kind::Command(Action::StopDaemon),
    help: &["stop connection sync daemon"],
    about: "Stop to send or to receive.",
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
    help: &["display this help message"],
    about: "Print a summary.",
    take: NOTHING,
};

/// `-v`
pub const VERSION: Flag = Flag {
    short: &['v'],
    long: "version",
    argument: Argument::None,
    kind: Kind::Version,
    help: &[],
    about: "Print the version of ipvsadm that this command stands for.",
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
