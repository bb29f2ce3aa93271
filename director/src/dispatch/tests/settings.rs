//! What settings change for packets.

use std::collections::BTreeMap;
use std::time::Duration;

use super::bed::*;
use crate::control::api::{Forwarding, Persistence, Protocol, ServerSpec};
use crate::control::operations::Command;
use crate::dispatch::verdict::{DropReason, PassReason, Verdict};

const CLIENT: &str = "198.51.100.7:4000";
const VIP: &str = "192.0.2.10:80";
const ONE: &str = "10.77.0.11:80";
const TWO: &str = "10.77.0.12:80";

fn set(bed: &Bed, name: &str, value: u32) {
    let settings = BTreeMap::from([(name.to_owned(), value)]);
    bed.apply(Command::SetSettings { settings });
}

fn two_servers(protocol: Protocol) -> Bed {
    Bed::with(key(protocol, VIP), &[(ONE, Forwarding::Nat), (TWO, Forwarding::Nat)])
}

fn quiesced(address: &str) -> ServerSpec {
    ServerSpec { weight: 0, ..server(address, Forwarding::Nat) }
}

fn is_answered(out: &Out, expected: DropReason) -> bool {
    matches!(out.verdict, Verdict::Answer { reason } if reason == expected)
}

/// State of the only connection, as listed.
fn state(bed: &Bed) -> String {
    let mut parts = (0..).map_while(|part| bed.table.connection_views(part, bed.now));
    parts.find_map(|views| views.first().map(|view| view.state.clone())).expect("a connection")
}

/// A persistent service with two servers.
fn two_servers_of_a_persistent_service() -> Bed {
    let bed = Bed::new();
    let service_key = key(Protocol::Tcp, VIP);
    let mut persistent = service(service_key, "rr");
    persistent.persistence = Some(Persistence { timeout: 300, prefix: 32, engine: None });
    bed.apply(Command::AddService { service: persistent });
    for address in [ONE, TWO] {
        let server = server(address, Forwarding::Nat);
        bed.apply(Command::AddServer { service: service_key, server });
    }
    bed
}

#[test]
fn without_reuse_a_clients_port_stays_with_its_server() {
    for (mode, moves) in [(0, false), (1, true)] {
        let mut bed = two_servers(Protocol::Tcp);
        set(&bed, "conn_reuse_mode", mode);
        let first = bed.establish(CLIENT, VIP);
        bed.tcp(CLIENT, VIP, RST);
        assert_eq!(bed.tcp(CLIENT, VIP, SYN).destination() != first, moves, "{mode}");
    }
}

#[test]
fn a_half_seen_connection_is_reused_in_fin_wait_only_by_the_second_bit() {
    for (mode, moves) in [(1, false), (2, true), (3, true)] {
        let servers = [(ONE, Forwarding::Tunnel), (TWO, Forwarding::Tunnel)];
        let mut bed = Bed::with(key(Protocol::Tcp, VIP), &servers);
        set(&bed, "conn_reuse_mode", mode);
        let outer = |out: Out| out.frame[30..34].to_vec();
        let first = outer(bed.tcp(CLIENT, VIP, SYN));
        bed.tcp(CLIENT, VIP, ACK);
        bed.tcp(CLIENT, VIP, FIN_ACK);
        assert_eq!(outer(bed.tcp(CLIENT, VIP, SYN)) != first, moves, "{mode}");
    }
}

#[test]
fn a_syn_leaves_a_quiesced_server_and_a_segment_does_not() {
    let mut bed = two_servers(Protocol::Tcp);
    set(&bed, "expire_nodest_conn", 1);
    let first = bed.establish(CLIENT, VIP).to_string();
    let service = key(Protocol::Tcp, VIP);
    bed.apply(Command::EditServer { service, server: quiesced(&first) });
    assert_eq!(bed.tcp(CLIENT, VIP, ACK).destination(), at(&first));
    assert_ne!(bed.tcp(CLIENT, VIP, SYN).destination(), at(&first));
}

#[test]
fn packets_of_a_removed_server_are_scheduled_if_they_may_be() {
    let mut bed = two_servers(Protocol::Udp);
    set(&bed, "expire_nodest_conn", 1);
    let first = bed.udp(CLIENT, VIP).destination();
    bed.apply(Command::DeleteServer { service: key(Protocol::Udp, VIP), server: first });
    assert_ne!(bed.udp(CLIENT, VIP).destination(), first);

    let mut bed = two_servers(Protocol::Tcp);
    set(&bed, "expire_nodest_conn", 1);
    let first = bed.establish(CLIENT, VIP);
    bed.apply(Command::DeleteServer { service: key(Protocol::Tcp, VIP), server: first });
    let segment = bed.tcp(CLIENT, VIP, ACK).verdict;
    assert_eq!(segment, Verdict::Pass(PassReason::NoConnection));
    assert_ne!(bed.tcp(CLIENT, VIP, SYN).destination(), first);
}

#[test]
fn connections_and_templates_end_with_their_server() {
    let mut bed = two_servers_of_a_persistent_service();
    let service_key = key(Protocol::Tcp, VIP);
    set(&bed, "expire_nodest_conn", 1);
    let first = bed.establish(CLIENT, VIP);
    let _ = bed.establish("198.51.100.8:4000", VIP);
    assert_eq!(bed.table.shared().connections.len(), 4, "two connections, two templates");
    bed.apply(Command::DeleteServer { service: service_key, server: first });
    bed.table.end_orphans();
    assert_eq!(bed.table.shared().connections.len(), 2, "the other server's are left");
}

#[test]
fn a_template_lets_go_of_a_quiesced_server() {
    let mut bed = two_servers_of_a_persistent_service();
    let service_key = key(Protocol::Tcp, VIP);
    let first = bed.tcp("198.51.100.7:4000", VIP, SYN).destination();
    let server = quiesced(&first.to_string());
    bed.apply(Command::EditServer { service: service_key, server });
    assert_eq!(bed.tcp("198.51.100.7:4001", VIP, SYN).destination(), first);
    set(&bed, "expire_quiescent_template", 1);
    assert_ne!(bed.tcp("198.51.100.7:4002", VIP, SYN).destination(), first);
    assert_eq!(bed.tcp("198.51.100.7:4001", VIP, ACK).destination(), first, "it stays");
}

#[test]
fn a_sloppy_service_takes_any_segment_but_a_reset() {
    let mut bed = two_servers(Protocol::Tcp);
    set(&bed, "sloppy_tcp", 1);
    let reset = bed.tcp(CLIENT, VIP, RST | ACK).verdict;
    assert_eq!(reset, Verdict::Pass(PassReason::NoConnection));
    assert!(bed.tcp(CLIENT, VIP, ACK).is_sent());
    assert_eq!(state(&bed), "ESTABLISHED");
}

#[test]
fn a_nat_servers_answer_to_nobody_is_refused_unless_it_is_a_reset() {
    let mut bed = two_servers(Protocol::Tcp);
    let stray = bed.tcp(ONE, CLIENT, ACK).verdict;
    assert_eq!(stray, Verdict::Pass(PassReason::NoService));
    set(&bed, "nat_icmp_send", 1);
    assert!(is_answered(&bed.tcp(ONE, CLIENT, ACK), DropReason::NoConnection));
    let (reply, headers) = bed.dispatcher.reply().unwrap();
    assert_eq!(headers.destination, at(ONE).ip());
    assert_eq!((reply[34], reply[35]), (3, 3));
    assert!(matches!(bed.tcp(ONE, CLIENT, RST).verdict, Verdict::Pass(_)));
    assert!(matches!(bed.tcp("10.77.0.11:81", CLIENT, ACK).verdict, Verdict::Pass(_)));
    // A server that came after the setting did.
    let service = key(Protocol::Tcp, VIP);
    bed.apply(Command::AddServer { service, server: server("10.77.0.13:80", Forwarding::Nat) });
    assert!(is_answered(&bed.tcp("10.77.0.13:80", CLIENT, ACK), DropReason::NoConnection));
}

#[test]
fn without_path_mtu_discovery_a_tunnel_takes_everything_and_asks_nobody() {
    let mut bed = Bed::with(key(Protocol::Tcp, VIP), &[(ONE, Forwarding::Tunnel)]);
    // Not to be fragmented.
    let frame = tcp(at(CLIENT), at(VIP), SYN, &[0; 1460]);
    assert!(is_answered(&bed.handle(&frame), DropReason::TooBig));
    set(&bed, "pmtu_disc", 0);
    let out = bed.handle(&frame);
    assert!(out.is_sent(), "{:?}", out.verdict);
    assert_eq!(out.frame[20], 0, "the outer header may be fragmented");
    assert_eq!(out.frame[40], 0x40, "the inner one is as it was");
}

#[test]
fn an_error_about_an_unknown_connection_of_a_service_reaches_a_server() {
    let mut bed = two_servers(Protocol::Tcp);
    let frame = too_big(CLIENT, VIP);
    assert_eq!(bed.handle(&frame).verdict, Verdict::Pass(PassReason::Icmp));
    set(&bed, "schedule_icmp", 1);
    let out = bed.handle(&frame);
    assert!(out.is_sent(), "{:?}", out.verdict);
    assert_eq!(out.frame[30..34], [10, 77, 0, 12]);
    assert_eq!(state(&bed), "NONE");
    bed.wait(Duration::from_secs(4));
    assert!(bed.table.shared().connections.is_empty(), "it lives for moments");
    // There is nobody for it: it is not answered.
    let service = key(Protocol::Tcp, VIP);
    for address in [ONE, TWO] {
        bed.apply(Command::DeleteServer { service, server: at(address) });
    }
    assert_eq!(bed.handle(&frame).verdict, Verdict::Drop(DropReason::NoServer));
}

#[test]
fn without_estimation_rates_stay_and_counts_go_on() {
    let mut bed = two_servers(Protocol::Udp);
    let send_and_estimate = |bed: &mut Bed| {
        for _ in 0..100 {
            bed.udp(CLIENT, VIP);
        }
        bed.table.estimate();
        let stats = bed.table.service_views()[0].stats;
        (stats.in_packets, stats.in_pps)
    };
    let (_, rate) = send_and_estimate(&mut bed);
    assert!(rate > 0);
    set(&bed, "run_estimation", 0);
    assert_eq!(send_and_estimate(&mut bed), (200, rate));
    set(&bed, "run_estimation", 1);
    assert!(send_and_estimate(&mut bed).1 > rate);
}

#[test]
fn one_of_so_many_new_connections_is_dropped_and_no_packet_of_the_others() {
    let mut bed = two_servers(Protocol::Udp);
    set(&bed, "am_droprate", 4);
    set(&bed, "drop_packet", 3);
    let client = |number: u32| format!("198.51.100.7:{}", 4000 + number);
    let dropped: Vec<_> = (0..20)
        .filter(|&number| {
            let verdict = bed.udp(&client(number), VIP).verdict;
            verdict == Verdict::Drop(DropReason::DropPacket)
        })
        .collect();
    assert_eq!(dropped, [0, 4, 8, 12, 16]);
    assert!((0..100).all(|_| bed.udp(&client(1), VIP).is_sent()));
    set(&bed, "drop_packet", 0);
    assert!((0..20).all(|number| bed.udp(&client(number), VIP).is_sent()));
}

#[test]
fn an_automatic_defence_begins_when_room_is_low_and_ends_when_it_is_not() {
    let mut bed = two_servers(Protocol::Udp);
    let value = |bed: &Bed| bed.table.shared().settings.all()["drop_packet"];
    set(&bed, "amemthresh", 9_990);
    set(&bed, "drop_packet", 1);
    for number in 0..20 {
        assert!(bed.udp(&format!("198.51.100.7:{}", 4000 + number), VIP).is_sent());
    }
    // 9980 of 10000 places are free: one of 9990 / 10 is dropped.
    bed.table.sweep(bed.now);
    assert_eq!(value(&bed), 2);
    let mut dropped = 0;
    for number in 0..999 {
        let verdict = bed.udp(&format!("198.51.100.8:{}", 4000 + number), VIP).verdict;
        dropped += u32::from(verdict == Verdict::Drop(DropReason::DropPacket));
    }
    assert_eq!(dropped, 1);
    bed.wait(Duration::from_secs(301));
    bed.table.sweep(bed.now);
    assert_eq!(value(&bed), 1);
}

#[test]
fn under_attack_half_open_connections_are_not_taken_for_established() {
    let mut bed = two_servers(Protocol::Tcp);
    set(&bed, "secure_tcp", 3);
    bed.tcp(CLIENT, VIP, SYN);
    bed.tcp(CLIENT, VIP, ACK);
    assert_eq!(state(&bed), "SYN_RECV", "the server has not answered yet");
    bed.apply(Command::Flush);
    let mut bed = two_servers(Protocol::Tcp);
    bed.tcp(CLIENT, VIP, SYN);
    bed.tcp(CLIENT, VIP, ACK);
    assert_eq!(state(&bed), "ESTABLISHED", "without the setting it is");
}

#[test]
fn dropping_entries_spares_the_established_and_takes_the_half_open() {
    let mut bed = two_servers(Protocol::Tcp);
    for number in 0..100 {
        bed.tcp(&format!("198.51.100.7:{}", 4000 + number), VIP, SYN);
    }
    for number in 0..20 {
        bed.establish(&format!("198.51.100.8:{}", 4000 + number), VIP);
    }
    // Long-lived, and idle for more than a minute.
    for _ in 0..10 {
        bed.tcp("198.51.100.8:4000", VIP, ACK);
    }
    set(&bed, "drop_entry", 3);
    let counts = |bed: &Bed| bed.table.shared().connections.len();
    bed.table.sweep(bed.now);
    assert!(counts(&bed) > 100, "a few at a time");
    for _ in 0..400 {
        bed.table.sweep(bed.now);
    }
    assert_eq!(counts(&bed), 20);
    bed.now += Duration::from_secs(61);
    for _ in 0..2000 {
        bed.table.sweep(bed.now);
    }
    assert_eq!(counts(&bed), 1, "with hardly any packets and idle; one has had many");
    assert!(bed.tcp("198.51.100.8:4000", VIP, ACK).is_sent());
}
