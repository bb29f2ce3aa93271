//! Connections from their first packet to their expiry.

use std::time::Duration;

use super::bed::*;
use crate::control::api::{Forwarding, Protocol, Timeouts};
use crate::control::operations::Command;

const CLIENT: &str = "198.51.100.7:4000";
const VIP: &str = "192.0.2.10:80";
const REAL: &str = "10.77.0.11:80";
const OTHER: &str = "10.77.0.12:80";

fn states(bed: &Bed) -> Vec<(String, u32)> {
    (0..)
        .map_while(|part| bed.table.connection_views(part, bed.now))
        .flatten()
        .map(|view| (view.state, view.expires))
        .collect()
}

#[test]
fn counters_follow_a_connection_from_active_to_inactive_to_gone() {
    let mut bed = Bed::with(key(Protocol::Tcp, VIP), &[(REAL, Forwarding::Nat)]);
    bed.tcp(CLIENT, VIP, SYN);
    assert_eq!(states(&bed), [("SYN_RECV".to_owned(), 60)]);
    assert_eq!(bed.counts(), [(1, 0)]);
    bed.tcp(REAL, CLIENT, SYN_ACK);
    bed.tcp(CLIENT, VIP, ACK);
    assert_eq!(states(&bed), [("ESTABLISHED".to_owned(), 900)]);
    bed.tcp(CLIENT, VIP, FIN_ACK);
    assert_eq!(states(&bed), [("CLOSE_WAIT".to_owned(), 60)]);
    assert_eq!(bed.counts(), [(0, 1)]);
    bed.tcp(REAL, CLIENT, FIN_ACK);
    assert_eq!(states(&bed), [("TIME_WAIT".to_owned(), 120)]);
    bed.wait(Duration::from_secs(119));
    assert_eq!(bed.counts(), [(0, 1)]);
    bed.wait(Duration::from_secs(2));
    assert_eq!(bed.counts(), [(0, 0)]);
    assert!(bed.table.shared().connections.is_empty());
}

#[test]
fn half_seen_connections_wait_in_fin_wait() {
    let mut bed = Bed::with(key(Protocol::Tcp, VIP), &[(REAL, Forwarding::Direct)]);
    bed.tcp(CLIENT, VIP, SYN);
    bed.tcp(CLIENT, VIP, ACK);
    assert_eq!(states(&bed), [("ESTABLISHED".to_owned(), 900)]);
    bed.tcp(CLIENT, VIP, FIN_ACK);
    bed.tcp(CLIENT, VIP, ACK);
    assert_eq!(states(&bed), [("FIN_WAIT".to_owned(), 120)]);
}

#[test]
fn a_packet_a_minute_keeps_a_connection_for_ever() {
    let mut bed =
        Bed::with(key(Protocol::Udp, VIP), &[(REAL, Forwarding::Nat), (OTHER, Forwarding::Nat)]);
    let first = bed.udp(CLIENT, VIP).destination();
    for _ in 0..60 {
        bed.wait(Duration::from_secs(60));
        assert_eq!(bed.udp(CLIENT, VIP).destination(), first);
    }
    assert_eq!(bed.counts().iter().map(|(_, inactive)| inactive).sum::<u32>(), 1);
}

#[test]
fn a_client_that_reuses_its_port_after_closing_is_scheduled_anew() {
    let mut bed =
        Bed::with(key(Protocol::Tcp, VIP), &[(REAL, Forwarding::Nat), (OTHER, Forwarding::Nat)]);
    let first = bed.establish(CLIENT, VIP);
    bed.tcp(CLIENT, VIP, FIN_ACK);
    bed.tcp(&first.to_string(), CLIENT, FIN_ACK);
    let second = bed.tcp(CLIENT, VIP, SYN).destination();
    assert_ne!(first, second);
    assert_eq!(bed.table.shared().connections.len(), 1, "the old one is gone");
    bed.tcp(CLIENT, VIP, ACK);
    bed.tcp(CLIENT, VIP, RST);
    let third = bed.tcp(CLIENT, VIP, SYN_ACK).destination();
    assert_eq!(third, first, "the kernel does not look at ACK");
}

#[test]
fn a_repeated_syn_goes_to_the_same_server() {
    let mut bed =
        Bed::with(key(Protocol::Tcp, VIP), &[(REAL, Forwarding::Nat), (OTHER, Forwarding::Nat)]);
    let first = bed.tcp(CLIENT, VIP, SYN).destination();
    assert_eq!(bed.tcp(CLIENT, VIP, SYN).destination(), first);
}

#[test]
fn set_timeouts_hold_from_the_next_packet_on() {
    let mut bed = Bed::with(key(Protocol::Udp, VIP), &[(REAL, Forwarding::Nat)]);
    let timeouts = Timeouts { tcp: 0, tcp_fin: 0, udp: 10 };
    bed.apply(Command::SetTimeouts { timeouts });
    bed.udp(CLIENT, VIP);
    assert_eq!(states(&bed), [("UDP".to_owned(), 10)]);
    bed.wait(Duration::from_secs(11));
    assert_eq!(states(&bed), []);
}

#[test]
fn traffic_is_counted_in_ip_bytes_on_service_and_server() {
    let mut bed = Bed::with(key(Protocol::Tcp, VIP), &[(REAL, Forwarding::Nat)]);
    bed.tcp(CLIENT, VIP, SYN);
    bed.tcp(REAL, CLIENT, SYN_ACK);
    let view = &bed.table.service_views()[0];
    // 20 IP, 20 TCP, 7 payload.
    for stats in [view.stats, view.servers[0].stats] {
        assert_eq!((stats.connections, stats.in_packets, stats.in_bytes), (1, 1, 47));
        assert_eq!((stats.out_packets, stats.out_bytes), (1, 47));
    }
}
