//! The bytes of what servers and clients receive: every method, both families, and headers of
//! all kinds.

use std::net::{IpAddr, SocketAddr};

use super::clients::{tcp, udp};
use crate::parity::place::SERVERS;
use crate::parity::step::{Flow, From, Kind, Packet, Scenario, Step};
use crate::topology::{VIP_V4, VIP_V6, server_addresses};

/// A method as an option of `ipvsadm`, and the families outside and inside.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) option: &'static str,
    pub(super) vip: IpAddr,
    pub(super) server_is_v6: bool,
}

const WAYS: [Way; 16] = [
    Way { name: "nat-v4", option: "-m", vip: VIP_V4, server_is_v6: false },
    Way { name: "nat-v6", option: "-m", vip: VIP_V6, server_is_v6: true },
    Way { name: "direct-v4", option: "-g", vip: VIP_V4, server_is_v6: false },
    Way { name: "direct-v6", option: "-g", vip: VIP_V6, server_is_v6: true },
    Way { name: "ipip-4in4", option: "-i", vip: VIP_V4, server_is_v6: false },
    Way { name: "ipip-6in6", option: "-i", vip: VIP_V6, server_is_v6: true },
    Way { name: "ipip-4in6", option: "-i", vip: VIP_V4, server_is_v6: true },
    Way { name: "ipip-6in4", option: "-i", vip: VIP_V6, server_is_v6: false },
    Way { name: "gre-4in4", option: GRE, vip: VIP_V4, server_is_v6: false },
    Way { name: "gre-6in6", option: GRE, vip: VIP_V6, server_is_v6: true },
    Way { name: "gre-csum-4in6", option: GRE_CSUM, vip: VIP_V4, server_is_v6: true },
    Way { name: "gre-csum-6in4", option: GRE_CSUM, vip: VIP_V6, server_is_v6: false },
    Way { name: "gue-4in4", option: GUE, vip: VIP_V4, server_is_v6: false },
    Way { name: "gue-6in6", option: GUE, vip: VIP_V6, server_is_v6: true },
    Way { name: "gue-csum-4in4", option: GUE_CSUM, vip: VIP_V4, server_is_v6: false },
    Way { name: "gue-remcsum-6in4", option: GUE_REMCSUM, vip: VIP_V6, server_is_v6: false },
];

const GRE: &str = "-i --tun-type gre --tun-nocsum";
const GRE_CSUM: &str = "-i --tun-type gre --tun-csum";
const GUE: &str = "-i --tun-type gue --tun-port 6080 --tun-nocsum";
const GUE_CSUM: &str = "-i --tun-type gue --tun-port 6080 --tun-csum";
/// Clients' sums are complete here, so there is nothing for the servers to complete.
const GUE_REMCSUM: &str = "-i --tun-type gue --tun-port 6080 --tun-remcsum";

/// Headers that are treated by rule: TTL, DSCP and ECN, don't fragment.
const HEADERS: [(u8, u8, bool); 10] = [
    (64, 0x00, true),
    (64, 0x00, false),
    (2, 0x00, true),
    (1, 0x00, true),
    (255, 0xb8, true),
    (64, 0x01, false),
    (64, 0x02, true),
    (64, 0x03, true),
    (64, 0x2b, false),
    (128, 0xff, true),
];

/// Payloads: none, odd, and around what fits an MTU of 1500 with and without a tunnel.
const PAYLOADS: [usize; 14] = [0, 1, 2, 3, 7, 64, 511, 1000, 1380, 1400, 1420, 1425, 1440, 1460];

/// One scenario per method and family.
pub(super) fn all() -> Vec<Scenario> {
    WAYS.iter().map(packets).collect()
}

fn packets(way: &Way) -> Scenario {
    let at = SocketAddr::new(way.vip, 8301);
    let mut steps = vec![Step::Restore([rules(way, "-t", at), rules(way, "-u", at)].concat())];
    let tcp_flows: Vec<_> = (0..20).map(|number| tcp(number, at)).collect();
    let udp_flows: Vec<_> = (0..20).map(|number| udp(100 + number, at)).collect();

    let mut open: Vec<_> = tcp_flows.iter().map(|&flow| Packet::new(flow, Kind::Syn)).collect();
    open.extend(udp_flows.iter().map(|&flow| Packet::new(flow, Kind::Datagram(12))));
    steps.push(Step::Send(open));
    let answers = way.option == "-m";
    if answers {
        let flows = tcp_flows.iter();
        steps.push(Step::Send(flows.map(|&flow| Packet::answer(flow, Kind::SynAck)).collect()));
    }
    let mut all = from(From::Client, &tcp_flows, &udp_flows);
    if answers {
        all.extend(from(From::Server, &tcp_flows, &udp_flows));
    }
    steps.push(Step::Send(all));
    steps.push(Step::Send(endings(&tcp_flows, answers)));
    steps.push(Step::Show("-L -n".to_owned()));
    steps.push(super::settle());
    steps.push(Step::Show("-L -n --stats".to_owned()));
    steps.push(Step::Show("-L -n --stats --exact".to_owned()));
    steps.push(Step::Show("-L -n -c".to_owned()));
    Scenario {
        name: way.name.to_owned(),
        title: "packets byte by byte, counters, connections".to_owned(),
        connections: 40,
        steps,
    }
}

/// The one called `name`.
pub(super) fn way(name: &str) -> Way {
    *WAYS.iter().find(|way| way.name == name).expect("there is such a way")
}

/// A service of this protocol (`-t`, `-u`) with three servers.
pub(super) fn rules(way: &Way, protocol: &str, at: SocketAddr) -> Vec<String> {
    let mut rules = vec![format!("-A {protocol} {at} -s rr")];
    for number in 1..=3.min(SERVERS) {
        let address = server_addresses(number)[usize::from(way.server_is_v6)];
        // With NAT the port may change as well.
        let port = if way.option == "-m" { 9000 + number as u16 } else { at.port() };
        let server = SocketAddr::new(address, port);
        rules.push(format!("-a {protocol} {at} -r {server} {}", way.option));
    }
    rules
}

/// All headers, all payloads, with and without UDP's checksum.
fn from(from: From, tcp: &[Flow], udp: &[Flow]) -> Vec<Packet> {
    let mut packets = Vec::new();
    let mut turn = 0;
    let mut next = |flows: &[Flow]| {
        turn += 1;
        flows[turn % flows.len()]
    };
    for payload in PAYLOADS {
        packets.push(Packet { from, ..Packet::new(next(tcp), Kind::Data(payload)) });
        packets.push(Packet { from, ..Packet::new(next(udp), Kind::Datagram(payload)) });
        let unsummed = Packet { from, ..Packet::new(next(udp), Kind::Unsummed(payload)) };
        // Over IPv6 there is no such thing.
        if unsummed.flow.client.is_ipv4() {
            packets.push(unsummed);
        }
    }
    for (ttl, traffic_class, dont_fragment) in HEADERS {
        for payload in [0, 1, 100] {
            let shape = |packet| Packet { from, ttl, traffic_class, dont_fragment, ..packet };
            packets.push(shape(Packet::new(next(tcp), Kind::Data(payload))));
            packets.push(shape(Packet::new(next(udp), Kind::Datagram(payload))));
        }
    }
    packets
}

/// Every way in which a connection ends, and packets after the end.
fn endings(flows: &[Flow], answers: bool) -> Vec<Packet> {
    let mut packets = Vec::new();
    for (number, &flow) in flows.iter().enumerate() {
        let last = match number % 4 {
            0 => Kind::Fin,
            1 => Kind::Rst,
            2 => Kind::Ack,
            _ => Kind::Syn,
        };
        packets.push(Packet::new(flow, last));
        if answers && number % 3 == 0 {
            packets.push(Packet::answer(flow, Kind::Fin));
        }
        if number % 5 == 0 {
            packets.push(Packet::new(flow, Kind::Ack));
        }
    }
    packets
}
