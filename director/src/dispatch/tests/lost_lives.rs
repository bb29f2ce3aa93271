//! A server fails and comes back, perhaps often: what stays of it, and for how long.

use std::time::Duration;

use super::bed::*;
use super::lost::{CLIENT, ONE, TWO, VIP};
use crate::config::DeclaredService;
use crate::control::api::{
    Bias, BiasWindow, Extras, Forwarding, Persistence, Protocol, ServiceKey, ServiceSpec, Teardown,
};
use crate::control::operations::Command;
use crate::dispatch::verdict::{DropReason, Verdict};
use crate::health::plan::ServiceHealth;
use crate::health::servers::Servers;
use crate::table::{Interest, Silent};

fn service_key() -> ServiceKey {
    key(Protocol::Tcp, VIP)
}

fn sweep(bed: &mut Bed, seconds: u64) {
    for _ in 0..seconds {
        bed.wait(Duration::from_secs(1));
        bed.table.sweep(bed.now);
    }
}

fn interest_in_server(bed: &Bed) -> bool {
    bed.table.interests().contains(&Interest::NatServer(6, at(ONE)))
}

#[test]
fn a_server_that_is_back_serves_new_connections_and_the_old_ones_stay_dead() {
    let mut bed = Bed::with(service_key(), &[(ONE, Forwarding::Nat)]);
    bed.establish(CLIENT, VIP);
    let before = bed.table.service_views()[0].servers[0].stats;
    bed.fail(service_key(), ONE);
    assert!(!bed.tcp("198.51.100.8:4000", VIP, SYN).is_sent(), "nobody is there");
    bed.recover(service_key(), ONE);
    bed.establish("198.51.100.8:4000", VIP);
    assert_eq!(bed.tcp("198.51.100.8:4000", VIP, ACK).destination(), at(ONE));
    assert_eq!(bed.counts(), [(1, 0)]);
    assert_eq!(bed.entries(), 2);
    let after = bed.table.service_views()[0].servers[0].stats;
    assert_eq!(after.connections, before.connections + 1, "its counters go on");
    assert_eq!(after.in_packets, before.in_packets + 3);
    let out = bed.tcp(CLIENT, VIP, ACK);
    assert_eq!(out.verdict, Verdict::Answer { reason: DropReason::ServerLost });
    assert_eq!(bed.counts(), [(1, 0)]);
}

/// A dead connection keeps what it needs, a life of the server and its binding, and no longer than
/// it is there.
#[test]
fn a_server_that_flaps_leaves_nothing_behind() {
    let mut bed = Bed::with(service_key(), &[(ONE, Forwarding::Nat)]);
    let bound = |bed: &Bed| {
        let bindings = bed.table.shared().connections.bindings().load_full();
        (0..bindings.len() as u32).filter(|id| bindings.get(*id).is_some()).count()
    };
    for round in 0..600_u32 {
        bed.recover(service_key(), ONE);
        bed.establish(&format!("198.51.100.7:{}", 1000 + round), VIP);
        bed.fail(service_key(), ONE);
        // A second time there is nothing to be lost.
        bed.fail(service_key(), ONE);
        sweep(&mut bed, 1);
    }
    assert_eq!((bound(&bed), bed.entries()), (601, 600));
    assert!(interest_in_server(&bed));
    // Entries expire, one after the other; what has no entry has gone with it.
    sweep(&mut bed, 905);
    assert_eq!((bound(&bed), bed.entries()), (1, 0));
    // One after the other, with time to forget in between: numbers are used again.
    for round in 0..600_u32 {
        bed.recover(service_key(), ONE);
        let client = format!("198.51.100.7:{}", 1000 + round);
        bed.establish(&client, VIP);
        bed.fail(service_key(), ONE);
        bed.tcp(&client, VIP, ACK);
        sweep(&mut bed, 1);
    }
    sweep(&mut bed, 6);
    assert_eq!((bound(&bed), bed.entries()), (1, 0));
    assert!(bed.table.shared().connections.bindings().load().len() <= 1024);
}

#[test]
fn dead_connections_are_steered_to_us_until_they_are_gone() {
    let mut bed = Bed::with(service_key(), &[(ONE, Forwarding::Nat)]);
    bed.establish(CLIENT, VIP);
    bed.fail(service_key(), ONE);
    bed.apply(Command::DeleteServer { service: service_key(), server: at(ONE) });
    bed.apply(Command::DeleteService { service: service_key() });
    sweep(&mut bed, 130);
    assert!(
        interest_in_server(&bed),
        "no connection of the life that was removed, but of this one"
    );
    assert!(bed.table.interests().contains(&Interest::Service(6, at(VIP))));
    let out = bed.tcp(CLIENT, VIP, ACK);
    assert_eq!(out.verdict, Verdict::Answer { reason: DropReason::ServerLost });
    sweep(&mut bed, 2);
    assert_eq!(bed.table.interests(), []);
}

#[test]
fn a_removed_server_does_not_come_back_with_what_was_lost_before() {
    let mut bed = Bed::with(service_key(), &[(ONE, Forwarding::Nat)]);
    bed.establish(CLIENT, VIP);
    bed.fail(service_key(), ONE);
    bed.recover(service_key(), ONE);
    bed.establish("198.51.100.8:4000", VIP);
    bed.apply(Command::DeleteServer { service: service_key(), server: at(ONE) });
    let server = server(ONE, Forwarding::Nat);
    bed.apply(Command::AddServer { service: service_key(), server });
    assert_eq!(bed.counts(), [(1, 0)]);
    assert_eq!(bed.tcp("198.51.100.8:4000", VIP, ACK).destination(), at(ONE));
    let out = bed.tcp(CLIENT, VIP, ACK);
    assert_eq!(out.verdict, Verdict::Answer { reason: DropReason::ServerLost });
}

#[test]
fn a_full_table_makes_room_of_dead_connections_first() {
    let mut bed = Bed::sized(64, service_key(), &[(ONE, Forwarding::Nat), (TWO, Forwarding::Nat)]);
    let clients: Vec<_> = (0..64).map(|n| format!("198.51.100.7:{}", 2000 + n)).collect();
    let chosen: Vec<_> = clients.iter().map(|client| bed.establish(client, VIP)).collect();
    assert!(!bed.tcp(CLIENT, VIP, SYN).is_sent(), "all of them are in use");
    bed.fail(service_key(), ONE);
    for n in 0..32 {
        assert!(bed.tcp(&format!("198.51.100.8:{}", 2000 + n), VIP, SYN).is_sent());
    }
    let alive = clients.iter().zip(chosen).filter(|(_, chosen)| *chosen == at(TWO));
    for (client, _) in alive {
        assert_eq!(bed.tcp(client, VIP, ACK).destination(), at(TWO));
    }
}

/// A bed whose service rouses silent clients.
fn eager(protocol: Protocol) -> Bed {
    let service_key = key(protocol, VIP);
    let bed = Bed::with(service_key, &[(ONE, Forwarding::Nat), (TWO, Forwarding::Nat)]);
    let extras = Extras { teardown: Teardown::Eager, ..Extras::default() };
    bed.ask(service(service_key, "rr"), extras);
    bed
}

fn silent(bed: &Bed) -> Vec<Silent> {
    let mut silent = Vec::new();
    for _ in 0..1000 {
        if !bed.table.has_eager_work() {
            return silent;
        }
        silent.extend(bed.table.take_eager_work(10));
    }
    panic!("it comes to no end");
}

#[test]
fn silent_clients_of_a_failed_server_are_found_and_no_others() {
    let mut bed = eager(Protocol::Tcp);
    let mut expected = Vec::new();
    for number in 0..400 {
        let client = format!("198.51.100.7:{}", 2000 + number);
        if bed.establish(&client, VIP) == at(ONE) {
            expected.push(at(&client));
        }
    }
    // Nobody waits for an answer here.
    bed.tcp("198.51.100.8:1", VIP, SYN);
    bed.tcp("198.51.100.8:2", VIP, SYN);
    assert!(!bed.table.has_eager_work());
    bed.fail(service_key(), ONE);
    assert!(bed.table.has_eager_work());
    let found = silent(&bed);
    let mut clients: Vec<_> = found.iter().map(|it| it.client).collect();
    clients.sort();
    assert_eq!(clients, expected);
    assert!(found.iter().all(|it| it.virtual_address == at(VIP)));
    assert!(!bed.table.has_eager_work());
    // What they answer meets its end.
    let out = bed.tcp(&clients[0].to_string(), VIP, ACK);
    assert_eq!(out.verdict, Verdict::Answer { reason: DropReason::ServerLost });
}

#[test]
fn no_more_clients_are_found_at_a_time_than_are_asked_for_and_a_part_of_the_table() {
    let mut bed = eager(Protocol::Tcp);
    for number in 0..4000 {
        bed.establish(&format!("198.51.100.7:{}", 2000 + number), VIP);
    }
    bed.fail(service_key(), ONE);
    let mut all = 0;
    while bed.table.has_eager_work() {
        let found = bed.table.take_eager_work(100).len();
        assert!(found < 100 + crate::dispatch::connections::PART, "{found}");
        all += found;
    }
    assert_eq!(all, 2000);
}

#[test]
fn a_server_that_fails_during_the_search_has_its_clients_found_too() {
    let mut bed = eager(Protocol::Tcp);
    let clients: Vec<_> = (0..1000).map(|n| format!("198.51.100.7:{}", 2000 + n)).collect();
    clients.iter().for_each(|client| _ = bed.establish(client, VIP));
    bed.fail(service_key(), ONE);
    let mut found = bed.table.take_eager_work(100);
    bed.fail(service_key(), TWO);
    found.extend(silent(&bed));
    found.sort_by_key(|it| it.client);
    found.dedup_by_key(|it| it.client);
    assert_eq!(found.len(), 1000);
}

#[test]
fn dead_datagrams_entries_are_removed_and_those_of_other_services_left() {
    let mut bed = eager(Protocol::Udp);
    for number in 0..100 {
        bed.udp(&format!("198.51.100.7:{}", 2000 + number), VIP);
    }
    bed.fail(key(Protocol::Udp, VIP), ONE);
    assert_eq!((silent(&bed), bed.entries()), (vec![], 50));
    assert_eq!(bed.counts(), [(0, 50), (0, 0)]);

    let mut bed = Bed::with(service_key(), &[(ONE, Forwarding::Nat)]);
    bed.establish(CLIENT, VIP);
    bed.fail(service_key(), ONE);
    assert!(!bed.table.has_eager_work(), "lazy");
}

#[test]
fn what_is_not_there_cannot_be_lost() {
    let bed = Bed::with(service_key(), &[(ONE, Forwarding::Nat)]);
    assert!(!bed.table.lose(&service_key(), at(TWO), true, bed.now));
    assert!(!bed.table.lose(&key(Protocol::Udp, VIP), at(ONE), true, bed.now));
    assert!(bed.table.lose(&service_key(), at(ONE), true, bed.now));
}

#[test]
fn an_ended_life_of_a_server_is_not_counted_against_its_limit() {
    let mut bed = Bed::with(service_key(), &[(ONE, Forwarding::Nat)]);
    let mut limited = server(ONE, Forwarding::Nat);
    limited.upper_threshold = 1;
    bed.apply(Command::EditServer { service: service_key(), server: limited });
    bed.establish(CLIENT, VIP);
    assert!(!bed.tcp("198.51.100.8:1", VIP, SYN).is_sent());
    bed.fail(service_key(), ONE);
    bed.recover(service_key(), ONE);
    assert!(bed.tcp("198.51.100.8:1", VIP, SYN).is_sent());
    assert!(!bed.tcp("198.51.100.9:1", VIP, SYN).is_sent());
}

/// A service with a fallback server, as a file declares it.
fn with_fallback(spec: ServiceSpec, method: Forwarding) -> Bed {
    let bed = Bed::new();
    let declared = DeclaredService {
        service: spec,
        servers: vec![server(ONE, method)],
        fallback: Some(server(SORRY, method)),
        health: ServiceHealth::default(),
    };
    bed.table.declare(&[declared], &[], bed.now).unwrap();
    bed
}

const SORRY: &str = "10.77.0.99:80";

#[test]
fn clients_of_the_fallback_server_are_not_kept_there() {
    let persistence = Some(Persistence { timeout: 300, prefix: 24, engine: None });
    let spec = ServiceSpec { persistence, ..service(service_key(), "rr") };
    let mut bed = with_fallback(spec, Forwarding::Nat);
    assert_eq!(bed.establish(CLIENT, VIP), at(ONE));
    bed.fail(service_key(), ONE);
    assert!(bed.table.fall_back(&service_key(), true));
    assert_eq!(bed.establish("198.51.100.7:4001", VIP), at(SORRY));
    let view = bed.table.service_views()[0].fallback.clone().unwrap();
    assert_eq!((view.active, view.persistent, view.stats.connections), (1, 0, 1));
    bed.recover(service_key(), ONE);
    bed.table.fall_back(&service_key(), false);
    assert_eq!(bed.establish("198.51.100.7:4002", VIP), at(ONE));
    // What has begun there ends there.
    assert_eq!(bed.tcp("198.51.100.7:4001", VIP, ACK).destination(), at(SORRY));
    assert_eq!(bed.tcp(SORRY, "198.51.100.7:4001", ACK).source(), at(VIP));
}

#[test]
fn a_flow_without_a_memory_goes_to_servers_that_are_up_or_to_the_fallback_server() {
    let hop = |out: Out| match out.verdict {
        Verdict::Transmit { path, .. } => Some(path.next_hop),
        _ => None,
    };
    let spec = service(service_key(), "rr");
    let mut bed = Bed::sized(1, service_key(), &[]);
    let declared = DeclaredService {
        service: spec,
        servers: vec![server(ONE, Forwarding::Direct)],
        fallback: Some(server(SORRY, Forwarding::Direct)),
        health: ServiceHealth::default(),
    };
    bed.table.declare(&[declared], &[], bed.now).unwrap();
    bed.tcp(CLIENT, VIP, SYN);
    bed.tcp(CLIENT, VIP, ACK);
    let other = "198.51.100.8:4000";
    assert_eq!(hop(bed.tcp(other, VIP, SYN)), Some(at(ONE).ip()));
    bed.table.stand(&service_key(), at(ONE), super::lost::DOWN);
    assert_eq!(hop(bed.tcp(other, VIP, SYN)), None);
    bed.table.fall_back(&service_key(), true);
    assert_eq!(hop(bed.tcp(other, VIP, SYN)), Some(at(SORRY).ip()));
}

/// In progress are TCP handshakes and those of SCTP, until they end in whatever way.
#[test]
fn handshakes_are_counted_while_they_last_and_however_they_end() {
    let spec = |protocol| {
        let bias = Extras { bias: Bias::Ilb(2), bias_window: BiasWindow(100), ..Extras::default() };
        ServiceSpec { extras: Some(bias), ..service(key(protocol, VIP), "wlc") }
    };
    let mut bed = Bed::sized(3, service_key(), &[(ONE, Forwarding::Nat)]);
    bed.apply(Command::EditService { service: spec(Protocol::Tcp) });
    let handshakes = |bed: &mut Bed| {
        // The young ones are no longer so.
        bed.wait(Duration::from_millis(300));
        let services = bed.table.published().load_full();
        let service = services.find(6, at(VIP).ip(), at(VIP).port()).unwrap();
        let key = schedulers::Key {
            protocol: 6,
            source: at(CLIENT).ip(),
            source_port: 1,
            destination: at(VIP).ip(),
            destination_port: 80,
            name: None,
        };
        // The window is turned by whoever chooses.
        service.schedule(&key, bed.now).unwrap().binding.server.load.in_progress()
    };
    let client = |port: u16| format!("198.51.100.7:{port}");
    bed.tcp(&client(1), VIP, SYN);
    bed.tcp(&client(2), VIP, SYN);
    bed.tcp(&client(3), VIP, SYN);
    assert_eq!(handshakes(&mut bed), 3);
    bed.tcp(ONE, &client(1), SYN_ACK);
    bed.tcp(&client(1), VIP, ACK);
    assert_eq!(handshakes(&mut bed), 2, "established");
    bed.tcp(ONE, &client(2), RST);
    assert_eq!(handshakes(&mut bed), 1, "refused");
    bed.tcp(&client(4), VIP, SYN);
    assert_eq!((bed.entries(), handshakes(&mut bed)), (3, 2), "in place of the refused one");
    bed.tcp(&client(5), VIP, SYN);
    assert_eq!((bed.entries(), handshakes(&mut bed)), (3, 2), "in place of a half-open one");
    bed.wait(Duration::from_secs(130));
    assert_eq!(handshakes(&mut bed), 0, "expired");
    bed.tcp(&client(6), VIP, SYN);
    bed.fail(service_key(), ONE);
    bed.recover(service_key(), ONE);
    assert_eq!(handshakes(&mut bed), 0, "lost");
    bed.wait(Duration::from_secs(130));
    assert_eq!(handshakes(&mut bed), 0);
}
