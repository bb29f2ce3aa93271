//! The flags that say what to list and how.

use super::{Argument, Flag, Kind, NOTHING, Take};
use crate::legality::Opt;

/// In the order of the manual page.
pub const ALL: &[&Flag] = &[
    &CONNECTION,
    &TIMEOUT,
    &DAEMON,
    &NUMERIC,
    &STATS,
    &RATE,
    &EXACT,
    &THRESHOLDS,
    &PERSISTENT_CONN,
    &TUN_INFO,
    &SORT,
    &NOSORT,
];

const fn flag(
    short: &'static [char],
    long: &'static str,
    option: Opt,
    help: &'static [&'static str],
    about: &'static str,
    take: Take,
) -> Flag {
    let kind = Kind::Option(Some(option));
    Flag { short, long, argument: Argument::None, kind, help, about, take }
}

/// `-c`
pub const CONNECTION: Flag = flag(
    &['c'],
    "connection",
    Opt::Connection,
    &["output of current IPVS connections"],
    "List connections and persistence templates, in no order.",
    NOTHING,
);

/// `--timeout`
pub const TIMEOUT: Flag = flag(
    &[],
    "timeout",
    Opt::Timeout,
    &["output of timeout (tcp tcpfin udp)"],
    "List the timeouts that --set sets.",
    NOTHING,
);

/// `--daemon`
pub const DAEMON: Flag = flag(
    &[],
    "daemon",
    Opt::Daemon,
    &["output of daemon information"],
    "List the sync daemons.",
    NOTHING,
);

/// `-n`
pub const NUMERIC: Flag = flag(
    &['n'],
    "numeric",
    Opt::Numeric,
    &["numeric output of addresses and ports"],
    "Numbers in place of names of hosts and ports.",
    |draft, _| {
        draft.format.numeric = true;
        Ok(())
    },
);

/// `--stats`
pub const STATS: Flag = flag(
    &[],
    "stats",
    Opt::Stats,
    &["output of statistics information"],
    "List counters.",
    |draft, _| {
        draft.format.stats = true;
        Ok(())
    },
);

/// `--rate`
pub const RATE: Flag = flag(
    &[],
    "rate",
    Opt::Rate,
    &["output of rate information"],
    "List what the counters make per second.",
    |draft, _| {
        draft.format.rate = true;
        Ok(())
    },
);

/// `-X`
pub const EXACT: Flag = flag(
    &['X'],
    "exact",
    Opt::Exact,
    &["expand numbers (display exact values)"],
    "All digits of large counters and rates, in place of K, M, G and T.",
    |draft, _| {
        draft.format.exact = true;
        Ok(())
    },
);

/// `--thresholds`
pub const THRESHOLDS: Flag = flag(
    &[],
    "thresholds",
    Opt::Thresholds,
    &["output of thresholds information"],
    "List the thresholds of servers.",
    |draft, _| {
        draft.format.thresholds = true;
        Ok(())
    },
);

/// `--persistent-conn`
pub const PERSISTENT_CONN: Flag = flag(
    &[],
    "persistent-conn",
    Opt::PersistentConn,
    &["output of persistent connection info"],
    "List how many templates servers have; with -c, what a persistence engine goes by.",
    |draft, _| {
        draft.format.persistent = true;
        Ok(())
    },
);

/// `--tun-info`
pub const TUN_INFO: Flag = flag(
    &[],
    "tun-info",
    Opt::TunInfo,
    &["output of tunnel information"],
    "List kinds of tunnel.",
    |draft, _| {
        draft.format.tunnel = true;
        Ok(())
    },
);

/// `--nosort`
pub const NOSORT: Flag = flag(
    &[],
    "nosort",
    Opt::NoSort,
    &["disable sorting output of service/server entries"],
    "In the director's order, newest servers first.",
    |draft, _| {
        draft.format.unsorted = true;
        Ok(())
    },
);

/// `--sort` has been the default for so long that it does nothing.
pub const SORT: Flag = Flag {
    short: &[],
    long: "sort",
    argument: Argument::None,
    kind: Kind::Option(None),
    help: &["does nothing, for backwards compatibility"],
    about: "By address, as it is without this option.",
    take: NOTHING,
};

#[cfg(test)]
mod tests {
    use director::control::filter::ConnectionFilter;

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
            ("-L --json", Format { json: true, ..plain }),
            ("-L --tun-info --nosort", Format { tunnel: true, unsorted: true, ..plain }),
        ] {
            assert_eq!(listing(line), (What::Table, format), "{line}");
        }
    }

    #[test]
    fn what_to_list_is_said_by_at_most_one_flag() {
        let all = What::Connections(ConnectionFilter::default());
        assert_eq!(listing("-L -c").0, all);
        assert_eq!(listing("-L --timeout").0, What::Timeouts);
        assert_eq!(listing("-L --daemon --syncid 3").0, What::Daemons);
        assert!(matches!(listing("-L -t 10.0.0.1:80").0, What::Service(_)));
        assert_eq!(listing("-L -c --persistent-conn").0, all);
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
