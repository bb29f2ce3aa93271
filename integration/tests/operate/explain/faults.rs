//! Packets that do not, or not where one would think: each fault is named.

use std::time::Instant;

use integration::topology::VIP_V4;
use integration::written::service;

use super::*;
use crate::bed::can_run;

#[test]
fn quick_a_quiesced_server_and_one_at_its_threshold_are_named_and_get_nothing() {
    if !can_run() {
        return;
    }
    let bed = empty(Kind::Nat);
    add(&bed, &["-s", "rr"], &["0", "1"]);
    let other = "10.77.0.12:80";
    ipvsadm(&bed, &["-e", "-t", VIP, "-r", other, "-m", "-w", "1", "-x", "1"]);
    let told = of_client(&bed, 42_001, &[]);
    told.said.names(&["10.77.0.11:80 weight 0, not to be chosen: weight 0"]);
    assert_eq!(told.server(), "server2");
    let held = connect_to_vip(&bed, 42_001).unwrap();
    let full = of_client(&bed, 42_002, &[]);
    full.said.names(&["no server may have it", "at its upper threshold"]);
    assert_eq!((full.outcome(), full.reason()), ("answered", "no_server"), "{:?}", full.said);
    let before = bed.director.verdicts("no_server").unwrap();
    assert!(connect_to_vip(&bed, 42_002).is_err(), "the server is full");
    assert!(bed.director.verdicts("no_server").unwrap() > before);
    assert_eq!(who(held), "server2");
    bed.director.stop().unwrap();
}

#[test]
fn quick_a_server_that_is_down_is_named_and_passed_over() {
    if !can_run() {
        return;
    }
    let check = "check = { type = \"tcp\", interval = \"200ms\", timeout = \"200ms\", fall = 2 }";
    let bed = Bed::with(
        Kind::Nat,
        &(top("copy") + &service(Kind::Nat, VIP_V4, 80, "rr", check, &[1, 1])),
    );
    bed.topology.servers[0].set_up("eth0", false).unwrap();
    let deadline = Instant::now() + SOON;
    while !bed.dirctl(&["servers"]).out.contains("down") {
        assert!(Instant::now() < deadline, "{:?}", bed.dirctl(&["servers"]));
        std::thread::sleep(Duration::from_millis(100));
    }
    for port in 42_001..42_004 {
        let told = of_client(&bed, port, &[]);
        told.said.names(&["10.77.0.11:80", "not to be chosen: down or draining"]);
        assert_eq!(told.server(), "server2");
        assert_eq!(who(connect_to_vip(&bed, port).unwrap()), "server2");
    }
    bed.director.stop().unwrap();
}

#[test]
fn quick_a_path_that_is_too_narrow_is_named_with_its_mtu() {
    if !can_run() {
        return;
    }
    let bed = empty(Kind::Nat);
    add(&bed, &["-s", "rr"], &["1"]);
    let ip = bed.topology.director.command("ip");
    let output =
        ip.args(["route", "add", "10.77.0.11/32", "dev", "eth0", "mtu", "1000"]).output(SOON);
    assert!(output.unwrap().status.success());
    let deadline = Instant::now() + SOON;
    while !of_client(&bed, 42_001, &[]).said.out.contains("MTU 1000") {
        assert!(Instant::now() < deadline, "the route is not followed");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut stream = connect_to_vip(&bed, 42_001).unwrap();
    let told = of_client(&bed, 42_001, &["--ack", "--data", "1400"]);
    assert_eq!((told.outcome(), told.reason()), ("answered", "too_big"), "{:?}", told.said);
    told.said.names(&["1440 bytes, and 1000 go through: too long", "its sender gets: ICMP"]);
    let before = bed.director.verdicts("too_big").unwrap();
    stream.write_all(&[b'x'; 1400]).unwrap();
    let deadline = Instant::now() + SOON;
    while bed.director.verdicts("too_big").unwrap() == before {
        assert!(Instant::now() < deadline, "the real packet was not too big");
        std::thread::sleep(Duration::from_millis(50));
    }
    bed.director.stop().unwrap();
}

#[test]
fn quick_a_missing_route_and_a_wrong_port_are_named() {
    if !can_run() {
        return;
    }
    let bed = empty(Kind::Nat);
    ipvsadm(&bed, &["-A", "-t", VIP, "-s", "rr"]);
    ipvsadm(&bed, &["-a", "-t", VIP, "-r", "203.0.113.9:80", "-m"]);
    let told = of_client(&bed, 42_001, &[]);
    assert_eq!((told.outcome(), told.reason()), ("dropped", "no_route"), "{:?}", told.said);
    told.said.names(&["the kernel has none to 203.0.113.9", "ip route get 203.0.113.9"]);
    let before = bed.director.verdicts("no_route").unwrap();
    assert!(connect_to_vip(&bed, 42_001).is_err());
    assert!(bed.director.verdicts("no_route").unwrap() > before);

    let wrong = explain(&bed, &["tcp", "192.0.2.100:42001", "192.0.2.10:81"]);
    assert_eq!((wrong.outcome(), wrong.reason()), ("passed", "not_steered"), "{:?}", wrong.said);
    wrong.said.names(&["steering", "leaves it to the kernel"]);
    let refused = connect(&bed.topology.client, client(42_003), "192.0.2.10:81".parse().unwrap());
    // The host's own stack says so, at once.
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
    bed.director.stop().unwrap();
}

#[test]
fn quick_a_server_that_does_not_answer_arp_is_named_as_the_reason() {
    if !can_run() {
        return;
    }
    let bed = empty(Kind::Nat);
    ipvsadm(&bed, &["-A", "-t", VIP, "-s", "rr"]);
    ipvsadm(&bed, &["-a", "-t", VIP, "-r", "10.77.0.99:80", "-m"]);
    let deadline = Instant::now() + SOON;
    let told = loop {
        let told = of_client(&bed, 42_001, &[]);
        if told.outcome() == "dropped" {
            break told;
        }
        assert!(Instant::now() < deadline, "{:?}", told.said);
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(told.reason(), "no_neighbour", "{:?}", told.said);
    told.said.names(&["10.77.0.99 is asked for on eth0 every two seconds and does not answer"]);
    let before = bed.director.verdicts("no_neighbour").unwrap();
    assert!(connect_to_vip(&bed, 42_001).is_err());
    // The packet itself waits for three seconds.
    let deadline = Instant::now() + SOON;
    while bed.director.verdicts("no_neighbour").unwrap() == before {
        assert!(Instant::now() < deadline, "the real packet was not lost");
        std::thread::sleep(Duration::from_millis(50));
    }
    bed.director.stop().unwrap();
}

#[test]
fn quick_what_is_no_packet_is_said_in_one_line() {
    if !can_run() {
        return;
    }
    let bed = empty(Kind::Nat);
    for words in [
        &["--hex", "zz"][..],
        &["--hex", "123"],
        &["--hex", "4500"],
        &["--hex", ""],
        &["--pcap", "/nowhere.pcap"],
        &["--pcap", "/dev/null"],
        &["tcp", "192.0.2.100:1", "[2001:db8::1]:80"],
        &["tcp", "192.0.2.100", "192.0.2.10:80"],
        &["udp", "192.0.2.100:1", "192.0.2.10:80", "--syn"],
        &["udp", "192.0.2.100:1", "192.0.2.10:80", "--config", "/nowhere.toml"],
    ] {
        let said = bed.dirctl(&[&["explain"], words].concat());
        assert_eq!(said.code, Some(64), "{words:?}: {said:?}");
        assert!(said.out.is_empty() && said.err.starts_with("dirctl: "), "{words:?}: {said:?}");
    }
    bed.director.stop().unwrap();
}
