//! Of `mode` and `[[service]]` what tells a server what it is there for.

use std::net::{IpAddr, SocketAddr};

use super::reader::{Table, Value};
use super::{Entry, Fault, Forwarding, Mode, Protocol};
use crate::kind::{GUE_PORT, Kind};

const METHODS: &[(&str, Method)] =
    &[("nat", Method::Nat), ("direct", Method::Direct), ("tunnel", Method::Tunnel)];

#[derive(Clone, Copy)]
enum Method {
    Nat,
    Direct,
    Tunnel,
}

/// The mode and all servers.
pub(super) fn read(top: &Table<'_>, faults: &mut Vec<Fault>) -> (Mode, Vec<Entry>) {
    let modes = [("dispatcher", Mode::Dispatcher), ("nlb", Mode::Nlb)];
    let mode = top.get("mode").and_then(|field| field.word(&modes, faults)).unwrap_or_default();
    let mut entries = Vec::new();
    let Some(services) = top.get("service") else { return (mode, entries) };
    let example = "[[service]] on a line of its own, then the service's keys";
    for service in services.items(example, faults) {
        let Some(service) = service.table(example, faults) else { continue };
        let Some((listen, protocol)) = listen(&service, faults) else { continue };
        let Some(servers) = service.get("server") else { continue };
        for server in servers.items("[[service.server]]", faults) {
            let Some(server) = server.table("[[service.server]]", faults) else { continue };
            let Some((address, port)) = address(&server, faults) else { continue };
            let Some(forwarding) = forwarding(&service, &server, mode, faults) else { continue };
            entries.push(Entry { listen, protocol, address, port, forwarding });
        }
    }
    (mode, entries)
}

/// `192.0.2.10:80/tcp`; of a service named by a mark there is none.
fn listen(service: &Table<'_>, faults: &mut Vec<Fault>) -> Option<(Option<SocketAddr>, Protocol)> {
    const EXAMPLE: &str = "\"192.0.2.10:80/tcp\" or \"[2001:db8::10]:53/udp\"";
    let Some(field) = service.get("listen") else {
        if service.get("fwmark").is_none() {
            service.missing("listen", &format!("add listen = {EXAMPLE}"), faults);
            return None;
        }
        return Some((None, Protocol::Tcp));
    };
    let text = field.text(EXAMPLE, faults)?;
    let read = text.rsplit_once('/').and_then(|(address, protocol)| {
        let protocol = match protocol {
            "tcp" => Protocol::Tcp,
            "udp" => Protocol::Udp,
            "sctp" => Protocol::Sctp,
            _ => return None,
        };
        let address: SocketAddr = address.parse().ok()?;
        Some((Some(SocketAddr::new(address.ip(), address.port())), protocol))
    });
    if read.is_none() {
        let what = format!("{text:?} is not an address with port and protocol");
        field.wrong(what, format!("write {EXAMPLE}"), faults);
    }
    read
}

/// An address with a port or without.
fn address(server: &Table<'_>, faults: &mut Vec<Fault>) -> Option<(IpAddr, Option<u16>)> {
    let Some(field) = server.get("address") else {
        server.missing("address", "add address = \"10.0.0.11:80\"", faults);
        return None;
    };
    let text = field.text("\"10.0.0.11:80\"", faults)?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let read = match (bare.parse::<IpAddr>(), text.parse::<SocketAddr>()) {
        (Ok(address), _) => Some((address, None)),
        (_, Ok(address)) => Some((address.ip(), Some(address.port()))),
        _ => None,
    };
    if read.is_none() {
        let remedy = "write \"10.0.0.11:80\", \"[2001:db8::11]:80\", or the address alone";
        field.wrong(format!("{text:?} is not an address"), remedy, faults);
    }
    read
}

/// The server's own word, else that of its service.
fn forwarding(
    service: &Table<'_>,
    server: &Table<'_>,
    mode: Mode,
    faults: &mut Vec<Fault>,
) -> Option<Forwarding> {
    let method = match server.get("forwarding").or_else(|| service.get("forwarding")) {
        Some(field) => field.word(METHODS, faults)?,
        // There nobody forwards.
        None if mode == Mode::Nlb => Method::Direct,
        None => {
            let remedy = "add forwarding = \"nat\", \"tunnel\" or \"direct\" to it or its service";
            server.missing("forwarding", remedy, faults);
            return None;
        }
    };
    match method {
        Method::Nat => Some(Forwarding::Nat),
        Method::Direct => Some(Forwarding::Direct),
        Method::Tunnel => match server.get("tunnel").or_else(|| service.get("tunnel")) {
            Some(field) => tunnel(&field, faults).map(Forwarding::Tunnel),
            None => Some(Forwarding::Tunnel(Kind::Ipip)),
        },
    }
}

/// `"gre"`, or `{ type = "gue", port = 5555, checksum = "csum" }`. Every checksum of GUE is
/// understood without being told; a device of the kernel wants to know those of GRE.
fn tunnel(field: &Value<'_>, faults: &mut Vec<Fault>) -> Option<Kind> {
    let gre = Kind::Gre { checksum: Some(false) };
    let types = [("ipip", Kind::Ipip), ("gre", gre), ("gue", Kind::Gue { port: GUE_PORT })];
    if field.is_text() {
        return field.word(&types, faults);
    }
    let table = field.table("{ type = \"gre\" }", faults)?;
    let Some(kind) = table.get("type") else {
        table.missing("type", "add type = \"ipip\", \"gue\" or \"gre\"", faults);
        return None;
    };
    match (kind.word(&types, faults)?, table.get("port")) {
        (Kind::Gue { .. }, Some(port)) => {
            let port = port.within(1..=65_535, faults)?;
            Some(Kind::Gue { port })
        }
        (Kind::Gre { .. }, _) => {
            let checksums = [("nocsum", false), ("csum", true)];
            let checksum = match table.get("checksum") {
                Some(field) => field.word(&checksums, faults)?,
                None => false,
            };
            Some(Kind::Gre { checksum: Some(checksum) })
        }
        (kind, _) => Some(kind),
    }
}
