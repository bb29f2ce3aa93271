//! `[[service]]`.

use std::collections::HashMap;
use std::time::Duration;

use realserver_agent::settings::key::{KeySpec, key, milliseconds, names, seconds};

use super::fields::Fields;
use super::problem::Report;
use super::{DeclaredService, Mode, address, extras, health, scheduling, server};
use crate::control::api::{
    Extras, Forwarding, HashKey, MssClamp, Persistence, Protocol, ServiceKey, ServiceSpec,
};
use crate::health::plan::AgentWatch;

/// Keys of a service.
pub(super) const KEYS: &[KeySpec] = &[
    key("listen", "the virtual address. Port 0 is any port, and needs `persistence`")
        .required()
        .note("`\"address:port/protocol\"`, protocol `tcp`, `udp` or `sctp`"),
    key("fwmark", "instead of `listen`: packets to which a `[[mark]]` gives this mark")
        .numbers(1, u32::MAX as i64),
    key("family", "the addresses' family, with `fwmark` only")
        .words(|| names(FAMILIES))
        .default("`\"ipv4\"`"),
    key("scheduler", "who gets the next connection")
        .of("text or table")
        .default("`\"wlc\"`")
        .note("see below"),
    key("scheduler_flags", "variants of the scheduler").of("array of texts").note("see below"),
    key("persistence", "keep a client with its server")
        .times(seconds(1), LONGEST_PERSISTENCE)
        .of("time or table")
        .note("see below"),
    key(
        "one_packet",
        "schedule every datagram by itself and keep no connection. With `nat` the servers' answers are not translated: they are routed as they are",
    )
    .boolean()
    .default("`false`")
    .note("UDP only"),
    key(
        "timeouts",
        "how long an idle connection of this service lives; `tcp` and `tcp_fin` for TCP services, `udp` for UDP ones",
    )
    .of("table")
    .default("the director's")
    .note("as `timeouts` above"),
    key("gone_server", "what becomes of packets whose server has been removed, see below")
        .words(|| names(extras::GONE_SERVER))
        .default("`\"drop\"`"),
    key(
        "no_destination",
        "what a client is told whom no server can take: ICMP port unreachable as by the kernel, or RST, which no firewall drops and every client heeds at once",
    )
    .words(|| names(extras::NO_DESTINATION))
    .default("`\"icmp\"`")
    .note("the latter for TCP only"),
    key("mss_clamp", "the largest segment that a SYN may announce, see below")
        .numbers(MssClamp::LEAST as i64, MssClamp::MOST as i64)
        .of("true/false or number")
        .default("`false`")
        .note("TCP only"),
    key("check", "how it is found out whether a server serves")
        .of("text, table, or array of these")
        .note("see [below](#health-of-servers)"),
    key("agent", "its servers run `realserver-agent`, and are asked")
        .of("true/false or table")
        .default("`false`")
        .note("see [below](#health-of-servers)"),
    key(
        "all_down",
        "what becomes of new connections when no server is up; needs `check` or `agent`",
    )
    .words(|| names(health::ALL_DOWN))
    .default("`\"keep\"`, with `fallback` `\"fallback\"`"),
    key("fallback", "who takes new connections then")
        .of("text or table")
        .note("as `address` of a server"),
    key("feedback", "weights follow the load that servers report")
        .of("true/false or table")
        .default("`false`")
        .note("see [below](#health-of-servers)"),
    key("teardown", "what becomes of the connections of a server that has failed, see below")
        .words(|| names(extras::TEARDOWN))
        .default("`\"lazy\"`"),
    key("bias", "how much a connection in progress counts")
        .default("`\"ilb:2\"` with `lc`, `wlc`, `sed`, `nq`, `lblc`, `lblcr`, `load`; `\"none\"` with others")
        .note("`\"none\"`, `\"linear:N\"` with N from 1 to 10000, `\"ilb:M\"` with M from 2 to 100"),
    key("bias_window", "for how long a new connection is in progress")
        .times(milliseconds(100), seconds(60))
        .default("`\"5s\"`"),
    key("forwarding", "for those of its servers that name none themselves")
        .words(|| names(server::METHODS)),
    key("server", "its real servers, one `[[service.server]]` each").of("array of tables"),
];

/// Keys of `persistence`.
pub(super) const PERSISTENCE: &[KeySpec] = &[
    key("timeout", "how long the tie lives after its last use")
        .times(seconds(1), LONGEST_PERSISTENCE)
        .default("`\"6m\"`"),
    key(
        "prefix",
        "how many leading bits of an address name a client: 24 ties all clients of a /24 to one server",
    )
    .numbers(1, 128)
    .default("32, or 128 for IPv6")
    .note("for IPv4 to 32"),
    key(
        "engine",
        "tie by client and Call-ID of SIP: each call of a client is tied by itself. A datagram that belongs to no connection and has no Call-ID is dropped",
    )
    .words(|| names(ENGINES))
    .note("UDP only"),
    key("leave_quiesced", "a client whose server has weight 0 goes to another one, see below")
        .boolean()
        .default("`false`"),
];

const FAMILIES: &[(&str, bool)] = &[("ipv4", false), ("ipv6", true)];

const ENGINES: &[(&str, ())] = &[("sip", ())];

/// 31 days, `IP_VS_SVC`'s limit as `ipvsadm -p` checks it.
const LONGEST_PERSISTENCE: Duration = seconds(31 * 86_400);

/// What `ipvsadm -p` without a number means.
const DEFAULT_PERSISTENCE: u32 = 360;

/// All services in the order of the file; those with a problem are left out (the report has it).
/// `agent` is how agents are asked of which a service says nothing else.
pub(super) fn read_all(
    root: &Fields<'_>,
    mode: Mode,
    schedulers: &[&str],
    agent: &AgentWatch,
    report: &mut Report<'_>,
) -> Vec<DeclaredService> {
    let Some(field) = root.get("service") else {
        return Vec::new();
    };
    let example = "[[service]] on a line of its own, then the service's keys";
    let mut lines: HashMap<ServiceKey, usize> = HashMap::new();
    let mut services = Vec::new();
    for item in field.items(example, report).unwrap_or_default() {
        let Some(fields) = item.table(&[KEYS], example, report) else {
            continue;
        };
        let key = service_key(&fields, report);
        let name = fields.get("listen").or_else(|| fields.get("fwmark"));
        if let (Some(key), Some(name)) = (key, name) {
            let line = report.line(name.offset());
            if let Some(first) = lines.insert(key, line) {
                lines.insert(key, first);
                let what = match key {
                    ServiceKey::Address { .. } => "listens there",
                    ServiceKey::Fwmark { .. } => "has this mark and family",
                };
                name.wrong(
                    format!("the service of line {first} {what} already"),
                    format!("change lines {first} and {line} so that they differ, or put all servers under one of them"),
                    report,
                );
            }
        }
        services.extend(read(&fields, mode, key, schedulers, agent, report));
    }
    services
}

fn read(
    fields: &Fields<'_>,
    mode: Mode,
    key: Option<ServiceKey>,
    schedulers: &[&str],
    agent: &AgentWatch,
    report: &mut Report<'_>,
) -> Option<DeclaredService> {
    let protocol = key.and_then(protocol);
    let (scheduler, placement) = scheduling::scheduler(fields, protocol, schedulers, report);
    let flags = scheduling::flags(fields, &scheduler, report);
    let persistence = persistence(fields, key, report);
    let by_name = placement.with_flags(&scheduler, flags).key == Some(HashKey::DnsName);
    let one_packet = one_packet(fields, key, by_name, report);
    let extras = extras::read(fields, protocol, &scheduler, report);
    let extras = Some(Extras { placement, ..extras });
    let health = health::read(fields, agent, &scheduler, report);
    let default = server::default_method(fields, mode, report);
    let servers = server::read_all(fields, default, key, health.feedback.is_some(), report);
    let fallback = server::fallback(fields, default, key, &servers, report);
    health::check_ports(fields, &health.checks, &servers, report);
    if by_name && servers.iter().chain(&fallback).any(|server| server.forwarding == Forwarding::Nat)
    {
        translates_no_answer(fields, report);
    }
    let key = key?;
    if let ServiceKey::Address { address, .. } = key
        && address.port() == 0
        && fields.get("persistence").is_none()
        && let Some(listen) = fields.get("listen")
    {
        listen.wrong(
            "port 0 is any port, and only a persistent service can take it",
            "give a port, or add persistence = \"6m\" so that a client's connections stay together",
            report,
        );
    }
    Some(DeclaredService {
        service: ServiceSpec { key, scheduler, flags, persistence, one_packet, extras },
        servers,
        fallback,
        health,
    })
}

/// What names the service: `listen`, or `fwmark` with `family`.
fn service_key(fields: &Fields<'_>, report: &mut Report<'_>) -> Option<ServiceKey> {
    let mark = fields.get("fwmark");
    let family = fields.get("family");
    let listen = fields.get("listen");
    if let Some(mark) = &mark {
        if listen.is_some() {
            mark.wrong("a service has either listen or fwmark", "remove one of the two", report);
        }
        let number = mark.number("", report);
        let ipv6 = match &family {
            Some(family) => family.word(FAMILIES, report)?,
            None => false,
        };
        let fwmark = number.filter(|_| listen.is_none())?;
        return Some(ServiceKey::Fwmark { fwmark, ipv6 });
    }
    if let Some(family) = family {
        family.wrong(
            "family belongs to a service by fwmark",
            "remove it: the address in listen says which family it is",
            report,
        );
    }
    let Some(listen) = listen else {
        fields.missing("listen", "add listen = \"192.0.2.10:80/tcp\"", report);
        return None;
    };
    let (protocol, address) = address::listen(&listen, report)?;
    Some(ServiceKey::Address { protocol, address })
}

/// `persistence = "5m"` or `persistence = { timeout = "5m", prefix = 24 }`.
fn persistence(
    fields: &Fields<'_>,
    key: Option<ServiceKey>,
    report: &mut Report<'_>,
) -> Option<Persistence> {
    let field = fields.get("persistence")?;
    // Without a key the family is not known; then the wider range avoids a false alarm.
    let widest = if key.is_none_or(|key| key.is_ipv6()) { 128 } else { 32 };
    if !field.is_table() {
        let timeout = field.seconds(report)?;
        return Some(Persistence { timeout, prefix: widest, engine: None });
    }
    let table = field.table(&[PERSISTENCE], "{ timeout = \"5m\", prefix = 24 }", report)?;
    let timeout = match table.get("timeout") {
        Some(timeout) => timeout.seconds(report),
        None => Some(DEFAULT_PERSISTENCE),
    };
    let prefix = match table.get("prefix") {
        Some(prefix) => {
            let meaning = ": how many leading bits of its address name a client";
            prefix.integer(1..=i64::from(widest), meaning, report)
        }
        None => Some(i64::from(widest)),
    };
    let mut engine = None;
    if let Some(field) = table.get("engine") {
        field.word(ENGINES, report)?;
        engine = Some("sip".to_owned());
        if key.and_then(protocol).is_some_and(|protocol| protocol != Protocol::Udp) {
            field.wrong(
                "the sip engine reads UDP datagrams only",
                "listen on /udp, or remove engine",
                report,
            );
        }
    }
    Some(Persistence { timeout: timeout?, prefix: u8::try_from(prefix?).ok()?, engine })
}

/// Notes that a service by names has a server by NAT.
fn translates_no_answer(fields: &Fields<'_>, report: &mut Report<'_>) {
    let what = "key dns-name schedules each datagram by itself, without a connection by which the answer of a NAT server could be translated";
    let remedy = "set forwarding = \"direct\" or \"tunnel\" for its servers, or another key";
    match fields.get("scheduler_flags").or_else(|| fields.get("scheduler")) {
        Some(field) => field.wrong(what, remedy, report),
        None => fields.wrong(what, remedy, report),
    }
}

/// `by_name`: the service goes by the names of DNS questions, which a client asks from one port.
fn one_packet(
    fields: &Fields<'_>,
    key: Option<ServiceKey>,
    by_name: bool,
    report: &mut Report<'_>,
) -> bool {
    let Some(field) = fields.get("one_packet") else {
        return by_name;
    };
    let one_packet = field.boolean(report).unwrap_or(by_name);
    if by_name && !one_packet {
        field.wrong(
            "with key dns-name each datagram is scheduled by itself",
            "remove one_packet, or set another key",
            report,
        );
    }
    if one_packet && key.and_then(protocol).is_some_and(|protocol| protocol != Protocol::Udp) {
        field.wrong(
            "scheduling each packet by itself is for UDP only",
            "remove one_packet, or listen on /udp",
            report,
        );
    }
    one_packet
}

fn protocol(key: ServiceKey) -> Option<Protocol> {
    match key {
        ServiceKey::Address { protocol, .. } => Some(protocol),
        ServiceKey::Fwmark { .. } => None,
    }
}
