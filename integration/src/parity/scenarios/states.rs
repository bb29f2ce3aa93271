//! How connections move through their states: every sequence of three packets after the first,
//! seen in the connection listing with its remaining time.

use std::net::SocketAddr;

use super::clients::{client, tcp};
use super::rules::server;
use crate::parity::step::{Flow, Kind, Packet, Scenario, Step};
use crate::topology::VIP_V4;

/// What may happen next, from the client's side.
const CLIENT: [Kind; 5] = [Kind::Syn, Kind::SynAck, Kind::Ack, Kind::Fin, Kind::Rst];

/// NAT, where the director sees both directions, and direct routing, where it sees one.
pub(super) fn all() -> Vec<Scenario> {
    vec![both_directions(false), one_direction(false), reuse()]
}

/// The mode of `secure_tcp`: off, or always on.
fn mode(secure: bool) -> u32 {
    if secure { 3 } else { 0 }
}

fn table(secure: bool) -> &'static str {
    if secure { "secure-tcp" } else { "tcp" }
}

/// All sequences of `length` out of `events` packets, as numbers.
fn sequences(events: usize, length: u32) -> impl Iterator<Item = Vec<usize>> {
    (0..events.pow(length)).map(move |mut number| {
        (0..length)
            .map(|_| {
                let event = number % events;
                number /= events;
                event
            })
            .collect()
    })
}

/// Each flow's packets one after the other; the flows themselves side by side, so that listing
/// them takes no longer than a second after the last.
pub(super) fn interleaved(flows: Vec<Vec<Packet>>) -> Step {
    let longest = flows.iter().map(Vec::len).max().unwrap_or(0);
    let step = |index| flows.iter().filter_map(move |flow| flow.get(index).copied());
    Step::Send((0..longest).flat_map(step).collect())
}

/// `secure`: by the table of `secure_tcp`.
pub(super) fn both_directions(secure: bool) -> Scenario {
    let at = SocketAddr::new(VIP_V4, 8401);
    // The longest timeouts, so that none runs out while we look: all but those of CLOSE.
    let mut steps = vec![
        Step::Setting("secure_tcp", mode(secure)),
        Step::Restore(vec![
            format!("-A -t {at} -s rr"),
            format!("-a -t {at} -r {} -m", server(1, at)),
            format!("-a -t {at} -r {} -m", server(2, at)),
        ]),
    ];
    let mut flows = Vec::new();
    for (number, sequence) in sequences(10, 3).enumerate() {
        let flow = tcp(number, at);
        let mut packets = vec![Packet::new(flow, Kind::Syn)];
        packets.extend(sequence.into_iter().map(|event| match event {
            0..5 => Packet::new(flow, CLIENT[event]),
            _ => Packet::answer(flow, CLIENT[event - 5]),
        }));
        flows.push(packets);
    }
    for part in flows.chunks(100) {
        steps.push(interleaved(part.to_vec()));
        steps.push(Step::Show("-L -n -c".to_owned()));
    }
    steps.push(Step::Show(format!("-L -n -t {at}")));
    Scenario {
        name: format!("{}-states-nat", table(secure)),
        title: "every sequence of three packets after a SYN, from both sides".to_owned(),
        connections: 1000,
        steps,
    }
}

/// `secure`: by the table of `secure_tcp`.
pub(super) fn one_direction(secure: bool) -> Scenario {
    let at = SocketAddr::new(VIP_V4, 8402);
    let mut steps = vec![
        Step::Setting("secure_tcp", mode(secure)),
        Step::Restore(vec![
            format!("-A -t {at} -s rr"),
            format!("-a -t {at} -r {} -g", server(1, at)),
            format!("-a -t {at} -r {} -i", server(2, at)),
        ]),
    ];
    let flows: Vec<Vec<Packet>> = sequences(5, 3)
        .enumerate()
        .map(|(number, sequence)| {
            let flow = tcp(number, at);
            let rest = sequence.into_iter().map(|event| Packet::new(flow, CLIENT[event]));
            std::iter::once(Packet::new(flow, Kind::Syn)).chain(rest).collect()
        })
        .collect();
    steps.push(interleaved(flows));
    steps.push(Step::Show("-L -n -c".to_owned()));
    steps.push(Step::Show(format!("-L -n -t {at}")));
    Scenario {
        name: format!("{}-states-direct", table(secure)),
        title: "every sequence of three packets after a SYN, from the client alone".to_owned(),
        connections: 125,
        steps,
    }
}

/// Clients that use a port again, and services whose timeouts were set.
fn reuse() -> Scenario {
    let at = SocketAddr::new(VIP_V4, 8403);
    let mut steps = vec![Step::Restore(vec![
        format!("-A -t {at} -s rr"),
        format!("-a -t {at} -r {} -g", server(1, at)),
        format!("-a -t {at} -r {} -g", server(2, at)),
        format!("-a -t {at} -r {} -g", server(3, at)),
    ])];
    let flow = |number: usize| Flow { client: client(number, at), ..tcp(0, at) };
    for (round, last) in [Kind::Fin, Kind::Rst, Kind::Ack, Kind::Syn].into_iter().enumerate() {
        let flows: Vec<_> = (round * 20..round * 20 + 20).map(flow).collect();
        let packets = |kinds: &'static [Kind]| {
            let each = |&flow| kinds.iter().map(move |&kind| Packet::new(flow, kind));
            flows.iter().flat_map(each).collect::<Vec<_>>()
        };
        steps.push(Step::Send(packets(&[Kind::Syn, Kind::Ack])));
        steps.push(Step::Send(flows.iter().map(|&flow| Packet::new(flow, last)).collect()));
        steps.push(Step::Send(packets(&[Kind::Syn, Kind::Ack])));
    }
    steps.push(Step::Show("-L -n -c".to_owned()));
    steps.push(Step::Ipvsadm("--set 300 40 0".to_owned()));
    steps.push(Step::Show("-L -n --timeout".to_owned()));
    let flows: Vec<_> = (0..40).map(flow).collect();
    steps.push(Step::Send(flows.iter().map(|&flow| Packet::new(flow, Kind::Ack)).collect()));
    steps.push(Step::Show("-L -n -c".to_owned()));
    steps.push(super::settle());
    steps.push(Step::Show("-L -n --stats".to_owned()));
    Scenario {
        name: "reuse".to_owned(),
        title: "client ports used again, and timeouts set".to_owned(),
        connections: 80,
        steps,
    }
}
