//! Holds the realserver-agent to its promises in real namespaces: what a director tunnels arrives,
//! the neighbours hear nothing of the VIP, and nothing stays behind. Needs root; says so and
//! passes otherwise.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use integration::lab::{Host, Lab, Process, supported};
use integration::ping::ping;
use integration::topology::{self, CLIENT, Kind, Options, Topology, VIP_V4, VIP_V6};
use netio::raw::{self, RawFamily};
use pnet::packet::ip::IpNextHeaderProtocols::Udp;
use pnet::packet::ipv4::{self, MutableIpv4Packet};
use pnet::packet::ipv6::MutableIpv6Packet;
use pnet::packet::udp::{self, MutableUdpPacket};

mod by_file;
mod gue_gre;

const LAB_BINARY: &str = env!("CARGO_BIN_EXE_switchyard-lab");
const SECOND: Duration = Duration::from_secs(1);
const CLIENT_PORT: u16 = 40000;
const ECHO_PORT: u16 = 7;

fn can_run() -> bool {
    match supported() {
        Ok(()) => true,
        Err(reason) => {
            println!("skipped: {reason:#}");
            false
        }
    }
}

/// A UDP datagram from the client to the VIP as a local veth would hand it on: the checksum field
/// holds only the pseudo-header sum, or (`whole`) the checksum.
fn from_client(vip: IpAddr, payload: &[u8], whole: bool) -> Vec<u8> {
    let mut datagram = vec![0; 8 + payload.len()];
    let length = datagram.len() as u16;
    let mut header = MutableUdpPacket::new(&mut datagram).unwrap();
    header.set_source(CLIENT_PORT);
    header.set_destination(ECHO_PORT);
    header.set_length(length);
    header.set_payload(payload);
    let (checksum, pseudo) = match (CLIENT[usize::from(vip.is_ipv6())], vip) {
        (IpAddr::V4(from), IpAddr::V4(to)) => (
            udp::ipv4_checksum(&header.to_immutable(), &from, &to),
            fold(&[&from.octets(), &to.octets(), &[0, 17], &length.to_be_bytes()]),
        ),
        (IpAddr::V6(from), IpAddr::V6(to)) => (
            udp::ipv6_checksum(&header.to_immutable(), &from, &to),
            fold(&[&from.octets(), &to.octets(), &[0, 17], &length.to_be_bytes()]),
        ),
        _ => unreachable!("the client has an address of the VIP's family"),
    };
    header.set_checksum(if whole { checksum } else { pseudo });
    match (CLIENT[usize::from(vip.is_ipv6())], vip) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut packet = vec![0; 20 + datagram.len()];
            let mut header = MutableIpv4Packet::new(&mut packet).unwrap();
            header.set_version(4);
            header.set_header_length(5);
            header.set_total_length(20 + length);
            header.set_ttl(63);
            header.set_next_level_protocol(Udp);
            header.set_source(from);
            header.set_destination(to);
            header.set_checksum(ipv4::checksum(&header.to_immutable()));
            header.set_payload(&datagram);
            packet
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut packet = vec![0; 40 + datagram.len()];
            let mut header = MutableIpv6Packet::new(&mut packet).unwrap();
            header.set_version(6);
            header.set_payload_length(length);
            header.set_hop_limit(63);
            header.set_next_header(Udp);
            header.set_source(from);
            header.set_destination(to);
            header.set_payload(&datagram);
            packet
        }
        _ => unreachable!("the client has an address of the VIP's family"),
    }
}

/// The one's complement sum of 16-bit words, not complemented.
fn fold(parts: &[&[u8]]) -> u16 {
    let words = parts.concat();
    let (pairs, odd) = words.as_chunks::<2>();
    let mut sum: u32 = pairs.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    sum += odd.first().map_or(0, |last| u32::from(*last) << 8);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// Sends the packet inside another one, as the director does, to the server's address of
/// `family`. The kernel writes the outer header.
fn tunnel(director: &Host, family: RawFamily, server: usize, inner: &[u8]) {
    let protocol = if inner[0] >> 4 == 4 { 4 } else { 41 };
    send(director, family, protocol, server, inner);
}

/// Sends what stands behind an outer IP header to the server's address of `family`.
fn send(director: &Host, family: RawFamily, protocol: u8, server: usize, bytes: &[u8]) {
    let [v4, v6] = topology::server_addresses(server);
    let address = if family == RawFamily::V4 { v4 } else { v6 };
    director
        .run(|| {
            let socket = raw::open(family, protocol).unwrap();
            socket.send_to(bytes, SocketAddr::new(address, 0)).unwrap();
        })
        .unwrap();
}

fn client_socket(topology: &Topology, vip: IpAddr) -> UdpSocket {
    let address = SocketAddr::new(CLIENT[usize::from(vip.is_ipv6())], CLIENT_PORT);
    let socket = topology.client.run(|| UdpSocket::bind(address)).unwrap().unwrap();
    socket.set_read_timeout(Some(SECOND * 2)).unwrap();
    socket
}

/// An echo server for the VIP on `server`.
fn start_echo(server: &Host, vip: IpAddr) -> Process {
    let listen = SocketAddr::new(vip, ECHO_PORT).to_string();
    let echo = server
        .command(LAB_BINARY)
        .args(["serve-udp-echo", "--name", server.name(), "--listen", &listen])
        .spawn()
        .unwrap();
    echo.wait_for_log("echoes on", SECOND * 5).unwrap();
    echo
}

#[test]
fn what_is_tunnelled_is_answered_from_the_vip_in_all_four_encapsulations() {
    if !can_run() {
        return;
    }
    let topology = Topology::build(Kind::Tunnel, &Options::default()).unwrap();
    topology.start_agents(LAB_BINARY.as_ref()).unwrap();
    for vip in [VIP_V4, VIP_V6] {
        let server = &topology.servers[1];
        start_echo(server, vip);
        let client = client_socket(&topology, vip);
        for family in [RawFamily::V4, RawFamily::V6] {
            for whole in [true, false] {
                // 3000 bytes: the outer packet is fragmented and must be put together again.
                for size in [20, 3000] {
                    let payload = vec![b'x'; size];
                    let inner = from_client(vip, &payload, whole);
                    tunnel(&topology.director, family, 2, &inner);
                    let mut answer = [0; 4000];
                    let (length, from) = client.recv_from(&mut answer).unwrap_or_else(|error| {
                        panic!("{vip} in {family:?}, whole={whole}, {size} bytes: {error}")
                    });
                    assert_eq!(from, SocketAddr::new(vip, ECHO_PORT));
                    assert_eq!(answer[..length], [b"server2 ", payload.as_slice()].concat());
                }
            }
        }
    }
}

#[test]
fn a_server_without_agent_does_not_unpack() {
    if !can_run() {
        return;
    }
    let topology = Topology::build(Kind::Tunnel, &Options::default()).unwrap();
    start_echo(&topology.servers[0], VIP_V4);
    let client = client_socket(&topology, VIP_V4);
    let inner = from_client(VIP_V4, b"hello there", true);
    tunnel(&topology.director, RawFamily::V4, 1, &inner);
    client.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(client.recv_from(&mut [0; 100]).is_err());
}

/// Addresses of `lo`, the settings the agent may change, and the interfaces.
fn state(host: &Host) -> String {
    host.run(|| {
        let mut state = String::new();
        let mut interfaces: Vec<_> = std::fs::read_dir("/sys/class/net")
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        interfaces.sort();
        state += &format!("{interfaces:?}\n");
        for interface in nix::ifaddrs::getifaddrs().unwrap() {
            if let Some(address) = interface.address {
                state += &format!("{} {address}\n", interface.interface_name);
            }
        }
        for key in ["arp_ignore", "arp_announce", "rp_filter"] {
            let path = format!("/proc/sys/net/ipv4/conf/all/{key}");
            state += &format!("{key} {}", std::fs::read_to_string(path).unwrap());
        }
        state
    })
    .unwrap()
}

#[test]
fn the_agent_is_quiet_about_its_vips_and_puts_everything_back() {
    if !can_run() {
        return;
    }
    let lab = Lab::new("agent").unwrap();
    let (client, server) = (lab.host("client").unwrap(), lab.host("server").unwrap());
    let wire = lab.segment("wire").unwrap();
    for (host, last) in [(&client, 1), (&server, 2)] {
        let addresses = [format!("192.0.2.{last}/24"), format!("2001:db8:1::{last}/64")];
        lab.connect(host, &wire, "eth0", &addresses.each_ref().map(String::as_str)).unwrap();
    }
    server.sysctl("net.ipv4.conf.all.rp_filter", "1").unwrap();
    server.add_address("lo", &VIP_V6.to_string()).unwrap(); // By the operator: must survive.
    let before = state(&server);
    for tunnel in [&[][..], &["--tunnel", "ipip"]] {
        let agent = server
            .command(LAB_BINARY)
            .args(["realserver-agent", "run"])
            .args(["--vip", &VIP_V4.to_string(), "--vip", &VIP_V6.to_string()])
            .args(tunnel)
            .spawn()
            .unwrap();
        agent.wait_for_log("ready", SECOND * 5).unwrap();
        let during = state(&server);
        assert_ne!(during, before);
        assert_eq!(during.contains("switchyard0"), !tunnel.is_empty(), "{during}");
        server.run(|| ping(VIP_V4, 0, SECOND)).unwrap().unwrap();
        for vip in [VIP_V4, VIP_V6] {
            let asked = client.run(|| ping(vip, 0, Duration::from_millis(300))).unwrap();
            assert!(asked.is_err(), "the agent's host answers for {vip}");
        }
        let status = agent.stop().unwrap();
        assert!(status.success(), "{status}: {}", agent.log());
        assert_eq!(state(&server), before);
    }
}
