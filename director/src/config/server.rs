//! `[[service.server]]`.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::Mode;
use super::address;
use super::fields::{Field, Fields};
use super::problem::Report;
use crate::control::api::{Forwarding, ServerSpec, ServiceKey, Tunnel, TunnelChecksum};

/// Keys of a server.
pub(super) const KEYS: &[&str] =
    &["address", "weight", "forwarding", "tunnel", "upper_threshold", "lower_threshold"];

/// Keys of `tunnel`.
pub(super) const TUNNEL: &[&str] = &["type", "port", "checksum"];

const METHODS: &[(&str, Forwarding)] =
    &[("nat", Forwarding::Nat), ("tunnel", Forwarding::Tunnel), ("direct", Forwarding::Direct)];

const CHECKSUMS: &[(&str, TunnelChecksum)] = &[
    ("nocsum", TunnelChecksum::Nocsum),
    ("csum", TunnelChecksum::Csum),
    ("remcsum", TunnelChecksum::Remcsum),
];

/// All servers of a service in the order of the file. `key` is `None` when the service's own name
/// is wrong: then what depends on it is not checked.
pub(super) fn read_all(
    service: &Fields<'_>,
    mode: Mode,
    key: Option<ServiceKey>,
    report: &mut Report<'_>,
) -> Vec<ServerSpec> {
    let default = match service.get("forwarding") {
        Some(field) => field.word(METHODS, report),
        // There nobody forwards; to say how is only of use if the mode shall change some day.
        None => (mode == Mode::Nlb).then_some(Forwarding::Direct),
    };
    let Some(field) = service.get("server") else {
        return Vec::new();
    };
    let example = "[[service.server]] on a line of its own, then the server's keys";
    let mut lines: HashMap<SocketAddr, usize> = HashMap::new();
    let mut servers = Vec::new();
    for item in field.items(example, report).unwrap_or_default() {
        let Some(fields) = item.table(KEYS, example, report) else {
            continue;
        };
        let service_has_method = mode == Mode::Nlb || service.get("forwarding").is_some();
        let Some(server) = read(&fields, key, default, service_has_method, report) else {
            continue;
        };
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
    default: Option<Forwarding>,
    service_has_method: bool,
    report: &mut Report<'_>,
) -> Option<ServerSpec> {
    let forwarding = match fields.get("forwarding") {
        Some(field) => field.word(METHODS, report),
        None => {
            if !service_has_method {
                let remedy = "add forwarding = \"nat\", \"tunnel\" or \"direct\" to the server, or to its service for all its servers";
                fields.missing("forwarding", remedy, report);
            }
            default
        }
    };
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
    let (address, port) = address::server(&field, report)?;
    let port = match key {
        Some(ServiceKey::Address { address, .. }) => port.unwrap_or(address.port()),
        _ => port.unwrap_or(0),
    };
    let address = SocketAddr::new(address, port);
    agrees(&field, address, forwarding, key, report);
    Some(ServerSpec {
        address,
        forwarding: forwarding?,
        tunnel: tunnel?,
        weight: weight?,
        upper_threshold: upper?.unsigned_abs(),
        lower_threshold: lower?.unsigned_abs(),
    })
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
        Some(field) => field
            .integer(0..=i64::from(i32::MAX), meaning, report)
            .and_then(|value| i32::try_from(value).ok()),
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
    const TYPES: &[(&str, &str)] = &[("ipip", "ipip"), ("gue", "gue"), ("gre", "gre")];
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
        let table = field.table(TUNNEL, "{ type = \"gre\" }", report)?;
        let Some(kind) = table.get("type") else {
            table.missing("type", "add type = \"ipip\", \"gue\" or \"gre\"", report);
            return None;
        };
        let port = table.get("port");
        let checksum = table.get("checksum");
        (kind.word(TYPES, report)?, port, checksum)
    } else {
        (field.word(TYPES, report)?, None, None)
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
            let port = port.integer(1..=65_535, "", report)?;
            Some(Tunnel::Gue { port: u16::try_from(port).ok()?, checksum: csum })
        }
        "gre" => Some(Tunnel::Gre { checksum: csum }),
        _ => Some(Tunnel::Ipip),
    }
}
