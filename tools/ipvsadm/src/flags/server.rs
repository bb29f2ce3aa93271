//! The flags that name a real server and say how packets reach it.

use director::control::api::Forwarding;

use super::{Argument, Flag, Kind};
use crate::address::{host_port, number};
use crate::failure::Failure;
use crate::legality::Opt;

/// In the order of the manual page.
pub const ALL: &[&Flag] =
    &[&SERVER, &GATEWAYING, &IPIP, &MASQUERADING, &WEIGHT, &UPPER_THRESHOLD, &LOWER_THRESHOLD];

/// `-r`
pub const SERVER: Flag = Flag {
    short: &['r'],
    long: "real-server",
    argument: Argument::Required("server-address"),
    kind: Kind::Option(Some(Opt::Server)),
    help: &["server-address is host (and port)"],
    about: "The server's address, and its port where that is not the service's.",
    take: |draft, value| {
        let found = host_port(value.unwrap_or_default(), draft.protocol, &draft.names);
        let complaint = "illegal real server address[:port] specified";
        draft.server = Some(found.ok_or_else(|| Failure::usage(complaint))?);
        Ok(())
    },
};

#[test]
fn server_without_a_port_has_the_services() {
    use crate::order::testing::{complaint, server};
    assert_eq!(server("-a -t 10.0.0.1:80 -r 10.0.0.2 -m").address.to_string(), "10.0.0.2:80");
    assert_eq!(server("-a -r 10.0.0.2 -t 10.0.0.1:80 -m").address.to_string(), "10.0.0.2:80");
    assert_eq!(server("-a -t 10.0.0.1:80 -r 10.0.0.2:81 -m").address.to_string(), "10.0.0.2:81");
    let message = "illegal real server address[:port] specified".to_owned();
    assert_eq!(complaint("-a -t 10.0.0.1:80 -r 10"), (message, 2));
}

/// `-g`
pub const GATEWAYING: Flag = Flag {
    short: &['g'],
    long: "gatewaying",
    argument: Argument::None,
    kind: Kind::Option(Some(Opt::Forwarding)),
    help: &["gatewaying (direct routing) (default)"],
    about: "Direct routing: the server answers the client itself. So it is without any of the three.",
    take: |draft, _| {
        draft.forwarding = Forwarding::Direct;
        Ok(())
    },
};

/// `-i`
pub const IPIP: Flag = Flag {
    short: &['i'],
    long: "ipip",
    argument: Argument::None,
    kind: Kind::Option(Some(Opt::Forwarding)),
    help: &["ipip encapsulation (tunneling)"],
    about: "Through a tunnel.",
    take: |draft, _| {
        draft.forwarding = Forwarding::Tunnel;
        Ok(())
    },
};

/// `-m`
pub const MASQUERADING: Flag = Flag {
    short: &['m'],
    long: "masquerading",
    argument: Argument::None,
    kind: Kind::Option(Some(Opt::Forwarding)),
    help: &["masquerading (NAT)"],
    about: "Network address translation: the answers come back through the director.",
    take: |draft, _| {
        draft.forwarding = Forwarding::Nat;
        Ok(())
    },
};

#[test]
fn forwarding_is_direct_unless_said_and_fixes_the_port_unless_nat_or_marked() {
    use crate::order::testing::{complaint, server};
    for (line, forwarding, port) in [
        ("-a -t 10.0.0.1:80 -r 10.0.0.2:81", Forwarding::Direct, 80),
        ("-a -t 10.0.0.1:80 -r 10.0.0.2:81 -g", Forwarding::Direct, 80),
        ("-a -t 10.0.0.1:80 -r 10.0.0.2:81 -i", Forwarding::Tunnel, 80),
        ("-a -t 10.0.0.1:80 -r 10.0.0.2:81 -m", Forwarding::Nat, 81),
        ("-e -f 7 -r 10.0.0.2:81 -g", Forwarding::Direct, 81),
    ] {
        let server = server(line);
        assert_eq!((server.forwarding, server.address.port()), (forwarding, port), "{line}");
    }
    let message = "multiple 'forwarding-method' options specified".to_owned();
    assert_eq!(complaint("-a -t 10.0.0.1:80 -r 10.0.0.2 -g -m"), (message, 2));
}

/// `-w`
pub const WEIGHT: Flag = Flag {
    short: &['w'],
    long: "weight",
    argument: Argument::Required("weight"),
    kind: Kind::Option(Some(Opt::Weight)),
    help: &["capacity of real server"],
    about: "Its share of the clients, 0 to 2147483647; with 0 it gets no new ones; 1 without this option.",
    take: |draft, value| {
        // The range of Debian's build; the original stops at 65535.
        let weight = number(value.unwrap_or_default(), 0, i32::MAX.into());
        let weight = weight.and_then(|weight| i32::try_from(weight).ok());
        draft.weight = weight.ok_or_else(|| Failure::usage("illegal weight specified"))?;
        Ok(())
    },
};

/// `-x`
pub const UPPER_THRESHOLD: Flag = Flag {
    short: &['x'],
    long: "u-threshold",
    argument: Argument::Required("uthreshold"),
    kind: Kind::Option(Some(Opt::UpperThreshold)),
    help: &["upper threshold of connections"],
    about: "It gets no new connections when it has so many; 0 is no limit.",
    take: |draft, value| {
        draft.upper_threshold = threshold(value, "illegal u_threshold specified")?;
        Ok(())
    },
};

/// `-y`
pub const LOWER_THRESHOLD: Flag = Flag {
    short: &['y'],
    long: "l-threshold",
    argument: Argument::Required("lthreshold"),
    kind: Kind::Option(Some(Opt::LowerThreshold)),
    help: &["lower threshold of connections"],
    about: "It gets new connections again when it has fewer than so many; 0 is three quarters of the upper threshold.",
    take: |draft, value| {
        draft.lower_threshold = threshold(value, "illegal l_threshold specified")?;
        Ok(())
    },
};

fn threshold(value: Option<&str>, complaint: &str) -> Result<u32, Failure> {
    number(value.unwrap_or_default(), 0, i32::MAX.into())
        .and_then(|threshold| u32::try_from(threshold).ok())
        .ok_or_else(|| Failure::usage(complaint))
}

#[test]
fn omitted_weight_and_thresholds_are_one_and_none_and_given_ones_keep_to_their_range() {
    use crate::order::testing::{complaint, server};
    let values = |line: &str| {
        let server = server(line);
        (server.weight, server.upper_threshold, server.lower_threshold)
    };
    assert_eq!(values("-e -t 10.0.0.1:80 -r 10.0.0.2"), (1, 0, 0));
    let line = "-a -t 10.0.0.1:80 -r 10.0.0.2 -w 2147483647 -x 100 -y 75";
    assert_eq!(values(line), (2_147_483_647, 100, 75));
    for (flag, name) in [("-w", "weight"), ("-x", "u_threshold"), ("-y", "l_threshold")] {
        for value in ["2147483648", "-1", "x"] {
            let line = format!("-a -t 10.0.0.1:80 -r 10.0.0.2 {flag} {value}");
            assert_eq!(complaint(&line), (format!("illegal {name} specified"), 2), "{line}");
        }
    }
}
