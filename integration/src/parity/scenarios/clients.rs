//! Clients: many, spread over addresses and ports, and the same in every run.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::parity::step::{Flow, Kind, Packet, Protocol};

/// Client number `number` of a service's family: 198.18.0.0/15 is set aside for such trials. Its
/// digits are mixed, so that hashes have something to bite on.
pub(super) fn client(number: usize, service: SocketAddr) -> SocketAddr {
    let mixed = (number as u32).wrapping_mul(0x9e37_79b1);
    let [_, a, b, c] = mixed.to_be_bytes();
    let port = 1024 + (number * 7 % 60_000) as u16;
    let ip: IpAddr = match service {
        SocketAddr::V4(_) => Ipv4Addr::new(198, 18 + (a & 1), b, c.clamp(1, 254)).into(),
        SocketAddr::V6(_) => {
            let words = mixed.to_be_bytes();
            let [high, low] = [[words[0], words[1]], [words[2], words[3]]].map(u16::from_be_bytes);
            Ipv6Addr::new(0x2001, 0xdb8, 0x2, high, 0, 0, low, number as u16).into()
        }
    };
    SocketAddr::new(ip, port)
}

/// The TCP flow of client `number`.
pub(super) fn tcp(number: usize, service: SocketAddr) -> Flow {
    Flow { protocol: Protocol::Tcp, client: client(number, service), service }
}

/// The UDP flow of client `number`.
pub(super) fn udp(number: usize, service: SocketAddr) -> Flow {
    Flow { protocol: Protocol::Udp, client: client(number, service), service }
}

/// The SCTP flow of client `number`.
pub(super) fn sctp(number: usize, service: SocketAddr) -> Flow {
    Flow { protocol: Protocol::Sctp, client: client(number, service), service }
}

/// Opens: one SYN each.
pub(super) fn open(flows: impl IntoIterator<Item = Flow>) -> Vec<Packet> {
    flows.into_iter().map(|flow| Packet::new(flow, Kind::Syn)).collect()
}

/// Connections as they come and go: all open, all but every sixth are established, every third
/// ends in order, every seventh all of a sudden.
pub(super) fn come_and_go(flows: &[Flow]) -> Vec<Packet> {
    let mut packets = Vec::new();
    for (number, &flow) in flows.iter().enumerate() {
        packets.push(Packet::new(flow, Kind::Syn));
        if number % 6 != 5 {
            packets.push(Packet::new(flow, Kind::Ack));
        }
        if number % 3 == 2 {
            packets.push(Packet::new(flow, Kind::Fin));
        }
        // Somebody who came earlier.
        if number % 7 == 6 {
            packets.push(Packet::new(flows[number / 2], Kind::Fin));
        }
    }
    packets
}
