//! Datagrams whose fragments do not fit together: twice, over each other, past the end.

use std::net::SocketAddr;

use super::clients::udp;
use super::packets::{Way, rules, way};
use crate::parity::step::{Flow, From, Kind, Packet, Piece, Scenario, Step};

/// Payload bytes of the datagrams, 64 with the UDP header.
const DATAGRAM: usize = 56;

/// A fragment: begin, end, what it is.
type Cut = (usize, usize, What);

#[derive(Clone, Copy)]
enum What {
    /// As its sender has cut it.
    True,
    /// With other bytes.
    Forged,
    /// It says that it is the last one.
    Last,
    /// It says that it is not the last one.
    More,
    /// As many fragments of other datagrams of the same sender as there are bytes between the two.
    Others,
}

use What::{Forged, Last, More, Others, True};

/// What is sent, in this order. A datagram of which the kernel sees a fragment that it may not
/// believe is never whole again.
const CASES: &[&[Cut]] = &[
    // Twice, with the same bytes and with others: the first ones count.
    &[(0, 16, True), (0, 16, True), (16, 64, True)],
    &[(0, 16, True), (16, 32, True), (16, 32, True), (32, 64, True)],
    &[(0, 16, True), (16, 32, True), (16, 32, Forged), (32, 64, True)],
    &[(0, 16, True), (0, 16, Forged), (16, 64, True)],
    &[(0, 16, True), (48, 64, True), (16, 32, True), (48, 64, Forged), (32, 48, True)],
    // Within what has come.
    &[(0, 16, True), (16, 32, True), (8, 24, Forged), (32, 64, True)],
    &[(0, 48, True), (8, 16, Forged), (40, 48, Forged), (48, 64, True)],
    // Over what has come: from the front, from behind, all around, over a gap.
    &[(0, 32, True), (24, 48, Forged), (32, 64, True)],
    &[(0, 32, True), (24, 64, Forged), (32, 64, True)],
    &[(0, 16, True), (32, 64, True), (16, 40, Forged), (16, 32, True)],
    &[(0, 16, True), (32, 48, True), (24, 64, Forged), (16, 32, True), (48, 64, True)],
    &[(0, 16, True), (32, 48, True), (16, 32, True), (16, 48, Forged), (48, 64, True)],
    &[(0, 16, True), (0, 24, Forged), (16, 64, True)],
    // The first one comes last. Ours looks at the others again when it has come.
    &[(16, 40, True), (32, 64, Forged), (0, 16, True)],
    &[(16, 40, True), (16, 40, Forged), (40, 64, True), (0, 16, True)],
    // Past the end, a later end, an earlier end, an end that is none.
    &[(0, 16, True), (48, 64, True), (64, 80, More), (16, 48, True)],
    &[(0, 16, True), (48, 64, True), (64, 80, Last), (16, 48, True)],
    &[(0, 48, True), (16, 32, Last), (48, 64, True)],
    &[(0, 16, True), (16, 48, True), (32, 48, Last), (48, 56, Last), (48, 64, True)],
    // Nothing.
    &[(0, 16, True), (16, 16, More), (16, 64, True)],
    &[(0, 16, True), (16, 32, True), (24, 24, More), (32, 64, True)],
    // The number comes back while the old datagram lacks a fragment: soon, and late.
    &[(0, 16, True), (0, 0, Others), (0, 16, Forged), (16, 64, Forged)],
    &[(0, 16, True), (0, 40, Others), (0, 16, Forged), (16, 64, Forged)],
    &[(0, 16, True), (0, 62, Others), (0, 16, Forged), (16, 64, Forged)],
    &[(0, 16, True), (0, 64, Others), (0, 16, Forged), (16, 64, Forged)],
    &[(0, 16, True), (0, 80, Others), (0, 16, Forged), (16, 64, Forged)],
    // And a fragment that has been long on its way.
    &[(0, 16, True), (0, 62, Others), (16, 64, True)],
    &[(0, 16, True), (0, 64, Others), (16, 64, True)],
];

/// One scenario per method and family.
pub(super) fn all() -> Vec<Scenario> {
    ["nat-v4", "nat-v6", "direct-v4", "direct-v6"]
        .into_iter()
        .map(|name| overlaps(&way(name)))
        .collect()
}

fn overlaps(way: &Way) -> Scenario {
    let at = SocketAddr::new(way.vip, 8602);
    let flows: Vec<Flow> = (0..CASES.len()).map(|number| udp(number, at)).collect();
    // All have their connections before: a datagram that comes to nothing opens none in the kernel.
    let open = |&flow| Packet::new(flow, Kind::Datagram(10));
    let mut steps =
        vec![Step::Restore(rules(way, "-u", at)), Step::Send(flows.iter().map(open).collect())];
    let senders: &[From] = match way.option {
        "-m" => &[From::Client, From::Server],
        _ => &[From::Client],
    };
    for &from in senders {
        for (&flow, cuts) in flows.iter().zip(CASES) {
            let packet = |piece| Packet { from, ..Packet::new(flow, Kind::Piece(piece)) };
            steps.push(Step::Send(cuts.iter().flat_map(pieces).map(packet).collect()));
        }
    }
    steps.push(Step::Show("-L -n".to_owned()));
    Scenario {
        name: format!("fragments-overlap-{}", way.name),
        title: "fragments that do not fit together".to_owned(),
        connections: CASES.len(),
        steps,
    }
}

fn pieces(&(begin, end, what): &Cut) -> Vec<Piece> {
    let piece = Piece::new(DATAGRAM, begin, end.saturating_sub(begin));
    match what {
        True => vec![piece],
        Forged => vec![Piece { forged: true, ..piece }],
        Last => vec![Piece { more: false, ..piece }],
        More => vec![Piece { more: true, ..piece }],
        Others => (0..end / 2)
            .map(|number| DATAGRAM + 8 * (number + 1))
            .flat_map(|datagram| {
                [(0, 16), (16, datagram - 8)]
                    .map(|(begin, length)| Piece::new(datagram, begin, length))
            })
            .collect(),
    }
}
