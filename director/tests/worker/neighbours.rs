//! Packets whose next hop is not resolved yet.

use std::time::Duration;

use director::control::api::{Forwarding, Protocol};
use director::network::Change;

use crate::bed::{Bed, CLIENT, VIP, at};
use crate::frames::{SYN, seen, tcp};
use crate::network::{BACK, ip, mac_of, neighbour};

const UNKNOWN: &str = "10.77.0.99";

fn bed() -> Bed {
    let bed = Bed::new(1);
    bed.serve(Protocol::Tcp, VIP, &["10.77.0.99:80"], Forwarding::Nat);
    bed
}

#[test]
fn the_first_packet_to_a_silent_server_waits_for_it_and_is_not_lost() {
    let mut bed = bed();
    assert!(bed.request(0, &tcp(at(CLIENT), at(VIP), SYN)).is_empty());
    assert_eq!(bed.hands[0].worker.frames().waiting, 1);
    assert_eq!(bed.count(0, "sent_nat"), 0, "waiting is not sent");
    bed.wait(Duration::from_secs(2));
    assert!(bed.hands[0].back.collect().is_none());
    bed.learn(neighbour(BACK, UNKNOWN));
    // At once, not with the next tick.
    bed.breath(0);
    let out = bed.hands[0].back.collect().expect("the packet that waited");
    let packet = seen(&out.bytes);
    assert_eq!((packet.macs[0], packet.destination), (mac_of(ip(UNKNOWN)), at("10.77.0.99:80")));
    assert_eq!((bed.hands[0].worker.frames().waiting, bed.count(0, "sent_nat")), (0, 1));
}

#[test]
fn a_packet_to_a_server_that_never_answers_is_dropped_after_three_seconds() {
    let mut bed = bed();
    bed.request(0, &tcp(at(CLIENT), at(VIP), SYN));
    bed.wait(Duration::from_millis(2900));
    assert_eq!(bed.count(0, "no_neighbour"), 0);
    bed.wait(Duration::from_millis(200));
    assert_eq!((bed.count(0, "no_neighbour"), bed.count(0, "sent_nat")), (1, 0));
    assert_eq!(bed.hands[0].worker.frames().waiting, 0);
}

#[test]
fn a_flood_to_a_silent_server_keeps_the_newest_512_and_leaves_frames_for_others() {
    let mut bed = bed();
    for port in 1001..=3000 {
        bed.request(0, &tcp(at(&format!("198.51.100.7:{port}")), at(VIP), SYN));
    }
    let frames = bed.hands[0].worker.frames();
    assert_eq!((frames.waiting, frames.free), (512, frames.capacity - 512));
    assert_eq!(bed.count(0, "no_neighbour"), 2000 - 512);
    bed.learn(neighbour(BACK, UNKNOWN));
    bed.breath(0);
    let out = bed.hands[0].back.collect_all();
    let ports: Vec<u16> = out.iter().map(|packet| seen(&packet.bytes).source.port()).collect();
    assert_eq!(ports, (2489..=3000).collect::<Vec<_>>());
}

#[test]
fn packets_follow_a_neighbour_that_changes_its_ethernet_address() {
    let mut bed = bed();
    bed.learn(neighbour(BACK, UNKNOWN));
    bed.request(0, &tcp(at(CLIENT), at(VIP), SYN));
    let moved = [2, 7, 7, 7, 7, 7];
    let Change::Neighbour(known) = neighbour(BACK, UNKNOWN) else { unreachable!() };
    bed.learn(Change::Neighbour(director::network::Neighbour { mac: Some(moved), ..known }));
    let out = bed.request(0, &tcp(at(CLIENT), at(VIP), SYN));
    assert_eq!(out[0].bytes[..6], moved);
}

#[test]
fn a_server_behind_an_interface_of_nobody_is_a_counted_drop() {
    let mut bed = Bed::new(1);
    bed.serve(Protocol::Tcp, VIP, &["10.79.0.11:80"], Forwarding::Nat);
    assert!(bed.request(0, &tcp(at(CLIENT), at(VIP), SYN)).is_empty());
    assert_eq!((bed.count(0, "no_port"), bed.count(0, "sent_nat")), (1, 0));
}
