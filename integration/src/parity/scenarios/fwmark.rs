//! Services that are named by a firewall mark: whole networks of virtual addresses for every
//! scheduler that looks at one, several ports in one service, and which rule marks a packet.

use std::net::{IpAddr, SocketAddr};

use director::fwmark::Rule;

use super::clients::{client, come_and_go, open, tcp, udp};
use super::persistence::returning;
use super::rules::server;
use crate::parity::step::{Flow, Kind, Packet, Scenario, Step};
use crate::topology::{VIP_V4, VIP_V6};

const SCHEDULERS: [&str; 8] = ["rr", "wlc", "lblc", "lblcr", "dh", "sh", "sh -b sh-port", "mh"];

/// One scenario per scheduler; persistence; rules.
pub(super) fn all() -> Vec<Scenario> {
    let scheduled = SCHEDULERS.into_iter().map(networks);
    scheduled.chain([persistence(), rules()]).collect()
}

pub(super) fn marks(rules: &[&str]) -> Step {
    let read = |json: &&str| serde_json::from_str::<Rule>(json).expect("a rule of a scenario");
    Step::Marks(rules.iter().map(read).collect())
}

/// A service by mark, `name` being `-f MARK` or `-f MARK -6`, with servers 1, 2, ... of these
/// weights. `port` is theirs, 0 for none.
pub(super) fn service(
    name: &str,
    options: &str,
    method: &str,
    port: u16,
    weights: &[i32],
) -> Vec<String> {
    let any: IpAddr = if name.ends_with("-6") { VIP_V6 } else { VIP_V4 };
    let mut rules = vec![format!("-A {name} {options}")];
    for (number, weight) in (1..).zip(weights) {
        let server = server(number, SocketAddr::new(any, port));
        rules.push(format!("-a {name} -r {server} {method} -w {weight}"));
    }
    rules
}

fn listings() -> Vec<Step> {
    let lists = ["-L -n", "-L -n --persistent-conn", "-L -n -c", "-S -n"];
    lists.map(|list| Step::Show(list.to_owned())).into()
}

/// Address number `number` of the networks that the directors have by a route.
fn address(number: usize, ipv6: bool) -> IpAddr {
    match ipv6 {
        false => IpAddr::from([203, 0, 113, (number % 250) as u8 + 1]),
        true => {
            let last = (number % 250) as u16;
            IpAddr::from([0x2001, 0xdb8, 5, 0, 0, 0, last.wrapping_mul(40_503), last])
        }
    }
}

/// Two networks full of addresses, each one service.
fn networks(scheduler: &str) -> Scenario {
    let options = format!("-s {scheduler}");
    let mut steps = vec![
        marks(&[
            r#"{"mark":11,"protocol":"tcp","destination":"203.0.113.0/24"}"#,
            r#"{"mark":12,"protocol":"tcp","destination":"2001:db8:5::/64"}"#,
        ]),
        Step::Restore(
            [
                service("-f 11", &options, "-g", 0, &[2, 1, 4, 3]),
                service("-f 12 -6", &options, "-g", 0, &[1, 2, 3, 4]),
            ]
            .concat(),
        ),
    ];
    for ipv6 in [false, true] {
        let flows: Vec<_> = (0..360)
            .map(|number| {
                let port = [80, 443, 8080][number % 3];
                tcp(number, SocketAddr::new(address(number * number % 90, ipv6), port))
            })
            .collect();
        steps.push(Step::Send(come_and_go(&flows)));
    }
    steps.push(Step::Show("-L -n".to_owned()));
    steps.push(super::settle());
    steps.push(Step::Show("-L -n --stats".to_owned()));
    steps.push(Step::Show("-L -n --stats -f 11".to_owned()));
    Scenario {
        name: format!("fwmark-{}", scheduler.rsplit(' ').next().unwrap_or(scheduler)),
        title: "networks of virtual addresses, each one service".to_owned(),
        connections: 600,
        steps,
    }
}

/// http and https in one persistent service, whatever the address; and what the port is.
fn persistence() -> Scenario {
    let mut steps = vec![marks(&[
        r#"{"mark":21,"protocol":"tcp","destination":"192.0.2.10","ports":["80","443"]}"#,
        r#"{"mark":21,"protocol":"tcp","destination":"2001:db8:1::10","ports":["80","443"]}"#,
        r#"{"mark":22,"destination":"203.0.113.0/24","ports":["8000-8099"]}"#,
        r#"{"mark":2147483647,"destination":"203.0.113.0/24","ports":["9000-9099"]}"#,
    ])];
    let all = [
        service("-f 21", "-s rr -p 300", "-m", 0, &[1, 1, 1]),
        service("-f 21 -6", "-s rr -p 600 -M 64", "-m", 0, &[1, 1, 1]),
        // A port of its own is nothing that a server of a persistent mark could use ...
        service("-f 22", "-s rr -p 300 -M 255.255.255.0", "-m", 7000, &[1, 1, 1]),
        // ... and is what any other has.
        service("-f 2147483647", "-s rr", "-m", 7100, &[1, 1, 1]),
    ];
    steps.push(Step::Restore(all.concat()));
    for vip in [VIP_V4, VIP_V6] {
        let flows: Vec<_> = (0..80)
            .map(|number| returning(number, 20, SocketAddr::new(vip, [80, 443][number / 20 % 2])))
            .collect();
        steps.push(Step::Send(open(flows.iter().copied())));
        let answers = flows.iter().step_by(2).map(|&flow| Packet::answer(flow, Kind::SynAck));
        steps.push(Step::Send(answers.collect()));
        let done = flows.iter().step_by(4).map(|&flow| Packet::new(flow, Kind::Ack));
        steps.push(Step::Send(done.collect()));
    }
    for base in [8000, 9000] {
        let at = |number: usize| {
            SocketAddr::new(address(number % 7, false), base + (number % 13) as u16)
        };
        let flows: Vec<Flow> = (0..60)
            .map(|number| {
                let flow = returning(number, 12, at(number));
                Flow {
                    protocol: if number % 3 == 0 { udp(0, at(0)) } else { flow }.protocol,
                    ..flow
                }
            })
            .collect();
        let first = |flow: &Flow| match flow.protocol {
            crate::parity::step::Protocol::Tcp => Packet::new(*flow, Kind::Syn),
            _ => Packet::new(*flow, Kind::Datagram(9)),
        };
        steps.push(Step::Send(flows.iter().map(first).collect()));
        let answer = |flow: &Flow| match flow.protocol {
            crate::parity::step::Protocol::Tcp => Packet::answer(*flow, Kind::SynAck),
            _ => Packet::answer(*flow, Kind::Datagram(99)),
        };
        steps.push(Step::Send(flows.iter().step_by(2).map(answer).collect()));
    }
    steps.extend(listings());
    Scenario {
        name: "fwmark-persistence".to_owned(),
        title: "several ports and addresses in one persistent service, by NAT".to_owned(),
        connections: 250,
        steps,
    }
}

/// Which rule counts, what a mark without service does, and rules that change under way.
fn rules() -> Scenario {
    let vip = SocketAddr::new(VIP_V4, 8601);
    let mut by_address = super::rules::service(vip, "-s rr", &[1, 1, 1, 1]);
    by_address.truncate(2);
    let mut steps = vec![
        marks(&[
            r#"{"mark":31,"destination":"192.0.2.10"}"#,
            r#"{"mark":32,"protocol":"tcp","destination":"192.0.2.10","ports":["8600-8603"]}"#,
            r#"{"mark":33,"source":"198.18.0.0/16","ports":["8602"]}"#,
            r#"{"mark":99,"source":"198.18.0.0/15","ports":["8601"]}"#,
            r#"{"mark":32,"destination":"2001:db8:1::10","source_ports":["1024-30000"]}"#,
        ]),
        Step::Restore(
            [
                by_address,
                service("-f 31", "-s rr", "-g", 0, &[0, 1]),
                service("-f 32", "-s rr", "-m", 0, &[0, 0, 1]),
                service("-f 33", "-s rr", "-i", 0, &[0, 0, 0, 1]),
                service("-f 32 -6", "-s rr", "-g", 0, &[0, 0, 0, 0, 1]),
            ]
            .concat(),
        ),
    ];
    let flows = |from: usize| -> Vec<Packet> {
        let to = |number: usize, vip| {
            let at = SocketAddr::new(vip, 8599 + (number % 6) as u16);
            Flow { client: client(from + number, at), ..tcp(0, at) }
        };
        let tcp = (0..60).map(|number| Packet::new(to(number, VIP_V4), Kind::Syn));
        let tcp6 = (60..90).map(|number| Packet::new(to(number, VIP_V6), Kind::Syn));
        // The sentinel is a UDP service of this address; ports of its own keep it out of this.
        let datagrams = (90..120).map(|number| {
            let flow = Flow { protocol: udp(0, vip).protocol, ..to(number, VIP_V4) };
            Packet::new(flow, Kind::Datagram(10))
        });
        tcp.chain(tcp6).chain(datagrams).collect()
    };
    let first = flows(0);
    steps.push(Step::Send(first.clone()));
    steps.extend(listings());
    // Other rules: connections stay where they are, new ones follow.
    steps.push(marks(&[
        r#"{"mark":33,"destination":"192.0.2.10","ports":["8600-8605"]}"#,
        r#"{"mark":34,"protocol":"udp","destination":"192.0.2.10","ports":["8600-8601"]}"#,
    ]));
    let again = first.iter().filter(|packet| packet.kind == Kind::Syn);
    steps.push(Step::Send(again.map(|packet| Packet::new(packet.flow, Kind::Ack)).collect()));
    steps.push(Step::Send(flows(200)));
    steps.push(Step::Ipvsadm("-D -f 33".to_owned()));
    steps.push(Step::Send(flows(400)));
    for wrong in ["-D -f 33", "-A -f 31 -s wlc", "-a -f 35 -r 10.77.0.11 -g", "-A -f 0"] {
        steps.push(Step::Ipvsadm(wrong.to_owned()));
    }
    steps.extend(listings());
    Scenario {
        name: "fwmark-rules".to_owned(),
        title: "which rule counts; marks without service; other rules under way".to_owned(),
        connections: 150,
        steps,
    }
}
