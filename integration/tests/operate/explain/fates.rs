//! Packets that go their way: by every scheduler and method, on known connections, with templates.

use integration::topology::{Kind, Options, VIP_V4};
use integration::written::{service, top};

use super::*;
use crate::bed::{can_run, lay};

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
    let server = known.becomes("destination").unwrap();
    let reply = explain(&bed, &["tcp", server, "192.0.2.100:42001", "--ack"]);
    assert_eq!(reply.reason(), "sent_nat_reply", "{:?}", reply.said);
    assert_eq!(reply.becomes("source"), Some(VIP), "{:?}", reply.said);
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
        let server = server_name(opened);
        assert_eq!(who(connect_to_vip(&bed, 42_001).unwrap()), server, "{:?}", told.said);
        bed.director.stop().unwrap();
    }
}
