//! A server fails: what becomes of the next packet of each of its connections.

use std::time::Duration;

use etherparse::{SlicedPacket, TcpSlice, TransportSlice};

use super::bed::*;
use super::forwarding_methods::in_two;
use super::sctp::packet as sctp;
use crate::control::api::{
    Extras, Forwarding, Persistence, Protocol, ServiceKey, ServiceSpec, Teardown,
};
use crate::control::operations::Command;
use crate::dispatch::settings::Setting;
use crate::dispatch::verdict::{DropReason, PassReason, Verdict};
use crate::health::servers::{Servers, Standing};
use forwarding::wire::sctp::chunk;

pub(super) const CLIENT: &str = "198.51.100.7:4000";
pub(super) const VIP: &str = "192.0.2.10:80";
pub(super) const ONE: &str = "10.77.0.11:80";
pub(super) const TWO: &str = "10.77.0.12:80";

/// The families: client, VIP, servers.
const FAMILIES: [[&str; 4]; 2] = [
    [CLIENT, VIP, ONE, TWO],
    ["[2001:db8:9::7]:4000", "[2001:db8:1::10]:80", "[fd77::11]:80", "[fd77::12]:80"],
];

pub(super) const DOWN: Standing = Standing { is_admitted: false, permille: 1000 };

impl Bed {
    /// The server has failed, as health sees it.
    pub(super) fn fail(&self, service: ServiceKey, server: &str) {
        assert!(self.table.stand(&service, at(server), DOWN).is_some());
        assert!(self.table.lose(&service, at(server), false, self.now));
    }

    /// It is back.
    pub(super) fn recover(&self, service: ServiceKey, server: &str) {
        assert!(self.table.stand(&service, at(server), Standing::UNCHECKED).is_some());
    }

    pub(super) fn ask(&self, spec: ServiceSpec, extras: Extras) {
        let service = ServiceSpec { extras: Some(extras), ..spec };
        self.apply(Command::EditService { service });
    }

    pub(super) fn entries(&self) -> usize {
        self.table.shared().connections.len()
    }
}

const LOST: Verdict = Verdict::Drop(DropReason::ServerLost);

/// The reset that has been sent to who sent the last packet, its checksums verified.
#[track_caller]
fn reset<'a>(bed: &'a Bed, out: &Out) -> TcpSlice<'a> {
    assert_eq!(out.verdict, Verdict::Answer { reason: DropReason::ServerLost });
    let (reply, headers) = bed.dispatcher.reply().unwrap();
    assert_eq!(forwarding::parse(reply), Ok(headers));
    let sliced = SlicedPacket::from_ethernet(reply).unwrap();
    ends_of(&sliced);
    match sliced.transport {
        Some(TransportSlice::Tcp(tcp)) if tcp.rst() => tcp,
        other => panic!("{other:?} is no reset"),
    }
}

#[test]
fn the_next_segment_of_a_connection_is_reset_within_its_senders_window_by_every_method() {
    for [client, vip, real, _] in FAMILIES {
        for method in [Forwarding::Nat, Forwarding::Direct, Forwarding::Tunnel] {
            let service = key(Protocol::Tcp, vip);
            let mut bed = Bed::with(service, &[(real, method)]);
            bed.tcp(client, vip, SYN);
            bed.tcp(client, vip, ACK);
            bed.fail(service, real);
            assert_eq!((bed.entries(), bed.counts()), (1, vec![(0, 0)]), "listed, not counted");
            let out = bed.tcp(client, vip, ACK);
            let answer = reset(&bed, &out);
            // What the client has acknowledged is what it expects next.
            assert!(!answer.ack());
            assert_eq!(answer.sequence_number(), 77);
            let (reply, _) = bed.dispatcher.reply().unwrap();
            assert_eq!(ends(reply), (at(vip), at(client)));
            assert_eq!(bed.entries(), 0, "the connection is over");
        }
    }
}

#[test]
fn every_client_of_a_failed_server_is_reset_however_many_there_are() {
    let service = key(Protocol::Tcp, VIP);
    let mut bed = Bed::with(service, &[(ONE, Forwarding::Nat)]);
    let clients: Vec<_> = (3001..=5000).map(|port| format!("198.51.100.7:{port}")).collect();
    for client in &clients {
        bed.establish(client, VIP);
    }
    bed.fail(service, ONE);
    for client in &clients {
        let out = bed.tcp(client, VIP, ACK);
        reset(&bed, &out);
    }
    assert_eq!(bed.entries(), 0);
}

#[test]
fn a_reset_is_not_answered_and_ends_the_connection() {
    let service = key(Protocol::Tcp, VIP);
    let mut bed = Bed::with(service, &[(ONE, Forwarding::Nat)]);
    bed.establish(CLIENT, VIP);
    bed.fail(service, ONE);
    assert_eq!(bed.tcp(CLIENT, VIP, RST).verdict, LOST);
    assert_eq!(bed.entries(), 0);
}

#[test]
fn what_opens_a_connection_opens_one_to_another_server_at_once() {
    for [client, vip, one, two] in FAMILIES {
        let service = key(Protocol::Tcp, vip);
        let mut bed = Bed::with(service, &[(one, Forwarding::Nat), (two, Forwarding::Nat)]);
        let chosen = bed.tcp(client, vip, SYN).destination().to_string();
        let other = if chosen == one { two } else { one };
        bed.fail(service, &chosen);
        assert_eq!(bed.tcp(client, vip, SYN).destination(), at(other));
        assert_eq!(bed.entries(), 1);

        let service = key(Protocol::Udp, vip);
        let mut bed = Bed::with(service, &[(one, Forwarding::Nat), (two, Forwarding::Nat)]);
        let chosen = bed.udp(client, vip).destination().to_string();
        let other = if chosen == one { two } else { one };
        bed.fail(service, &chosen);
        assert_eq!(bed.udp(client, vip).destination(), at(other));
        assert_eq!(bed.entries(), 1);
    }
}

/// `sloppy_tcp` lets any segment open a connection, but not one that is known to be of a dead one.
#[test]
fn a_segment_in_the_middle_is_reset_where_any_may_open_a_connection() {
    let service = key(Protocol::Tcp, VIP);
    let mut bed = Bed::with(service, &[(ONE, Forwarding::Nat), (TWO, Forwarding::Nat)]);
    bed.table.shared().settings.set(Setting::SloppyTcp, 1);
    let chosen = bed.establish(CLIENT, VIP).to_string();
    bed.fail(service, &chosen);
    let out = bed.tcp(CLIENT, VIP, ACK);
    reset(&bed, &out);
}

#[test]
fn what_a_failed_server_still_says_reaches_no_client_and_is_answered() {
    for [client, vip, real, _] in FAMILIES {
        let service = key(Protocol::Tcp, vip);
        let mut bed = Bed::with(service, &[(real, Forwarding::Nat)]);
        bed.establish(client, vip);
        bed.fail(service, real);
        bed.recover(service, real);
        let out = bed.tcp(real, client, ACK);
        let answer = reset(&bed, &out);
        assert!(!answer.ack());
        assert_eq!(answer.sequence_number(), 77);
        let (reply, _) = bed.dispatcher.reply().unwrap();
        assert_eq!(ends(reply), (at(client), at(real)), "the server hears it from its client");
        assert_eq!(bed.entries(), 1, "for the client");
        let out = bed.tcp(client, vip, ACK);
        reset(&bed, &out);
    }
    let service = key(Protocol::Udp, VIP);
    let mut bed = Bed::with(service, &[(ONE, Forwarding::Nat)]);
    bed.udp(CLIENT, VIP);
    bed.fail(service, ONE);
    bed.recover(service, ONE);
    assert_eq!(bed.udp(ONE, CLIENT).verdict, LOST);
    // The client's next datagram opens a connection to the server that is back.
    assert_eq!(bed.udp(CLIENT, VIP).destination(), at(ONE));
    assert_eq!(bed.udp(ONE, CLIENT).source(), at(VIP));
}

#[test]
fn a_server_that_floods_dead_connections_is_not_answered_with_a_flood() {
    let service = key(Protocol::Tcp, VIP);
    let mut bed = Bed::with(service, &[(ONE, Forwarding::Nat)]);
    bed.establish(CLIENT, VIP);
    bed.fail(service, ONE);
    let answered = (0..500)
        .filter(|_| matches!(bed.tcp(ONE, CLIENT, ACK).verdict, Verdict::Answer { .. }))
        .count();
    assert_eq!(answered, 50);
}

#[test]
fn a_template_of_a_failed_server_is_forgotten() {
    let service_key = key(Protocol::Tcp, VIP);
    let mut bed = Bed::new();
    let persistence = Some(Persistence { timeout: 300, prefix: 24, engine: None });
    let spec = ServiceSpec { persistence, ..service(service_key, "rr") };
    bed.apply(Command::AddService { service: spec });
    for address in [ONE, TWO] {
        let server = server(address, Forwarding::Direct);
        bed.apply(Command::AddServer { service: service_key, server });
    }
    let hop = |out: Out| match out.verdict {
        Verdict::Transmit { path, .. } => path.next_hop,
        other => panic!("{other:?}"),
    };
    let first = hop(bed.tcp(CLIENT, VIP, SYN));
    let (failed, other) = if first == at(ONE).ip() { (ONE, TWO) } else { (TWO, ONE) };
    bed.fail(service_key, failed);
    bed.recover(service_key, failed);
    bed.table.stand(&service_key, at(failed), DOWN);
    assert_eq!(hop(bed.tcp("198.51.100.7:4001", VIP, SYN)), at(other).ip());
    bed.recover(service_key, failed);
    for port in 4002..4006 {
        let next = hop(bed.tcp(&format!("198.51.100.7:{port}"), VIP, SYN));
        assert_eq!(next, at(other).ip(), "the client has a template of the other one now");
    }
}

#[test]
fn fragments_of_a_dead_connection_go_nowhere_and_new_ones_to_another_server() {
    let service = key(Protocol::Udp, VIP);
    let mut bed = Bed::with(service, &[(ONE, Forwarding::Nat), (TWO, Forwarding::Nat)]);
    let (first, later) = in_two(&udp(at(CLIENT), at(VIP), &[7; 1200]));
    let chosen = if bed.handle(&first).frame[30..34] == [10, 77, 0, 11] { ONE } else { TWO };
    bed.fail(service, chosen);
    // It opens a connection, as any part of a datagram does: its receiver lacks the first part.
    assert!(bed.handle(&later).is_sent());

    let service = key(Protocol::Tcp, VIP);
    let mut bed = Bed::with(service, &[(ONE, Forwarding::Nat)]);
    bed.establish(CLIENT, VIP);
    let (first, later) = in_two(&tcp(at(CLIENT), at(VIP), ACK, &[7; 1200]));
    assert!(bed.handle(&first).is_sent());
    bed.fail(service, ONE);
    assert_eq!(bed.handle(&later).verdict, LOST, "nobody knows its numbers");
    assert_eq!(bed.entries(), 1);
}

#[test]
fn later_fragments_of_one_packet_scheduling_do_not_follow_to_a_failed_server() {
    let service_key = key(Protocol::Udp, VIP);
    let mut bed = Bed::new();
    let spec = ServiceSpec { one_packet: true, ..service(service_key, "rr") };
    bed.apply(Command::AddService { service: spec });
    let persistence = Some(Persistence { timeout: 300, prefix: 32, engine: None });
    let spec = ServiceSpec { one_packet: true, persistence, ..service(service_key, "rr") };
    bed.apply(Command::EditService { service: spec });
    let real = server(ONE, Forwarding::Direct);
    bed.apply(Command::AddServer { service: service_key, server: real });
    let (first, later) = in_two(&udp(at(CLIENT), at(VIP), &[7; 1200]));
    assert!(bed.handle(&first).is_sent());
    bed.fail(service_key, ONE);
    assert_eq!(bed.handle(&later).verdict, LOST);
}

#[test]
fn errors_about_a_dead_connection_cross_it_in_no_direction() {
    let service = key(Protocol::Tcp, VIP);
    let mut bed = Bed::with(service, &[(ONE, Forwarding::Nat)]);
    bed.establish(CLIENT, VIP);
    let error = too_big(CLIENT, VIP);
    assert!(bed.handle(&error).is_sent());
    bed.fail(service, ONE);
    let before = bed.table.service_views()[0].servers[0].stats.in_packets;
    assert_eq!(bed.handle(&error).verdict, LOST);
    assert_eq!(bed.table.service_views()[0].servers[0].stats.in_packets, before);
}

#[test]
fn an_association_hears_of_it_by_icmp_and_init_opens_another_one() {
    let (vip, one, two) = ("192.0.2.10:2905", "10.77.0.11:2905", "10.77.0.12:2905");
    let service = key(Protocol::Sctp, vip);
    let mut bed = Bed::with(service, &[(one, Forwarding::Nat), (two, Forwarding::Nat)]);
    let init = sctp(CLIENT, vip, Some(chunk::INIT));
    let heartbeat = sctp(CLIENT, vip, Some(chunk::HEARTBEAT));
    let to = |out: &Out| out.frame[30..34].to_vec();
    let first = to(&bed.handle(&init));
    let (failed, other) = if first == [10, 77, 0, 11] { (one, two) } else { (two, one) };
    bed.fail(service, failed);
    let from_server = sctp(failed, CLIENT, Some(chunk::HEARTBEAT));
    assert_eq!(bed.handle(&from_server).verdict, LOST);
    let told = bed.handle(&heartbeat).verdict;
    assert_eq!(told, Verdict::Answer { reason: DropReason::ServerLost });
    let (reply, headers) = bed.dispatcher.reply().unwrap();
    assert_eq!((reply[headers.l4], reply[headers.l4 + 1]), (3, 3), "port unreachable");
    let again = bed.handle(&init);
    assert!(again.is_sent());
    assert_eq!(
        to(&again),
        at(other).ip().to_string().parse::<std::net::Ipv4Addr>().unwrap().octets()
    );
}

#[test]
fn a_server_that_calls_clients_calls_again_when_it_is_back() {
    let (vip, real) = ("192.0.2.10:5060", "10.77.0.11:5060");
    let service_key = key(Protocol::Udp, vip);
    let mut bed = Bed::new();
    let persistence = Some(Persistence { timeout: 300, prefix: 24, engine: Some("sip".into()) });
    let spec = ServiceSpec { persistence, ..service(service_key, "rr") };
    bed.apply(Command::AddService { service: spec });
    let server = server(real, Forwarding::Nat);
    bed.apply(Command::AddServer { service: service_key, server });
    let call = |from: &str, to: &str| {
        let message = b"OPTIONS sip:bob@example.com SIP/2.0\r\nCall-ID: a@one\r\n\r\n";
        udp(at(from), at(to), message)
    };
    assert_eq!(bed.handle(&call(real, CLIENT)).source(), at(vip));
    bed.fail(service_key, real);
    bed.recover(service_key, real);
    assert_eq!(bed.handle(&call(real, CLIENT)).source(), at(vip));
    assert_eq!(bed.handle(&call(CLIENT, vip)).destination(), at(real));
    assert_eq!(bed.counts(), [(0, 1)], "a connection of the life that it has now");
}

#[test]
fn connections_that_ftp_has_announced_are_dead_with_it() {
    let (vip, real) = ("192.0.2.100:21", "10.77.0.11:21");
    let service = key(Protocol::Tcp, vip);
    let mut bed = Bed::with(service, &[(real, Forwarding::Nat)]);
    bed.establish(CLIENT, vip);
    let announce = tcp(at(CLIENT), at(vip), ACK, b"PORT 198,51,100,7,4,1\r\n");
    assert!(bed.handle(&announce).is_sent());
    bed.fail(service, real);
    let active = bed.tcp("10.77.0.11:20", "198.51.100.7:1025", SYN);
    reset(&bed, &active);
    let control = bed.tcp(CLIENT, vip, ACK);
    reset(&bed, &control);
}

#[test]
fn what_stays_stays_unless_it_is_certain_that_nobody_knows_of_it() {
    let service_key = key(Protocol::Tcp, VIP);
    let mut bed = Bed::with(service_key, &[(ONE, Forwarding::Nat)]);
    let extras = Extras { teardown: Teardown::None, ..Extras::default() };
    bed.ask(service(service_key, "rr"), extras);
    bed.establish(CLIENT, VIP);
    bed.fail(service_key, ONE);
    assert_eq!(bed.tcp(CLIENT, VIP, ACK).destination(), at(ONE));
    assert_eq!(bed.tcp(ONE, CLIENT, ACK).source(), at(VIP));
    assert_eq!(bed.counts(), [(1, 0)]);
    assert!(bed.table.lose(&service_key, at(ONE), true, bed.now));
    let out = bed.tcp(CLIENT, VIP, ACK);
    reset(&bed, &out);
}

#[test]
fn with_expire_nodest_conn_nothing_dead_is_left() {
    let service = key(Protocol::Tcp, VIP);
    let mut bed = Bed::with(service, &[(ONE, Forwarding::Nat)]);
    bed.establish(CLIENT, VIP);
    bed.fail(service, ONE);
    bed.table.end_orphans();
    assert_eq!(bed.entries(), 1, "not asked for");
    bed.table.shared().settings.set(Setting::ExpireNodestConn, 1);
    let out = bed.tcp(CLIENT, VIP, ACK);
    reset(&bed, &out);
    assert!(!bed.tcp(CLIENT, VIP, SYN).is_sent(), "no server takes it");
    bed.recover(service, ONE);
    bed.establish(CLIENT, VIP);
    bed.fail(service, ONE);
    bed.table.end_orphans();
    assert_eq!(bed.entries(), 0);
    assert_eq!(bed.tcp(CLIENT, VIP, ACK).verdict, Verdict::Pass(PassReason::NoConnection));
}

#[test]
fn a_server_that_drains_keeps_its_connections_and_templates() {
    let service_key = key(Protocol::Tcp, VIP);
    let mut bed = Bed::new();
    let persistence = Some(Persistence { timeout: 300, prefix: 24, engine: None });
    let spec = ServiceSpec { persistence, ..service(service_key, "rr") };
    bed.apply(Command::AddService { service: spec.clone() });
    for address in [ONE, TWO] {
        let server = server(address, Forwarding::Nat);
        bed.apply(Command::AddServer { service: service_key, server });
    }
    let chosen = bed.establish(CLIENT, VIP);
    let other = if chosen == at(ONE) { TWO } else { ONE };
    bed.table.stand(&service_key, chosen, DOWN);
    assert_eq!(bed.tcp(CLIENT, VIP, ACK).destination(), chosen);
    assert_eq!(bed.tcp("198.51.100.7:4001", VIP, SYN).destination(), chosen);
    for client in ["203.0.113.1:1", "203.0.114.1:1"] {
        assert_eq!(bed.tcp(client, VIP, SYN).destination(), at(other));
    }
    bed.ask(spec, Extras { leave_quiesced: true, ..Extras::default() });
    assert_eq!(bed.tcp("198.51.100.7:4002", VIP, SYN).destination(), at(other));
    assert_eq!(bed.tcp(CLIENT, VIP, ACK).destination(), chosen);
    bed.wait(Duration::from_secs(1));
}
