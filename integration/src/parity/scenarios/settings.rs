//! What the kernel's sysctls change, each with the values it takes.

use std::net::SocketAddr;
use std::time::Duration;

use super::clients::{sctp, tcp, udp};
use super::rules::server;
use super::states;
use crate::parity::Chunks;
use crate::parity::step::{Flow, Kind, Packet, Protocol, Scenario, Step};
use crate::topology::VIP_V4;

pub(super) fn all() -> Vec<Scenario> {
    vec![
        conn_reuse_mode(),
        expire_nodest_conn(),
        expire_quiescent_template(),
        sloppy_tcp(),
        sloppy_sctp(),
        drop_packet(),
        lblcr_expiration(),
        states::both_directions(true),
        states::one_direction(true),
    ]
}

/// A service of three servers, served in turn.
pub(super) fn rules(protocol: &str, at: SocketAddr, method: &str, options: &str) -> Vec<String> {
    let mut rules = vec![format!("-A {protocol} {at} -s rr {options}")];
    for number in 1..=3 {
        rules.push(format!("-a {protocol} {at} -r {} {method}", server(number, at)));
    }
    rules
}

/// The same packets of each flow, flow by flow.
pub(super) fn each(flows: &[Flow], kinds: &[Kind]) -> Step {
    let packets =
        flows.iter().flat_map(|&flow| kinds.iter().map(move |&kind| Packet::new(flow, kind)));
    Step::Send(packets.collect())
}

/// Answers of each flow's server.
pub(super) fn answers(flows: &[Flow], kind: Kind) -> Step {
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

/// Clients of a persistent service whose server is quiesced.
fn expire_quiescent_template() -> Scenario {
    let mut steps = Vec::new();
    for (value, port) in [(0, 8561), (1, 8562)] {
        let at = SocketAddr::new(VIP_V4, port);
        steps.push(Step::Setting("expire_quiescent_template", value));
        steps.push(Step::Restore(rules("-t", at, "-g", "-p 60")));
        let flows: Vec<_> = (0..6).map(|number| tcp(number, at)).collect();
        steps.push(each(&flows, &[Kind::Syn, Kind::Ack]));
        steps.push(Step::Ipvsadm(format!("-e -t {at} -r {} -g -w 0", server(2, at))));
        // The same clients, from another port.
        let again: Vec<_> = flows
            .iter()
            .map(|flow| {
                let client = SocketAddr::new(flow.client.ip(), flow.client.port() + 1);
                Flow { client, ..*flow }
            })
            .collect();
        steps.push(each(&again, &[Kind::Syn, Kind::Ack]));
        steps.push(each(&flows, &[Kind::Ack]));
        steps.push(Step::Show(format!("-L -n -t {at}")));
    }
    Scenario {
        name: "expire-quiescent-template".to_owned(),
        title: "persistent clients of a quiesced server".to_owned(),
        connections: 24,
        steps,
    }
}

/// Connections that begin with anything.
fn sloppy_tcp() -> Scenario {
    let beginnings = [Kind::Ack, Kind::Data(10), Kind::Fin, Kind::Rst, Kind::SynAck, Kind::Syn];
    Scenario {
        name: "sloppy-tcp".to_owned(),
        title: "connections that begin with any segment".to_owned(),
        connections: 60,
        steps: sloppy("sloppy_tcp", "-t", tcp, &beginnings, Kind::Ack),
    }
}

/// Likewise.
fn sloppy_sctp() -> Scenario {
    let chunks = [Chunks::Data(4), Chunks::CookieEcho, Chunks::Shutdown, Chunks::Abort];
    let beginnings = [chunks.as_slice(), &[Chunks::Heartbeat, Chunks::Init]].concat();
    let beginnings: Vec<_> = beginnings.into_iter().map(Kind::Sctp).collect();
    Scenario {
        name: "sloppy-sctp".to_owned(),
        title: "associations that begin with any chunk".to_owned(),
        connections: 52,
        steps: sloppy("sloppy_sctp", "--sctp-service", sctp, &beginnings, Kind::Sctp(Chunks::Sack)),
    }
}

/// Without the setting and with it, by NAT and direct routing: every beginning, and what comes next.
fn sloppy(
    setting: &'static str,
    protocol: &str,
    flow: fn(usize, SocketAddr) -> Flow,
    beginnings: &[Kind],
    next: Kind,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for (value, first_port) in [(0, 8571), (1, 8576)] {
        steps.push(Step::Setting(setting, value));
        for (method, port) in ["-m", "-g"].into_iter().zip(first_port..) {
            let at = SocketAddr::new(VIP_V4, port);
            steps.push(Step::Restore(rules(protocol, at, method, "")));
            for (round, &beginning) in beginnings.iter().enumerate() {
                let flows: Vec<_> = (round * 4..round * 4 + 4).map(|n| flow(n, at)).collect();
                steps.push(each(&flows, &[beginning]));
                steps.push(each(&flows[2..], &[next]));
            }
            steps.push(Step::Show(format!("-L -n {protocol} {at}")));
        }
    }
    steps.push(Step::Show("-L -n -c".to_owned()));
    steps
}

/// Of the packets that open connections one in four is lost, of all others none.
fn drop_packet() -> Scenario {
    let at = SocketAddr::new(VIP_V4, 8601);
    let rules = [rules("-t", at, "-g", ""), rules("-u", at, "-g", "")].concat();
    let flows = |first: usize| {
        let pairs = (first..first + 20).flat_map(move |number| [tcp(number, at), udp(number, at)]);
        pairs.collect::<Vec<_>>()
    };
    let open = |flows: &[Flow]| {
        let packet = |&flow: &Flow| match flow.protocol {
            Protocol::Tcp => Packet::new(flow, Kind::Syn),
            _ => Packet::new(flow, Kind::Datagram(8)),
        };
        Step::Send(flows.iter().map(packet).collect())
    };
    let first = flows(0);
    let mut steps = vec![Step::Restore(rules), open(&first)];
    steps.push(Step::Setting("am_droprate", 4));
    steps.push(Step::Setting("drop_packet", 3));
    // Again, and others for the first time.
    steps.extend([open(&first), open(&flows(20)), open(&flows(40))]);
    steps.push(Step::Show(format!("-L -n -t {at}")));
    steps.push(Step::Setting("drop_packet", 0));
    steps.extend([open(&flows(40)), open(&flows(60))]);
    steps.push(Step::Show("-L -n".to_owned()));
    Scenario {
        name: "drop-packet".to_owned(),
        title: "some of the packets that would open a connection are dropped".to_owned(),
        connections: 150,
        steps,
    }
}

/// lblcr's sets of servers, which shrink after a time without change.
fn lblcr_expiration() -> Scenario {
    let at = SocketAddr::new(VIP_V4, 8611);
    let mut rules = vec![format!("-A -t {at} -s lblcr")];
    for (number, weight) in (1..=4).zip([3, 3, 4, 4]) {
        rules.push(format!("-a -t {at} -r {} -g -w {weight}", server(number, at)));
    }
    let mut steps = vec![Step::Setting("lblcr_expiration", 2), Step::Restore(rules)];
    for round in 0..5 {
        let flows: Vec<_> = (round * 8..round * 8 + 8).map(|number| tcp(number, at)).collect();
        steps.push(each(&flows, &[Kind::Syn, Kind::Ack]));
        steps.push(each(&flows[2..], &[Kind::Fin]));
        steps.push(Step::Wait(Duration::from_secs(4)));
    }
    steps.push(Step::Show(format!("-L -n -t {at}")));
    Scenario {
        name: "lblcr-expiration".to_owned(),
        title: "sets of servers that shrink after two seconds".to_owned(),
        connections: 40,
        steps,
    }
}
