//! The flags that ipvsadm does not have. `-h`, which is ipvsadm's, does not show them; the manual page
//! does.

use director::control::api::{
    Bias, BiasWindow, Extras, GoneServer, HashKey, MssClamp, NoDestination, OwnTimeouts, Teardown,
};

use super::service::timeout;
use super::{Argument, Flag, Kind, Take};
use crate::address::number;
use crate::draft::Draft;
use crate::failure::Failure;
use crate::legality::Opt;

/// In the order of the manual page.
pub const ALL: &[&Flag] = &[
    &JSON,
    &CLIENT,
    &SERVICE,
    &SERVER,
    &STATE,
    &ATOMIC,
    &FULL,
    &SERVICE_TIMEOUTS,
    &GONE_SERVER,
    &NO_DESTINATION,
    &LEAVE_QUIESCED,
    &MSS_CLAMP,
    &BIAS,
    &BIAS_WINDOW,
    &TEARDOWN,
    &HASH_KEY,
    &STICKY,
    &VARIANTS,
];

const fn flag(
    long: &'static str,
    argument: Argument,
    option: Opt,
    about: &'static str,
    take: Take,
) -> Flag {
    let kind = Kind::Option(Some(option));
    Flag { short: &[], long, argument, kind, help: &[], about, take }
}

/// `--json`
pub const JSON: Flag = flag(
    "json",
    Argument::None,
    Opt::Json,
    "With -L: JSON in place of a table, with all there is to say and the names of the control API.",
    |draft, _| {
        draft.format.json = true;
        Ok(())
    },
);

/// `--client`
pub const CLIENT: Flag = flag(
    "client",
    Argument::Required("network"),
    Opt::Client,
    "With -L -c: only connections of clients of this network, 10.0.0.0/8 or an address.",
    |draft, value| condition(draft, "client", value),
);

/// `--service`
pub const SERVICE: Flag = flag(
    "service",
    Argument::Required("address[:port][/protocol]"),
    Opt::OfService,
    "With -L -c: only connections to this virtual address, 192.0.2.10:80/tcp.",
    |draft, value| condition(draft, "service", value),
);

/// `--server`
pub const SERVER: Flag = flag(
    "server",
    Argument::Required("address[:port]"),
    Opt::OfServer,
    "With -L -c: only connections to this real server.",
    |draft, value| condition(draft, "server", value),
);

/// `--state`
pub const STATE: Flag = flag(
    "state",
    Argument::Required("state"),
    Opt::State,
    "With -L -c: only connections in this state, ESTABLISHED.",
    |draft, value| condition(draft, "state", value),
);

fn condition(draft: &mut Draft, name: &str, value: Option<&str>) -> Result<(), Failure> {
    let value = value.unwrap_or_default();
    draft.filter.set(name, value).map_err(|bad| Failure::usage(bad.to_string()))
}

/// `--atomic`
pub const ATOMIC: Flag = flag(
    "atomic",
    Argument::None,
    Opt::Atomic,
    "With -R: all or nothing. The lines are read to the end first; when one cannot be read, or the \
     director refuses one, nothing is changed. Packets see the table as it was or as it is to be. \
     With -C as the first line, the table is replaced.",
    |draft, _| {
        draft.atomic = true;
        Ok(())
    },
);

/// `--full`
pub const FULL: Flag = flag(
    "full",
    Argument::None,
    Opt::Full,
    "With -S: also what ipvsadm does not save, so that -R rebuilds the same: thresholds, the \
     timeouts, the options below, and the order in which servers were added. In numbers.",
    |draft, _| {
        draft.full = true;
        Ok(())
    },
);

/// `--service-timeouts`
pub const SERVICE_TIMEOUTS: Flag = flag(
    "service-timeouts",
    Argument::Required("tcp,tcpfin,udp"),
    Opt::ServiceTimeouts,
    "With -A and -E: timeouts of this service in place of those of --set, seconds; 0 is no other.",
    |draft, value| {
        let value = value.unwrap_or_default();
        let &[tcp, tcp_fin, udp] = &value.split(',').collect::<Vec<_>>()[..] else {
            return Err(Failure::usage("--service-timeouts takes 3 values: tcp,tcpfin,udp"));
        };
        extras(draft).timeouts = OwnTimeouts {
            tcp: timeout(tcp, 0)?,
            tcp_fin: timeout(tcp_fin, 0)?,
            udp: timeout(udp, 0)?,
        };
        Ok(())
    },
);

/// `--gone-server`
pub const GONE_SERVER: Flag = flag(
    "gone-server",
    Argument::Required("{drop|rst|reschedule}"),
    Opt::GoneServer,
    "With -A and -E: what becomes of connections whose server has been removed.",
    |draft, value| {
        extras(draft).gone_server = match value {
            Some("drop") => GoneServer::Drop,
            Some("rst") => GoneServer::Rst,
            Some("reschedule") => GoneServer::Reschedule,
            _ => return Err(Failure::usage("--gone-server takes drop, rst or reschedule")),
        };
        Ok(())
    },
);

/// `--no-destination`
pub const NO_DESTINATION: Flag = flag(
    "no-destination",
    Argument::Required("{icmp|rst}"),
    Opt::NoDestination,
    "With -A and -E: what a client is told whom no server can take.",
    |draft, value| {
        extras(draft).no_destination = match value {
            Some("icmp") => NoDestination::Icmp,
            Some("rst") => NoDestination::Rst,
            _ => return Err(Failure::usage("--no-destination takes icmp or rst")),
        };
        Ok(())
    },
);

/// `--leave-quiesced`
pub const LEAVE_QUIESCED: Flag = flag(
    "leave-quiesced",
    Argument::None,
    Opt::LeaveQuiesced,
    "With -A and -E: clients do not keep a server whose weight is 0.",
    |draft, _| {
        extras(draft).leave_quiesced = true;
        Ok(())
    },
);

/// `--mss-clamp`
pub const MSS_CLAMP: Flag = flag(
    "mss-clamp",
    Argument::Required("{route|bytes}"),
    Opt::MssClamp,
    "With -A and -E: the largest segment that may be agreed on; route is what fits the way.",
    |draft, value| {
        let bytes = |value| number(value, MssClamp::LEAST.into(), MssClamp::MOST.into());
        extras(draft).mss_clamp = match value.unwrap_or_default() {
            "route" => MssClamp::ByRoute(true),
            value => match bytes(value).and_then(|bytes| u16::try_from(bytes).ok()) {
                Some(bytes) => MssClamp::Bytes(bytes),
                None => {
                    let (least, most) = (MssClamp::LEAST, MssClamp::MOST);
                    let message = format!("--mss-clamp takes route, or {least} to {most} bytes");
                    return Err(Failure::usage(message));
                }
            },
        };
        Ok(())
    },
);

/// `--bias`
pub const BIAS: Flag = flag(
    "bias",
    Argument::Required("{none|linear:N|ilb:M}"),
    Opt::Bias,
    "With -A and -E: how much a connection in progress counts for schedulers lc, wlc, sed, nq, lblc, \
     lblcr and load: nothing, N ten-thousandths of the server each, or the M-th part of what is \
     left of it.",
    |draft, value| {
        let bias = value.unwrap_or_default().parse::<Bias>();
        extras(draft).bias = bias.map_err(|_| {
            Failure::usage(
                "--bias takes none, linear:N with N from 1 to 10000, or ilb:M with M from 2 to 100",
            )
        })?;
        Ok(())
    },
);

/// `--bias-window`
pub const BIAS_WINDOW: Flag = flag(
    "bias-window",
    Argument::Required("milliseconds"),
    Opt::BiasWindow,
    "With -A and -E: for how long a new connection is in progress, 100 to 60000; 5000 by itself.",
    |draft, value| {
        let window = number(value.unwrap_or_default(), 100, 60_000);
        let window = window.and_then(|window| u32::try_from(window).ok());
        extras(draft).bias_window = window
            .map(BiasWindow)
            .ok_or_else(|| Failure::usage("--bias-window takes 100 to 60000 milliseconds"))?;
        Ok(())
    },
);

/// `--teardown`
pub const TEARDOWN: Flag = flag(
    "teardown",
    Argument::Required("{lazy|eager|none}"),
    Opt::Teardown,
    "With -A and -E: what becomes of the connections of a server that has failed.",
    |draft, value| {
        extras(draft).teardown = match value {
            Some("lazy") => Teardown::Lazy,
            Some("eager") => Teardown::Eager,
            Some("none") => Teardown::None,
            _ => return Err(Failure::usage("--teardown takes lazy, eager or none")),
        };
        Ok(())
    },
);

/// `--hash-key`
pub const HASH_KEY: Flag = flag(
    "hash-key",
    Argument::Required("{source|source-port|destination|tuple|dns-name}"),
    Opt::HashKey,
    "With -A and -E: what decides on the server with schedulers dht, mh, sh and dh, in place of what the \
     scheduler goes by itself. dns-name is the name in a DNS question, for UDP.",
    |draft, value| {
        let value = value.unwrap_or_default();
        let key = HASH_KEYS.iter().find(|(word, _)| *word == value);
        let Some((_, key)) = key else {
            let words = HASH_KEYS.map(|(word, _)| word);
            let message = format!("--hash-key takes one of {}", words.join(", "));
            return Err(Failure::usage(message));
        };
        extras(draft).placement.key = Some(*key);
        Ok(())
    },
);

/// The words for what decides on the server, as the configuration file has them.
pub const HASH_KEYS: [(&str, HashKey); 5] = [
    ("source", HashKey::Source),
    ("source-port", HashKey::SourcePort),
    ("destination", HashKey::Destination),
    ("tuple", HashKey::Tuple),
    ("dns-name", HashKey::DnsName),
];

/// `--sticky`
pub const STICKY: Flag = flag(
    "sticky",
    Argument::None,
    Opt::Sticky,
    "With -A and -E and scheduler dht: a server of weight 0 keeps its part of the keys, which the next \
     one serves meanwhile; nobody else's keys move. The same as -b dht-sticky.",
    |draft, _| {
        extras(draft).placement.sticky = true;
        Ok(())
    },
);

/// `--variants`
pub const VARIANTS: Flag = flag(
    "variants",
    Argument::Required("rows"),
    Opt::Variants,
    "With -A and -E and scheduler dht: rows of its table, 1 to 65535; 512 by itself.",
    |draft, value| {
        let rows = number(value.unwrap_or_default(), 1, u16::MAX.into());
        extras(draft).placement.variants = rows
            .and_then(|rows| u16::try_from(rows).ok())
            .ok_or_else(|| Failure::usage("--variants takes 1 to 65535 rows"))?;
        Ok(())
    },
);

/// Speaking of one of them sets all: an edit replaces what is there.
fn extras(draft: &mut Draft) -> &mut Extras {
    draft.extras.get_or_insert_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::testing::{complaint, order, service};
    use crate::order::{Order, What};
    use director::control::api::Placement;

    #[test]
    fn an_edit_that_does_not_speak_of_extras_leaves_them_and_one_that_does_sets_all() {
        let extras = |line| service(line).extras;
        assert_eq!(extras("-E -t 10.0.0.1:80 -s rr"), None);
        let line = "-A -t 10.0.0.1:80 --service-timeouts 7200,0,10 --gone-server rst \
                    --no-destination rst --leave-quiesced --mss-clamp 1400 --bias ilb:2 \
                    --bias-window 250 --teardown eager --hash-key tuple --sticky --variants 7";
        let timeouts = OwnTimeouts { tcp: 7200, tcp_fin: 0, udp: 10 };
        let all = Extras {
            timeouts,
            gone_server: GoneServer::Rst,
            no_destination: NoDestination::Rst,
            leave_quiesced: true,
            mss_clamp: MssClamp::Bytes(1400),
            bias: Bias::Ilb(2),
            bias_window: BiasWindow(250),
            teardown: Teardown::Eager,
            placement: Placement { key: Some(HashKey::Tuple), sticky: true, variants: 7 },
        };
        assert_eq!(extras(line), Some(all));
        let route = Extras { mss_clamp: MssClamp::ByRoute(true), ..Extras::default() };
        assert_eq!(extras("-E -t 10.0.0.1:80 --mss-clamp route"), Some(route));
    }

    #[test]
    fn values_that_are_none_are_refused_with_what_there_is() {
        for (option, word) in [
            ("--service-timeouts 1,2", "tcp,tcpfin,udp"),
            ("--service-timeouts 1,2,x", "`x'"),
            ("--gone-server x", "reschedule"),
            ("--no-destination x", "icmp or rst"),
            ("--mss-clamp 535", "536 to 65495"),
            ("--bias ilb:1", "ilb:M with M from 2 to 100"),
            ("--bias wlc", "none, linear:N"),
            ("--bias-window 99", "100 to 60000"),
            ("--bias-window 60001", "100 to 60000"),
            ("--teardown rst", "lazy, eager or none"),
            ("--hash-key name", "source, source-port, destination, tuple, dns-name"),
            ("--variants 0", "1 to 65535"),
            ("--variants 65536", "1 to 65535"),
        ] {
            let (message, code) = complaint(&format!("-A -t 10.0.0.1:80 {option}"));
            assert!(message.contains(word) && code == 2, "{option}: {message}");
        }
    }

    #[test]
    fn conditions_are_for_connections_and_checked_before_anybody_is_asked() {
        let line = "-Lnc --client 10.0.0.0/8 --service 192.0.2.10:80/tcp --server 10.77.0.11 \
                    --state ESTABLISHED";
        let Order::List { what: What::Connections(filter), .. } = order(line) else {
            panic!("no listing of connections");
        };
        assert_eq!(
            filter.to_query(),
            "client=10.0.0.0/8&service=192.0.2.10:80/tcp&server=10.77.0.11&state=ESTABLISHED"
        );
        let needs = "'client', 'service', 'server' and 'state' go with -c only";
        assert_eq!(complaint("-L --client 10.0.0.0/8"), (needs.to_owned(), 2));
        assert!(complaint("-Lc --client x").0.contains("is not a network"));
        let illegal = "Illegal 'json' option with the 'save' command";
        assert_eq!(complaint("-S --json").0, illegal);
        assert_eq!(order("-R --atomic"), Order::Restore { atomic: true });
        assert_eq!(order("-S --full"), Order::Save { numeric: true, full: true });
    }
}
