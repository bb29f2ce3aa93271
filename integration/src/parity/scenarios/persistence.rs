//! Clients that stay with their server: templates by address, by network and for every port, what
//! moves them to another server, and when they end.

use std::net::SocketAddr;
use std::time::Duration;

use super::clients::{come_and_go, open, tcp, udp};
use super::rules::{server, service, show};
use crate::parity::step::{Flow, Kind, Packet, Scenario, Step};
use crate::topology::{VIP_V4, VIP_V6};

/// By client, by network, for every port; changes under way; the end of templates.
pub(super) fn all() -> Vec<Scenario> {
    vec![by_client(), by_network(), every_port(), changes(), expiry()]
}

/// Flow `number` of `clients` clients: the same addresses come again from other ports.
pub(super) fn returning(number: usize, clients: usize, at: SocketAddr) -> Flow {
    let mut flow = tcp(number % clients, at);
    flow.client.set_port(2000 + number as u16);
    flow
}

/// As [`returning`], over UDP.
fn returning_udp(number: usize, clients: usize, at: SocketAddr) -> Flow {
    Flow { protocol: udp(0, at).protocol, ..returning(number, clients, at) }
}

/// What an operator can see of persistence.
fn listings() -> [Step; 3] {
    ["-L -n", "-L -n --persistent-conn", "-L -n -c"].map(|list| Step::Show(list.to_owned()))
}

/// The same rules with another method of forwarding, or another protocol.
fn with(rules: Vec<String>, what: &str, instead: &str) -> Vec<String> {
    rules.into_iter().map(|rule| rule.replace(what, instead)).collect()
}

/// Connections of few clients who come often, over TCP and UDP, seen from one side and from both.
fn by_client() -> Scenario {
    let mut steps = Vec::new();
    for vip in [VIP_V4, VIP_V6] {
        let at = SocketAddr::new(vip, 8501);
        steps.push(Step::Restore(service(at, "-s rr -p 300", &[1, 1, 1, 1])));
        let flows: Vec<_> = (0..120).map(|number| returning(number, 24, at)).collect();
        steps.push(Step::Send(come_and_go(&flows)));
        steps.extend(listings());
        let at = SocketAddr::new(vip, 8502);
        let rules = with(service(at, "-s wlc -p 600", &[1, 3, 2]), " -g", " -m");
        steps.push(Step::Restore(rules));
        let flows: Vec<_> = (0..60).map(|number| returning(number, 20, at)).collect();
        steps.push(Step::Send(open(flows.iter().copied())));
        // Some are answered, and of those some are established.
        let answered = flows.iter().step_by(2);
        let answers = answered.map(|&flow| Packet::answer(flow, Kind::SynAck));
        steps.push(Step::Send(answers.collect()));
        let done = flows.iter().step_by(4).map(|&flow| Packet::new(flow, Kind::Ack));
        steps.push(Step::Send(done.collect()));
        let at = SocketAddr::new(vip, 8503);
        let rules = with(with(service(at, "-s rr -p", &[1, 1, 1]), "-t", "-u"), " -g", " -m");
        steps.push(Step::Restore(rules));
        let flows: Vec<_> = (0..60).map(|number| returning_udp(number, 15, at)).collect();
        let packets = flows.iter().map(|&flow| Packet::new(flow, Kind::Datagram(20)));
        steps.push(Step::Send(packets.collect()));
        let answers = flows.iter().step_by(4);
        let answers = answers.map(|&flow| Packet::answer(flow, Kind::Datagram(30)));
        steps.push(Step::Send(answers.collect()));
        steps.extend(listings());
    }
    Scenario {
        name: "persistence".to_owned(),
        title: "clients who come again, TCP and UDP, both families".to_owned(),
        connections: 480,
        steps,
    }
}

/// Clients of one network are one client.
fn by_network() -> Scenario {
    let mut steps = Vec::new();
    let masks = [
        (VIP_V4, "-M 255.255.255.0"),
        (VIP_V4, "-M 255.255.0.0"),
        (VIP_V4, "-M 255.255.255.254"),
        (VIP_V6, "-M 64"),
        (VIP_V6, "-M 50"),
        (VIP_V6, "-M 127"),
    ];
    for ((vip, mask), port) in masks.into_iter().zip(8511..) {
        let at = SocketAddr::new(vip, port);
        // For IPv6 the mask has to come behind the service.
        let mut rules = service(at, "-s rr -p 300", &[1, 1, 1, 1, 1]);
        rules[0].push_str(&format!(" {mask}"));
        steps.push(Step::Restore(rules));
        steps.push(Step::Send(open((0..80).map(|number| tcp(number, at)))));
    }
    steps.extend(listings());
    steps.push(Step::Ipvsadm("-S -n".to_owned()));
    Scenario {
        name: "persistence-netmask".to_owned(),
        title: "clients of one network, masks of both families".to_owned(),
        connections: 480,
        steps,
    }
}

/// A service for every port beside one for a single port, on the same address.
fn every_port() -> Scenario {
    let mut steps = Vec::new();
    for vip in [VIP_V4, VIP_V6] {
        let any = SocketAddr::new(vip, 0);
        let one = SocketAddr::new(vip, 8521);
        let mut rules = with(service(any, "-s rr -p 300", &[1, 1]), " -g", " -m");
        // A port of its own is nothing that a server of such a service could use.
        let own = SocketAddr::new(server(3, any).ip(), 9000);
        rules.push(format!("-a -t {any} -r {own} -m -w 1"));
        rules.extend(service(one, "-s rr -p 300", &[1, 1, 1]));
        steps.push(Step::Restore(rules));
        let flows: Vec<_> = (0..120)
            .map(|number| {
                let port = [8520, 8521, 80, 443, 65535][number % 5];
                returning(number, 24, SocketAddr::new(vip, port))
            })
            .collect();
        steps.push(Step::Send(open(flows.iter().copied())));
        let answers = flows.iter().step_by(3).map(|&flow| Packet::answer(flow, Kind::SynAck));
        steps.push(Step::Send(answers.collect()));
        steps.extend(listings());
        steps.push(show(any));
    }
    // Only a persistent service can be for every port.
    let any = SocketAddr::new(VIP_V4, 0);
    steps.push(Step::Ipvsadm(format!("-A -u {any} -s rr")));
    steps.push(Step::Ipvsadm(format!("-E -t {any} -s rr")));
    steps.extend(listings());
    Scenario {
        name: "persistence-every-port".to_owned(),
        title: "services for every port, beside one for a single port".to_owned(),
        connections: 240,
        steps,
    }
}

/// Quiesced, full, removed and returning servers, and a service whose persistence is edited.
fn changes() -> Scenario {
    let at = SocketAddr::new(VIP_V4, 8531);
    let edit = |number, rest: &str| format!("-e -t {at} -r {} -g {rest}", server(number, at));
    let changes = [
        edit(1, "-w 0"),
        // Clients that it has keep coming, however full it is.
        edit(2, "-w 1 -x 5"),
        format!("-E -t {at} -s rr -p 600"),
        format!("-E -t {at} -s rr -p 300 -M 255.255.0.0"),
        format!("-E -t {at} -s rr"),
        format!("-E -t {at} -s wlc -p 120"),
        format!("-a -t {at} -r {} -g -w 1", server(5, at)),
        // From here on the kernel lists what is left of templates whose server is gone.
        format!("-d -t {at} -r {}", server(3, at)),
        edit(1, "-w 2"),
    ];
    let mut steps = vec![Step::Restore(service(at, "-s rr -p 300", &[1, 1, 1, 1]))];
    let clients = |phase: usize| {
        // Most have been here before, some are new.
        let known = (0..40).map(move |number| {
            let mut flow = tcp(number + 4 * phase, at);
            flow.client.set_port(3000 + (phase * 100 + number) as u16);
            flow
        });
        Step::Send(open(known))
    };
    steps.push(clients(0));
    for (change, phase) in changes.into_iter().zip(1..) {
        if change.starts_with("-d") {
            steps.push(Step::Show("-L -n -c".to_owned()));
        }
        steps.push(Step::Ipvsadm(change));
        steps.push(clients(phase));
        steps.push(Step::Show(format!("-L -n --persistent-conn -t {at}")));
        steps.push(Step::Show(format!("-L -n --thresholds -t {at}")));
    }
    Scenario {
        name: "persistence-changes".to_owned(),
        title: "servers quiesced, full, removed, added; persistence edited".to_owned(),
        connections: 400,
        steps,
    }
}

/// Templates that run out, and those that wait for their connections, a minute at a time.
fn expiry() -> Scenario {
    let (short, long) = (SocketAddr::new(VIP_V4, 8541), SocketAddr::new(VIP_V4, 8542));
    let mut steps = vec![Step::Ipvsadm("--set 900 2 0".to_owned())];
    for at in [short, long] {
        steps.push(Step::Restore(service(at, "-s rr -p 3", &[1, 1, 1, 1, 1])));
    }
    let wave = |number: usize| (0..20).map(move |client| (client, 4000 + (number * 100) as u16));
    let flows = |number, at: SocketAddr| -> Vec<Flow> {
        let with_port = |(client, port)| {
            let mut flow = tcp(client, at);
            flow.client.set_port(port);
            flow
        };
        wave(number).map(with_port).collect()
    };
    let send = |kind, flows: &[Flow]| {
        Step::Send(flows.iter().map(|&flow| Packet::new(flow, kind)).collect())
    };
    // These end at once, after two seconds of FIN_WAIT: their templates run out.
    let ended = flows(0, short);
    steps.extend([Kind::Syn, Kind::Ack, Kind::Fin].map(|kind| send(kind, &ended)));
    // These stay, and so do their templates.
    let staying = flows(0, long);
    steps.extend([send(Kind::Syn, &staying), send(Kind::Ack, &staying)]);
    steps.extend(listings());
    steps.push(Step::Wait(Duration::from_secs(6)));
    steps.extend(listings());
    // An odd one first, so that a client without template gets another server than before.
    steps.push(Step::Send(open([tcp(77, short), tcp(77, long)])));
    steps.push(send(Kind::Syn, &flows(1, short)));
    steps.push(send(Kind::Syn, &flows(1, long)));
    steps.extend(listings());
    Scenario {
        name: "persistence-expiry".to_owned(),
        title: "templates that run out, and those whose connections live".to_owned(),
        connections: 80,
        steps,
    }
}
