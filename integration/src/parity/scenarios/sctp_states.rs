//! How SCTP connections move through their states: every state that a client can bring about, and
//! in it every event.

use std::net::SocketAddr;

use super::clients::sctp;
use super::rules::server;
use super::states::interleaved;
use crate::parity::{Chunks, From, Kind, Packet, Scenario, Step};
use crate::topology::VIP_V4;
use Chunks::{
    Abort, CookieAck, CookieEcho, Init, InitAck, Shutdown, ShutdownAck, ShutdownComplete,
};
use From::{Client, Server};

/// One of each row of the table, and what shares a row or has a rule of its own.
const EVENTS: [Chunks; 14] = [
    Chunks::Data(4),
    Init,
    InitAck,
    CookieEcho,
    CookieAck,
    Shutdown,
    ShutdownAck,
    ShutdownComplete,
    Chunks::Error,
    Abort,
    Chunks::Sack,
    Chunks::Heartbeat,
    Chunks::CookieEchoAbort,
    Chunks::None,
];

/// What leads to each state, INIT first, where both directions are seen.
const BOTH: [&[(From, Chunks)]; 13] = [
    // INIT1, INIT
    &[(Client, Init)],
    &[(Client, Init), (Client, Init)],
    // C-SENT, C-REPLIED
    &[(Client, Init), (Server, InitAck)],
    &[(Client, Init), (Server, InitAck), (Client, CookieEcho)],
    // C-WAIT, COOKIE
    &[(Client, Init), (Server, Init)],
    &[(Client, Init), (Server, Init), (Client, InitAck)],
    // C-ECHOED
    &[(Client, Init), (Server, CookieEcho)],
    // ESTABLISHED
    &[(Client, Init), (Server, InitAck), (Client, CookieEcho), (Server, CookieAck)],
    // S-SENT, S-RECEIVED, S-ACK-SENT
    &[(Client, Init), (Server, Shutdown)],
    &[(Client, Init), (Server, CookieAck), (Client, Shutdown)],
    &[(Client, Init), (Server, ShutdownAck)],
    // REJECTED, CLOSED
    &[(Client, Init), (Server, Abort)],
    &[(Client, Init), (Client, Abort)],
];

/// The same where the client's direction alone is seen; the other states are out of reach.
const ONE: [&[(From, Chunks)]; 6] = [
    // INIT1, INIT
    &[(Client, Init)],
    &[(Client, Init), (Client, Init)],
    // C-ECHOED, ESTABLISHED
    &[(Client, Init), (Client, InitAck)],
    &[(Client, Init), (Client, CookieEcho)],
    // S-RECEIVED, CLOSED
    &[(Client, Init), (Client, CookieEcho), (Client, Shutdown)],
    &[(Client, Init), (Client, Abort)],
];

/// Connections listed at a time: INIT1 lasts four seconds.
const AT_A_TIME: usize = 40;

/// NAT, where the director sees both directions; direct routing and a tunnel, where it sees one.
pub(super) fn all() -> Vec<Scenario> {
    vec![
        states("sctp-states-nat", 8501, ["-m", "-m"], &BOTH, &[Client, Server]),
        states("sctp-states-direct", 8502, ["-g", "-i"], &ONE, &[Client]),
    ]
}

fn states(
    name: &str,
    port: u16,
    methods: [&str; 2],
    beginnings: &[&[(From, Chunks)]],
    speakers: &[From],
) -> Scenario {
    let at = SocketAddr::new(VIP_V4, port);
    let mut rules = vec![format!("-A --sctp-service {at} -s rr")];
    for (number, method) in (1..).zip(methods) {
        rules.push(format!("-a --sctp-service {at} -r {} {method}", server(number, at)));
    }
    let mut steps = vec![Step::Restore(rules)];
    let last = speakers.iter().flat_map(|&from| EVENTS.map(|event| (from, event)));
    let sequences = beginnings.iter().flat_map(|beginning| {
        last.clone().map(|last| beginning.iter().copied().chain([last]).collect::<Vec<_>>())
    });
    let flows: Vec<Vec<Packet>> = sequences
        .enumerate()
        .map(|(number, sequence)| {
            let flow = sctp(number, at);
            let packet = |(from, chunks)| Packet { from, ..Packet::new(flow, Kind::Sctp(chunks)) };
            sequence.into_iter().map(packet).collect()
        })
        .collect();
    for part in flows.chunks(AT_A_TIME) {
        steps.push(interleaved(part.to_vec()));
        steps.push(Step::Show("-L -n -c".to_owned()));
    }
    steps.push(Step::Show(format!("-L -n --sctp-service {at}")));
    Scenario {
        name: name.to_owned(),
        title: "every state that can be reached, and in it every event".to_owned(),
        connections: flows.len(),
        steps,
    }
}
