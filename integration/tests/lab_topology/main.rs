//! Holds the lab to its promises: hosts of a lab reach each other, hosts of two labs do not, and
//! nothing stays behind, however a lab ends. Needs root; says so and passes otherwise.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};
use integration::http::Plan;
use integration::lab::{Host, Lab, Link, Mac, supported};
use integration::ping::ping;
use integration::topology::{self, Kind, Options, Topology};

mod vanishing;

const LAB_BINARY: &str = env!("CARGO_BIN_EXE_switchyard-lab");
const SECOND: Duration = Duration::from_secs(1);

/// Whether to run; prints why not.
fn can_run() -> bool {
    match supported() {
        Ok(()) => true,
        Err(reason) => {
            println!("skipped: {reason:#}");
            false
        }
    }
}

/// A few bytes there and back over TCP.
fn converse(client: &Host, server: &Host, address: IpAddr) -> Result<()> {
    let listener = server.run(|| TcpListener::bind((address, 0)))??;
    let target = listener.local_addr()?;
    let mut asking = client
        .run(|| TcpStream::connect_timeout(&target, SECOND))?
        .with_context(|| format!("connect to {target}"))?;
    let (mut answering, _) = listener.accept()?;
    for stream in [&asking, &answering] {
        stream.set_read_timeout(Some(SECOND))?;
    }
    let mut received = [0; 5];
    asking.write_all(b"hello")?;
    answering.read_exact(&mut received)?;
    answering.write_all(&received)?;
    received.fill(0);
    asking.read_exact(&mut received)?;
    assert_eq!(&received, b"hello");
    Ok(())
}

#[test]
fn a_cable_joins_two_hosts_and_nobody_else() {
    if !can_run() {
        return;
    }
    let lab = Lab::new("cable").unwrap();
    let [left, right, other] = ["left", "right", "other"].map(|name| lab.host(name).unwrap());
    // The same name at both ends, and a MAC address of one's own choice.
    let mac = Mac([2, 0, 0, 0, 7, 7]);
    let near = Link::new("eth0").addresses(&["192.0.2.1/24", "2001:db8::1/64"]).unwrap().mac(mac);
    let far = Link::new("eth0").addresses(&["192.0.2.2/24", "2001:db8::2/64"]).unwrap();
    lab.cable([&left, &right], &near, &far).unwrap();
    for address in ["192.0.2.2", "2001:db8::2"] {
        converse(&left, &right, address.parse().unwrap()).unwrap();
    }
    assert_eq!(left.mac("eth0").unwrap(), mac);
    assert!(other.mac("eth0").is_err(), "a third host has no part in it");
    assert!(lab.cable([&left, &other], &near, &far).is_err(), "eth0 is there already");
    assert!(other.mac("eth0").is_err(), "and nothing is left of the attempt");
}

/// Without a director translating, the client needs a way back to the servers' networks.
fn route_client_to_servers(topology: &Topology) {
    for (network, gateway) in [("10.77.0.0/24", "192.0.2.1"), ("fd77::/64", "2001:db8:1::1")] {
        topology.client.route(network, gateway).unwrap();
    }
}

#[test]
fn hosts_of_a_segment_reach_each_other_at_once() {
    if !can_run() {
        return;
    }
    let topology = Topology::build(Kind::Nat, &Options::default()).unwrap();
    let (client, director) = (&topology.client, &topology.director);
    for address in topology::CLIENT {
        // The very first packet after building: no waiting for duplicate address detection.
        director.run(|| ping(address, 56, SECOND)).unwrap().unwrap();
        converse(director, client, address).unwrap();
    }
    route_client_to_servers(&topology);
    for (number, server) in (1..).zip(&topology.servers) {
        for address in topology::server_addresses(number) {
            director.run(|| ping(address, 1400, SECOND)).unwrap().unwrap();
            converse(director, server, address).unwrap();
            // By way of the director, which routes, and back by the servers' default route.
            converse(client, server, address).unwrap();
        }
    }
}

#[test]
fn two_armed_servers_are_reached_only_through_the_director() {
    if !can_run() {
        return;
    }
    let topology = Topology::build(Kind::NatTwoArmed, &Options::default()).unwrap();
    route_client_to_servers(&topology);
    let server = &topology.servers[0];
    for address in topology::CLIENT {
        converse(server, &topology.client, address).unwrap();
    }
    topology.director.set_up("eth1", false).unwrap();
    for address in topology::CLIENT {
        let past_it = converse(server, &topology.client, address);
        assert!(past_it.is_err(), "{address} is reached past the director");
    }
}

#[test]
fn labs_at_the_same_time_do_not_meet() {
    if !can_run() {
        return;
    }
    let (one, other) = (Lab::new("one").unwrap(), Lab::new("other").unwrap());
    assert_ne!(one.tag(), other.tag());
    let mut hosts = Vec::new();
    for lab in [&one, &other] {
        let (host, wire) = (lab.host("client").unwrap(), lab.segment("wire").unwrap());
        let last = if lab.tag() == one.tag() { 1 } else { 2 };
        let addresses = [format!("192.0.2.{last}/24"), format!("2001:db8::{last}/64")];
        lab.connect(&host, &wire, "eth0", &addresses.each_ref().map(String::as_str)).unwrap();
        hosts.push(host);
    }
    for target in ["192.0.2.2", "2001:db8::2"] {
        let target = target.parse().unwrap();
        assert!(hosts[1].run(|| ping(target, 0, SECOND)).unwrap().is_ok());
        let limit = Duration::from_millis(300);
        assert!(hosts[0].run(|| ping(target, 0, limit)).unwrap().is_err());
    }
    let wire = other.segment("wire2").unwrap();
    assert!(one.connect(&hosts[0], &wire, "eth1", &[]).is_err());
}

#[test]
fn a_link_has_the_queues_mtu_and_mac_asked_for() {
    if !can_run() {
        return;
    }
    let lab = Lab::new("link").unwrap();
    let (host, wire) = (lab.host("director").unwrap(), lab.segment("wire").unwrap());
    let mac: Mac = "02:00:00:00:00:09".parse().unwrap();
    lab.connect_with(&host, &wire, &Link::new("eth0").queues(3).mtu(3500).mac(mac)).unwrap();
    assert_eq!(host.mac("eth0").unwrap(), mac);
    for (host, interface) in [(&host, "eth0"), (wire.host(), "director-eth0")] {
        let device = format!("/sys/class/net/{interface}");
        let (queues, mtu) = host
            .run(|| {
                let queues: Vec<_> = std::fs::read_dir(format!("{device}/queues"))
                    .unwrap()
                    .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                    .collect();
                (queues, std::fs::read_to_string(format!("{device}/mtu")).unwrap())
            })
            .unwrap();
        assert_eq!(mtu.trim(), "3500");
        for direction in ["rx-", "tx-"] {
            let count = queues.iter().filter(|name| name.starts_with(direction)).count();
            assert_eq!(count, 3, "{direction} of {interface}: {queues:?}");
        }
    }
}

#[test]
fn an_offload_is_switched_on_the_host_named() {
    if !can_run() {
        return;
    }
    use netio::ethtool::{Offload, offload};
    let topology = Topology::build(Kind::Nat, &Options::default()).unwrap();
    let is_on = |host: &Host| host.run(|| offload("eth0", Offload::TxChecksum)).unwrap().unwrap();
    assert!(is_on(&topology.client));
    topology.client.offload("eth0", Offload::TxChecksum, false).unwrap();
    assert!(!is_on(&topology.client));
    assert!(is_on(&topology.director));
}

#[test]
fn a_server_does_not_answer_for_the_vip_on_its_loopback() {
    if !can_run() {
        return;
    }
    let topology = Topology::build(Kind::Direct, &Options::default()).unwrap();
    let server = &topology.servers[0];
    // The director, the only one who may answer, is silent: the client must find nobody.
    topology.director.set_up("eth0", false).unwrap();
    for vip in [topology::VIP_V4, topology::VIP_V6] {
        let limit = Duration::from_millis(500);
        let asked = topology.client.run(|| ping(vip, 0, limit)).unwrap();
        assert!(asked.is_err(), "a server answered for {vip}");
        // And yet it has it: a client that is told where reaches it.
        let mac = server.mac("eth0").unwrap();
        topology.client.neighbour("eth0", vip, mac).unwrap();
        topology.client.run(|| ping(vip, 0, SECOND)).unwrap().unwrap();
    }
}

#[test]
fn without_arp_ignore_a_server_takes_the_vip() {
    if !can_run() {
        return;
    }
    let topology = Topology::build(Kind::Direct, &Options::default()).unwrap();
    topology.director.set_up("eth0", false).unwrap();
    topology.servers[0].sysctl("net.ipv4.conf.all.arp_ignore", "0").unwrap();
    topology.client.run(|| ping(topology::VIP_V4, 0, SECOND)).unwrap().unwrap();
}

#[test]
fn every_server_serves_its_name_over_both_families() {
    if !can_run() {
        return;
    }
    let topology = Topology::build(Kind::Nat, &Options::default()).unwrap();
    topology.start_web(LAB_BINARY.as_ref(), 80, 3000).unwrap();
    route_client_to_servers(&topology);
    for number in 1..=3 {
        for address in topology::server_addresses(number) {
            let plan = Plan::new(SocketAddr::new(address, 80), 20);
            let mut reported = 0;
            let tally = topology.fetch(&plan, |progress| reported = progress.done).unwrap();
            assert_eq!(tally.by_server.get(&format!("server{number}")), Some(&20), "{tally:?}");
            assert_eq!((tally.failed(), tally.bytes, reported), (0, 20 * 3000, 20));
        }
    }
    // A port where nobody listens is an error with a name, not a hang.
    let plan = Plan::new(SocketAddr::new(topology::server_addresses(1)[0], 81), 3);
    let tally = topology.fetch(&plan, |_| {}).unwrap();
    assert_eq!((tally.answered(), tally.failed()), (0, 3));
    assert!(tally.errors.keys().all(|error| error.contains("refused")), "{tally:?}");
}

#[test]
fn udp_echo_names_the_server() {
    if !can_run() {
        return;
    }
    let topology = Topology::build(Kind::Nat, &Options::default()).unwrap();
    let (director, server) = (&topology.director, &topology.servers[1]);
    for address in topology::server_addresses(2) {
        let target = SocketAddr::new(address, 5353);
        let echo = server
            .command(LAB_BINARY)
            .args(["serve-udp-echo", "--name", "server2", "--listen", &target.to_string()])
            .spawn()
            .unwrap();
        echo.wait_for_log("echoes on", SECOND * 5).unwrap();
        let output = director
            .command(LAB_BINARY)
            .args(["send-udp", &target.to_string(), "--count", "5", "--json"])
            .output(SECOND * 10)
            .unwrap();
        let tally = String::from_utf8(output.stdout).unwrap();
        assert_eq!(tally.trim(), r#"{"by_server":{"server2":5},"lost":0}"#);
    }
}
