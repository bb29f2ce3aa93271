//! ICMP errors about forwarded packets, from both ends and from routers on the way, and errors
//! that are about nothing.

use std::net::SocketAddr;

use super::clients::{tcp, udp};
use super::packets::{Way, rules, way};
use crate::parity::step::{Flaw, Flow, From, IcmpError, Kind, Packet, Problem, Scenario, Step};

const PROBLEMS: [Problem; 5] = [
    Problem::Unreachable { port: true },
    Problem::Unreachable { port: false },
    Problem::TimeExceeded,
    Problem::TooBig(1300),
    Problem::Parameter,
];

/// How much is quoted: less than the ports, just the 8 bytes that RFC 792 asks for, the whole TCP
/// header, and plenty.
const QUOTES: [usize; 4] = [4, 8, 20, 500];

/// One scenario per method.
pub(super) fn all() -> Vec<Scenario> {
    ["nat-v4", "nat-v6", "direct-v4", "direct-v6", "ipip-4in4", "ipip-6in6", "gre-4in4"]
        .into_iter()
        .map(|name| errors(&way(name)))
        .chain(["nat-v4", "nat-v6", "direct-v4"].map(|name| nonsense(&way(name))))
        .collect()
}

/// Quotes that are no packets, and wrong checksums.
fn nonsense(way: &Way) -> Scenario {
    let at = SocketAddr::new(way.vip, 8502);
    let v4 = way.vip.is_ipv4();
    let header = if v4 { 20 } else { 40 };
    let mut flaws: Vec<(usize, Option<Flaw>)> =
        [0, 1, 8, header - 1, header, header + 3].map(|quoted| (quoted, None)).to_vec();
    if v4 {
        flaws.extend([
            (28, Some(Flaw::QuotedWords(0))),
            (500, Some(Flaw::QuotedWords(4))),
            (40, Some(Flaw::QuotedWords(15))),
            (28, Some(Flaw::Sum)),
            (500, Some(Flaw::Sum)),
        ]);
    }
    // NAT of the kernel makes that right, ours leaves it as wrong as it was.
    if v4 && way.option != "-m" {
        flaws.push((28, Some(Flaw::QuotedSum)));
    }
    // The connection is there, as the last one shows.
    flaws.push((header + 8, None));
    let flow = udp(0, at);
    let mut steps = vec![
        Step::Restore(rules(way, "-u", at)),
        Step::Send(vec![Packet::new(flow, Kind::Datagram(30))]),
    ];
    for from in [From::Client, From::Server] {
        // See `errors` about those of NAT servers over IPv6; others' servers do not answer here.
        if from == From::Server && !(v4 && way.option == "-m") {
            continue;
        }
        for &(quoted, flaw) in &flaws {
            let problem = Problem::Unreachable { port: true };
            let error = IcmpError { problem, router: false, quoted, flaw };
            steps.push(Step::Send(vec![Packet { from, ..Packet::new(flow, Kind::Error(error)) }]));
        }
    }
    steps.push(super::settle());
    steps.push(Step::Show("-L -n --stats".to_owned()));
    Scenario {
        name: format!("errors-nonsense-{}", way.name),
        title: "ICMP errors that quote nonsense".to_owned(),
        connections: 1,
        steps,
    }
}

fn errors(way: &Way) -> Scenario {
    let at = SocketAddr::new(way.vip, 8501);
    let mut steps = vec![Step::Restore([rules(way, "-t", at), rules(way, "-u", at)].concat())];
    let flows: Vec<Flow> =
        (0..10).map(|number| tcp(number, at)).chain((20..30).map(|n| udp(n, at))).collect();
    let first = |flow: &Flow| match flow.protocol.number() {
        6 => Packet::new(*flow, Kind::Syn),
        _ => Packet::new(*flow, Kind::Datagram(30)),
    };
    steps.push(Step::Send(flows.iter().map(first).collect()));
    // Of ICMPv6 errors that NAT servers send the kernel believes the checksum to be wrong and drops
    // them, unless the network card has checked it; ours passes them on.
    let both = way.option == "-m" && !way.vip.is_ipv6();
    let senders: &[From] = if both { &[From::Client, From::Server] } else { &[From::Client] };
    for &from in senders {
        steps.push(Step::Send(from_one_end(from, &flows, way)));
    }
    // Nobody has opened these connections.
    let strangers: Vec<Flow> = (50..54).map(|number| tcp(number, at)).collect();
    steps.push(Step::Send(from_one_end(From::Client, &strangers, way)));
    steps.push(Step::Show("-L -n".to_owned()));
    steps.push(super::settle());
    steps.push(Step::Show("-L -n --stats".to_owned()));
    steps.push(Step::Show("-L -n -c".to_owned()));
    Scenario {
        name: format!("errors-{}", way.name),
        title: "ICMP errors from clients, servers and routers".to_owned(),
        connections: 20,
        steps,
    }
}

/// Every problem, said by the end itself and by a router, with every length of quote.
pub(super) fn from_one_end(from: From, flows: &[Flow], way: &Way) -> Vec<Packet> {
    let header = if way.vip.is_ipv6() { 40 } else { 20 };
    let mut flows = flows.iter().cycle();
    let mut packets = Vec::new();
    // The kernel knows no such thing over IPv4 and lets it pass as it is; ours translates it.
    let known = |problem: &Problem| *problem != Problem::Parameter || way.vip.is_ipv6();
    for problem in PROBLEMS.into_iter().filter(known) {
        for router in [false, true] {
            for quoted in QUOTES {
                let error = IcmpError { problem, router, quoted: header + quoted, flaw: None };
                let Some(&flow) = flows.next() else { continue };
                packets.push(Packet { from, ..Packet::new(flow, Kind::Error(error)) });
            }
        }
    }
    packets
}
