//! What a client hears when no server takes its packet, where the service says so.

use etherparse::{SlicedPacket, TcpSlice, TransportSlice};

use super::bed::*;
use crate::control::api::{Extras, Forwarding, GoneServer, NoDestination, Protocol, ServiceKey};
use crate::control::operations::Command;
use crate::dispatch::verdict::{DropReason, PassReason, Verdict};

const CLIENT: &str = "198.51.100.7:4000";
const VIP: &str = "192.0.2.10:80";
const REAL: &str = "10.77.0.11:80";
const OTHER: &str = "10.77.0.12:80";

/// The families: client, VIP, servers.
const FAMILIES: [[&str; 4]; 2] = [
    [CLIENT, VIP, REAL, OTHER],
    ["[2001:db8:9::7]:4000", "[2001:db8:1::10]:80", "[fd77::11]:80", "[fd77::12]:80"],
];

fn asking(bed: Bed, key: ServiceKey, extras: Extras) -> Bed {
    let service = crate::control::api::ServiceSpec { extras: Some(extras), ..service(key, "rr") };
    bed.apply(Command::EditService { service });
    bed
}

/// A service with this fate of packets whose server is gone.
fn bed(key: ServiceKey, servers: &[(&str, Forwarding)], gone_server: GoneServer) -> Bed {
    asking(Bed::with(key, servers), key, Extras { gone_server, ..Extras::default() })
}

fn remove(bed: &Bed, service: ServiceKey, server: &str) {
    bed.apply(Command::DeleteServer { service, server: at(server) });
}

/// What the client of the last packet has been sent, its checksums verified.
#[track_caller]
fn reset<'a>(bed: &'a Bed, out: &Out, expected: DropReason) -> TcpSlice<'a> {
    assert_eq!(out.verdict, Verdict::Answer { reason: expected });
    let (reply, headers) = bed.dispatcher.reply().unwrap();
    assert_eq!(forwarding::parse(reply), Ok(headers));
    let sliced = SlicedPacket::from_ethernet(reply).unwrap();
    ends_of(&sliced);
    match sliced.transport {
        Some(TransportSlice::Tcp(tcp)) if tcp.rst() => tcp,
        other => panic!("{other:?} is no reset"),
    }
}

fn icmp_type_and_code(bed: &Bed) -> (u8, u8) {
    let (reply, headers) = bed.dispatcher.reply().unwrap();
    assert!(headers.is_icmp());
    (reply[headers.l4], reply[headers.l4 + 1])
}

fn connections(bed: &Bed) -> usize {
    bed.table.shared().connections.len()
}

#[test]
fn a_syn_that_no_server_can_take_is_reset_at_once() {
    for [client, vip, ..] in FAMILIES {
        let key = key(Protocol::Tcp, vip);
        let extras = Extras { no_destination: NoDestination::Rst, ..Extras::default() };
        let mut bed = asking(Bed::with(key, &[]), key, extras);
        let out = bed.tcp(client, vip, SYN);
        let answer = reset(&bed, &out, DropReason::NoServerReset);
        // The bed's segments begin at 1000 and carry 7 bytes.
        assert!(answer.ack());
        assert_eq!((answer.sequence_number(), answer.acknowledgment_number()), (0, 1008));
        let (reply, _) = bed.dispatcher.reply().unwrap();
        assert_eq!(ends(reply), (at(vip), at(client)));
        assert_eq!(connections(&bed), 0);
    }
}

#[test]
fn a_datagram_that_no_server_can_take_is_answered_with_icmp_all_the_same() {
    let key = key(Protocol::Udp, VIP);
    let mut bed = Bed::with(key, &[]);
    bed.udp(CLIENT, VIP);
    assert_eq!(icmp_type_and_code(&bed), (3, 3));
}

#[test]
fn a_flood_of_syns_is_not_answered_with_a_flood_of_resets() {
    let key = key(Protocol::Tcp, VIP);
    let extras = Extras { no_destination: NoDestination::Rst, ..Extras::default() };
    let mut bed = asking(Bed::with(key, &[]), key, extras);
    let answered = (0..500)
        .filter(|_| matches!(bed.tcp(CLIENT, VIP, SYN).verdict, Verdict::Answer { .. }))
        .count();
    assert_eq!(answered, 50);
}

#[test]
fn a_segment_whose_server_is_gone_is_reset_within_its_senders_window() {
    for [client, vip, real, _] in FAMILIES {
        for gone in [GoneServer::Rst, GoneServer::Reschedule] {
            let service = key(Protocol::Tcp, vip);
            let mut bed = bed(service, &[(real, Forwarding::Nat)], gone);
            bed.establish(client, vip);
            remove(&bed, service, real);
            let out = bed.tcp(client, vip, ACK);
            let answer = reset(&bed, &out, DropReason::ServerGone);
            // What the client has acknowledged is what it expects next.
            assert!(!answer.ack());
            assert_eq!(answer.sequence_number(), 77);
            assert_eq!(connections(&bed), 0, "the connection is over");
            // What comes now belongs to none: the host's stack, which has the VIP, resets it.
            let after = bed.tcp(client, vip, ACK).verdict;
            assert_eq!(after, Verdict::Pass(PassReason::NoConnection));
        }
    }
}

#[test]
fn a_reset_to_a_gone_server_is_not_answered_and_ends_the_connection() {
    let service = key(Protocol::Tcp, VIP);
    let mut bed = bed(service, &[(REAL, Forwarding::Nat)], GoneServer::Rst);
    bed.establish(CLIENT, VIP);
    remove(&bed, service, REAL);
    assert_eq!(bed.tcp(CLIENT, VIP, RST).verdict, Verdict::Drop(DropReason::ServerGone));
    assert_eq!(connections(&bed), 0);
}

#[test]
fn a_client_that_could_not_be_told_now_is_told_at_its_next_segment() {
    let service = key(Protocol::Tcp, VIP);
    let mut bed = bed(service, &[(REAL, Forwarding::Nat)], GoneServer::Rst);
    for port in 4000..4060 {
        bed.establish(&format!("198.51.100.7:{port}"), VIP);
    }
    remove(&bed, service, REAL);
    for port in 4000..4060 {
        bed.tcp(&format!("198.51.100.7:{port}"), VIP, ACK);
    }
    assert_eq!(connections(&bed), 10, "more than the limit allows");
    bed.wait(std::time::Duration::from_secs(1));
    for port in 4050..4060 {
        let out = bed.tcp(&format!("198.51.100.7:{port}"), VIP, ACK);
        reset(&bed, &out, DropReason::ServerGone);
    }
    assert_eq!(connections(&bed), 0);
}

#[test]
fn a_datagram_whose_server_is_gone_is_answered_port_unreachable() {
    let service = key(Protocol::Udp, VIP);
    let mut bed = bed(service, &[(REAL, Forwarding::Nat)], GoneServer::Rst);
    bed.udp(CLIENT, VIP);
    remove(&bed, service, REAL);
    let out = bed.udp(CLIENT, VIP);
    assert_eq!(out.verdict, Verdict::Answer { reason: DropReason::ServerGone });
    assert_eq!(icmp_type_and_code(&bed), (3, 3));
    assert_eq!(connections(&bed), 0);
}

#[test]
fn what_may_open_a_connection_goes_to_another_server() {
    let servers = [(REAL, Forwarding::Nat), (OTHER, Forwarding::Nat)];
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let service = key(protocol, VIP);
        let mut bed = bed(service, &servers, GoneServer::Reschedule);
        let send = |bed: &mut Bed| match protocol {
            Protocol::Tcp => bed.tcp(CLIENT, VIP, SYN).destination(),
            _ => bed.udp(CLIENT, VIP).destination(),
        };
        let first = send(&mut bed);
        remove(&bed, service, &first.to_string());
        let second = send(&mut bed);
        assert_ne!(first, second);
        assert_eq!(send(&mut bed), second, "and stays there");
        assert_eq!(connections(&bed), 1);
    }
}

#[test]
fn a_server_that_returns_before_its_client_speaks_has_its_connections() {
    let service = key(Protocol::Tcp, VIP);
    let mut bed = bed(service, &[(REAL, Forwarding::Nat)], GoneServer::Rst);
    bed.establish(CLIENT, VIP);
    remove(&bed, service, REAL);
    bed.apply(Command::AddServer { service, server: server(REAL, Forwarding::Nat) });
    assert!(bed.tcp(CLIENT, VIP, ACK).is_sent());
}

#[test]
fn clients_of_a_removed_service_are_told_as_it_has_said() {
    let service = key(Protocol::Tcp, VIP);
    let mut bed = bed(service, &[(REAL, Forwarding::Direct)], GoneServer::Rst);
    bed.tcp(CLIENT, VIP, SYN);
    bed.tcp(CLIENT, VIP, ACK);
    bed.apply(Command::Flush);
    let out = bed.tcp(CLIENT, VIP, ACK);
    reset(&bed, &out, DropReason::ServerGone);
}
