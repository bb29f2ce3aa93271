//! The persistence engine `sip`: each call of a client stays with a server of its own.

use std::net::SocketAddr;

use super::clients::udp;
use super::rules::server;
use crate::parity::step::{Flow, From, Kind, Packet, Scenario, Step};
use crate::topology::{VIP_V4, VIP_V6};

pub(super) fn all() -> Vec<Scenario> {
    vec![calls(), changes()]
}

fn listings() -> [Step; 5] {
    ["-L -n", "-L -n --persistent-conn", "-L -n -c", "-L -n -c --persistent-conn", "-S -n"]
        .map(|list| Step::Show(list.to_owned()))
}

fn service(at: SocketAddr, options: &str, method: &str, servers: usize) -> Vec<String> {
    let mut rules = vec![format!("-A -u {at} {options} --pe sip")];
    let servers = (1..=servers).map(|number| server(number, at));
    rules.extend(servers.map(|server| format!("-a -u {at} -r {server} {method} -w 1")));
    rules
}

/// Message of call `call`, from client `client`.
fn message(client: usize, at: SocketAddr, call: u16) -> Packet {
    Packet::new(udp(client, at), Kind::Sip(call))
}

/// Calls that several clients speak in, answers, calls by servers, and what is no SIP.
fn calls() -> Scenario {
    let mut steps = Vec::new();
    for (vip, mask) in [(VIP_V4, "-M 255.255.255.0"), (VIP_V6, "-M 64")] {
        for (method, port) in [("-m", 5060), ("-g", 5062)] {
            let at = SocketAddr::new(vip, port);
            let mut rules = service(at, "-s rr -p 300", method, 4);
            if method == "-g" {
                rules[0].push_str(&format!(" {mask}"));
            }
            steps.push(Step::Restore(rules));
            let calls = (0..60).map(|number| message(number, at, 1 + (number * 7 % 20) as u16));
            steps.push(Step::Send(calls.collect()));
            // The same ports in other calls, and the same clients from other ports in the same
            // calls and in others.
            let again = (0..60).map(|number| message(number, at, 1 + (number / 3) as u16));
            steps.push(Step::Send(again.collect()));
            let moved = (0..60).map(|number| {
                let mut packet = message(number, at, 1 + (number * 7 % (20 + number % 2)) as u16);
                packet.flow.client.set_port(30_000 + number as u16);
                packet
            });
            steps.push(Step::Send(moved.collect()));
            let strange = (60..70).map(|number| Packet::new(udp(number, at), Kind::Datagram(40)));
            steps.push(Step::Send(strange.collect()));
            steps.push(Step::Send((60..64).map(|number| message(number, at, 0)).collect()));
            if method == "-m" {
                let answers = (0..30).map(|number| {
                    Packet::answer(udp(number, at), Kind::Sip(1 + (number % 20) as u16))
                });
                steps.push(Step::Send(answers.collect()));
                // Known calls and new ones, by the server that has them and by another.
                let called = (100..140).map(|number| Packet {
                    from: From::Caller(1 + number % 4),
                    ..message(number, at, 10 + (number % 25) as u16)
                });
                steps.push(Step::Send(called.collect()));
                let back = (100..120).map(|number| message(number, at, 200));
                steps.push(Step::Send(back.collect()));
            }
        }
    }
    steps.extend(listings());
    steps.push(super::settle());
    steps.push(Step::Show("-L -n --stats".to_owned()));
    let at = SocketAddr::new(VIP_V4, 5070);
    for command in [
        format!("-A -t {at} -s rr -p 300 --pe sip"),
        format!("-A -u {at} -s rr -p 300 --pe h323"),
        format!("-A -u {at} -s rr --pe sip"),
        format!("-E -u {at} -s rr -p 300"),
    ] {
        steps.push(Step::Ipvsadm(command));
    }
    steps.push(Step::Show("-L -n".to_owned()));
    Scenario {
        name: "sip".to_owned(),
        title: "calls by their Call-ID, of clients and of servers, both families".to_owned(),
        connections: 240,
        steps,
    }
}

/// Servers quiesced and removed, an engine that is taken away.
fn changes() -> Scenario {
    let at = SocketAddr::new(VIP_V4, 5080);
    let mut steps = vec![Step::Restore(service(at, "-s rr -p 300", "-g", 3))];
    let calls = |phase: usize| {
        let call = |number: usize| {
            let mut packet = message(number, at, 1 + (number % 15) as u16);
            let flow: &mut Flow = &mut packet.flow;
            flow.client.set_port(10_000 + (phase * 100 + number) as u16);
            packet
        };
        Step::Send((0..30).map(call).collect())
    };
    steps.push(calls(0));
    let changes = [
        format!("-e -u {at} -r {} -g -w 0", server(1, at)),
        format!("-d -u {at} -r {}", server(2, at)),
        format!("-E -u {at} -s rr -p 300"),
        format!("-E -u {at} -s rr -p 300 --pe sip"),
    ];
    for (change, phase) in changes.into_iter().zip(1..) {
        steps.extend([Step::Ipvsadm(change), calls(phase)]);
        steps.push(Step::Show(format!("-L -n --persistent-conn -u {at}")));
    }
    Scenario {
        name: "sip-changes".to_owned(),
        title: "servers quiesced and removed, the engine taken away and put back".to_owned(),
        connections: 120,
        steps,
    }
}
