//! What the kernel's sysctls change about ICMP and about tunnels.

use std::net::SocketAddr;
use std::time::Duration;

use super::clients::{tcp, udp};
use super::settings::{answers, each, rules};
use crate::parity::step::{IcmpError, Kind, Packet, Problem, Scenario, Step};
use crate::topology::{VIP_V4, VIP_V6, server_addresses};

pub(super) fn all() -> Vec<Scenario> {
    vec![nat_icmp_send(), schedule_icmp(), pmtu_disc()]
}

/// Answers of NAT servers to clients whose connections are over.
fn nat_icmp_send() -> Scenario {
    let mut steps = vec![Step::Ipvsadm("--set 1 1 1".to_owned())];
    for (value, port) in [(0, 8581), (1, 8582)] {
        let at = SocketAddr::new(VIP_V4, port);
        steps.push(Step::Setting("nat_icmp_send", value));
        steps.push(Step::Restore([rules("-t", at, "-m", ""), rules("-u", at, "-m", "")].concat()));
        let tcp: Vec<_> = (0..6).map(|number| tcp(number, at)).collect();
        let udp: Vec<_> = (0..6).map(|number| udp(number, at)).collect();
        steps.push(each(&tcp, &[Kind::Syn, Kind::Ack]));
        steps.push(each(&udp, &[Kind::Datagram(8)]));
        steps.push(answers(&udp, Kind::Datagram(9)));
        steps.push(Step::Wait(Duration::from_secs(4)));
        steps.push(answers(&tcp, Kind::Data(20)));
        steps.push(answers(&tcp[..3], Kind::Rst));
        steps.push(answers(&tcp[3..], Kind::SynAck));
        steps.push(answers(&udp, Kind::Datagram(700)));
        steps.push(Step::Show("-L -n -c".to_owned()));
    }
    Scenario {
        name: "nat-icmp-send".to_owned(),
        title: "answers of NAT servers that belong to no connection".to_owned(),
        connections: 24,
        steps,
    }
}

/// Tunnels that do not look for what fits the way: IPv4 in IPv4, and IPv6, which asks all the same.
fn pmtu_disc() -> Scenario {
    const GRE: &str = "-i --tun-type gre --tun-nocsum";
    let ways = [(VIP_V4, "-i"), (VIP_V4, GRE), (VIP_V6, "-i")];
    let mut steps = vec![Step::Setting("pmtu_disc", 0)];
    for ((vip, method), port) in ways.into_iter().zip(8591..) {
        let at = SocketAddr::new(vip, port);
        let mut rules = vec![format!("-A -t {at} -s rr")];
        for number in 1..=2 {
            let server = SocketAddr::new(server_addresses(number)[0], port);
            rules.push(format!("-a -t {at} -r {server} {method}"));
        }
        steps.push(Step::Restore(rules));
        let flows: Vec<_> = (0..4).map(|number| tcp(number, at)).collect();
        steps.push(each(&flows, &[Kind::Syn, Kind::Ack]));
        for dont_fragment in [true, false] {
            let payloads = [10, 1400, 1420, 1436, 1437, 1440, 1441, 1460].into_iter();
            let packets = payloads.zip(flows.iter().cycle()).map(|(payload, &flow)| Packet {
                dont_fragment,
                ..Packet::new(flow, Kind::Data(payload))
            });
            steps.push(Step::Send(packets.collect()));
        }
    }
    Scenario {
        name: "pmtu-disc".to_owned(),
        title: "tunnels without discovery of the path's MTU".to_owned(),
        connections: 12,
        steps,
    }
}

/// ICMP errors about packets of a service that nobody here has sent, and connections that begin
/// after them.
fn schedule_icmp() -> Scenario {
    let error = |quoted| {
        let problem = Problem::TooBig(1300);
        Kind::Error(IcmpError { problem, router: true, quoted, flaw: None })
    };
    let mut steps = Vec::new();
    for (value, first_port) in [(0, 8621), (1, 8631)] {
        steps.push(Step::Setting("schedule_icmp", value));
        let ways = [(VIP_V4, "-m"), (VIP_V4, "-g"), (VIP_V4, "-i"), (VIP_V6, "-m"), (VIP_V6, "-g")];
        for ((vip, method), port) in ways.into_iter().zip(first_port..) {
            let at = SocketAddr::new(vip, port);
            let header = if vip.is_ipv6() { 40 } else { 20 };
            steps.push(Step::Restore(
                [rules("-t", at, method, ""), rules("-u", at, method, "")].concat(),
            ));
            let tcp: Vec<_> = (0..4).map(|number| tcp(number, at)).collect();
            let udp: Vec<_> = (10..14).map(|number| udp(number, at)).collect();
            for flows in [&tcp, &udp] {
                steps.push(each(flows, &[error(header + 8), error(header + 100)]));
            }
            steps.push(each(&tcp, &[Kind::Syn]));
            steps.push(each(&udp, &[Kind::Datagram(9)]));
            steps.push(Step::Show("-L -n -c".to_owned()));
        }
    }
    steps.push(super::settle());
    steps.push(Step::Show("-L -n --stats".to_owned()));
    Scenario {
        name: "schedule-icmp".to_owned(),
        title: "ICMP errors about connections that are not known".to_owned(),
        connections: 80,
        steps,
    }
}
