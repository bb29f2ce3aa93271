//! A director without I/O: a table, a pipeline, and a network where everything is on one link.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use forwarding::Packet;

use crate::control::api::{Forwarding, Protocol, ServerSpec, ServiceKey, ServiceSpec, Tunnel};
use crate::control::operations::Command;
use crate::dispatch::verdict::{Path, Verdict};
use crate::dispatch::{Dispatcher, Routes, Shared};
use crate::table::Table;

pub(super) const SYN: u8 = 0x02;
pub(super) const ACK: u8 = 0x10;
pub(super) const SYN_ACK: u8 = 0x12;
pub(super) const FIN_ACK: u8 = 0x11;
pub(super) const RST: u8 = 0x04;

pub(super) struct OneLink {
    pub(super) mtu: u32,
    /// An address of the director's: there is no path to it.
    pub(super) own: Option<IpAddr>,
}

impl Routes for OneLink {
    fn path(&mut self, destination: IpAddr) -> Option<Path> {
        if self.own == Some(destination) {
            return None;
        }
        let source = if destination.is_ipv4() { "10.77.0.1" } else { "fd77::1" };
        let source = Some(source.parse().unwrap());
        Some(Path { interface: 2, next_hop: destination, source, mtu: self.mtu })
    }
}

pub(super) struct Bed {
    pub(super) table: Table,
    pub(super) routes: OneLink,
    pub(super) now: Duration,
    pub(super) dispatcher: Dispatcher,
}

/// What came out of the pipeline.
pub(super) struct Out {
    pub(super) verdict: Verdict,
    pub(super) frame: Vec<u8>,
}

pub(super) fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

pub(super) fn key(protocol: Protocol, address: &str) -> ServiceKey {
    ServiceKey::Address { protocol, address: at(address) }
}

pub(super) fn service(key: ServiceKey, scheduler: &str) -> ServiceSpec {
    ServiceSpec {
        key,
        scheduler: scheduler.into(),
        flags: 0,
        persistence: None,
        one_packet: false,
        extras: None,
    }
}

pub(super) fn server(address: &str, forwarding: Forwarding) -> ServerSpec {
    ServerSpec {
        address: at(address),
        forwarding,
        tunnel: Tunnel::Ipip,
        weight: 1,
        upper_threshold: 0,
        lower_threshold: 0,
    }
}

impl Bed {
    pub(super) fn new() -> Bed {
        Bed::for_connections(10_000)
    }

    /// With room for so many connections.
    fn for_connections(limit: usize) -> Bed {
        let shared = Arc::new(Shared::new(limit));
        let table = Table::new(shared.clone(), Box::new(|_| false), 7);
        Bed {
            table,
            routes: OneLink { mtu: 1500, own: None },
            now: Duration::from_secs(1),
            dispatcher: Dispatcher::new(shared, 1),
        }
    }

    /// One service with rr and the given servers; the last one is the newest and so the first.
    pub(super) fn with(key: ServiceKey, servers: &[(&str, Forwarding)]) -> Bed {
        Bed::new().having(key, servers)
    }

    fn having(self, key: ServiceKey, servers: &[(&str, Forwarding)]) -> Bed {
        self.apply(Command::AddService { service: service(key, "rr") });
        for (address, forwarding) in servers {
            self.apply(Command::AddServer { service: key, server: server(address, *forwarding) });
        }
        self
    }

    /// The same with room for so many connections.
    pub(super) fn sized(limit: usize, key: ServiceKey, servers: &[(&str, Forwarding)]) -> Bed {
        Bed::for_connections(limit).having(key, servers)
    }

    pub(super) fn apply(&self, command: Command) {
        self.table.change(command, self.now).unwrap();
    }

    pub(super) fn handle(&mut self, frame: &[u8]) -> Out {
        let mut chunk = vec![0; 4096];
        chunk[256..256 + frame.len()].copy_from_slice(frame);
        let mut packet = Packet::new(&mut chunk, 256, frame.len());
        let services = self.table.published().load_full();
        let verdict = self.dispatcher.handle(self.now, &services, &mut self.routes, &mut packet);
        Out { verdict, frame: packet.bytes().to_vec() }
    }

    /// A TCP segment.
    pub(super) fn tcp(&mut self, source: &str, destination: &str, flags: u8) -> Out {
        self.handle(&tcp(at(source), at(destination), flags, b"payload"))
    }

    /// A UDP datagram.
    pub(super) fn udp(&mut self, source: &str, destination: &str) -> Out {
        self.handle(&udp(at(source), at(destination), b"payload"))
    }

    /// Active and inactive connections of each server, newest first.
    pub(super) fn counts(&self) -> Vec<(u32, u32)> {
        let views = self.table.service_views();
        views[0].servers.iter().map(|server| (server.active, server.inactive)).collect()
    }

    /// Passes time as a worker does, a tenth of a second at a time.
    pub(super) fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_millis(100);
            for shard in 0..crate::dispatch::connections::SHARDS {
                self.table.shared().connections.expire(shard, self.now);
            }
        }
    }

    /// Client and server shake hands through NAT.
    pub(super) fn establish(&mut self, client: &str, vip: &str) -> SocketAddr {
        let chosen = self.tcp(client, vip, SYN).destination();
        let _ = self.tcp(&chosen.to_string(), client, SYN_ACK);
        let _ = self.tcp(client, vip, ACK);
        chosen
    }
}

impl Out {
    pub(super) fn is_sent(&self) -> bool {
        matches!(self.verdict, Verdict::Transmit { .. })
    }

    /// Destination address and port of what goes out.
    pub(super) fn destination(&self) -> SocketAddr {
        assert!(self.is_sent(), "{:?}", self.verdict);
        ends(&self.frame).1
    }

    /// Source address and port of what goes out.
    pub(super) fn source(&self) -> SocketAddr {
        assert!(self.is_sent(), "{:?}", self.verdict);
        ends(&self.frame).0
    }
}

/// Source and destination of a frame, by an independent parser; its checksums are verified.
pub(super) fn ends(frame: &[u8]) -> (SocketAddr, SocketAddr) {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    ends_of(&sliced)
}

pub(super) fn ends_of(sliced: &SlicedPacket<'_>) -> (SocketAddr, SocketAddr) {
    let (source, destination): (IpAddr, IpAddr) = match sliced.net.as_ref().unwrap() {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            assert_eq!(header.to_header().calc_header_checksum(), header.header_checksum());
            (header.source_addr().into(), header.destination_addr().into())
        }
        NetSlice::Ipv6(ip) => {
            (ip.header().source_addr().into(), ip.header().destination_addr().into())
        }
        NetSlice::Arp(_) => panic!("ARP"),
    };
    let (from, to, sum, expected) = match sliced.transport.as_ref().unwrap() {
        TransportSlice::Tcp(tcp) => {
            let header = tcp.to_header();
            let expected = match (source, destination) {
                (IpAddr::V4(s), IpAddr::V4(d)) => {
                    header.calc_checksum_ipv4_raw(s.octets(), d.octets(), tcp.payload())
                }
                (IpAddr::V6(s), IpAddr::V6(d)) => {
                    header.calc_checksum_ipv6_raw(s.octets(), d.octets(), tcp.payload())
                }
                _ => unreachable!(),
            };
            (tcp.source_port(), tcp.destination_port(), tcp.checksum(), expected.unwrap())
        }
        TransportSlice::Udp(udp) => {
            let header = udp.to_header();
            let expected = match (source, destination) {
                (IpAddr::V4(s), IpAddr::V4(d)) => {
                    header.calc_checksum_ipv4_raw(s.octets(), d.octets(), udp.payload())
                }
                (IpAddr::V6(s), IpAddr::V6(d)) => {
                    header.calc_checksum_ipv6_raw(s.octets(), d.octets(), udp.payload())
                }
                _ => unreachable!(),
            };
            (udp.source_port(), udp.destination_port(), udp.checksum(), expected.unwrap())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(sum, expected, "transport checksum");
    (SocketAddr::new(source, from), SocketAddr::new(destination, to))
}

pub(super) fn network(
    source: SocketAddr,
    destination: SocketAddr,
) -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
    let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            ethernet.ipv4(source.octets(), destination.octets(), 64)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            ethernet.ipv6(source.octets(), destination.octets(), 64)
        }
        _ => panic!("mixed families"),
    }
}

pub(super) fn tcp(
    source: SocketAddr,
    destination: SocketAddr,
    flags: u8,
    payload: &[u8],
) -> Vec<u8> {
    let mut builder =
        network(source, destination).tcp(source.port(), destination.port(), 1000, 64_000);
    if flags & 0x01 != 0 {
        builder = builder.fin();
    }
    if flags & SYN != 0 {
        builder = builder.syn();
    }
    if flags & RST != 0 {
        builder = builder.rst();
    }
    if flags & ACK != 0 {
        builder = builder.ack(77);
    }
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).unwrap();
    frame
}

/// The ICMP error of a router (203.0.113.1, MTU 1300) about a segment of `vip` to `client`, over IPv4.
pub(super) fn too_big(client: &str, vip: &str) -> Vec<u8> {
    let quoted = tcp(at(vip), at(client), ACK, &[0; 100]);
    let IpAddr::V4(to) = at(vip).ip() else { unreachable!("{vip} is IPv6") };
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([203, 0, 113, 1], to.octets(), 60)
        .icmpv4_raw(3, 4, [0, 0, 0x05, 0x14])
        .write(&mut frame, &quoted[14..])
        .unwrap();
    frame
}

pub(super) fn udp(source: SocketAddr, destination: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let builder = network(source, destination).udp(source.port(), destination.port());
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).unwrap();
    frame
}
