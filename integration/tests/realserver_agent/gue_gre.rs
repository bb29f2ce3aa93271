//! GUE and GRE in all forms that a director sends, and damaged ones. Every byte behind the outer IP
//! header is made here.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use integration::lab::Lab;
use integration::topology::{self, DIRECTOR_INSIDE, Kind, Options, Topology, VIP_V4, VIP_V6};
use netio::raw::RawFamily;
use pnet::packet::udp::{self, MutableUdpPacket};

use super::{
    ECHO_PORT, LAB_BINARY, SECOND, can_run, client_socket, fold, from_client, send, start_echo,
    state, tunnel,
};

const GUE_PORT: u16 = 5555;

/// GUE header and packet in a UDP datagram from the director to server 2, its checksum right, 0, or
/// (`Checksum::Wrong`) one too many.
fn datagram(family: RawFamily, checksum: Checksum, header: &[u8], inner: &[u8]) -> Vec<u8> {
    let mut datagram = [&[0; 8], header, inner].concat();
    let length = datagram.len() as u16;
    let mut udp = MutableUdpPacket::new(&mut datagram).unwrap();
    udp.set_source(40001);
    udp.set_destination(GUE_PORT);
    udp.set_length(length);
    let place = usize::from(family == RawFamily::V6);
    let ends = (DIRECTOR_INSIDE[place], topology::server_addresses(2)[place]);
    let right = match ends {
        (IpAddr::V4(from), IpAddr::V4(to)) => udp::ipv4_checksum(&udp.to_immutable(), &from, &to),
        (IpAddr::V6(from), IpAddr::V6(to)) => udp::ipv6_checksum(&udp.to_immutable(), &from, &to),
        _ => unreachable!("both are of one family"),
    };
    udp.set_checksum(match checksum {
        Checksum::None => 0,
        Checksum::Right => right,
        Checksum::Wrong => right % 0xffff + 1,
    });
    datagram
}

#[derive(Clone, Copy, Debug)]
enum Checksum {
    None,
    Right,
    Wrong,
}

/// The forms of GUE and GRE that a director may send a packet in, and damaged ones: a name, the
/// outer protocol, what stands behind the outer header, and whether that is to be delivered.
fn forms(family: RawFamily, vip: IpAddr, payload: &[u8]) -> Vec<(&'static str, u8, Vec<u8>, bool)> {
    let whole = from_client(vip, payload, true);
    let partial = from_client(vip, payload, false);
    let v4 = vip.is_ipv4();
    let next = if v4 { 4 } else { 41 };
    let plain = [0, next, 0, 0];
    // Private flags, remote checksum: over the inner UDP datagram, into its field.
    let start = if v4 { 20 } else { 40 };
    let remote = [2, next, 0, 1, 0x80, 0, 0, 0, 0, start, 0, start + 6];
    let ether_type = if v4 { [0x08, 0x00] } else { [0x86, 0xdd] };
    let gre = |checksum: Option<u16>, inner: &[u8]| match checksum {
        None => [&[0, 0], &ether_type[..], inner].concat(),
        Some(sum) => [&[0x80, 0], &ether_type[..], &sum.to_be_bytes(), &[0, 0], inner].concat(),
    };
    let sum = !fold(&[&[0x80, 0], &ether_type, &whole]);
    let gue = |checksum, header: &[u8], inner: &[u8]| datagram(family, checksum, header, inner);
    vec![
        ("gue nocsum", 17, gue(Checksum::None, &plain, &whole), true),
        ("gue nocsum, inner partial", 17, gue(Checksum::None, &plain, &partial), true),
        ("gue csum", 17, gue(Checksum::Right, &plain, &whole), true),
        ("gue remcsum", 17, gue(Checksum::Right, &remote, &partial), true),
        ("gue remcsum, inner whole", 17, gue(Checksum::Right, &plain, &whole), true),
        ("gue, wrong checksum", 17, gue(Checksum::Wrong, &plain, &whole), false),
        ("gue, control message", 17, gue(Checksum::None, &[0x20, next, 0, 0], &whole), false),
        ("gre", 47, gre(None, &whole), true),
        ("gre, inner partial", 47, gre(None, &partial), true),
        ("gre csum", 47, gre(Some(sum), &whole), true),
        ("gre, wrong checksum", 47, gre(Some(sum ^ 1), &whole), false),
        ("gre, Ethernet inside", 47, [&[0, 0, 0x65, 0x58], &whole[..]].concat(), false),
    ]
}

#[test]
fn every_form_of_gue_and_gre_is_answered_from_the_vip_and_no_damaged_one() {
    if !can_run() {
        return;
    }
    let topology = Topology::build(Kind::Tunnel, &Options::default()).unwrap();
    let server = &topology.servers[1];
    let agent = server
        .command(LAB_BINARY)
        .args(["realserver-agent", "run", "--tunnel", &format!("gue:{GUE_PORT}")])
        .args(["--tunnel", "gre", "--tunnel", "ipip", "--from", "10.77.0.1/32"])
        .args(["--from", "fd77::1/128"])
        .args(["--vip", &VIP_V4.to_string(), "--vip", &VIP_V6.to_string()])
        .spawn()
        .unwrap();
    agent.wait_for_log("ready", SECOND * 5).unwrap();
    for vip in [VIP_V4, VIP_V6] {
        start_echo(server, vip);
        let client = client_socket(&topology, vip);
        for family in [RawFamily::V4, RawFamily::V6] {
            // 3000 bytes: the outer packet is fragmented and must be put together again.
            for size in [20, 3000] {
                for (name, protocol, bytes, good) in forms(family, vip, &vec![b'x'; size]) {
                    send(&topology.director, family, protocol, 2, &bytes);
                    if !good {
                        continue;
                    }
                    let mut answer = [0; 4000];
                    let (length, from) = client.recv_from(&mut answer).unwrap_or_else(|error| {
                        panic!("{name}: {vip} in {family:?}, {size} bytes: {error}")
                    });
                    assert_eq!(from, SocketAddr::new(vip, ECHO_PORT), "{name}");
                    assert_eq!(length, "server2 ".len() + size, "{name}");
                }
                // Nothing more comes: the damaged ones have not been answered.
                client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
                assert!(client.recv_from(&mut [0; 100]).is_err(), "a damaged packet was let in");
                client.set_read_timeout(Some(SECOND * 2)).unwrap();
            }
        }
    }
    let status = agent.stop().unwrap();
    assert!(status.success(), "{status}: {}", agent.log());
}

#[test]
fn a_type_of_tunnel_that_was_not_asked_for_is_not_unpacked() {
    if !can_run() {
        return;
    }
    let topology = Topology::build(Kind::Tunnel, &Options::default()).unwrap();
    topology.start_agents(LAB_BINARY.as_ref()).unwrap(); // For ipip.
    start_echo(&topology.servers[1], VIP_V4);
    let client = client_socket(&topology, VIP_V4);
    client.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    for (name, protocol, bytes, _) in forms(RawFamily::V4, VIP_V4, b"hello there") {
        send(&topology.director, RawFamily::V4, protocol, 2, &bytes);
        assert!(client.recv_from(&mut [0; 100]).is_err(), "{name}");
    }
    tunnel(&topology.director, RawFamily::V4, 2, &from_client(VIP_V4, b"hello there", true));
    assert!(client.recv_from(&mut [0; 100]).is_ok(), "ipip was asked for");
}

#[test]
fn a_gue_port_that_is_taken_is_named_and_nothing_stays_behind() {
    if !can_run() {
        return;
    }
    let lab = Lab::new("agent").unwrap();
    let server = lab.host("server").unwrap();
    let before = state(&server);
    let address = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), GUE_PORT);
    let _holder = server.run(|| UdpSocket::bind(address)).unwrap().unwrap();
    let agent = server
        .command(LAB_BINARY)
        .args(["realserver-agent", "run", "--vip", &VIP_V4.to_string()])
        .args(["--tunnel", &format!("gue:{GUE_PORT}")])
        .spawn()
        .unwrap();
    agent.wait_for_log(&format!("receive GUE on UDP port {GUE_PORT}"), SECOND * 5).unwrap();
    assert!(!agent.stop().unwrap().success());
    assert_eq!(state(&server), before);
}
