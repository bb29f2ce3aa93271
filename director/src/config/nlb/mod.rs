//! `[nlb]`: what a cluster without a dispatcher needs beside the services.
//!
//! The table may stand in the file of a dispatcher too, so that one word changes the mode: its own
//! keys are always checked. What only a node must have (a key, hosts that can be numbered, services
//! that can be filtered) is checked when `mode = "nlb"`.

mod hosts;
mod rules;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use realserver_agent::settings::key::{KeySpec, key, milliseconds, names, seconds};

use super::fields::{Field, Fields, set};
use super::problem::Report;
use super::{DeclaredService, Mode};
pub use ::nlb::delivery::Delivery;
use ::nlb::key::MIN_KEY;
pub(super) use rules::KEYS as RULE;
pub use rules::PortRule;

/// Keys of `[nlb]`.
pub(super) const KEYS: &[KeySpec] = &[
    key(
        "key",
        "the secret that the hosts share: it signs heartbeats and commands, and keeps clients from choosing their host",
    )
    .default("this or `key_file` is required")
    .note("16 bytes or more"),
    key("key_file", "a file whose whole content, but for a final newline, is the key")
        .note("absolute path"),
    key(
        "primary",
        "the virtual address that names the cluster, and from which its MAC address is made",
    )
    .default("the address of the first service")
    .note("an address that no host has for itself"),
    key("hosts", "the hosts in the order of their ids, 1 first")
        .of("array")
        .default("the servers")
        .note("at most 32 hosts, each an address, an array of its addresses, or `[]` where one was"),
    key("delivery", "the kind of MAC address that brings every frame to every host")
        .words(|| names(DELIVERIES))
        .default("`\"unicast\"`"),
    key("period", "time between two heartbeats")
        .times(milliseconds(100), seconds(10))
        .default("`\"1s\"`"),
    key("tolerance", "heartbeats that may be missed before a host counts as gone")
        .numbers(5, 100)
        .default("`5`"),
    key("isolated", "what a host does that loses all others at a time")
        .words(|| names(ISOLATED))
        .default("`\"serve\"`"),
    key("initial_state", "whether it joins by itself")
        .words(|| names(INITIAL))
        .default("`\"started\"`"),
    key(
        "handover_timeout",
        "with affinity: how long clients that are to move may keep their host while they have connections",
    )
    .times(seconds(1), LONGEST_WAIT)
    .default("`\"5m\"`"),
    key("drain_timeout", "how long a draining host waits for its connections to end")
        .times(seconds(1), LONGEST_WAIT)
        .default("`\"5m\"`"),
    key(
        "udp_pin",
        "how long a UDP flow stays with its host after its last packet; 0: it follows the map at once",
    )
    .times(seconds(0), LONGEST_WAIT)
    .default("`\"0s\"`"),
    key(
        "track",
        "remember TCP connections beside the kernel's socket table: for sockets in other network namespaces (containers)",
    )
    .boolean()
    .default("`false`"),
    key("echo", "who answers a ping to a virtual address")
        .words(|| names(ECHOES))
        .default("`\"one\"`"),
    key("remote_control", "whether commands from other machines that have the key are taken")
        .boolean()
        .default("`true`"),
    key("rule", "port rules for what has no service, one `[[nlb.rule]]` each")
        .of("array of tables"),
];

/// The secret that all hosts of a cluster share.
#[derive(Clone, PartialEq, Eq)]
pub enum Key {
    /// `key = "..."`, at least [`MIN_KEY`] bytes.
    Text(String),
    /// `key_file = "..."`, to be read when the node starts.
    File(PathBuf),
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Text(_) => f.write_str("Text(..)"),
            Key::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// What a host does that hears no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolated {
    /// Serves everything, as Windows does.
    #[default]
    Serve,
    /// Serves nothing once it has heard others and then loses all of them at a time.
    Stop,
}

/// The state in which a host starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitialState {
    /// It joins.
    #[default]
    Started,
    /// It waits for `dirctl nlb start`.
    Stopped,
    /// It waits for `dirctl nlb resume`, and then for `start`.
    Suspended,
}

/// `[nlb]` with its defaults, and what follows from the services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nlb {
    /// `key` or `key_file`; always there when `mode = "nlb"`.
    pub key: Option<Key>,
    /// `primary`: the VIP that names the cluster; `None` only when there is no service.
    pub primary: Option<IpAddr>,
    /// `delivery`
    pub delivery: Delivery,
    /// `period`: time between heartbeats, 100 ms to 10 s.
    pub period: Duration,
    /// `tolerance`: heartbeats that may be missed, 5 to 100.
    pub tolerance: u32,
    /// `isolated`
    pub isolated: Isolated,
    /// `initial_state`
    pub initial_state: InitialState,
    /// `handover_timeout`: how long buckets with affinity wait for their flows to end.
    pub handover_timeout: Duration,
    /// `drain_timeout`: how long a draining host waits for its flows to end.
    pub drain_timeout: Duration,
    /// `udp_pin`: how long a UDP flow stays with its host without a packet; zero = not at all.
    pub udp_pin: Duration,
    /// `track`: whether TCP flows are remembered beside the kernel's socket table.
    pub track: bool,
    /// `echo = "all"`: every host answers a ping, rather than one.
    pub echo_by_all: bool,
    /// `remote_control`: whether commands from other machines are taken.
    pub remote_control: bool,
    /// Addresses of each host in the order of their ids; the first has id 1.
    pub hosts: Vec<Vec<IpAddr>>,
    /// Port rules, of the services first, then of `[[nlb.rule]]`.
    pub rules: Vec<PortRule>,
}

impl Default for Nlb {
    fn default() -> Nlb {
        Nlb {
            key: None,
            primary: None,
            delivery: Delivery::default(),
            period: Duration::from_secs(1),
            tolerance: 5,
            isolated: Isolated::default(),
            initial_state: InitialState::default(),
            handover_timeout: Duration::from_secs(300),
            drain_timeout: Duration::from_secs(300),
            udp_pin: Duration::ZERO,
            track: false,
            echo_by_all: false,
            remote_control: true,
            hosts: Vec::new(),
            rules: Vec::new(),
        }
    }
}

const EXAMPLE: &str = "[nlb] on a line of its own, then its keys";

const DELIVERIES: &[(&str, Delivery)] =
    &[("unicast", Delivery::Unicast), ("multicast", Delivery::Multicast), ("igmp", Delivery::Igmp)];

const ISOLATED: &[(&str, Isolated)] = &[("serve", Isolated::Serve), ("stop", Isolated::Stop)];

const INITIAL: &[(&str, InitialState)] = &[
    ("started", InitialState::Started),
    ("stopped", InitialState::Stopped),
    ("suspended", InitialState::Suspended),
];

/// Times that wait for flows to end: up to a day.
const LONGEST_WAIT: Duration = seconds(86_400);

const ECHOES: &[(&str, bool)] = &[("one", false), ("all", true)];

/// Reads the table; `services` are those of the file that are right.
pub(super) fn read(
    root: &Fields<'_>,
    mode: Mode,
    services: &[DeclaredService],
    report: &mut Report<'_>,
) -> Nlb {
    let table = root.get("nlb").and_then(|field| field.table(&[KEYS], EXAMPLE, report));
    let mut nlb = Nlb::default();
    if let Some(table) = &table {
        read_own(table, &mut nlb, report);
    }
    nlb.primary = nlb.primary.or_else(|| services.iter().find_map(DeclaredService::vip));
    // Hosts and rules follow from services, so they are only looked at when those are right: what
    // is missing there would look like an error here.
    let declared = table.as_ref().and_then(|table| table.get("rule"));
    let clean = report.is_clean();
    nlb.hosts = hosts::read(table.as_ref(), services, mode, report);
    nlb.rules = rules::read(declared.as_ref(), &nlb.hosts, report);
    if mode == Mode::Nlb && clean {
        need(root, table.as_ref(), &nlb, report);
        let from_services = rules::of_services(root, services, &nlb.hosts, report);
        nlb.rules.splice(0..0, from_services);
        // What is wrong with one of them has been told; together they can only be looked at when right.
        if report.is_clean() {
            rules::check(&nlb.rules, report);
        }
    }
    nlb
}

/// The keys that stand for themselves.
fn read_own(table: &Fields<'_>, nlb: &mut Nlb, report: &mut Report<'_>) {
    nlb.key = secret(table, report);
    nlb.primary = table.get("primary").and_then(|field| address(&field, report));
    set(&mut nlb.delivery, table, "delivery", |field| field.word(DELIVERIES, report));
    set(&mut nlb.isolated, table, "isolated", |field| field.word(ISOLATED, report));
    set(&mut nlb.initial_state, table, "initial_state", |field| field.word(INITIAL, report));
    set(&mut nlb.period, table, "period", |field| field.time(report));
    set(&mut nlb.tolerance, table, "tolerance", |field| {
        field.number(" heartbeats that may be missed", report)
    });
    for (key, time) in [
        ("handover_timeout", &mut nlb.handover_timeout),
        ("drain_timeout", &mut nlb.drain_timeout),
        ("udp_pin", &mut nlb.udp_pin),
    ] {
        set(time, table, key, |field| Some(Duration::from_secs(u64::from(field.seconds(report)?))));
    }
    set(&mut nlb.track, table, "track", |field| field.boolean(report));
    set(&mut nlb.echo_by_all, table, "echo", |field| field.word(ECHOES, report));
    set(&mut nlb.remote_control, table, "remote_control", |field| field.boolean(report));
}

/// `key` or `key_file`, not both.
fn secret(table: &Fields<'_>, report: &mut Report<'_>) -> Option<Key> {
    let (text, file) = (table.get("key"), table.get("key_file"));
    if let (Some(_), Some(file)) = (&text, &file) {
        file.wrong("the key is given by key already", "keep one of key and key_file", report);
        return None;
    }
    if let Some(field) = file {
        let path = PathBuf::from(field.text("\"/etc/switchyard/cluster.key\"", report)?);
        if !path.is_absolute() {
            field.wrong("is not an absolute path", "begin it with /", report);
            return None;
        }
        return Some(Key::File(path));
    }
    let field = text?;
    let text = field.text("key = \"...\", 16 characters or more that nobody can guess", report)?;
    if text.len() < MIN_KEY {
        field.wrong(
            format!("a key of {} bytes is too short", text.len()),
            format!(
                "give at least {MIN_KEY}, the same on every host: `openssl rand -hex 32` makes one"
            ),
            report,
        );
        return None;
    }
    Some(Key::Text(text.to_owned()))
}

/// One address.
fn address(field: &Field<'_>, report: &mut Report<'_>) -> Option<IpAddr> {
    let text = field.text("\"192.0.2.10\"", report)?;
    match text.parse::<IpAddr>() {
        Ok(address) if !address.is_unspecified() && !address.is_multicast() => Some(address),
        _ => {
            let what = format!("{text:?} is not the address of a host");
            field.wrong(what, "write it as in \"192.0.2.10\" or \"2001:db8::10\"", report);
            None
        }
    }
}

/// What a node must have.
fn need(root: &Fields<'_>, table: Option<&Fields<'_>>, nlb: &Nlb, report: &mut Report<'_>) {
    if nlb.key.is_none() {
        let remedy = "add key_file = \"/etc/switchyard/cluster.key\" (or key = \"...\") to [nlb], the same on every host";
        match table {
            Some(table) => table.missing("key", remedy, report),
            None => root.missing("nlb.key", remedy, report),
        }
    }
    if let Some(primary) = nlb.primary {
        let known = nlb.hosts.iter().flatten().any(|host| *host == primary);
        if known && let Some(field) = table.and_then(|table| table.get("primary")) {
            field.wrong(
                format!("{primary} is the address of one host"),
                "name an address that all hosts share, one of those under listen",
                report,
            );
        }
    } else if let Some(table) = table {
        table.missing("primary", "add a [[service]], or primary = \"192.0.2.10\"", report);
    } else {
        root.missing("nlb.primary", "add a [[service]]", report);
    }
}
