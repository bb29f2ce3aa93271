//! The flags of the sync daemon. Their values are checked here; the director has no sync yet, so
//! nothing keeps them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Argument, Flag, Kind, NOTHING};
use crate::address::number;
use crate::failure::Failure;
use crate::legality::Opt;

/// In the order of the manual page.
pub const ALL: &[&Flag] =
    &[&SYNCID, &SYNC_MAXLEN, &MCAST_INTERFACE, &MCAST_GROUP, &MCAST_PORT, &MCAST_TTL];

const fn flag(
    long: &'static str,
    value: &'static str,
    option: Opt,
    help: &'static [&'static str],
    about: &'static str,
    take: super::Take,
) -> Flag {
    let kind = Kind::Option(Some(option));
    Flag { short: &[], long, argument: Argument::Required(value), kind, help, about, take }
}

fn in_range(value: Option<&str>, low: i64, high: i64, complaint: &str) -> Result<(), Failure> {
    match number(value.unwrap_or_default(), low, high) {
        Some(_) => Ok(()),
        None => Err(Failure::usage(complaint)),
    }
}

/// `--syncid`
pub const SYNCID: Flag = flag(
    "syncid",
    "sid",
    Opt::SyncId,
    &["syncid for connection sync (default=255)"],
    "Which group of directors, 0 to 255.",
    |_, value| in_range(value, 0, 255, "illegal syncid specified"),
);

/// `--sync-maxlen`
pub const SYNC_MAXLEN: Flag = flag(
    "sync-maxlen",
    "length",
    Opt::SyncMaxlen,
    &["Max sync message length (default=1472)"],
    "The longest message, 1 to 65507 bytes.",
    |_, value| in_range(value, 1, 65507, "illegal sync-maxlen specified"),
);

/// `--mcast-interface`
pub const MCAST_INTERFACE: Flag = flag(
    "mcast-interface",
    "interface",
    Opt::McastInterface,
    &["multicast interface for connection sync"],
    "The interface; eth0 without this option.",
    NOTHING,
);

/// `--mcast-group`
pub const MCAST_GROUP: Flag = flag(
    "mcast-group",
    "address",
    Opt::McastGroup,
    &["IPv4/IPv6 group (default=224.0.0.81)"],
    "The multicast group; 224.0.0.81 without this option.",
    |_, value| {
        let value = value.unwrap_or_default();
        let family = if value.contains(':') { "IPv6" } else { "IPv4" };
        let address = match family {
            "IPv6" => value.parse::<Ipv6Addr>().map(IpAddr::V6),
            _ => value.parse::<Ipv4Addr>().map(IpAddr::V4),
        };
        match address {
            Ok(address) if address.is_multicast() => Ok(()),
            _ => Err(Failure::usage(format!("invalid {family} mcast-group `{value}'"))),
        }
    },
);

/// `--mcast-port`
pub const MCAST_PORT: Flag = flag(
    "mcast-port",
    "port",
    Opt::McastPort,
    &["UDP port (default=8848)"],
    "The UDP port; 8848 without this option.",
    |_, value| in_range(value, 1, 65535, "illegal mcast-port specified"),
);

/// `--mcast-ttl`
pub const MCAST_TTL: Flag = flag(
    "mcast-ttl",
    "ttl",
    Opt::McastTtl,
    &["Multicast TTL (default=1)"],
    "The TTL or hop limit, 1 to 255; 1 without this option.",
    |_, value| in_range(value, 1, 255, "illegal mcast-ttl specified"),
);

#[cfg(test)]
mod tests {
    use crate::order::Order;
    use crate::order::testing::{complaint, order};

    #[test]
    fn all_options_of_a_sync_daemon_are_taken() {
        let line = "--start-daemon master --mcast-interface eth1 --syncid 255 --sync-maxlen 65507 \
                    --mcast-group 224.0.0.82 --mcast-port 8849 --mcast-ttl 255";
        assert_eq!(order(line), Order::StartDaemon);
        assert_eq!(order("--start-daemon=backup --mcast-group ff02::81"), Order::StartDaemon);
        assert_eq!(order("--stop-daemon backup --syncid 0"), Order::StopDaemon);
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        for (option, message) in [
            ("--syncid 256", "illegal syncid specified"),
            ("--sync-maxlen 65508", "illegal sync-maxlen specified"),
            ("--mcast-port 0", "illegal mcast-port specified"),
            ("--mcast-ttl 0", "illegal mcast-ttl specified"),
            ("--mcast-group 10.0.0.1", "invalid IPv4 mcast-group `10.0.0.1'"),
            ("--mcast-group 2001:db8::1", "invalid IPv6 mcast-group `2001:db8::1'"),
        ] {
            let line = format!("--start-daemon master {option}");
            assert_eq!(complaint(&line), (message.to_owned(), 2), "{option}");
        }
    }
}
