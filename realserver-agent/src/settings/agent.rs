//! `[agent]`.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

use super::key::{KeySpec, key, milliseconds, names, seconds};
use super::reader::{Table, Value};
use super::{Agent, AgentCheck, Check, CheckKind, Fault, Full, Weights, duration};
use crate::protocol::PORT;

/// The keys of `[agent]`.
pub const KEYS: &[KeySpec] = &[
    key("listen", "where questions are answered, UDP and TCP")
        .of("text or array of texts")
        .default("`[\"0.0.0.0:6086\", \"[::]:6086\"]`")
        .note("addresses of the host, with a port or for 6086"),
    key(
        "key_file",
        "file with the secret that questions and answers are signed with. The director needs it too",
    )
    .note("absolute path"),
    key("from", "who may ask")
        .of("text or array of texts")
        .default("anybody")
        .note("networks, `\"10.0.0.0/8\"`, or addresses"),
    key("load", "what the load is made of").of("table").default("`{ cpu = 1 }`").note("see below"),
    key("full", "what is a full load")
        .of("table")
        .default("`{ connections = 1000, queue = 128 }`")
        .note("see below"),
    key("command", "a program that prints the load, `0` to `10000` or `75%`; for `load = { command = 1 }`")
        .of("array of texts")
        .note("the first an absolute path"),
    key("check", "the host checks itself, and reports down when one fails")
        .of("text, table, or array of these")
        .note("see below"),
    key("drain_deadline", "how long the agent waits for connections to end when it is stopped")
        .times(seconds(0), DAY)
        .default("`\"30s\"`"),
    key("control", "its control socket")
        .default("`\"/run/realserver-agent/control.sock\"`")
        .note("absolute path, at most 107 bytes"),
    key(
        "agent_check",
        "HAProxy's agent-check on the same port, nowhere, or on a port of its own too",
    )
    .numbers(1, 65_535)
    .of("true/false or number")
    .default("`true`")
];

const fn weight(name: &'static str, does: &'static str) -> KeySpec {
    key(name, does).numbers(0, 1000).default("`0`").note("fractions too")
}

/// The keys of `load`: weights.
pub const LOAD: &[KeySpec] = &[
    weight("cpu", "of how busy the processors were in the last second"),
    weight("memory", "of the memory that is not available"),
    weight("connections", "of established connections, out of `full`"),
    weight("queue", "of connections that wait to be accepted, out of `full`"),
    weight("command", "of what `command` prints"),
];

/// The keys of `full`.
pub const FULL: &[KeySpec] = &[
    key("connections", "how many established connections are a full load")
        .numbers(1, u32::MAX as i64)
        .default("`1000`"),
    key("queue", "how many connections that wait to be accepted are a full load")
        .numbers(1, u32::MAX as i64)
        .default("`128`"),
];

/// The keys of every check of the host by itself.
const COMMON: &[KeySpec] = &[
    key("type", "what is done, as for a service").words(|| names(CHECKS)).required(),
    key("interval", "from one check to the next")
        .times(milliseconds(100), HOUR)
        .default("`\"2s\"`"),
    key("timeout", "how long an answer may take")
        .times(milliseconds(10), HOUR)
        .default("`\"1s\"`, or the interval if that is less")
        .note("at most the interval"),
    key("rise", "passes in a row after which it is good again").numbers(1, 100).default("2"),
    key("fall", "failures in a row after which it has failed").numbers(1, 100).default("3"),
];

const PORT_KEY: &[KeySpec] = &[key("port", "a port of this host")
    .numbers(1, 65_535)
    .default("each TCP service of the host")];

const HTTP: &[KeySpec] = &[
    key("path", "path and query").default("`\"/\"`").note("begins with `/`"),
    key("host", "the header `Host`").default("the address").note("a name"),
    key("expect", "statuses that pass")
        .numbers(100, 599)
        .of("number or text")
        .default("`\"200-399\"`"),
];

const EXEC: &[KeySpec] = &[key("command", "the command and its arguments")
    .of("array of texts")
    .required()
    .note("the first an absolute path")];

/// Tables of the keys of a check in the order of the reference, and the types that have them.
pub const CHECK: &[(&str, &[KeySpec])] =
    &[("", COMMON), ("tcp, http", PORT_KEY), ("http", HTTP), ("exec", EXEC)];

#[derive(Clone, Copy)]
enum Type {
    Tcp,
    Http,
    Exec,
}

const CHECKS: &[(&str, Type)] = &[("tcp", Type::Tcp), ("http", Type::Http), ("exec", Type::Exec)];

const HOUR: Duration = seconds(3600);
const DAY: Duration = seconds(86_400);

/// The table as it counts; what is not there is the default.
pub(super) fn read(top: &Table<'_>, faults: &mut Vec<Fault>) -> Agent {
    let mut agent = Agent::default();
    let Some(table) = top.get("agent").and_then(|it| it.table("[agent]", faults)) else {
        return agent;
    };
    let table = table.only(&[KEYS], faults);
    if let Some(field) = table.get("listen") {
        agent.listen = each(&field, "\"10.0.0.11:6086\"", faults, listen);
    }
    agent.key_file = table.get("key_file").and_then(|field| path(&field, faults));
    agent.control = table.get("control").and_then(|field| socket(&field, faults));
    if let Some(field) = table.get("from") {
        agent.from = each(&field, "[\"10.0.0.0/8\"]", faults, network);
    }
    agent.command = table.get("command").and_then(|field| field.command(faults));
    if let Some(load) = table.get("load").and_then(|field| weights(&field, faults)) {
        agent.load = load;
    }
    uses_its_command(&table, agent.load, faults);
    if let Some(full) = table.get("full").and_then(|field| full(&field, faults)) {
        agent.full = full;
    }
    if let Some(field) = table.get("check") {
        agent.checks = checks(&field, faults);
    }
    if let Some(field) = table.get("drain_deadline") {
        agent.drain_deadline = field.time(faults).unwrap_or(agent.drain_deadline);
    }
    if let Some(field) = table.get("agent_check") {
        agent.agent_check = match field.as_boolean() {
            Some(true) => AgentCheck::Shared,
            Some(false) => AgentCheck::Off,
            None => field.whole(faults).map_or(AgentCheck::Off, AgentCheck::Port),
        };
    }
    agent
}

/// One text, or an array of texts.
fn each<T>(
    field: &Value<'_>,
    example: &str,
    faults: &mut Vec<Fault>,
    read: impl Fn(&Value<'_>, &str, &mut Vec<Fault>) -> Option<T>,
) -> Vec<T> {
    let one = |item: &Value<'_>, faults: &mut Vec<Fault>| {
        let text = item.text(example, faults)?;
        read(item, text, faults)
    };
    if field.is_text() {
        return one(field, faults).into_iter().collect();
    }
    let items = field.items(example, faults);
    if items.is_empty() && field.is_array() {
        field.wrong("nothing is named", format!("write {example}, or remove the key"), faults);
    }
    items.iter().filter_map(|item| one(item, faults)).collect()
}

/// An address, with a port or for the usual one.
fn listen(field: &Value<'_>, text: &str, faults: &mut Vec<Fault>) -> Option<SocketAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let address = text.parse().ok();
    let alone = bare.map_or_else(
        || text.parse::<IpAddr>().ok(),
        |bare| bare.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
    );
    let address: Option<SocketAddr> =
        address.or_else(|| alone.map(|alone| SocketAddr::new(alone, PORT)));
    if address.is_none_or(|address| address.port() == 0) {
        let remedy = "write \"0.0.0.0:6086\", \"[::]:6086\" or an address of this host";
        field.wrong(format!("{text:?} is not an address with a port"), remedy, faults);
        return None;
    }
    address
}

fn network(field: &Value<'_>, text: &str, faults: &mut Vec<Fault>) -> Option<IpNet> {
    let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok();
    if network.is_none() {
        let remedy = "write \"10.0.0.0/8\", \"2001:db8::/32\" or an address";
        field.wrong(format!("{text:?} is not a network"), remedy, faults);
    }
    network
}

fn path(field: &Value<'_>, faults: &mut Vec<Fault>) -> Option<PathBuf> {
    let text = field.text("a path in quotes", faults)?;
    if !text.starts_with('/') {
        let remedy = "write the whole path, from / on";
        field.wrong(format!("{text:?} is not a whole path"), remedy, faults);
        return None;
    }
    Some(text.into())
}

/// The path of a socket, which must fit sockaddr_un.
fn socket(field: &Value<'_>, faults: &mut Vec<Fault>) -> Option<PathBuf> {
    let path = path(field, faults)?;
    if path.as_os_str().len() > 107 {
        field.wrong("this cannot be the path of a socket", "give at most 107 bytes", faults);
        return None;
    }
    Some(path)
}

/// What the table does not name has no weight.
fn weights(field: &Value<'_>, faults: &mut Vec<Fault>) -> Option<Weights> {
    let table = field.table("{ cpu = 1.0, memory = 0.5 }", faults)?.only(&[LOAD], faults);
    let mut weight = |key| match table.get(key) {
        Some(field) => field.number(faults),
        None => Some(0.0),
    };
    let weights = Weights {
        cpu: weight("cpu")?,
        memory: weight("memory")?,
        connections: weight("connections")?,
        queue: weight("queue")?,
        command: weight("command")?,
    };
    let Weights { cpu, memory, connections, queue, command } = weights;
    if cpu + memory + connections + queue + command <= 0.0 {
        let remedy = "give at least one of them a weight: load = { cpu = 1.0 }";
        field.wrong("nothing has a weight", remedy, faults);
        return None;
    }
    Some(weights)
}

/// Notes a command without a weight, or a weight without a command.
fn uses_its_command(table: &Table<'_>, load: Weights, faults: &mut Vec<Fault>) {
    match (table.get("command"), table.get("load")) {
        (Some(command), _) if load.command == 0.0 => {
            let remedy = "add load = { command = 1.0 }, or remove the command";
            command.wrong("it has no weight, so that nobody asks it", remedy, faults);
        }
        (None, Some(field)) if load.command > 0.0 => {
            let remedy = "add command = [\"/path/of/program\"], or remove its weight";
            field.wrong("the command has a weight, and there is no command", remedy, faults);
        }
        _ => {}
    }
}

fn full(field: &Value<'_>, faults: &mut Vec<Fault>) -> Option<Full> {
    let table = field.table("{ connections = 1000, queue = 128 }", faults)?.only(&[FULL], faults);
    let Full { connections, queue } = Full::default();
    let mut number = |key, default| match table.get(key) {
        Some(field) => field.whole(faults),
        None => Some(default),
    };
    Some(Full { connections: number("connections", connections)?, queue: number("queue", queue)? })
}

/// `"tcp"`, a table, or an array of both.
fn checks(field: &Value<'_>, faults: &mut Vec<Fault>) -> Vec<Check> {
    if field.is_text() || field.is_table() {
        return check(field, faults).into_iter().collect();
    }
    let example = "\"tcp\", or [{ type = \"http\", path = \"/ready\" }]";
    field.items(example, faults).iter().filter_map(|item| check(item, faults)).collect()
}

fn check(field: &Value<'_>, faults: &mut Vec<Fault>) -> Option<Check> {
    if field.is_text() {
        return match field.word(CHECKS, faults)? {
            Type::Exec => {
                let remedy = "write { type = \"exec\", command = [\"/path/of/program\"] }";
                field.wrong("an exec check needs its command", remedy, faults);
                None
            }
            Type::Http => Some(with_times(http(None))),
            Type::Tcp => Some(with_times(CheckKind::Tcp { port: None })),
        };
    }
    let table = field.table("{ type = \"tcp\" }", faults)?;
    let Some(kind) = table.get("type") else {
        table.missing("type", "add type = \"tcp\", \"http\" or \"exec\"", faults);
        return None;
    };
    let kind = kind.word(CHECKS, faults)?;
    let table = table.only(
        match kind {
            Type::Tcp => &[COMMON, PORT_KEY],
            Type::Http => &[COMMON, PORT_KEY, HTTP],
            Type::Exec => &[COMMON, EXEC],
        },
        faults,
    );
    let port = match table.get("port") {
        Some(field) => Some(field.whole(faults)?),
        None => None,
    };
    let kind = match kind {
        Type::Tcp => CheckKind::Tcp { port },
        Type::Exec => match table.get("command") {
            Some(command) => CheckKind::Exec(command.command(faults)?),
            None => {
                table.missing("command", "add command = [\"/path/of/program\"]", faults);
                return None;
            }
        },
        Type::Http => http_of(&table, port, faults)?,
    };
    times(&table, with_times(kind), faults)
}

fn http(port: Option<u16>) -> CheckKind {
    CheckKind::Http { port, path: "/".to_owned(), host: None, expect: 200..=399 }
}

/// The words of the table go into a request as they are: no spaces and no line ends.
fn http_of(table: &Table<'_>, given: Option<u16>, faults: &mut Vec<Fault>) -> Option<CheckKind> {
    let mut kind = http(given);
    let CheckKind::Http { path, host, expect, .. } = &mut kind else { return None };
    let mut word = |key, start: &str, example: &str| -> Option<Option<String>> {
        let Some(field) = table.get(key) else { return Some(None) };
        let text = field.text(example, faults)?;
        if !text.starts_with(start) || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            field.wrong(format!("{text:?} cannot be sent"), format!("write {example}"), faults);
            return None;
        }
        Some(Some(text.to_owned()))
    };
    if let Some(given) = word("path", "/", "\"/ready\", without spaces")? {
        *path = given;
    }
    *host = word("host", "", "\"www.example.org\"")?.filter(|host| !host.is_empty());
    if let Some(field) = table.get("expect") {
        *expect = expected(&field, faults)?;
    }
    Some(kind)
}

/// `200`, or `"200-399"`.
fn expected(field: &Value<'_>, faults: &mut Vec<Fault>) -> Option<RangeInclusive<u16>> {
    if field.is_array() {
        field.wrong(
            "this is one status, or one range of them",
            "write 200, or \"200-399\"",
            faults,
        );
        return None;
    }
    if !field.is_text() {
        let status = field.whole(faults)?;
        return Some(status..=status);
    }
    let text = field.text("\"200-399\"", faults)?;
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (low.parse(), high.parse()) {
        (Ok(low), Ok(high)) if 100 <= low && low <= high && high <= 599 => Some(low..=high),
        _ => {
            let remedy = "write 200, or \"200-399\"";
            field.wrong(format!("{text:?} is no range of statuses"), remedy, faults);
            None
        }
    }
}

fn with_times(kind: CheckKind) -> Check {
    let second = Duration::from_secs(1);
    Check { kind, interval: 2 * second, timeout: second, rise: 2, fall: 3 }
}

fn times(table: &Table<'_>, default: Check, faults: &mut Vec<Fault>) -> Option<Check> {
    let interval = match table.get("interval") {
        Some(field) => field.time(faults)?,
        None => default.interval,
    };
    let timeout = match table.get("timeout") {
        Some(field) => field.time(faults)?,
        None => default.timeout.min(interval),
    };
    if timeout > interval
        && let Some(field) = table.get("timeout")
    {
        let interval = duration::show(interval);
        let what = format!("{} is longer than the interval", duration::show(timeout));
        field.wrong(what, format!("give at most that, {interval}, or a longer one"), faults);
    }
    let mut count = |key, default| match table.get(key) {
        Some(field) => field.whole(faults),
        None => Some(default),
    };
    let (rise, fall) = (count("rise", default.rise)?, count("fall", default.fall)?);
    Some(Check { interval, timeout, rise, fall, ..default })
}
