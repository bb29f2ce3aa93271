//! The table against a plain model, in virtual time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use schedulers::{Options, Server, ServerId};

use super::{Connections, PART, SHARDS, Way};
use crate::control::api::{Protocol, ServiceKey, ServiceSpec};
use crate::dispatch::connection::{Connection, Endpoint, Tuple};
use crate::dispatch::service::{RealServer, Service};
use crate::dispatch::signal::Signal;
use crate::dispatch::state::Timeouts;
use crate::dispatch::transmitter::Transmitter;

fn endpoint(last: u8, port: u16) -> Endpoint {
    (std::net::Ipv4Addr::new(198, 51, 100, last).into(), port)
}

const VIP: u8 = 200;
const REAL: u8 = 220;

pub(super) fn parts() -> (Arc<Service>, Arc<RealServer>) {
    let key = ServiceKey::Address { protocol: Protocol::Udp, address: endpoint(VIP, 53).into() };
    let spec = ServiceSpec {
        key,
        scheduler: "rr".into(),
        flags: 0,
        persistence: None,
        one_packet: false,
        extras: None,
    };
    let scheduler = schedulers::create("rr", &Options::default()).unwrap();
    let (address, port) = endpoint(REAL, 5353);
    let load = Arc::new(Server::new(ServerId(1), address, port, 1));
    (Arc::new(Service::new(spec, scheduler)), Arc::new(RealServer::new(load)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    /// Requests, answers and pauses at random: a connection is there exactly as long as 300 s have
    /// not passed since its last packet, and the server's count agrees.
    #[test]
    fn a_connection_lives_until_its_timeout_and_no_longer(
        steps in prop::collection::vec((0u8..8, 0u8..3, 0u64..30), 1..200)
    ) {
        let table = Connections::new(1000);
        let timeouts = Timeouts::default();
        let (service, real) = parts();
        let binding = table.bind(&service, &real, Transmitter::Nat);
        let mut model: HashMap<u8, Duration> = HashMap::new();
        let mut now = Duration::from_secs(1);
        for (client, action, pause) in steps {
            // Sevens never add up to 300: the wheel's half second of lateness does not matter.
            now += Duration::from_secs(pause * 7);
            for shard in 0..SHARDS {
                table.expire(shard, now);
            }
            model.retain(|_, last| now < *last + Duration::from_secs(300));
            let (source, vip) = (endpoint(client, 4000), endpoint(VIP, 53));
            if action == 2 {
                let answer = table.with(17, endpoint(REAL, 5353), source, |way, connection| {
                    connection.outgoing(Signal::Udp, 100, now, &timeouts);
                    way
                });
                prop_assert_eq!(answer, model.get(&client).map(|_| Way::Out));
            } else {
                let known = table.with(17, source, vip, |way, connection| {
                    connection.incoming(Signal::Udp, 100, now, &timeouts);
                    way
                });
                prop_assert_eq!(known, model.get(&client).map(|_| Way::In));
                if known.is_none() {
                    let tuple = Tuple { protocol: 17, template: false, client: source, peer: vip };
                    let connection = Connection::new(tuple, binding.clone(), now);
                    table.insert(connection, |connection| {
                        connection.incoming(Signal::Udp, 100, now, &timeouts);
                    });
                }
            }
            if action != 2 || model.contains_key(&client) {
                model.insert(client, now);
            }
            prop_assert_eq!(table.len(), model.len());
            prop_assert_eq!(real.load.inactive() as usize, model.len());
        }
    }
}

fn open(table: &Connections, client: Endpoint, vip: Endpoint, now: Duration) {
    let (service, real) = parts();
    let binding = table.bind(&service, &real, Transmitter::Nat);
    let tuple = Tuple { protocol: 17, template: false, client, peer: vip };
    let connection = Connection::new(tuple, binding, now);
    table.insert(connection, |connection| {
        connection.incoming(Signal::Udp, 100, now, &Timeouts::default());
    });
}

#[test]
fn a_server_that_is_also_a_client_has_both_kinds_of_packets_recognised() {
    let table = Connections::new(10);
    let now = Duration::from_secs(1);
    let (real, client, vip) = (endpoint(REAL, 5353), endpoint(1, 4000), endpoint(VIP, 53));
    open(&table, client, vip, now);
    let other = endpoint(VIP, 54);
    open(&table, real, other, now);
    let way = |from, to| table.with(17, from, to, |way, _| way);
    assert_eq!(way(real, client), Some(Way::Out));
    assert_eq!(way(real, other), Some(Way::In));
    assert_eq!(way(client, vip), Some(Way::In));
    assert_eq!(way(real, endpoint(2, 4000)), None);
}

#[test]
fn a_server_is_looked_up_as_one_only_while_it_is_bound() {
    let table = Connections::new(10);
    let (service, real) = parts();
    let known = || table.servers.may_have(endpoint(REAL, 5353).0);
    assert!(!known());
    for transmitter in [Transmitter::Nat, Transmitter::Direct, Transmitter::Nat] {
        table.bind(&service, &real, transmitter);
    }
    assert!(known());
    let gone = [real];
    table.unbind(&gone, Duration::ZERO);
    table.unbind(&gone, Duration::ZERO);
    assert!(!known());
}

/// FTP servers may announce somebody else's address.
#[test]
fn an_expected_connection_to_another_address_is_answered_from_there() {
    let table = Connections::new(10);
    let (now, timeouts) = (Duration::from_secs(1), Timeouts::default());
    let (service, real) = parts();
    let binding = table.bind(&service, &real, Transmitter::Nat);
    let (client, vip, other) = (endpoint(1, 4000), endpoint(VIP, 50_000), endpoint(221, 50_000));
    let tuple = Tuple { protocol: 6, template: false, client, peer: vip };
    let expected = Connection::expected(tuple, other, &Arc::default(), binding, now, &timeouts);
    table.expect(expected, now, &timeouts);
    let answered = |from| table.with(6, from, client, |way, it| (way, it.server_endpoint));
    assert_eq!(answered(other), Some((Way::Out, other)));
    assert_eq!(answered(endpoint(REAL, 50_000)), None);
    (0..SHARDS).for_each(|shard| table.expire(shard, Duration::from_secs(200)));
    assert!(table.is_empty() && !table.servers.may_have(other.0));
}

#[test]
fn a_full_table_shows_all_that_is_in_it() {
    let table = Connections::new(3);
    let now = Duration::from_secs(1);
    for client in 0..3 {
        open(&table, endpoint(client, 4000), endpoint(VIP, 53), now);
    }
    assert!(table.is_full());
    let known = |client| {
        let tuple = Tuple {
            protocol: 17,
            template: false,
            client: endpoint(client, 4000),
            peer: endpoint(VIP, 53),
        };
        table.with_tuple(&tuple, |_| ()).is_some()
    };
    assert!((0..3).all(known) && !known(3));
    let visited = (0..SHARDS).map(|shard| {
        let mut seen = 0;
        assert!(table.visit(shard, |_| seen += 1));
        assert_eq!(table.len_of(shard), seen);
        seen
    });
    assert_eq!(visited.sum::<usize>(), 3);
    assert!(!table.visit(SHARDS, |_| ()));
}

/// A shard holds some parts: none is left out, and none comes twice.
#[test]
fn every_connection_is_listed_once_however_many_there_are() {
    let table = Connections::new(1 << 20);
    assert!(!table.visit(0, |_| ()), "an empty table has no part");
    let (service, real) = parts();
    let binding = table.bind(&service, &real, Transmitter::Nat);
    let count = 3 * PART * SHARDS;
    for number in 0..count {
        let client = endpoint((number / 1000) as u8, (number % 1000) as u16);
        let tuple = Tuple { protocol: 17, template: false, client, peer: endpoint(VIP, 53) };
        let now = Duration::from_secs(1);
        table.insert(Connection::new(tuple, binding.clone(), now), |_| ());
    }
    let (mut seen, mut most, mut parts) = (std::collections::HashSet::new(), 0, 0);
    loop {
        let mut here = 0;
        if !table.visit(parts, |connection| {
            assert!(seen.insert(connection.tuple.client), "twice: {:?}", connection.tuple);
            here += 1;
        }) {
            break;
        }
        (parts, most) = (parts + 1, most.max(here));
    }
    assert_eq!((seen.len(), most), (count, PART));
    assert!(!table.visit(parts + 100 * SHARDS, |_| ()));
}

/// Workers that come with the same first packet at once, and with others' packets.
#[test]
fn a_connection_without_a_port_is_given_the_first_one_by_whoever_comes() {
    let table = Connections::new(1000);
    let (now, timeouts) = (Duration::from_secs(1), Timeouts::default());
    let (service, real) = parts();
    let control = Arc::default();
    let binding = table.bind(&service, &real, Transmitter::Nat);
    for client in 0..100 {
        let (nobody, vip) = (endpoint(client, 0), endpoint(VIP, 50_000));
        let tuple = Tuple { protocol: 6, template: false, client: nobody, peer: vip };
        let server = endpoint(REAL, 50_000);
        let binding = binding.clone();
        let expected = Connection::expected(tuple, server, &control, binding, now, &timeouts);
        table.expect(expected, now, &timeouts);
    }
    let adopt = |client, port| {
        let (client, peer) = (endpoint(client, port), endpoint(VIP, 50_000));
        table.adopt(&Tuple { protocol: 6, template: false, client, peer })
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100).for_each(|client| assert!(adopt(client, 4000))));
        }
        scope.spawn(|| (100..200).for_each(|client| assert!(!adopt(client, 4000))));
    });
    assert!((0..100).all(|client| !adopt(client, 4001)), "each was for one port");
    assert_eq!((table.len(), real.load.inactive()), (100, 100));
    (0..SHARDS).for_each(|shard| table.expire(shard, Duration::from_secs(200)));
    assert!(table.is_empty() && !adopt(0, 4000));
    assert_eq!(table.portless.load(std::sync::atomic::Ordering::Relaxed), 0);
}
