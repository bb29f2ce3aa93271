//! The short way decides as the long way does.

use std::net::IpAddr;
use std::time::Duration;

use forwarding::Packet;
use proptest::prelude::*;

use super::bed::{ACK, Bed, FIN_ACK, OneLink, RST, SYN, SYN_ACK, at, key, server, tcp, udp};
use crate::control::api::{Forwarding, Persistence, Protocol, ServiceKey, Tunnel, TunnelChecksum};
use crate::control::operations::Command;
use crate::dispatch::Routes;
use crate::dispatch::connections::Binding;
use crate::dispatch::established::{Exit, Exits, Moment};
use crate::dispatch::verdict::Verdict;
use crate::health::servers::Servers;

impl Exits for OneLink {
    fn to_server(&mut self, binding: &Binding) -> Option<Exit> {
        self.to_client(binding.address)
    }

    fn to_client(&mut self, client: IpAddr) -> Option<Exit> {
        let path = self.path(client)?;
        let to = mac(path.next_hop);
        let mut addresses = [2; 12];
        addresses[..6].copy_from_slice(&to);
        Some(Exit { mtu: path.mtu, source: path.source, port: 0, addresses })
    }
}

/// The MAC address of a next hop.
fn mac(address: IpAddr) -> [u8; 6] {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            [2, 0, a, b, c, d]
        }
        IpAddr::V6(v6) => {
            let [.., a, b, c, d, e] = v6.octets();
            [6, a, b, c, d, e]
        }
    }
}

/// What came out: the verdict, where it goes, bytes without padding.
type Outcome = (Verdict, Option<[u8; 6]>, Vec<u8>);

impl Bed {
    /// The frame by the short way, if it takes that.
    fn carry(&mut self, frame: &[u8]) -> Option<Outcome> {
        self.dispatcher.refresh();
        let mut chunk = vec![0; 4096];
        chunk[256..256 + frame.len()].copy_from_slice(frame);
        let mut sighting = self.dispatcher.sight(frame)?;
        self.dispatcher.locate(&mut sighting);
        let mut packet = Packet::new(&mut chunk, 256, frame.len());
        let moment = Moment::of(self.now);
        let carried = self.dispatcher.carry(moment, &mut self.routes, &mut packet, &sighting);
        let Some(carried) = carried else {
            assert_eq!(packet.bytes(), frame, "what is left to the long way is untouched");
            return None;
        };
        self.dispatcher.settle();
        let mut bytes = packet.bytes()[..carried.end].to_vec();
        let to = bytes.first_chunk().copied();
        // The long way leaves them to the worker.
        bytes[..12].copy_from_slice(&frame[..12]);
        let headers = forwarding::parse(&bytes).unwrap();
        let path = self.routes.path(headers.destination).unwrap();
        let (method, partial) = (carried.method, carried.partial);
        Some((Verdict::Transmit { method, path, partial, headers }, to, bytes))
    }

    fn long(&mut self, frame: &[u8]) -> Outcome {
        let mut out = self.handle(frame);
        let (to, end) = match &mut out.verdict {
            Verdict::Transmit { path, headers, .. } => {
                let to = mac(path.next_hop);
                path.next_hop = headers.destination;
                (Some(to), headers.end)
            }
            _ => (None, out.frame.len()),
        };
        (out.verdict, to, out.frame[..end].to_vec())
    }

    /// Everything that can be seen of it.
    fn state(&self) -> String {
        let mut connections: Vec<_> = (0..)
            .map_while(|part| self.table.connection_views(part, Duration::ZERO))
            .flatten()
            .map(|view| format!("{view:?}"))
            .collect();
        connections.sort();
        format!("{:#?} {connections:#?}", self.table.service_views())
    }
}

const VIP: &str = "192.0.2.10:80";
const VIP6: &str = "[2001:db8::10]:80";
const DNS: &str = "192.0.2.10:53";

/// A bed with each method, both families, TCP and UDP.
fn bed() -> Bed {
    let bed = Bed::new();
    let methods = [
        (Forwarding::Nat, Tunnel::Ipip),
        (Forwarding::Direct, Tunnel::Ipip),
        (Forwarding::Tunnel, Tunnel::Ipip),
        (Forwarding::Tunnel, Tunnel::Gre { checksum: TunnelChecksum::Csum }),
    ];
    for (protocol, vip, servers) in [
        (Protocol::Tcp, VIP, ["10.0.0.1:8080", "10.0.0.2:80", "10.0.0.3:80", "[fd00::4]:80"]),
        (Protocol::Tcp, VIP6, ["[fd00::1]:8080", "[fd00::2]:80", "[fd00::3]:80", "10.0.0.4:80"]),
        (Protocol::Udp, DNS, ["10.0.0.1:5353", "10.0.0.2:53", "10.0.0.3:53", "[fd00::4]:53"]),
    ] {
        let service: ServiceKey = key(protocol, vip);
        bed.apply(Command::AddService { service: super::bed::service(service, "rr") });
        for (address, (forwarding, tunnel)) in servers.into_iter().zip(methods) {
            let mut server = server(address, forwarding);
            server.tunnel = tunnel;
            bed.apply(Command::AddServer { service, server });
        }
    }
    bed
}

#[test]
fn established_packets_of_every_method_take_the_short_way_and_others_do_not() {
    let mut bed = bed();
    for client in ["198.51.100.1:4000", "198.51.100.2:4000", "198.51.100.3:4000", "198.51.100.4:4"]
    {
        let segment = |flags| tcp(at(client), at(VIP), flags, b"data");
        assert!(bed.carry(&segment(SYN)).is_none(), "nothing is known of it");
        bed.handle(&segment(SYN));
        assert!(bed.carry(&segment(ACK)).is_none(), "not established");
        bed.handle(&segment(ACK));
        assert!(bed.carry(&segment(ACK)).is_some(), "{client}");
        for flags in [SYN, FIN_ACK, RST, SYN_ACK, 0] {
            assert!(bed.carry(&segment(flags)).is_none(), "{flags:x}");
        }
    }
    let datagram = udp(at("198.51.100.1:4000"), at(DNS), b"query");
    assert!(bed.carry(&datagram).is_none());
    bed.handle(&datagram);
    assert!(bed.carry(&datagram).is_some());
}

#[test]
fn no_packet_of_a_dead_connection_takes_the_short_way() {
    let mut bed = bed();
    let clients = [1, 2, 3, 4].map(|last| format!("198.51.100.{last}:4000"));
    let segment = |client: &str| tcp(at(client), at(VIP), ACK, b"data");
    for client in &clients {
        bed.handle(&tcp(at(client), at(VIP), SYN, b""));
        bed.handle(&segment(client));
        bed.handle(&segment(client));
    }
    let by_nat = clients
        .iter()
        .find(|client| bed.carry(&tcp(at("10.0.0.1:8080"), at(client), ACK, b"answer")).is_some());
    let answer = tcp(at("10.0.0.1:8080"), at(by_nat.unwrap()), ACK, b"answer");
    for client in &clients {
        assert!(bed.carry(&segment(client)).is_some());
    }
    let lost = ["10.0.0.1:8080", "10.0.0.2:80", "10.0.0.3:80", "[fd00::4]:80"];
    for server in lost {
        assert!(bed.table.lose(&key(Protocol::Tcp, VIP), at(server), true, bed.now));
    }
    assert!(bed.carry(&answer).is_none());
    for client in &clients {
        assert!(bed.carry(&segment(client)).is_none());
    }
}

/// What more than the slot knows of has to be looked at, and may change.
#[test]
fn control_connections_and_what_awaits_its_first_answer_go_the_long_way() {
    const FTP: &str = "192.0.2.10:21";
    let client = "198.51.100.1:4000";
    let mut bed = Bed::with(key(Protocol::Tcp, FTP), &[("10.0.0.1:21", Forwarding::Nat)]);
    bed.establish(client, FTP);
    for frame in [
        tcp(at(client), at(FTP), ACK, b"PORT 198,51,100,1,4,1\r\n"),
        tcp(at("10.0.0.1:21"), at(client), ACK, b"227 Entering Passive Mode (10,0,0,1,195,80)\r\n"),
    ] {
        assert!(bed.carry(&frame).is_none());
        assert!(bed.handle(&frame).is_sent());
    }

    let mut spec = super::bed::service(key(Protocol::Udp, DNS), "rr");
    spec.persistence = Some(Persistence { timeout: 300, prefix: 32, engine: None });
    let mut bed = Bed::new();
    bed.apply(Command::AddService { service: spec });
    let server = server("10.0.0.1:53", Forwarding::Nat);
    bed.apply(Command::AddServer { service: key(Protocol::Udp, DNS), server });
    let (query, answer) =
        (udp(at(client), at(DNS), b"query"), udp(at("10.0.0.1:53"), at(client), b"answer"));
    bed.handle(&query);
    assert!(bed.carry(&query).is_none(), "its template is not assured");
    assert!(bed.carry(&answer).is_none());
    bed.handle(&answer);
    assert!(bed.carry(&query).is_some() && bed.carry(&answer).is_some());
}

/// One step of somebody's.
#[derive(Clone, Debug)]
enum Step {
    Segment { client: u8, v6: bool, flags: u8, ttl: u8, len: usize },
    Answer { client: u8, v6: bool, flags: u8 },
    Datagram { client: u8, ttl: u8 },
    UdpAnswer { client: u8 },
    Wait(u64),
    Quiesce,
    Remove,
    Lose,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let flags = prop::sample::select(vec![SYN, ACK, ACK, ACK, ACK, FIN_ACK, RST, SYN_ACK, 0]);
    let segment = (
        0u8..5,
        any::<bool>(),
        flags.clone(),
        0u8..5,
        prop::sample::select(vec![0, 9, 1440, 1470]),
    )
        .prop_map(|(client, v6, flags, ttl, len)| Step::Segment {
            client,
            v6,
            flags,
            ttl,
            len,
        });
    let answer = (0u8..5, any::<bool>(), flags).prop_map(|(client, v6, flags)| Step::Answer {
        client,
        v6,
        flags,
    });
    let step = prop_oneof![
        12 => segment,
        6 => answer,
        4 => (0u8..5, 0u8..4).prop_map(|(client, ttl)| Step::Datagram { client, ttl }),
        2 => (0u8..5).prop_map(|client| Step::UdpAnswer { client }),
        2 => (0u64..200).prop_map(|tenths| Step::Wait(tenths * 100 + 7)),
        1 => Just(Step::Quiesce),
        1 => Just(Step::Remove),
        2 => Just(Step::Lose),
    ];
    prop::collection::vec(step, 1..80)
}

fn with_ttl(mut frame: Vec<u8>, ttl: u8) -> Vec<u8> {
    // Mostly the usual one.
    let ttl = if ttl == 0 { 1 } else { 64 };
    match frame[12..14] {
        [0x08, 0x00] => {
            frame[22] = ttl;
            frame[24..26].fill(0);
            let sum = forwarding::checksum::Sum::default().bytes(&frame[14..34]).checksum();
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        _ => frame[21] = ttl,
    }
    frame
}

fn frame(step: &Step) -> Option<Vec<u8>> {
    let client = |number: u8, v6: bool| match v6 {
        false => at(&format!("198.51.100.{number}:4000")),
        true => at(&format!("[2001:db8:7::{number}]:4000")),
    };
    let vip = |v6: bool| at(if v6 { VIP6 } else { VIP });
    Some(match *step {
        Step::Segment { client: number, v6, flags, ttl, len } => {
            with_ttl(tcp(client(number, v6), vip(v6), flags, &vec![7; len]), ttl)
        }
        Step::Answer { client: number, v6, flags } => {
            let server = at(if v6 { "[fd00::1]:8080" } else { "10.0.0.1:8080" });
            tcp(server, client(number, v6), flags, b"answer")
        }
        Step::Datagram { client: number, ttl } => {
            with_ttl(udp(client(number, false), at(DNS), b"query"), ttl)
        }
        Step::UdpAnswer { client: number } => {
            udp(at("10.0.0.1:5353"), client(number, false), b"answer")
        }
        Step::Wait(_) | Step::Quiesce | Step::Remove | Step::Lose => return None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn both_ways_lead_to_the_same_packets_states_times_and_counts(steps in steps()) {
        let (mut short, mut long) = (bed(), bed());
        for step in &steps {
            match (frame(step), step) {
                (Some(frame), _) => {
                    let expected = long.long(&frame);
                    let outcome = short.carry(&frame).unwrap_or_else(|| short.long(&frame));
                    prop_assert_eq!(outcome, expected, "{:?}", step);
                }
                (None, Step::Wait(milliseconds)) => {
                    let time = Duration::from_millis(*milliseconds);
                    short.wait(time);
                    long.wait(time);
                }
                (None, Step::Lose) => {
                    for bed in [&short, &long] {
                        for (protocol, vip, server) in [
                            (Protocol::Tcp, VIP, "10.0.0.1:8080"),
                            (Protocol::Tcp, VIP6, "[fd00::2]:80"),
                            (Protocol::Udp, DNS, "10.0.0.1:5353"),
                        ] {
                            let lost = bed.table.lose(&key(protocol, vip), at(server), true, bed.now);
                            prop_assert!(lost);
                        }
                    }
                }
                (None, _) => {
                    let service = key(Protocol::Tcp, VIP);
                    for bed in [&short, &long] {
                        let server = at("10.0.0.2:80");
                        let command = match step {
                            Step::Quiesce => {
                                let mut quiet = super::bed::server("10.0.0.1:8080", Forwarding::Nat);
                                quiet.weight = 0;
                                Command::EditServer { service, server: quiet }
                            }
                            _ => Command::DeleteServer { service, server },
                        };
                        // Twice is once too often.
                        let _ = bed.table.change(command, bed.now);
                    }
                }
            }
            prop_assert_eq!(short.state(), long.state(), "after {:?}", step);
        }
    }
}
