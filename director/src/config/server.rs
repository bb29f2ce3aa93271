//! `[[service.server]]`, and the fallback server.

use std::collections::HashMap;
use std::net::SocketAddr;

use realserver_agent::settings::key::{KeySpec, key, names};

use super::Mode;
use super::address;
use super::fields::{Field, Fields};
use super::problem::Report;
use crate::control::api::{Forwarding, ServerSpec, ServiceKey, Tunnel, TunnelChecksum};

/// Keys of a server.
pub(super) const KEYS: &[KeySpec] = &[
    key(
        "address",
        "the real server. Without a port: the service's port, or with `fwmark` that of the packet. Another port than the service's only with `nat`",
    )
    .required()
    .note("`\"10.0.0.11\"`, `\"10.0.0.11:80\"`, `\"2001:db8::11\"`, `\"[2001:db8::11]:80\"`"),
    key("weight", "its share; 0 = quiesced: it keeps its connections and gets no new ones")
        .numbers(0, LARGEST)
        .default("`1`"),
    key(
        "forwarding",
        "how packets reach it. There is no default beyond the service's: `ipvsadm` and keepalived differ in theirs, and the wrong one fails silently",
    )
    .words(|| names(METHODS))
    .default("the service's"),
    key("tunnel", "with `forwarding = \"tunnel\"` only")
        .of("text or table")
        .default("`\"ipip\"`")
        .note("see below"),
    key("upper_threshold", "no new connections from this many on; 0 = no limit")
        .numbers(0, LARGEST)
        .default("`0`"),
    key(
        "lower_threshold",
        "new connections again below this many; 0 = three quarters of the upper one",
    )
    .numbers(0, LARGEST)
    .default("`0`")
    .note("at most `upper_threshold`"),
];

/// Keys of `fallback`.
pub(super) const FALLBACK: &[KeySpec] = &[
    key("address", "who says sorry").required().note("as of a server"),
    key("forwarding", "how packets reach it").words(|| names(METHODS)).default("the service's"),
    key("tunnel", "with `forwarding = \"tunnel\"` only")
        .of("text or table")
        .default("`\"ipip\"`")
        .note("as of a server"),
];

/// Keys of `tunnel`.
pub(super) const TUNNEL: &[KeySpec] = &[
    key("type", "the header that packets are wrapped in").words(|| names(TUNNELS)).required(),
    key("port", "the server's UDP port")
        .numbers(1, 65_535)
        .default("required for `gue`")
        .note("`gue` only"),
    key("checksum", "how the outer header protects what is inside")
        .words(|| names(CHECKSUMS))
        .default("`\"nocsum\"`")
        .note("`gue` takes all, `gre` not `remcsum`, `ipip` none but `nocsum`"),
];

/// The largest number that the kernel has for weights and thresholds.
const LARGEST: i64 = i32::MAX as i64;

pub(super) const METHODS: &[(&str, Forwarding)] =
    &[("nat", Forwarding::Nat), ("tunnel", Forwarding::Tunnel), ("direct", Forwarding::Direct)];

const TUNNELS: &[(&str, &str)] = &[("ipip", "ipip"), ("gue", "gue"), ("gre", "gre")];

const CHECKSUMS: &[(&str, TunnelChecksum)] = &[
    ("nocsum", TunnelChecksum::Nocsum),
    ("csum", TunnelChecksum::Csum),
    ("remcsum", TunnelChecksum::Remcsum),
];

/// What servers have that name no forwarding method.
#[derive(Clone, Copy)]
pub(super) struct DefaultMethod {
    method: Option<Forwarding>,
    /// Whether the service names one, be it right or wrong.
    is_named: bool,
}

/// Reads `forwarding` of a service.
pub(super) fn default_method(
    service: &Fields<'_>,
    mode: Mode,
    report: &mut Report<'_>,
) -> DefaultMethod {
    match service.get("forwarding") {
        Some(field) => DefaultMethod { method: field.word(METHODS, report), is_named: true },
        // There nobody forwards; to say how is only of use if the mode shall change some day.
        None if mode == Mode::Nlb => {
            DefaultMethod { method: Some(Forwarding::Direct), is_named: true }
        }
        None => DefaultMethod { method: None, is_named: false },
    }
}

/// Below this weight a share of it is too coarse to be of use.
const ROOM: i32 = 10;

/// All servers of a service in the order of the file. `key` is `None` when the service's own name
/// is wrong: then what depends on it is not checked. `has_feedback`: their weights follow their load.
pub(super) fn read_all(
    service: &Fields<'_>,
    default: DefaultMethod,
    key: Option<ServiceKey>,
    has_feedback: bool,
    report: &mut Report<'_>,
) -> Vec<ServerSpec> {
    let Some(field) = service.get("server") else {
        return Vec::new();
    };
    let example = "[[service.server]] on a line of its own, then the server's keys";
    let mut lines: HashMap<SocketAddr, usize> = HashMap::new();
    let mut servers = Vec::new();
    for item in field.items(example, report).unwrap_or_default() {
        let Some(fields) = item.table(&[KEYS], example, report) else {
            continue;
        };
        let Some(server) = read(&fields, key, default, report) else {
            continue;
        };
        if has_feedback && (1..ROOM).contains(&server.weight) {
            let field = fields.get("weight").or_else(|| fields.get("address"));
            field.as_ref().unwrap_or(&item).wrong(
                format!("a weight of {} leaves feedback no room", server.weight),
                "feedback needs room: give weights of 10 or more, e.g. ten times as much",
                report,
            );
        }
        if let Some(field) = fields.get("address") {
            let line = report.line(field.offset());
            if let Some(first) = lines.insert(server.address, line) {
                lines.insert(server.address, first);
                field.wrong(
                    format!("{} is the server of line {first} already", server.address),
                    format!("remove line {first} or line {line}; a larger weight gives a server more connections"),
                    report,
                );
            }
        }
        servers.push(server);
    }
    servers
}

fn read(
    fields: &Fields<'_>,
    key: Option<ServiceKey>,
    default: DefaultMethod,
    report: &mut Report<'_>,
) -> Option<ServerSpec> {
    let forwarding = method(fields, default, report);
    let weight = number(fields, "weight", 1, "; 0 means quiesced", report);
    let upper = number(fields, "upper_threshold", 0, "; 0 means no limit", report);
    let lower =
        number(fields, "lower_threshold", 0, "; 0 means three quarters of upper_threshold", report);
    if let (Some(upper), Some(lower)) = (upper, lower)
        && lower > upper
        && let Some(field) = fields.get("lower_threshold")
    {
        field.wrong(
            format!("{lower} is above upper_threshold, which is {upper}"),
            "the server is given connections again below the lower one: make it smaller, or leave it out",
            report,
        );
    }
    let tunnel = tunnel(fields, forwarding, report);
    let Some(field) = fields.get("address") else {
        fields.missing("address", "add address = \"10.0.0.11:80\"", report);
        return None;
    };
    Some(ServerSpec {
        address: place(&field, forwarding, key, report)?,
        forwarding: forwarding?,
        tunnel: tunnel?,
        weight: weight?,
        upper_threshold: upper?.unsigned_abs(),
        lower_threshold: lower?.unsigned_abs(),
    })
}

fn method(
    fields: &Fields<'_>,
    default: DefaultMethod,
    report: &mut Report<'_>,
) -> Option<Forwarding> {
    if let Some(field) = fields.get("forwarding") {
        return field.word(METHODS, report);
    }
    if !default.is_named {
        let remedy = "add forwarding = \"nat\", \"tunnel\" or \"direct\" to the server, or to its service for all its servers";
        fields.missing("forwarding", remedy, report);
    }
    default.method
}

/// Address and port of a server.
fn place(
    field: &Field<'_>,
    forwarding: Option<Forwarding>,
    key: Option<ServiceKey>,
    report: &mut Report<'_>,
) -> Option<SocketAddr> {
    let (address, port) = address::server(field, report)?;
    let port = match key {
        Some(ServiceKey::Address { address, .. }) => port.unwrap_or(address.port()),
        _ => port.unwrap_or(0),
    };
    let address = SocketAddr::new(address, port);
    agrees(field, address, forwarding, key, report);
    Some(address)
}

/// `fallback = "10.0.0.99:80"` or `fallback = { address = "10.0.0.99:80", forwarding = "nat" }`.
pub(super) fn fallback(
    service: &Fields<'_>,
    default: DefaultMethod,
    key: Option<ServiceKey>,
    servers: &[ServerSpec],
    report: &mut Report<'_>,
) -> Option<ServerSpec> {
    let field = service.get("fallback")?;
    let server = if field.is_table() {
        let table = field.table(&[FALLBACK], "{ address = \"10.0.0.99:80\" }", report)?;
        read(&table, key, default, report)?
    } else {
        if !default.is_named {
            let remedy = "write fallback = { address = \"10.0.0.99:80\", forwarding = \"nat\" }, or add forwarding to the service";
            field.wrong("nothing says how packets reach it", remedy, report);
        }
        ServerSpec {
            address: place(&field, default.method, key, report)?,
            forwarding: default.method?,
            tunnel: Tunnel::Ipip,
            weight: 1,
            upper_threshold: 0,
            lower_threshold: 0,
        }
    };
    if servers.iter().any(|other| other.address == server.address) {
        field.wrong(
            format!("{} is a server of the service already", server.address),
            "name another: it is for when all of those have failed",
            report,
        );
    }
    Some(server)
}

/// Checks family and port of a server against its service.
fn agrees(
    field: &Field<'_>,
    server: SocketAddr,
    forwarding: Option<Forwarding>,
    key: Option<ServiceKey>,
    report: &mut Report<'_>,
) {
    let (Some(key), Some(forwarding)) = (key, forwarding) else {
        return;
    };
    let family = |ipv6: bool| if ipv6 { "IPv6" } else { "IPv4" };
    if key.is_ipv6() != server.is_ipv6() && forwarding != Forwarding::Tunnel {
        field.wrong(
            format!(
                "an {} server cannot take the packets of an {} service as they are",
                family(server.is_ipv6()),
                family(key.is_ipv6())
            ),
            format!(
                "give the server's {} address, or set forwarding = \"tunnel\"",
                family(key.is_ipv6())
            ),
            report,
        );
    }
    let ServiceKey::Address { address, .. } = key else {
        return;
    };
    if forwarding != Forwarding::Nat && server.port() != address.port() {
        let method = if forwarding == Forwarding::Direct { "direct" } else { "tunnel" };
        field.wrong(
            format!(
                "port {} differs from the service's {}, and {method} forwarding cannot change ports",
                server.port(),
                address.port()
            ),
            "leave the port out, or set forwarding = \"nat\"",
            report,
        );
    }
}

fn number(
    fields: &Fields<'_>,
    key: &str,
    default: i32,
    meaning: &str,
    report: &mut Report<'_>,
) -> Option<i32> {
    match fields.get(key) {
        Some(field) => field.number(meaning, report),
        None => Some(default),
    }
}

/// `tunnel = "ipip"` or `tunnel = { type = "gue", port = 5555, checksum = "csum" }`, by the table
/// of which tunnel option goes with which type (`ipvsadm --tun-type`).
fn tunnel(
    fields: &Fields<'_>,
    forwarding: Option<Forwarding>,
    report: &mut Report<'_>,
) -> Option<Tunnel> {
    let Some(field) = fields.get("tunnel") else {
        return Some(Tunnel::Ipip);
    };
    if forwarding.is_some_and(|forwarding| forwarding != Forwarding::Tunnel) {
        field.wrong(
            "only a server with forwarding = \"tunnel\" has a tunnel",
            "remove it, or set forwarding = \"tunnel\"",
            report,
        );
        return None;
    }
    let (kind, port, checksum) = if field.is_table() {
        let table = field.table(&[TUNNEL], "{ type = \"gre\" }", report)?;
        let Some(kind) = table.get("type") else {
            table.missing("type", "add type = \"ipip\", \"gue\" or \"gre\"", report);
            return None;
        };
        let port = table.get("port");
        let checksum = table.get("checksum");
        (kind.word(TUNNELS, report)?, port, checksum)
    } else {
        (field.word(TUNNELS, report)?, None, None)
    };
    if let Some(port) = port.as_ref().filter(|_| kind != "gue") {
        let what = format!("a tunnel of type {kind} has no port");
        port.wrong(what, "remove it, or set type = \"gue\"", report);
    }
    let csum = match &checksum {
        Some(checksum) => checksum.word(CHECKSUMS, report)?,
        None => TunnelChecksum::Nocsum,
    };
    if let Some(checksum) = checksum.as_ref() {
        let (fits, known) = match kind {
            "gue" => (true, ""),
            "gre" => (csum != TunnelChecksum::Remcsum, "use nocsum or csum"),
            _ => (false, "remove it"),
        };
        if !fits {
            let what = format!("a tunnel of type {kind} cannot have this checksum");
            checksum.wrong(what, known, report);
        }
    }
    match kind {
        "gue" => {
            let Some(port) = port else {
                field.wrong(
                    "a tunnel of type gue needs the UDP port of the server",
                    "write tunnel = { type = \"gue\", port = 5555 }",
                    report,
                );
                return None;
            };
            Some(Tunnel::Gue { port: port.number("", report)?, checksum: csum })
        }
        "gre" => Some(Tunnel::Gre { checksum: csum }),
        _ => Some(Tunnel::Ipip),
    }
}
