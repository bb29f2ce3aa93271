//! SCTP: the bytes of what servers and clients receive, with ports that change and ports that
//! stay, and what the listings then say.

use std::net::SocketAddr;

use super::clients::sctp;
use super::errors::from_one_end;
use super::packets::{Way, way};
use crate::parity::{Chunks, Flow, From, Kind, Packet, Scenario, Step};
use crate::topology::server_addresses;

/// Clients of a scenario.
const CLIENTS: usize = 24;

/// One scenario per method.
pub(super) fn all() -> Vec<Scenario> {
    ["nat-v4", "nat-v6", "direct-v4", "direct-v6", "ipip-4in6", "gue-6in6"]
        .into_iter()
        .map(|name| packets(&way(name)))
        .collect()
}

fn packets(way: &Way) -> Scenario {
    let at = SocketAddr::new(way.vip, 8511);
    let nat = way.option == "-m";
    let flows: Vec<_> = (0..CLIENTS).map(|number| sctp(number, at)).collect();
    let mut steps = vec![Step::Restore(rules(way, at))];
    let each = |from, chunks| {
        let packet = |&flow| Packet { from, ..Packet::new(flow, Kind::Sctp(chunks)) };
        Step::Send(flows.iter().map(packet).collect())
    };
    steps.push(each(From::Client, Chunks::Init));
    if nat {
        steps.push(each(From::Server, Chunks::InitAck));
    }
    steps.push(each(From::Client, Chunks::CookieEcho));
    if nat {
        steps.push(each(From::Server, Chunks::CookieAck));
    }
    let mut all = talk(From::Client, &flows);
    if nat {
        all.extend(talk(From::Server, &flows));
    }
    steps.push(Step::Send(all));
    steps.push(Step::Send(from_one_end(From::Client, &flows, way)));
    steps.push(Step::Send(without_a_connection(at)));
    steps.push(Step::Send(endings(&flows, nat)));
    steps.push(Step::Show("-L -n -c".to_owned()));
    steps.push(Step::Show("-L -n".to_owned()));
    steps.push(super::settle());
    steps.push(Step::Show("-L -n --stats --exact".to_owned()));
    Scenario {
        name: format!("sctp-{}", way.name),
        title: "packets byte by byte, counters, connections".to_owned(),
        connections: CLIENTS,
        steps,
    }
}

/// Servers on the service's port and, with NAT, on others.
fn rules(way: &Way, at: SocketAddr) -> Vec<String> {
    let mut rules = vec![format!("-A --sctp-service {at} -s rr")];
    for number in 1..=3 {
        let address = server_addresses(number)[usize::from(way.server_is_v6)];
        let changed = way.option == "-m" && number > 1;
        let port = if changed { 9000 + number as u16 } else { at.port() };
        let server = SocketAddr::new(address, port);
        rules.push(format!("-a --sctp-service {at} -r {server} {}", way.option));
    }
    rules
}

/// Chunks of all kinds and lengths, up to what does not fit a tunnel or a wire; a checksum that is
/// wrong, and packets at the end of their TTL.
fn talk(from: From, flows: &[Flow]) -> Vec<Packet> {
    let lengths = [1, 2, 3, 4, 100, 511, 1000, 1400, 1412, 1416, 1432, 1450, 1452];
    let data = lengths.map(Chunks::Data);
    let others = [Chunks::Sack, Chunks::Heartbeat, Chunks::Error, Chunks::None, Chunks::Unsound];
    let mut packets = Vec::new();
    for (number, chunks) in data.into_iter().chain(others).enumerate() {
        for turn in 0..3 {
            let flow = flows[(number * 3 + turn) % flows.len()];
            packets.push(Packet { from, ..Packet::new(flow, Kind::Sctp(chunks)) });
        }
    }
    for (flow, ttl) in flows.iter().zip([1, 2, 255]) {
        packets.push(Packet { from, ttl, ..Packet::new(*flow, Kind::Sctp(Chunks::Sack)) });
    }
    packets
}

/// What opens no connection: left to the director's own stack, or dropped.
fn without_a_connection(at: SocketAddr) -> Vec<Packet> {
    let kinds = [Chunks::Data(4), Chunks::CookieEcho, Chunks::Abort, Chunks::None];
    let flows = (100..).map(|number| sctp(number, at));
    flows.zip(kinds).map(|(flow, chunks)| Packet::new(flow, Kind::Sctp(chunks))).collect()
}

/// Every way in which an association ends, and some begin anew.
fn endings(flows: &[Flow], nat: bool) -> Vec<Packet> {
    let mut packets = Vec::new();
    for (number, &flow) in flows.iter().enumerate() {
        let packet = |from, chunks| Packet { from, ..Packet::new(flow, Kind::Sctp(chunks)) };
        if number % 3 == 0 {
            packets.push(packet(From::Client, Chunks::Abort));
        } else {
            packets.push(packet(From::Client, Chunks::Shutdown));
            if nat {
                packets.push(packet(From::Server, Chunks::ShutdownAck));
            }
            packets.push(packet(From::Client, Chunks::ShutdownComplete));
        }
        if number % 4 == 0 {
            packets.push(packet(From::Client, Chunks::Init));
        }
    }
    packets
}
