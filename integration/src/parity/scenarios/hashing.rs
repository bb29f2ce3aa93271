//! Which server each new connection goes to, for the schedulers that decide by an address:
//! `sh` and `mh` by the client's, `dh`, `lblc` and `lblcr` by the one the client asks.

use std::net::{IpAddr, SocketAddr};

use super::clients::{come_and_go, open, tcp, udp};
use super::rules::{changes_under_way, server, service, services, show};
use crate::parity::step::{Kind, Packet, Scenario, Step};
use crate::topology::{VIP_V4, VIP_V6};

/// Equal, skewed and zero weights. `sh` gives a server of weight 0 slots all the same.
const WEIGHTS: [&[i32]; 3] = [&[1, 1, 1, 1], &[1, 40, 2, 100, 60], &[3, 0, 5, 0, 1]];

const FLAGS: [(&str, [&str; 4]); 2] = [
    ("sh", ["", "-b sh-port", "-b sh-fallback", "-b sh-fallback,sh-port"]),
    ("mh", ["", "-b mh-port", "-b mh-fallback", "-b mh-fallback,mh-port"]),
];

/// By client: a scenario for each flag. By destination: one for placement, one for changes.
pub(super) fn all() -> Vec<Scenario> {
    let by_client = FLAGS.iter().flat_map(|(scheduler, flags)| {
        let placed = flags.iter().map(move |flags| by_client(scheduler, flags));
        placed.chain([changes(scheduler, flags[0]), changes(scheduler, flags[2])])
    });
    let by_destination =
        ["dh", "lblc", "lblcr"].into_iter().flat_map(|name| [by_destination(name), far(name)]);
    by_client.chain(by_destination).collect()
}

/// `sh`, or `sh-port` and so on.
fn name(scheduler: &str, flags: &str) -> String {
    match flags.strip_prefix("-b ") {
        Some(flags) => flags.replace(',', "-"),
        None => scheduler.to_owned(),
    }
}

/// Both families, TCP and UDP, and servers that are full: with a fallback others take over.
fn by_client(scheduler: &str, flags: &str) -> Scenario {
    let options = format!("-s {scheduler} {flags}");
    let mut steps = Vec::new();
    for (weights, port) in WEIGHTS.into_iter().zip(8101..) {
        for vip in [VIP_V4, VIP_V6] {
            let at = SocketAddr::new(vip, port);
            let count = if vip == VIP_V4 { 500 } else { 250 };
            steps.push(Step::Restore(service(at, &options, weights)));
            steps.push(Step::Send(open((0..count).map(|number| tcp(number, at)))));
            steps.push(show(at));
        }
    }
    // The same clients from other ports: the same servers, unless ports count.
    let at = SocketAddr::new(VIP_V4, 8101);
    let moved = (0..100).map(|number| {
        let mut flow = tcp(number, at);
        flow.client.set_port(flow.client.port() + 1);
        flow
    });
    steps.push(Step::Send(open(moved)));
    let at = SocketAddr::new(VIP_V4, 8110);
    let mut rules = service(at, &options, &[2, 1, 3]);
    rules.iter_mut().for_each(|rule| *rule = rule.replace("-t", "-u"));
    steps.push(Step::Restore(rules));
    let datagram = |number| Packet::new(udp(number, at), Kind::Datagram(number % 40));
    steps.push(Step::Send((0..200).map(datagram).collect()));
    let at = SocketAddr::new(VIP_V4, 8111);
    let mut rules = service(at, &options, &[4, 4, 4]);
    rules[1].push_str(" -x 20");
    rules[3].push_str(" -x 50 -y 10");
    steps.push(Step::Restore(rules));
    steps.push(Step::Send(open((0..300).map(|number| tcp(number, at)))));
    steps.push(show(at));
    Scenario {
        name: name(scheduler, flags),
        title: "equal, skewed and zero weights, full servers, both families".to_owned(),
        connections: 1500,
        steps,
    }
}

fn changes(scheduler: &str, flags: &str) -> Scenario {
    let at = SocketAddr::new(VIP_V4, 8120);
    let mut steps =
        vec![Step::Restore(service(at, &format!("-s {scheduler} {flags}"), &[2, 3, 4, 5]))];
    steps.extend(changes_under_way(at, 1, |phase| {
        Step::Send(open((phase * 100..phase * 100 + 100).map(|number| tcp(number, at))))
    }));
    Scenario {
        name: format!("{}-changes", name(scheduler, flags)),
        title: "servers added, edited, quiesced, removed and added again".to_owned(),
        connections: 500,
        steps,
    }
}

/// Many virtual addresses with the same servers, and clients who come and go.
fn by_destination(scheduler: &str) -> Scenario {
    let mut steps = Vec::new();
    // These addresses are the directors' by a route. Over IPv6 the kernel would answer for such a
    // one, where there is no server, from another address of its own; so all weights are over 0.
    let sets = [(8201, WEIGHTS[0]), (8202, WEIGHTS[1]), (8203, WEIGHTS[2])];
    let families: [(IpAddr, &[_]); 2] =
        [([203, 0, 113, 0].into(), &sets), ([0x2001, 0xdb8, 5, 0, 0, 0, 0, 0].into(), &sets[..2])];
    for (network, sets) in families {
        for &(port, weights) in sets {
            let (addresses, rules) =
                services(network, 24, port, &format!("-s {scheduler}"), weights);
            steps.push(Step::Restore(rules));
            let flows: Vec<_> =
                (0..360).map(|number| tcp(number, addresses[number % addresses.len()])).collect();
            steps.push(Step::Send(come_and_go(&flows)));
        }
    }
    steps.push(Step::Show("-L -n".to_owned()));
    Scenario {
        name: scheduler.to_owned(),
        title: "many virtual addresses; equal, skewed and zero weights; both families".to_owned(),
        connections: 1000,
        steps,
    }
}

/// One virtual address with much traffic, full servers and changes: where what is remembered of a
/// destination has to give way.
fn far(scheduler: &str) -> Scenario {
    let at = SocketAddr::new(VIP_V4, 8220);
    let options = format!("-s {scheduler}");
    let mut steps = vec![Step::Restore(service(at, &options, &[2, 3, 4, 5]))];
    steps.extend(changes_under_way(at, 1, |phase| {
        let flows: Vec<_> = (phase * 90..phase * 90 + 90).map(|number| tcp(number, at)).collect();
        Step::Send(come_and_go(&flows))
    }));
    let (addresses, rules) =
        services([203, 0, 113, 100].into(), 20, 8221, &options, &[20, 10, 30, 40]);
    steps.push(Step::Restore(rules));
    let flows: Vec<_> =
        (0..500).map(|number| tcp(number, addresses[number * number % addresses.len()])).collect();
    steps.push(Step::Send(come_and_go(&flows[..250])));
    for &address in &addresses {
        steps.push(Step::Ipvsadm(format!("-d -t {address} -r {}", server(2, address))));
        steps.push(Step::Ipvsadm(format!("-e -t {address} -r {} -g -w 0", server(4, address))));
    }
    steps.push(Step::Send(come_and_go(&flows[250..])));
    steps.push(Step::Show("-L -n".to_owned()));
    Scenario {
        name: format!("{scheduler}-changes"),
        title: "much traffic to one address; servers added, edited, quiesced, removed".to_owned(),
        connections: 500,
        steps,
    }
}
