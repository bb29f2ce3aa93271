//! Which server gets a request: schedulers, weights, thresholds and persistence on real traffic.

use std::io::ErrorKind;
use std::net::SocketAddr;

use integration::topology::Kind;

use super::bed::{Bed, VIPS, can_run, connect, of, service, top};

/// Answers of servers 1 to 3 to `count` requests to `port`; none may fail.
#[track_caller]
fn shares(bed: &Bed, port: u16, count: u64) -> [u64; 3] {
    let mut shares = [0; 3];
    for vip in VIPS {
        let tally = bed.fetch(vip, port, count);
        assert_eq!((tally.answered(), tally.failed()), (count, 0), "{vip}: {tally:?}");
        let these = [1, 2, 3].map(|number| of(&tally, number));
        assert!(shares == [0; 3] || shares == these, "families differ: {shares:?} {these:?}");
        shares = these;
    }
    shares
}

/// The services of the tests, each on a port of its own, both families.
fn bed() -> Bed {
    let services = [
        (80, "rr", "", [1, 1, 1]),
        (81, "wrr", "", [3, 2, 1]),
        (82, "sh", "", [1, 1, 1]),
        (83, "wrr", "", [1, 0, 1]),
        (84, "rr", "persistence = { timeout = \"5m\" }", [1, 1, 1]),
        (85, "wrr", "", [0, 0, 0]),
    ];
    let text: String = services
        .iter()
        .flat_map(|(port, scheduler, more, weights)| {
            VIPS.map(|vip| service(Kind::Nat, vip, *port, scheduler, more, weights))
        })
        .collect();
    let bed = Bed::with(Kind::Nat, &(top("copy") + &text));
    (81..=84).for_each(|port| bed.serve(port));
    bed
}

#[test]
fn quick_requests_are_spread_exactly_as_schedulers_weights_and_persistence_say() {
    if !can_run() {
        return;
    }
    let bed = bed();
    assert_eq!(shares(&bed, 80, 300), [100, 100, 100], "rr");
    assert_eq!(shares(&bed, 81, 300), [150, 100, 50], "wrr 3:2:1 over whole cycles");
    for (port, what) in [(82, "sh"), (84, "persistence")] {
        for vip in VIPS {
            let tally = bed.fetch(vip, port, 60);
            assert_eq!(tally.failed(), 0, "{what}: {tally:?}");
            assert_eq!(tally.by_server.len(), 1, "{what} sends one client to several: {tally:?}");
        }
    }
    assert_eq!(shares(&bed, 83, 100), [50, 0, 50], "a server of weight 0");
    // No server may take it: the client is told, at once.
    for vip in VIPS {
        let refused = connect(&bed.topology, SocketAddr::new(vip, 85)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{vip}");
    }
    assert_eq!(bed.director.verdicts("no_server").unwrap(), 2);
}

#[test]
fn a_server_at_its_upper_threshold_gets_no_more_connections() {
    if !can_run() {
        return;
    }
    let limited = |vip| {
        service(Kind::Nat, vip, 80, "rr", "", &[1, 1, 1])
            .replace("weight = 1", "weight = 1\n  upper_threshold = 2")
    };
    let bed = Bed::with(Kind::Nat, &(top("copy") + &VIPS.map(limited).concat()));
    for vip in VIPS {
        let target = SocketAddr::new(vip, 80);
        let held: Vec<_> = (0..6).map(|_| connect(&bed.topology, target).unwrap()).collect();
        let views = bed.director.services().unwrap();
        let key = director::control::api::ServiceKey::Address {
            protocol: director::control::api::Protocol::Tcp,
            address: target,
        };
        let view = views.iter().find(|view| view.spec.key == key).unwrap();
        assert!(view.servers.iter().all(|server| server.active == 2), "{:?}", view.servers);
        let refused = connect(&bed.topology, target).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "a seventh connection to {vip}");
        drop(held);
    }
}
