//! Services on the port of FTP whose servers answer around the director: which of their clients'
//! packets are theirs.

use std::net::SocketAddr;

use super::clients::{tcp, udp};
use super::rules;
use crate::parity::step::{Flow, Kind, Packet, Scenario, Step};
use crate::topology::{VIP_V4, VIP_V6};

/// Ports around those of data connections.
const PORTS: [u16; 9] = [21, 20, 19, 22, 1023, 1024, 1025, 50000, 65535];

/// A UDP service beside, on this port: the rule for FTP's data port is for all.
const NAMES: u16 = 53;

/// With persistence and without it.
pub(super) fn all() -> Vec<Scenario> {
    vec![persistent(), single()]
}

/// What comes to every port around, from an ordinary port and from that of FTP's data.
fn everywhere(service: SocketAddr, clients: std::ops::Range<usize>) -> Vec<Packet> {
    let mut packets = Vec::new();
    for number in clients {
        for port in PORTS {
            let at = SocketAddr::new(service.ip(), port);
            packets.push(Packet::new(tcp(number, at), Kind::Syn));
        }
        let from_data = |flow: Flow| Flow { client: SocketAddr::new(flow.client.ip(), 20), ..flow };
        packets.push(Packet::new(from_data(tcp(number, service)), Kind::Syn));
        let names = SocketAddr::new(service.ip(), NAMES);
        packets.push(Packet::new(from_data(udp(number, names)), Kind::Datagram(8)));
    }
    packets
}

fn steps(options: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for (vip, clients) in [(VIP_V4, 0..6), (VIP_V6, 10..16)] {
        let service = SocketAddr::new(vip, 21);
        steps.push(Step::Restore(rules::service(service, options, &[1, 1, 1])));
        let names = SocketAddr::new(service.ip(), NAMES);
        steps.push(Step::Restore(vec![
            format!("-A -u {names} -s rr"),
            format!("-a -u {names} -r {} -g", rules::server(1, names)),
        ]));
        steps.push(Step::Send(everywhere(service, clients.clone())));
        steps.push(Step::Show("-L -n -c".to_owned()));
        steps.push(rules::show(service));
        for number in 1..=3 {
            let real = rules::server(number, service);
            steps.push(Step::Ipvsadm(format!("-d -t {service} -r {real}")));
        }
        // Strangers, and nobody to serve them.
        let strangers = clients.start + 100..clients.end + 100;
        steps.push(Step::Send(everywhere(service, strangers)));
    }
    steps.push(super::settle());
    steps.push(Step::Show("-L -n --stats".to_owned()));
    steps
}

fn persistent() -> Scenario {
    Scenario {
        name: "ftp-persistent".to_owned(),
        title: "a persistent FTP service takes its clients' data connections".to_owned(),
        connections: 72,
        steps: steps("-s rr -p 300"),
    }
}

fn single() -> Scenario {
    Scenario {
        name: "ftp-direct".to_owned(),
        title: "an FTP service without persistence takes control connections alone".to_owned(),
        connections: 12,
        steps: steps("-s rr"),
    }
}
