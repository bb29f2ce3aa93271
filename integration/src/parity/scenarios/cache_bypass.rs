//! Services by mark in front of caches: while no cache takes a client's packet, it goes on to where
//! the client has sent it.

use std::net::{IpAddr, SocketAddr};

use super::clients::{sctp, tcp, udp};
use super::fwmark::{marks, service};
use super::settings::{answers, each};
use crate::parity::chunks::Chunks;
use crate::parity::step::{Flow, Kind, Packet, Scenario, Step};
use crate::topology::{VIP_V4, server_addresses};

/// The one scenario.
pub(super) fn all() -> Vec<Scenario> {
    vec![cache_bypass()]
}

/// The marks have the bit of `place::TRANSPARENT`.
const RULES: [&str; 7] = [
    r#"{"mark":1025,"destination":"10.77.0.0/24","ports":["8641"]}"#,
    r#"{"mark":1025,"destination":"198.51.100.0/24","ports":["8641"]}"#,
    r#"{"mark":1025,"destination":"192.0.2.10","ports":["8641"]}"#,
    r#"{"mark":1026,"destination":"fd77::/64","ports":["8641"]}"#,
    r#"{"mark":1026,"destination":"2001:db8:100::/64","ports":["8641"]}"#,
    r#"{"mark":1027,"protocol":"udp","destination":"10.77.0.0/24","ports":["8642"]}"#,
    r#"{"mark":1028,"destination":"10.77.0.0/24","ports":["8643"]}"#,
];

/// Origin servers, some of them behind the clients' router.
fn origin(number: usize, ipv6: bool, port: u16) -> SocketAddr {
    let far: [IpAddr; 2] =
        [[198, 51, 100, 80].into(), [0x2001, 0xdb8, 0x100, 0, 0, 0, 0, 0x80].into()];
    let address = match number % 5 {
        4 => far,
        near => server_addresses(near + 1),
    };
    SocketAddr::new(address[usize::from(ipv6)], port)
}

/// Flows `first` and the `count` after it, each to an origin server.
fn flows(
    kind: fn(usize, SocketAddr) -> Flow,
    port: u16,
    first: usize,
    count: usize,
) -> [Vec<Flow>; 2] {
    [false, true].map(|ipv6| {
        (first..first + count).map(|number| kind(number, origin(number, ipv6, port))).collect()
    })
}

fn listings() -> [Step; 4] {
    [
        Step::Show("-L -n -c".to_owned()),
        super::settle(),
        Step::Show("-L -n".to_owned()),
        Step::Show("-L -n --stats".to_owned()),
    ]
}

fn cache_bypass() -> Scenario {
    let mut steps = vec![marks(&RULES)];
    for (name, options) in [
        ("-f 1025", "-s rr"),
        ("-f 1026 -6", "-s rr"),
        ("-f 1027", "-s rr -o"),
        ("-f 1028", "-s rr -p 60"),
    ] {
        steps.push(Step::Restore(service(name, options, "-g", 0, &[])));
    }
    steps.push(Step::Setting("cache_bypass", 1));

    let connections = flows(tcp, 8641, 100, 25);
    for flows in &connections {
        steps.push(each(flows, &[Kind::Syn]));
        steps.push(answers(&flows[..10], Kind::SynAck));
        steps.push(each(&flows[5..], &[Kind::Ack, Kind::Data(100)]));
        steps.push(each(&flows[10..15], &[Kind::Fin]));
        steps.push(each(&flows[15..20], &[Kind::Rst]));
        steps.push(each(&flows[20..22], &[Kind::Fin, Kind::Ack]));
    }
    let datagrams = flows(udp, 8641, 200, 5).concat();
    steps.push(each(&datagrams, &[Kind::Datagram(8), Kind::Datagram(900)]));
    let associations = flows(sctp, 8641, 300, 5).concat();
    steps.push(each(&associations, &[Kind::Sctp(Chunks::Init), Kind::Sctp(Chunks::CookieEcho)]));
    let [once, _] = flows(udp, 8642, 400, 5);
    steps.push(each(&once, &[Kind::Datagram(8), Kind::Datagram(9)]));
    let [persistent, _] = flows(tcp, 8643, 500, 5);
    steps.push(each(&persistent, &[Kind::Syn, Kind::Ack]));

    // What is the director's own goes nowhere else.
    let own = [VIP_V4, [10, 77, 0, 1].into()];
    let own: Vec<_> = (600..).zip(own).map(|(n, ip)| tcp(n, SocketAddr::new(ip, 8641))).collect();
    steps.push(each(&own, &[Kind::Syn]));
    // The way ends here. Over IPv4 the kernel is silent: packets that are not for an address of its
    // own it answers from none.
    let [_, ended] = flows(tcp, 8641, 620, 5);
    let last = |&flow| Packet { ttl: 1, ..Packet::new(flow, Kind::Syn) };
    steps.push(Step::Send(ended.iter().map(last).collect()));
    steps.extend(listings());

    // A cache is there again: for new connections.
    let caches = [("-f 1025", 0), ("-f 1026 -6", 1), ("-f 1028", 0)];
    for (name, family) in caches {
        let cache = SocketAddr::new(server_addresses(7)[family], 0);
        steps.push(Step::Ipvsadm(format!("-a {name} -r {cache} -g")));
    }
    steps.push(Step::Setting("expire_nodest_conn", 1));
    for flows in &connections {
        steps.push(each(&flows[..15], &[Kind::Data(10)]));
        steps.push(each(flows, &[Kind::Syn]));
    }
    steps.push(each(&persistent, &[Kind::Ack, Kind::Syn]));
    steps.push(each(&datagrams, &[Kind::Datagram(10)]));
    steps.push(each(&flows(tcp, 8641, 700, 5).concat(), &[Kind::Syn, Kind::Ack]));
    steps.extend(listings());

    // Without the service, and without the setting.
    steps.push(Step::Setting("cache_bypass", 0));
    steps.push(Step::Ipvsadm("-D -f 1025".to_owned()));
    steps.push(each(&connections.concat()[..10], &[Kind::Data(10)]));
    steps.push(each(&datagrams, &[Kind::Datagram(10)]));
    steps.push(Step::Show("-L -n -c".to_owned()));
    Scenario {
        name: "cache-bypass".to_owned(),
        title: "packets that no cache takes go on to where they are addressed".to_owned(),
        connections: 70,
        steps,
    }
}
