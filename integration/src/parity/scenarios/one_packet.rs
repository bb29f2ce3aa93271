//! One-packet scheduling: where each datagram goes, what comes of answers, and what is counted
//! although no connection remains.

use std::net::{IpAddr, SocketAddr};

use super::clients::{client, udp};
use super::rules::server;
use crate::parity::step::{Flow, Kind, Packet, Piece, Scenario, Step};
use crate::topology::{VIP_V4, VIP_V6};

/// By method, by load, with fragments, with templates.
pub(super) fn all() -> Vec<Scenario> {
    vec![translated(), by_load(), fragments(), persistent()]
}

/// A UDP service, one-packet or not, with servers 1, 2, ... of these weights.
fn rules(at: SocketAddr, options: &str, method: &str, weights: &[i32]) -> Vec<String> {
    let mut rules = vec![format!("-A -u {at} {options}")];
    for (number, weight) in (1..).zip(weights) {
        let mut server = server(number, at);
        if method == "-m" && number > 1 {
            server.set_port(9000 + number as u16);
        }
        rules.push(format!("-a -u {at} -r {server} {method} -w {weight}"));
    }
    rules
}

/// `rounds` datagrams of each flow, the flows side by side.
fn datagrams(flows: &[Flow], rounds: usize) -> Step {
    let round =
        |round: usize| flows.iter().map(move |&flow| Packet::new(flow, Kind::Datagram(10 + round)));
    Step::Send((0..rounds).flat_map(round).collect())
}

fn show() -> [Step; 4] {
    [
        Step::Show("-L -n".to_owned()),
        Step::Show("-L -n -c".to_owned()),
        super::settle(),
        Step::Show("-L -n --stats --exact".to_owned()),
    ]
}

/// NAT, whose servers' answers no connection translates, and what the tool and the service refuse.
fn translated() -> Scenario {
    let mut steps = Vec::new();
    for vip in [VIP_V4, VIP_V6] {
        let at = SocketAddr::new(vip, 8601);
        let flows: Vec<_> = (0..30).map(|number| udp(number, at)).collect();
        steps.push(Step::Restore(rules(at, "-s rr -o", "-m", &[1, 1, 1])));
        steps.push(datagrams(&flows, 4));
        let answer = |&flow| Packet::answer(flow, Kind::Datagram(33));
        steps.push(Step::Send(flows.iter().map(answer).collect()));
        // At the end of their TTL, too big for the wire, without a sum, empty.
        let mut odd = Vec::new();
        for (&flow, ttl) in flows.iter().zip([1, 2, 255, 1]) {
            odd.push(Packet { ttl, ..Packet::new(flow, Kind::Datagram(20)) });
            odd.push(Packet { ttl, ..Packet::answer(flow, Kind::Datagram(20)) });
            odd.push(Packet::new(flow, Kind::Datagram(0)));
            if vip == VIP_V4 {
                odd.push(Packet::new(flow, Kind::Unsummed(7)));
            }
        }
        steps.push(Step::Send(odd));
        steps.push(Step::Ipvsadm(format!("-A -t {at} -s rr -o")));
        steps.push(Step::Ipvsadm(format!("-A --sctp-service {at} -s rr -o")));
    }
    // No server that may take any.
    let at = SocketAddr::new(VIP_V4, 8602);
    steps.push(Step::Restore(rules(at, "-s rr -o", "-m", &[0, 0])));
    steps.push(datagrams(&(0..5).map(|number| udp(number, at)).collect::<Vec<_>>(), 2));
    steps.extend(show());
    Scenario {
        name: "ops-nat".to_owned(),
        title: "each datagram by itself through NAT, both families, and the servers' answers"
            .to_owned(),
        connections: 60,
        steps,
    }
}

/// Direct routing by load: what is gone again weighs nothing. Connections from before an edit stay,
/// and fill a server up to its threshold.
fn by_load() -> Scenario {
    let at = SocketAddr::new(VIP_V4, 8603);
    let mut plain = rules(at, "-s wlc", "-g", &[1, 4, 2, 10]);
    plain[1].push_str(" -x 6");
    plain[4].push_str(" -x 20 -y 5");
    let flows = |from: usize| (from..from + 30).map(|number| udp(number, at)).collect::<Vec<_>>();
    let mut steps = vec![
        Step::Restore(plain),
        datagrams(&flows(0), 2),
        Step::Show("-L -n --thresholds".to_owned()),
        Step::Ipvsadm(format!("-E -u {at} -s wlc -o")),
        datagrams(&flows(20), 3),
        Step::Show("-L -n --thresholds".to_owned()),
        Step::Ipvsadm(format!("-E -u {at} -s wrr -o")),
        datagrams(&flows(40), 3),
    ];
    let odd = flows(60).into_iter().zip([1, 2, 255, 1]);
    let odd = odd.map(|(flow, ttl)| Packet { ttl, ..Packet::new(flow, Kind::Datagram(20)) });
    steps.push(Step::Send(odd.collect()));
    steps.push(Step::Ipvsadm(format!("-E -u {at} -s rr")));
    steps.push(datagrams(&flows(40), 2));
    steps.extend(show());
    Scenario {
        name: "ops-wlc".to_owned(),
        title: "a service edited to one-packet scheduling and back, by load, with thresholds"
            .to_owned(),
        connections: 70,
        steps,
    }
}

fn fragments() -> Scenario {
    let mut steps = Vec::new();
    let services: [(IpAddr, &str); 4] =
        [(VIP_V4, "-m"), (VIP_V6, "-m"), (VIP_V4, "-g"), (VIP_V6, "-g")];
    for ((vip, method), port) in services.into_iter().zip(8611..) {
        let at = SocketAddr::new(vip, port);
        let flows: Vec<_> = (0..20).map(|number| udp(number, at)).collect();
        steps.push(Step::Restore(rules(at, "-s rr -o", method, &[1, 1, 1])));
        for length in [64, 1200, 2800] {
            let cut = flows.iter().flat_map(|&flow| in_two(flow, length));
            steps.push(Step::Send(cut.collect()));
            steps.push(datagrams(&flows[..7], 1));
        }
    }
    steps.push(Step::Show("-L -n".to_owned()));
    steps.push(Step::Show("-L -n -c".to_owned()));
    Scenario {
        name: "ops-fragments".to_owned(),
        title: "the fragments of each datagram to one server, NAT and direct, both families"
            .to_owned(),
        connections: 80,
        steps,
    }
}

/// One client's datagrams to one server, by a template that no connection holds on to.
fn persistent() -> Scenario {
    let mut steps = Vec::new();
    for (method, port) in [("-m", 8621), ("-g", 8622)] {
        let at = SocketAddr::new(VIP_V4, port);
        // Four ports of each client.
        let flow = |number: usize| {
            let mut client = client(number / 4, at);
            client.set_port(client.port() + (number % 4) as u16);
            Flow { client, ..udp(0, at) }
        };
        let flows: Vec<_> = (0..40).map(flow).collect();
        steps.push(Step::Restore(rules(at, "-s rr -o -p 120", method, &[1, 2, 1])));
        steps.push(datagrams(&flows, 3));
        steps.push(Step::Show("-L -n --persistent-conn".to_owned()));
        let server = server(1, at);
        steps.push(Step::Ipvsadm(format!("-e -u {at} -r {server} {method} -w 0")));
        steps.push(datagrams(&flows, 1));
    }
    steps.extend(show());
    Scenario {
        name: "ops-persistent".to_owned(),
        title: "one-packet scheduling with persistence: templates without connections".to_owned(),
        connections: 80,
        steps,
    }
}

/// A datagram in two fragments of about the same size.
fn in_two(flow: Flow, datagram: usize) -> [Packet; 2] {
    let cut = ((datagram + 8) / 2).next_multiple_of(8);
    [(0, cut), (cut, datagram + 8 - cut)].map(|(offset, length)| {
        Packet::new(flow, Kind::Piece(Piece::new(datagram, offset, length)))
    })
}
