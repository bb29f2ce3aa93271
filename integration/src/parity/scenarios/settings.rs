//! What the kernel's sysctls change, each with the values it takes.

use std::net::SocketAddr;

use super::clients::{tcp, udp};
use super::rules::server;
use crate::parity::step::{Flow, Kind, Packet, Scenario, Step};
use crate::topology::VIP_V4;

pub(super) fn all() -> Vec<Scenario> {
    vec![conn_reuse_mode(), expire_nodest_conn()]
}

/// A service of three servers, served in turn.
fn rules(protocol: &str, at: SocketAddr, method: &str, options: &str) -> Vec<String> {
    let mut rules = vec![format!("-A {protocol} {at} -s rr {options}")];
    for number in 1..=3 {
        rules.push(format!("-a {protocol} {at} -r {} {method}", server(number, at)));
    }
    rules
}

/// The same packets of each flow, flow by flow.
fn each(flows: &[Flow], kinds: &[Kind]) -> Step {
    let packets =
        flows.iter().flat_map(|&flow| kinds.iter().map(move |&kind| Packet::new(flow, kind)));
    Step::Send(packets.collect())
}

/// Answers of each flow's server.
fn answers(flows: &[Flow], kind: Kind) -> Step {
    Step::Send(flows.iter().map(|&flow| Packet::answer(flow, kind)).collect())
}

/// Clients that use a port again after every kind of end: by NAT, direct routing, and persistent.
fn conn_reuse_mode() -> Scenario {
    let services = [("-m", ""), ("-g", ""), ("-i", ""), ("-g", "-p 60")];
    let mut steps = Vec::new();
    let mut connections = 0;
    for (mode, first_port) in [(0, 8501), (1, 8511), (2, 8521), (3, 8531)] {
        steps.push(Step::Setting("conn_reuse_mode", mode));
        for ((method, options), port) in services.into_iter().zip(first_port..) {
            let at = SocketAddr::new(VIP_V4, port);
            steps.push(Step::Restore(rules("-t", at, method, options)));
            let nat = method == "-m";
            for (round, end) in [Kind::Fin, Kind::Rst, Kind::Ack].into_iter().enumerate() {
                let flows: Vec<_> = (round * 7..round * 7 + 7).map(|n| tcp(n, at)).collect();
                connections += flows.len();
                steps.push(each(&flows, &[Kind::Syn]));
                if nat {
                    steps.push(answers(&flows, Kind::SynAck));
                }
                steps.push(each(&flows, &[Kind::Ack, end]));
                if nat {
                    // So far only one side has closed.
                    steps.push(each(&flows[..3], &[Kind::Syn]));
                    steps.push(answers(&flows[3..], Kind::Fin));
                }
                steps.push(each(&flows, &[Kind::Syn, Kind::Ack]));
            }
            steps.push(Step::Show(format!("-L -n -t {at}")));
        }
        steps.push(Step::Show("-L -n -c".to_owned()));
    }
    Scenario {
        name: "conn-reuse-mode".to_owned(),
        title: "client ports used again, in every mode".to_owned(),
        connections,
        steps,
    }
}

/// Servers that are quiesced and removed under their connections, without the setting and with it.
fn expire_nodest_conn() -> Scenario {
    let services = [("-t", "-m", ""), ("-t", "-g", ""), ("-u", "-i", ""), ("-t", "-g", "-p 60")];
    let mut steps = Vec::new();
    let mut connections = 0;
    for (value, first_port) in [(0, 8541), (1, 8551)] {
        steps.push(Step::Setting("expire_nodest_conn", value));
        for ((protocol, method, options), port) in services.into_iter().zip(first_port..) {
            let at = SocketAddr::new(VIP_V4, port);
            steps.push(Step::Restore(rules(protocol, at, method, options)));
            let is_tcp = protocol == "-t";
            let flow = |number| if is_tcp { tcp(number, at) } else { udp(number, at) };
            let flows: Vec<_> = (0..12).map(flow).collect();
            connections += flows.len();
            let (first, next) = match is_tcp {
                true => (Kind::Syn, Kind::Ack),
                false => (Kind::Datagram(8), Kind::Datagram(9)),
            };
            steps.push(each(&flows, &[first, next]));
            let quiesced = format!("-e {protocol} {at} -r {} {method} -w 0", server(2, at));
            let removed = format!("-d {protocol} {at} -r {}", server(1, at));
            for change in [quiesced, removed] {
                steps.push(Step::Ipvsadm(change));
                steps.push(each(&flows, &[next, first, next]));
                steps.push(Step::Show(format!("-L -n {protocol} {at}")));
            }
        }
        steps.push(Step::Show("-L -n -c".to_owned()));
    }
    Scenario {
        name: "expire-nodest-conn".to_owned(),
        title: "connections of servers that are quiesced or gone".to_owned(),
        connections,
        steps,
    }
}
