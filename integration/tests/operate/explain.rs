//! What `dirctl explain` says of a packet, and what then happens to the real one: on healthy services
//! and on the faults that operators meet.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use integration::cluster::{self, Cluster};
use integration::lab::Host;
use integration::programs;
use integration::topology::{CLIENT, Kind, Options, VIP_V4, server_addresses};
use integration::written::{service, top};
use serde_json::Value;

use crate::bed::{Bed, Said, can_run, dirctl, lay};

const SOON: Duration = Duration::from_secs(30);
const VIP: &str = "192.0.2.10:80";

/// An explanation, for a script and for a person.
struct Told {
    said: Said,
    json: Value,
}

impl Told {
    fn outcome(&self) -> &str {
        self.json["outcome"].as_str().unwrap()
    }

    fn reason(&self) -> &str {
        self.json["reason"].as_str().unwrap()
    }

    /// A field of the packet as it would leave.
    fn becomes(&self, field: &str) -> Option<&str> {
        let changes = self.json["changes"].as_array().unwrap();
        changes.iter().find(|change| change["field"] == field)?["after"].as_str()
    }

    /// The server that the packet would go to.
    fn server(&self) -> String {
        let to = self.becomes("IP destination").unwrap_or_else(|| panic!("{:?}", self.said));
        server_name(to)
    }
}

/// `server1` of 10.77.0.11.
fn server_name(address: &str) -> String {
    let number = (1..=9).find(|&number| server_addresses(number)[0].to_string() == address);
    format!("server{}", number.unwrap_or_else(|| panic!("{address} is no server")))
}

/// Asks twice, and fails when the two do not agree: the first has changed something.
#[track_caller]
fn explain(bed: &Bed, words: &[&str]) -> Told {
    let of = |more: &[&str]| bed.dirctl(&[&["explain"], words, more].concat());
    let (json, said) = (of(&["--json"]), of(&[]));
    assert_eq!(json.code, said.code, "{json:?}\n{said:?}");
    let json: Value = serde_json::from_str(&json.out).unwrap_or_else(|_| panic!("{json:?}"));
    said.names(&[json["meaning"].as_str().unwrap(), json["reason"].as_str().unwrap()]);
    let code = match json["outcome"].as_str().unwrap() {
        "forwarded" | "answered" => 0,
        "dropped" => 1,
        "passed" => 4,
        other => panic!("{other}"),
    };
    assert_eq!(said.code, Some(code), "{said:?}");
    Told { said, json }
}

fn client(port: u16) -> SocketAddr {
    SocketAddr::new(CLIENT[0], port)
}

/// Of a packet of the client from this port to the web service.
#[track_caller]
fn of_client(bed: &Bed, port: u16, more: &[&str]) -> Told {
    let from = client(port).to_string();
    explain(bed, &[&["tcp", &from, VIP], more].concat())
}

/// A connection from this port.
fn connect(host: &Host, from: SocketAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let attempt = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4()?;
            socket.set_reuseaddr(true)?;
            socket.bind(from)?;
            let connect = tokio::time::timeout(Duration::from_secs(3), socket.connect(to));
            let stream = connect.await.map_err(|_| std::io::ErrorKind::TimedOut)??.into_std()?;
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(SOON))?;
            Ok(stream)
        })
    };
    host.run(attempt).unwrap()
}

fn connect_to_vip(bed: &Bed, port: u16) -> std::io::Result<TcpStream> {
    connect(&bed.topology.client, client(port), VIP.parse().unwrap())
}

/// Who answers on a connection, which is used up by that.
fn who(mut stream: TcpStream) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).to_lowercase();
    let name = answer.lines().find_map(|line| line.strip_prefix("x-server: "));
    name.unwrap_or_else(|| panic!("{answer}")).trim().to_owned()
}

/// A director without services, for `ipvsadm`.
fn empty(kind: Kind) -> Bed {
    Bed::with(kind, &top("copy"))
}

fn ipvsadm(bed: &Bed, words: &[&str]) {
    bed.director.ipvsadm(words).unwrap();
}

/// The web service over servers of these weights.
fn add(bed: &Bed, more: &[&str], weights: &[&str]) {
    ipvsadm(bed, &[&["-A", "-t", VIP], more].concat());
    for (number, weight) in (1..).zip(weights) {
        let server = SocketAddr::new(server_addresses(number)[0], 80).to_string();
        ipvsadm(bed, &["-a", "-t", VIP, "-r", &server, "-m", "-w", weight]);
    }
}

#[test]
fn quick_the_server_that_is_foretold_answers_with_every_scheduler() {
    if !can_run() {
        return;
    }
    let bed = empty(Kind::Nat);
    let mut port = 42_000;
    for entry in schedulers::REGISTRY {
        add(&bed, &["-s", entry.name], &["3", "1", "2"]);
        for _ in 0..3 {
            port += 1;
            let told = of_client(&bed, port, &[]);
            told.said.names(&["steering", entry.name, "10.77.0.12:80", "neighbour"]);
            let answered = who(connect_to_vip(&bed, port).unwrap());
            assert_eq!(told.server(), answered, "{}: {:?}", entry.name, told.said);
        }
        ipvsadm(&bed, &["-D", "-t", VIP]);
    }
    bed.director.stop().unwrap();
}

#[test]
fn quick_a_known_connection_and_the_servers_answer_are_told_as_they_go() {
    if !can_run() {
        return;
    }
    let bed = empty(Kind::Nat);
    add(&bed, &["-s", "rr"], &["1", "1"]);
    let told = of_client(&bed, 42_001, &[]);
    let stream = connect_to_vip(&bed, 42_001).unwrap();
    let known = of_client(&bed, 42_001, &["--ack", "--data", "10"]);
    assert_eq!(known.server(), told.server());
    known.said.names(&["known", "ESTABLISHED"]);
    let server = format!("{}:80", known.becomes("IP destination").unwrap());
    let reply = explain(&bed, &["tcp", &server, "192.0.2.100:42001", "--ack"]);
    assert_eq!(reply.reason(), "sent_nat_reply", "{:?}", reply.said);
    assert_eq!(reply.becomes("IP source"), Some("192.0.2.10"), "{:?}", reply.said);
    assert_eq!(who(stream), told.server());
    // A packet that opens nothing is the host's, which resets it.
    let stray = of_client(&bed, 42_999, &["--ack"]);
    assert_eq!((stray.outcome(), stray.reason()), ("passed", "passed_no_connection"));
    stray.said.names(&["only a SYN opens a connection"]);
    bed.director.stop().unwrap();
}

#[test]
fn quick_a_client_with_a_template_is_told_to_stay_with_its_server_and_does() {
    if !can_run() {
        return;
    }
    let bed = empty(Kind::Nat);
    add(&bed, &["-s", "rr", "-p", "300"], &["1", "1", "1"]);
    let first = of_client(&bed, 42_001, &[]);
    first.said.names(&["template", "none for the client's /32 yet", "300 s"]);
    let answered = who(connect_to_vip(&bed, 42_001).unwrap());
    assert_eq!(first.server(), answered);
    for port in 42_002..42_006 {
        let told = of_client(&bed, port, &[]);
        told.said.names(&["the client has one, and stays with 10.77.0.1"]);
        assert_eq!(
            (told.server(), who(connect_to_vip(&bed, port).unwrap())),
            (answered.clone(), answered.clone())
        );
    }
    bed.director.stop().unwrap();
}

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
fn quick_an_icmp_error_about_a_connection_is_told_to_reach_its_server() {
    if !can_run() {
        return;
    }
    let bed = empty(Kind::Nat);
    add(&bed, &["-s", "rr"], &["1"]);
    let _held = connect_to_vip(&bed, 42_001).unwrap();
    // A router between says that what the VIP sends to the client is too big.
    let error = too_big([192, 0, 2, 10], 80, [192, 0, 2, 100], 42_001);
    let hex: String = error.iter().map(|byte| format!("{byte:02x}")).collect();
    let told = explain(&bed, &["--hex", &hex]);
    assert_eq!(told.outcome(), "forwarded", "{:?}", told.said);
    told.said.names(&["type 3 code 4", "known"]);
    assert_eq!(told.server(), "server1");
    bed.director.stop().unwrap();
}

/// An IP packet: "fragmentation needed" of 203.0.113.1 about a segment from `source` to `to`.
fn too_big(source: [u8; 4], port: u16, to: [u8; 4], to_port: u16) -> Vec<u8> {
    use forwarding::checksum::Sum;
    let header = |length: u16, protocol: u8, from: [u8; 4], to: [u8; 4]| {
        let mut header = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 60, protocol, 0, 0];
        header[2..4].copy_from_slice(&length.to_be_bytes());
        header.extend(from);
        header.extend(to);
        let sum = Sum::default().bytes(&header).checksum();
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    };
    let mut message = vec![3, 4, 0, 0, 0, 0, 0x05, 0x14];
    message.extend(header(1500, 6, source, to));
    message.extend(port.to_be_bytes());
    message.extend(to_port.to_be_bytes());
    message.extend([0, 0, 0, 1]);
    let sum = Sum::default().bytes(&message).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut packet = header(20 + message.len() as u16, 1, [203, 0, 113, 1], source);
    packet.extend(message);
    packet
}

#[test]
fn quick_tunnel_and_direct_routing_are_told_as_they_are_done() {
    if !can_run() {
        return;
    }
    for (kind, reason) in [(Kind::Direct, "sent_direct"), (Kind::Tunnel, "sent_tunnel")] {
        let bed = Bed::of(
            lay(kind, &Options::default()),
            &(top("copy") + &service(kind, VIP_V4, 80, "wlc", "", &[1, 1])),
        );
        let told = of_client(&bed, 42_001, &[]);
        assert_eq!((told.outcome(), told.reason()), ("forwarded", reason), "{:?}", told.said);
        let steps = told.json["steps"].as_array().unwrap();
        let opened = steps.iter().filter_map(|step| step["text"].as_str());
        let opened = opened.filter_map(|text| text.strip_prefix("a new one to ")).next().unwrap();
        let server = server_name(opened.trim_end_matches(":80"));
        assert_eq!(who(connect_to_vip(&bed, 42_001).unwrap()), server, "{:?}", told.said);
        bed.director.stop().unwrap();
    }
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

#[test]
fn in_mode_nlb_the_host_is_named_that_then_answers() {
    if !can_run() {
        return;
    }
    let cluster = Cluster::build("explain", 2).unwrap();
    let program = programs::path("switchyard-lab").unwrap();
    let _web = cluster.start_web(&program, 200).unwrap();
    let nodes = cluster.start_nodes(&cluster.config("nlb", "", "")).unwrap();
    let vip = SocketAddr::new(cluster::VIP_V4, 80);
    let mut seen = std::collections::BTreeSet::new();
    for port in 42_001..42_013 {
        let from = SocketAddr::new("10.78.0.100".parse().unwrap(), port);
        let words = ["explain", "tcp", &from.to_string(), &vip.to_string()];
        let said = dirctl(&cluster.hosts[0], nodes[0].socket(), &words);
        assert_eq!(said.code, Some(0), "{said:?}");
        let takers: Vec<&str> = (said.out.lines())
            .filter(|line| line.contains("takes it"))
            .filter_map(|line| line.split("host ").nth(1)?.split(' ').next())
            .collect();
        let [taker] = takers[..] else { panic!("{said:?}") };
        said.names(&["bucket", "drops it"]);
        let answered = who(connect(&cluster.client, from, vip).unwrap());
        assert_eq!(answered, format!("host{taker}"), "{said:?}");
        seen.insert(answered);
    }
    assert_eq!(seen.len(), 2, "all went to one host");
    let (from, other) = ("10.78.0.100:1", "10.78.0.250:80");
    let said = dirctl(&cluster.hosts[0], nodes[0].socket(), &["explain", "tcp", from, other]);
    assert_eq!(said.code, Some(4), "{said:?}");
    said.names(&["10.78.0.250 is no virtual address"]);
    for node in nodes {
        node.stop().unwrap();
    }
}
