//! Datagrams in fragments, from clients and from servers.

use std::net::SocketAddr;

use super::clients::udp;
use super::packets::{Way, rules, way};
use crate::parity::step::{Flow, From, Kind, Packet, Piece, Scenario, Step};

/// Datagrams and where they are cut, in bytes from the UDP header on.
const CUTS: [(usize, &[usize]); 6] = [
    (2000, &[1440]),
    (100, &[48]),
    (4000, &[1440, 2880]),
    (65, &[16, 32, 48, 64]),
    (1472, &[720]),
    (3000, &[8, 16, 1000, 2000]),
];

/// The ways in which fragments may come.
#[derive(Clone, Copy)]
enum Order {
    FirstToLast,
    LastToFirst,
    FirstOneLast,
}

/// One scenario per method and family.
pub(super) fn all() -> Vec<Scenario> {
    ["nat-v4", "nat-v6", "direct-v4", "direct-v6"]
        .into_iter()
        .map(|name| fragments(&way(name)))
        .collect()
}

fn fragments(way: &Way) -> Scenario {
    let at = SocketAddr::new(way.vip, 8601);
    let mut steps = vec![Step::Restore(rules(way, "-u", at))];
    let mut number = 0;
    for order in [Order::FirstToLast, Order::LastToFirst, Order::FirstOneLast] {
        for (datagram, cuts) in CUTS {
            let flows: Vec<Flow> = (number..number + 3).map(|number| udp(number, at)).collect();
            number += flows.len();
            let from = |from| {
                let of_flow = |&flow| pieces(flow, from, datagram, cuts, order);
                Step::Send(flows.iter().flat_map(of_flow).collect())
            };
            steps.push(from(From::Client));
            if way.option == "-m" {
                steps.push(from(From::Server));
            }
        }
    }
    steps.push(Step::Show("-L -n".to_owned()));
    steps.push(super::settle());
    steps.push(Step::Show("-L -n -c".to_owned()));
    Scenario {
        name: format!("fragments-{}", way.name),
        title: "datagrams in fragments, in and out of order".to_owned(),
        connections: number,
        steps,
    }
}

fn pieces(flow: Flow, from: From, datagram: usize, cuts: &[usize], order: Order) -> Vec<Packet> {
    let ends = cuts.iter().copied().chain([datagram + 8]);
    let begins = [0].into_iter().chain(cuts.iter().copied());
    let piece = |(begin, end): (usize, usize)| {
        let piece = Piece::new(datagram, begin, end - begin);
        Packet { from, ..Packet::new(flow, Kind::Piece(piece)) }
    };
    let mut pieces: Vec<Packet> = begins.zip(ends).map(piece).collect();
    match order {
        Order::FirstToLast => {}
        Order::LastToFirst => pieces.reverse(),
        Order::FirstOneLast => pieces.rotate_left(1),
    }
    pieces
}
