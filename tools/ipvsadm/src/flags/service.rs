//! The flags that name a virtual service and say how it spreads its clients.

use std::net::{IpAddr, Ipv4Addr};

use director::control::api::Protocol;

use super::scheduling::{SCHEDULER, SCHEDULER_FLAGS};
use super::{Argument, Flag, Kind};
use crate::address::{host_port, inet_aton, leading_number, number, prefix_of};
use crate::draft::{Draft, short_name};
use crate::failure::Failure;
use crate::legality::Opt;

/// The flags that name a service.
pub const ADDRESSES: &[&Flag] = &[&TCP, &UDP, &SCTP, &FWMARK, &IPV6];

/// The options of `-A` and `-E`.
pub const OPTIONS: &[&Flag] =
    &[&SCHEDULER, &SCHEDULER_FLAGS, &PERSISTENT, &NETMASK, &ENGINE, &ONE_PACKET];

/// Longest timeout: 31 days.
pub const LONGEST_TIMEOUT: i64 = 31 * 24 * 3600;

/// What `-p` without a value means. The manual says 300; the binary has always had six minutes.
pub const DEFAULT_PERSISTENCE: u32 = 360;

const ADDRESS: Argument = Argument::Required("service-address");

/// `-t`
pub const TCP: Flag = Flag {
    short: &['t'],
    long: "tcp-service",
    argument: ADDRESS,
    kind: Kind::Option(Some(Opt::Service)),
    help: &["service-address is host[:port]"],
    about: "A TCP service: its address, and its port or the name of one. An IPv6 address with a port stands in brackets. Without a port it is a service for every port, which has to be persistent.",
    take: |draft, value| address(draft, Protocol::Tcp, value),
};

/// `-u`
pub const UDP: Flag = Flag {
    short: &['u'],
    long: "udp-service",
    argument: ADDRESS,
    kind: Kind::Option(Some(Opt::Service)),
    help: &["service-address is host[:port]"],
    about: "A UDP service.",
    take: |draft, value| address(draft, Protocol::Udp, value),
};

/// `--sctp-service`
pub const SCTP: Flag = Flag {
    short: &[],
    long: "sctp-service",
    argument: ADDRESS,
    kind: Kind::Option(Some(Opt::Service)),
    help: &["service-address is host[:port]"],
    about: "An SCTP service.",
    take: |draft, value| address(draft, Protocol::Sctp, value),
};

fn address(draft: &mut Draft, protocol: Protocol, value: Option<&str>) -> Result<(), Failure> {
    draft.protocol = protocol;
    let found = host_port(value.unwrap_or_default(), protocol, &draft.names)
        .ok_or_else(|| Failure::usage("illegal virtual server address[:port] specified"))?;
    draft.address = found.address;
    draft.port = found.port.unwrap_or(0);
    draft.ipv6 = found.address.is_ipv6();
    if draft.ipv6 {
        draft.prefix = 128;
    }
    Ok(())
}

#[test]
fn services_are_named_by_protocol_and_address() {
    use crate::order::testing::{complaint, key};
    assert_eq!(key("-D -t 10.0.0.1:80"), r#"{"protocol":"tcp","address":"10.0.0.1:80"}"#);
    assert_eq!(key("-D -u [2001:db8::1]:53"), r#"{"protocol":"udp","address":"[2001:db8::1]:53"}"#);
    assert_eq!(
        key("-D --sctp-service 10.0.0.5:1"),
        r#"{"protocol":"sctp","address":"10.0.0.5:1"}"#
    );
    let refused = ("illegal virtual server address[:port] specified".to_owned(), 2);
    for line in ["-D -t 10", "-D -u 10.0.0.1:x", "-D --sctp-service [::1]", "-D --tcp-service="] {
        assert_eq!(complaint(line), refused, "{line}");
    }
}

/// `-f`
pub const FWMARK: Flag = Flag {
    short: &['f'],
    long: "fwmark-service",
    argument: Argument::Required("fwmark"),
    kind: Kind::Option(Some(Opt::Service)),
    help: &["fwmark is an integer greater than zero"],
    about: "A service of all packets with this firewall mark, 1 to 4294967295.",
    take: |draft, value| {
        let value = value.unwrap_or_default();
        let mark = number(value, 1, u32::MAX.into()).and_then(|mark| u32::try_from(mark).ok());
        draft.fwmark = mark
            .ok_or_else(|| Failure::usage(format!("invalid fwmark value `{value}' specified")))?;
        draft.protocol = Protocol::Tcp;
        draft.address = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        draft.ipv6 = false;
        Ok(())
    },
};

/// `-6`
pub const IPV6: Flag = Flag {
    short: &['6'],
    long: "ipv6",
    argument: Argument::None,
    kind: Kind::Option(None),
    help: &["fwmark entry uses IPv6"],
    about: "The marked packets are IPv6. It stands after the mark.",
    take: |draft, _| {
        if draft.fwmark == 0 {
            return Err(Failure::usage("-6 used before -f\n"));
        }
        draft.ipv6 = true;
        draft.prefix = 128;
        Ok(())
    },
};

#[test]
fn marks_are_ipv4_unless_dash_6_follows() {
    use crate::order::testing::{complaint, key};
    assert_eq!(key("-D -f 7"), r#"{"fwmark":7,"ipv6":false}"#);
    assert_eq!(key("-D -f 4294967295 -6"), r#"{"fwmark":4294967295,"ipv6":true}"#);
    assert_eq!(complaint("-D -6 -f 7"), ("-6 used before -f\n".to_owned(), 2));
    for mark in ["0", "x", "4294967296", "-1", "0x7"] {
        let message = format!("invalid fwmark value `{mark}' specified");
        assert_eq!(complaint(&format!("-D -f {mark}")), (message, 2));
    }
}

/// `-p`
pub const PERSISTENT: Flag = Flag {
    short: &['p'],
    long: "persistent",
    argument: Argument::Optional("timeout"),
    kind: Kind::Option(Some(Opt::Persistent)),
    help: &["persistent service"],
    about: "All connections of a client go to the server of its first one, until it has had none for so many seconds; 360 without a number.",
    take: |draft, value| {
        draft.persistence = Some(match value {
            Some(value) => timeout(value, 1)?,
            None => DEFAULT_PERSISTENCE,
        });
        Ok(())
    },
};

/// Reads a timeout of at least `low` seconds.
///
/// # Errors
/// When it is no number, or not from `low` to [`LONGEST_TIMEOUT`].
pub fn timeout(value: &str, low: i64) -> Result<u32, Failure> {
    number(value, low, LONGEST_TIMEOUT)
        .and_then(|seconds| u32::try_from(seconds).ok())
        .ok_or_else(|| Failure::usage(format!("invalid timeout value `{value}' specified")))
}

#[test]
fn persistence_is_off_or_six_minutes_or_as_given() {
    use crate::order::testing::{complaint, service};
    let seconds = |line| service(line).persistence.map(|persistence| persistence.timeout);
    assert_eq!(seconds("-A -t 10.0.0.1:80"), None);
    assert_eq!(seconds("-A -t 10.0.0.1:80 -p"), Some(360));
    assert_eq!(seconds("-A -p -t 10.0.0.1:0"), Some(360));
    assert_eq!(seconds("-A -t 10.0.0.1:80 -p2678400"), Some(2_678_400));
    for value in ["0", "2678401", "x"] {
        let message = format!("invalid timeout value `{value}' specified");
        assert_eq!(complaint(&format!("-A -f 7 -p {value}")), (message, 2));
    }
}

/// What is said of an IPv4 mask that is none.
const BAD_MASK: &str = "illegal virtual server persistent mask specified";

/// How many bits of a client's address name a client.
///
/// # Errors
/// When the mask has holes: the kernel takes those, the director does not.
pub fn client_prefix(draft: &Draft) -> Result<u8, Failure> {
    if draft.ipv6 {
        return Ok(draft.prefix);
    }
    prefix_of(draft.mask).ok_or_else(|| Failure::usage(BAD_MASK))
}

/// `-M`
pub const NETMASK: Flag = Flag {
    short: &['M'],
    long: "netmask",
    argument: Argument::Required("netmask"),
    kind: Kind::Option(Some(Opt::Netmask)),
    help: &["persistent granularity mask"],
    about: "Clients whose addresses are the same under this mask are one client: a dotted mask, or a prefix length after an IPv6 service.",
    take: |draft, value| {
        let value = value.unwrap_or_default();
        draft.prefix = if draft.ipv6 {
            let prefix = u8::try_from(leading_number(value)).ok();
            let prefix = prefix.filter(|prefix| (1..=128).contains(prefix));
            prefix.ok_or_else(|| Failure::usage("illegal ipv6 netmask specified"))?
        } else {
            draft.mask = inet_aton(value).ok_or_else(|| Failure::usage(BAD_MASK))?;
            return Ok(());
        };
        Ok(())
    },
};

#[test]
fn netmask_is_dotted_for_ipv4_and_a_prefix_after_an_ipv6_address() {
    use crate::order::testing::{complaint, service};
    let prefix = |line| service(line).persistence.map(|persistence| persistence.prefix);
    assert_eq!(prefix("-A -t 10.0.0.1:80 -p"), Some(32));
    assert_eq!(prefix("-A -M 255.255.255.0 -t 10.0.0.1:80 -p"), Some(24));
    assert_eq!(prefix("-A -t [2001:db8::1]:80 -M 64 -p"), Some(64));
    assert_eq!(prefix("-A -M 255.0.0.0 -t [2001:db8::1]:80 -p"), Some(128));
    assert_eq!(prefix("-A -f 7 -6 -M 48 -p"), Some(48));
    let illegal = "illegal virtual server persistent mask specified";
    assert_eq!(prefix("-A -t 10.0.0.1:80 -p -M 0.0.0.0"), Some(0));
    assert_eq!(prefix("-A -M 24 -t [2001:db8::1]:80 -p"), Some(128));
    assert_eq!(prefix("-A -t 10.0.0.1:80 -M 255.0.255.0"), None);
    assert_eq!(complaint("-A -t 10.0.0.1:80 -p -M 255.0.255.0").0, illegal);
    assert_eq!(complaint("-A -t 10.0.0.1:80 -M x").0, illegal);
    for mask in ["0", "129", "x"] {
        let line = format!("-A -t [2001:db8::1]:80 -M {mask}");
        assert_eq!(complaint(&line), ("illegal ipv6 netmask specified".to_owned(), 2));
    }
}

/// `--pe`
pub const ENGINE: Flag = Flag {
    short: &[],
    long: "pe",
    argument: Argument::Required("engine"),
    kind: Kind::Option(Some(Opt::Engine)),
    help: &["alternate persistence engine may be sip,", "not set by default."],
    about: "What names a client instead of its address: sip, a SIP call.",
    take: |draft, value| {
        draft.engine = Some(short_name(value.unwrap_or_default())).filter(|name| !name.is_empty());
        Ok(())
    },
};

#[test]
fn persistence_engine_reaches_the_service() {
    use crate::order::testing::service;
    let engine = |line| service(line).persistence.map(|persistence| persistence.engine);
    assert_eq!(engine("-A -u 10.0.0.4:5060 -p --pe sip"), Some(Some("sip".to_owned())));
    assert_eq!(engine("-A -u 10.0.0.4:5060 -p --pe="), Some(None));
    assert_eq!(engine("-A -u 10.0.0.4:5060 --pe sip"), None);
    // One that does not exist is asked for, to be refused.
    assert_eq!(engine("-A -u 10.0.0.4:5060 --pe x"), Some(Some("x".to_owned())));
}

/// `-o`
pub const ONE_PACKET: Flag = Flag {
    short: &['o'],
    long: "ops",
    argument: Argument::None,
    kind: Kind::Option(Some(Opt::OnePacket)),
    help: &["one-packet scheduling"],
    about: "Every packet is scheduled by itself (UDP).",
    take: |draft, _| {
        draft.one_packet = true;
        Ok(())
    },
};

#[test]
fn one_packet_scheduling_is_for_udp_and_marks() {
    use crate::order::testing::{complaint, service};
    assert!(service("-A -u 10.0.0.3:53 -o").one_packet);
    assert!(service("-A -f 7 --ops").one_packet);
    let message = "One-Packet Scheduling is only for UDP virtual services".to_owned();
    assert_eq!(complaint("-A -t 10.0.0.3:53 -o"), (message, 2));
}
