//! The flags that say what to list and how.

use super::{Argument, Flag, Kind, NOTHING, Take};
use crate::legality::Opt;

/// In the order of the help text.
pub const ALL: &[&Flag] = &[
    &flag(&['c'], "connection", Opt::Connection, "list connections", NOTHING),
    &flag(&[], "timeout", Opt::Timeout, "list the timeouts", NOTHING),
    &flag(&[], "daemon", Opt::Daemon, "list the sync daemons", NOTHING),
    &flag(&['n'], "numeric", Opt::Numeric, "numbers instead of names", |draft, _| {
        draft.format.numeric = true;
        Ok(())
    }),
    &flag(&[], "stats", Opt::Stats, "counters", |draft, _| {
        draft.format.stats = true;
        Ok(())
    }),
    &flag(&[], "rate", Opt::Rate, "what the counters make per second", |draft, _| {
        draft.format.rate = true;
        Ok(())
    }),
    &flag(&['X'], "exact", Opt::Exact, "", |draft, _| {
        draft.format.exact = true;
        Ok(())
    }),
    &flag(&[], "thresholds", Opt::Thresholds, "thresholds of the servers", |draft, _| {
        draft.format.thresholds = true;
        Ok(())
    }),
    &flag(&[], "persistent-conn", Opt::PersistentConn, "persistence templates", |draft, _| {
        draft.format.persistent = true;
        Ok(())
    }),
    &flag(&[], "tun-info", Opt::TunInfo, "kinds of tunnel", |draft, _| {
        draft.format.tunnel = true;
        Ok(())
    }),
    &SORT,
    &flag(&[], "nosort", Opt::NoSort, "newest first instead of by address", |draft, _| {
        draft.format.unsorted = true;
        Ok(())
    }),
];

const fn flag(
    short: &'static [char],
    long: &'static str,
    option: Opt,
    help: &'static str,
    take: Take,
) -> Flag {
    let kind = Kind::Option(Some(option));
    Flag { short, long, argument: Argument::None, kind, help, take }
}

/// `--sort` has been the default for so long that it does nothing.
pub const SORT: Flag = Flag {
    short: &[],
    long: "sort",
    argument: Argument::None,
    kind: Kind::Option(None),
    help: "by address (default)",
    take: NOTHING,
};

#[cfg(test)]
mod tests {
    use crate::layout::Format;
    use crate::order::testing::{complaint, order};
    use crate::order::{Order, What};

    fn listing(line: &str) -> (What, Format) {
        match order(line) {
            Order::List { what, format } => (what, format),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn each_flag_changes_the_format_it_names() {
        let plain = Format::default();
        for (line, format) in [
            ("-L", plain),
            ("-L --sort", plain),
            ("-Ln", Format { numeric: true, ..plain }),
            ("-L --stats", Format { stats: true, ..plain }),
            ("-L --rate -X", Format { rate: true, exact: true, ..plain }),
            ("-L --thresholds", Format { thresholds: true, ..plain }),
            ("-L --persistent-conn", Format { persistent: true, ..plain }),
            ("-L --tun-info --nosort", Format { tunnel: true, unsorted: true, ..plain }),
        ] {
            assert_eq!(listing(line), (What::Table, format), "{line}");
        }
    }

    #[test]
    fn what_to_list_is_said_by_at_most_one_flag() {
        assert_eq!(listing("-L -c").0, What::Connections);
        assert_eq!(listing("-L --timeout").0, What::Timeouts);
        assert_eq!(listing("-L --daemon --syncid 3").0, What::Daemons);
        assert!(matches!(listing("-L -t 10.0.0.1:80").0, What::Service(_)));
        assert_eq!(listing("-L -c --persistent-conn").0, What::Connections);
        let conflict = ("options conflicts in the list command".to_owned(), 2);
        for line in [
            "-L -c --stats",
            "-L -c --rate",
            "-L --timeout --thresholds",
            "-L --daemon --persistent-conn",
            "-L --timeout --persistent-conn",
        ] {
            assert_eq!(complaint(line), conflict, "{line}");
        }
        let message = "The option 'timeout' conflicts with the 'connection' option in the 'list' \
                       command";
        assert_eq!(complaint("-L -c --timeout"), (message.to_owned(), 2));
    }
}
