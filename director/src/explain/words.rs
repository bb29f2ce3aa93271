//! Packets and decisions in words.

use std::net::{IpAddr, SocketAddr};

use forwarding::{Fragment, Headers, icmp, parse};

use super::{Link, fields};
use crate::control::explain::Step;
use crate::dispatch::connections::Way;
use crate::dispatch::verdict::Path;
use crate::dispatch::witness::{Candidate, Decision};

/// Candidates of a scheduler that are told; of more the chosen one and the first.
const TOLD: usize = 20;

/// An address with its port, or without where there is none.
pub(super) fn end(address: IpAddr, port: u16) -> String {
    if port == 0 { address.to_string() } else { SocketAddr::new(address, port).to_string() }
}

/// A frame in a line.
pub(super) fn packet(frame: &[u8]) -> String {
    let headers = match parse(frame) {
        Ok(headers) => headers,
        Err(error) => return format!("{} bytes: {error}", frame.len()),
    };
    let mut text = of(&headers);
    if let Some(quote) = icmp::quoted(frame, &headers) {
        let kind = frame.get(headers.l4..headers.l4 + 2).map_or([0; 2], |it| [it[0], it[1]]);
        text.push_str(&format!(", type {} code {}, about {}", kind[0], kind[1], of(&quote)));
    }
    text.push_str(&format!(", {} bytes", headers.ip_len()));
    text
}

fn of(headers: &Headers) -> String {
    let protocol = match headers.protocol {
        1 | 58 => "ICMP".to_owned(),
        6 => format!("TCP {}", flags(headers.tcp_flags)),
        17 => "UDP".to_owned(),
        132 => "SCTP".to_owned(),
        number => format!("protocol {number}"),
    };
    let fragment = match headers.fragment {
        Fragment::Whole => "",
        Fragment::First { .. } => ", first fragment",
        Fragment::Later { .. } => ", later fragment",
    };
    let from = end(headers.source, headers.source_port);
    let to = end(headers.destination, headers.destination_port);
    format!("{} {from} -> {to}{fragment}", protocol.trim_end())
}

fn flags(flags: u8) -> String {
    let names = [(2, "SYN"), (16, "ACK"), (1, "FIN"), (4, "RST"), (8, "PSH"), (32, "URG")];
    let set = names.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name);
    set.collect::<Vec<_>>().join("+")
}

fn new(stage: &str, text: impl Into<String>) -> Step {
    Step { stage: stage.to_owned(), text: text.into(), details: Vec::new() }
}

/// A decision about a packet with these headers.
pub(super) fn step(decision: Decision, headers: &Headers) -> Step {
    match decision {
        Decision::Connection { way, client, virtual_address, server, before, after, left } => {
            let whose = match way {
                Way::In => "its client's",
                Way::Out => "its server's",
            };
            let moves = match before == after {
                true => format!("stays {}", before.name()),
                false => format!("{} -> {}", before.name(), after.name()),
            };
            let text = format!("known, and the packet is {whose}: {moves}");
            let ends = format!("client {client}, virtual {virtual_address}, server {server}");
            let time = format!("it would have expired in {} s", left.as_secs());
            Step { details: vec![ends, time], ..new("connection", text) }
        }
        Decision::Ended { why } => new("connection", why),
        Decision::NoConnection => new("connection", "none is known"),
        Decision::Service { key, scheduler } => {
            new("service", format!("{key}, scheduler {scheduler}"))
        }
        Decision::OpensNothing => new(
            "service",
            match headers.protocol {
                6 => {
                    "only a SYN opens a connection (`sloppy_tcp` takes others too), and this is none"
                }
                132 => {
                    "only an INIT opens an association (`sloppy_sctp` takes others too), and this is none"
                }
                _ => "the packet opens no connection",
            },
        ),
        Decision::TableFull => {
            new("connection", "the table is full (`max_connections`), and nothing in it can go")
        }
        Decision::Named { what, is_there: true } => new("service", format!("goes by the {what}")),
        Decision::Named { what, is_there: false } => new(
            "service",
            format!("would go by the {what}, and there is none: by the client's address"),
        ),
        Decision::Template { server, left: None } => {
            new("template", format!("the client has one, and stays with {server}"))
        }
        Decision::Template { server, left: Some(why) } => {
            new("template", format!("the client had {server}, but {why}"))
        }
        Decision::NoTemplate { prefix, timeout } => new(
            "template",
            format!("none for the client's /{prefix} yet: it will have one for {timeout} s"),
        ),
        Decision::Fallback { server } => {
            new("scheduler", format!("not asked: no server is up, so the fallback {server} has it"))
        }
        Decision::Scheduled { bearings, candidates, chosen } => {
            scheduled(&bearings, &candidates, chosen)
        }
        Decision::Opened { server, is_once: true } => {
            new("connection", format!("none is kept: this datagram alone goes to {server}"))
        }
        Decision::Opened { server, is_once: false } => {
            new("connection", format!("a new one to {server}"))
        }
        Decision::Bypassed => {
            new("scheduler", "no server takes it, so it goes past them (`cache_bypass`)")
        }
        Decision::ByHash { server } => {
            new("scheduler", format!("{server} by hash alone; nothing is remembered"))
        }
        Decision::Way { destination, path: None } => new(
            "route",
            format!("the kernel has none to {destination}: ip route get {destination}"),
        ),
        Decision::Way { destination, path: Some(path) } => {
            let by = match path.next_hop == destination {
                true => "on the link".to_owned(),
                false => format!("by {}", path.next_hop),
            };
            new("route", format!("to {destination} {by}, MTU {}", path.mtu))
        }
        Decision::Fits { mtu, length, overhead } => {
            let less = match overhead {
                0 => String::new(),
                bytes => format!(" after {bytes} for the tunnel"),
            };
            let verdict = if length > mtu { "too long" } else { "fits" };
            new("mtu", format!("{length} bytes, and {mtu} go through{less}: {verdict}"))
        }
        Decision::Clamped { most } => {
            new("mtu", format!("a larger segment size than {most} in a SYN is lowered to that"))
        }
    }
}

fn scheduled(bearings: &str, candidates: &[Candidate], chosen: Option<SocketAddr>) -> Step {
    let begins = if bearings.is_empty() { String::new() } else { format!(" ({bearings})") };
    let text = match chosen {
        Some(server) => {
            let figure = candidates.iter().find(|it| it.server == server).map(|it| &it.figure);
            format!("{server} has {}{begins}", figure.map_or("", |figure| figure))
        }
        None if candidates.is_empty() => "the service has no servers".to_owned(),
        None => format!("no server may have it{begins}"),
    };
    let line = |it: &Candidate| {
        let mark = if Some(it.server) == chosen { ">" } else { " " };
        let why = it.excluded.map(|why| format!(", not to be chosen: {why}")).unwrap_or_default();
        format!("{mark} {} {}{why}", it.server, it.figure)
    };
    let mut details: Vec<String> = candidates.iter().take(TOLD).map(line).collect();
    if candidates.len() > TOLD {
        let others = candidates[TOLD..].iter().find(|it| Some(it.server) == chosen);
        details.extend(others.map(line));
        details.push(format!("  ... of {} servers", candidates.len()));
    }
    Step { details, ..new("scheduler", text) }
}

/// The way out.
pub(super) fn link(path: &Path, link: &Link) -> Step {
    let hop = path.next_hop;
    match link {
        Link::Known { interface, destination, .. } => {
            let mac = fields::mac(destination);
            new("neighbour", format!("{hop} is at {mac} on {interface}"))
        }
        Link::Unresolved { interface, is_silent: true } => new(
            "neighbour",
            format!(
                "{hop} is asked for on {interface} every two seconds and does not answer: is it up, and in that \
                 network? (ip neighbour show {hop})"
            ),
        ),
        Link::Unresolved { interface, is_silent: false } => new(
            "neighbour",
            format!(
                "{hop} is not resolved on {interface}: the packet waits for at most three seconds \
                 (ip neighbour show {hop})"
            ),
        ),
        Link::NoPort { interface } => new(
            "neighbour",
            format!("the route leaves by {interface}, which is not in `interfaces` of the file"),
        ),
    }
}
