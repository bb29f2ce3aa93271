use std::collections::HashSet;
use std::time::Duration;

use super::*;

fn setup(forwarding: Forwarding, v4: bool) -> Setup {
    Setup { forwarding, v4, scheduler: "rr", servers: 3 }
}

#[test]
fn opened_connections_are_established_and_so_outlive_a_syn() {
    for (forwarding, v4) in
        [(Forwarding::Nat, true), (Forwarding::Direct, false), (Forwarding::Tunnel, true)]
    {
        let setup = setup(forwarding, v4);
        let mut director = Director::new(&setup, 2, 4096).unwrap();
        Flows::open(&mut director, &setup, 1000, &always).unwrap();
        // SYN_RECV lasts one minute, ESTABLISHED fifteen.
        director.skip(Duration::from_secs(120)).unwrap();
        director.skip(Duration::from_secs(1)).unwrap();
        assert_eq!(director.connections(), 1000, "{forwarding:?}");
    }
}

#[test]
fn every_flow_has_its_turn_and_no_two_workers_meet() {
    let setup = setup(Forwarding::Direct, true);
    let mut director = Director::new(&setup, 1, 1 << 14).unwrap();
    let flows = Flows::open(&mut director, &setup, 10_240, &always).unwrap();
    let seen: Vec<HashSet<Vec<u8>>> = (0..2)
        .map(|worker| {
            let mut visits = flows.visits(Side::Client, worker, 2);
            let mut frames = Frames::default();
            let mut seen = HashSet::new();
            for _ in 0..5120 / ROUND {
                visits.next(&mut frames);
                seen.extend(frames.iter().map(<[u8]>::to_vec));
            }
            seen
        })
        .collect();
    assert_eq!((seen[0].len(), seen[1].len()), (5120, 5120));
    assert!(seen[0].is_disjoint(&seen[1]));
}

#[test]
fn replies_come_from_the_server_that_each_client_was_given() {
    for v4 in [true, false] {
        let setup = setup(Forwarding::Nat, v4);
        let mut director = Director::new(&setup, 2, 4096).unwrap();
        let flows = Flows::open(&mut director, &setup, 2048, &always).unwrap();
        let mut frames = Frames::default();
        flows.visits(Side::Server, 0, 1).next(&mut frames);
        let mut clients = HashSet::new();
        director.stations[0]
            .exchange(&frames, |bytes| {
                let headers = forwarding::parse(bytes).unwrap();
                assert_eq!(headers.source, setup.vip().ip(), "translated back");
                clients.insert(headers.destination);
            })
            .unwrap();
        assert_eq!(clients.len(), ROUND);
    }
}
