//! Every way to take packets that veth offers carries HTTP by every method, and the one that it
//! does not offer says so. Also several queues, and two interfaces.

use std::time::Duration;

use integration::running::Director;
use integration::topology::{Kind, Options, Topology};

use crate::bed::Plan;
use crate::{can_run, http};

const REQUESTS: u64 = 1000;
const METHODS: [Kind; 3] = [Kind::Nat, Kind::Tunnel, Kind::Direct];

/// AF_XDP copy mode is what the other tests use. All methods, with peers' checksum offload on and off, over both families.
fn carry_all(io: &'static str) {
    for kind in METHODS {
        for offload in [true, false] {
            http::carry(Plan { io, ..Plan::new(kind, offload) }, REQUESTS);
        }
    }
}

#[test]
fn generic_xdp_carries_every_request() {
    if can_run() {
        carry_all("generic");
    }
}

#[test]
fn af_packet_carries_every_request_and_cuts_super_frames() {
    if can_run() {
        carry_all("packet");
    }
}

#[test]
fn quick_zero_copy_on_a_veth_is_refused_with_a_reason() {
    if !can_run() {
        return;
    }
    let topology =
        Topology::build(Kind::Direct, &Options { servers: 1, ..Options::default() }).unwrap();
    let config = "mode = \"dispatcher\"\ninterfaces = [\"eth0\"]\nio = \"zero-copy\"\n";
    let director = Director::launch(&topology.lab, &topology.director, config).unwrap();
    let status = director.process().wait(Duration::from_secs(15)).unwrap();
    let log = director.process().log();
    assert!(status.is_some_and(|status| !status.success()), "it goes on:\n{log}");
    for needed in ["eth0 queue 0", "no AF_XDP zero-copy", "io in the configuration"] {
        assert!(log.contains(needed), "{needed:?} is not in:\n{log}");
    }
}

/// Replies may arrive on another queue, at another worker, than the request.
#[test]
fn two_workers_on_two_queues_lose_nothing() {
    if can_run() {
        http::carry(Plan { queues: 2, workers: 2, ..Plan::new(Kind::Nat, true) }, 10_000);
    }
}

#[test]
fn one_worker_on_two_queues_loses_nothing() {
    if can_run() {
        http::carry(Plan { queues: 2, ..Plan::new(Kind::Nat, true) }, REQUESTS);
    }
}

#[test]
fn two_workers_on_af_packet_lose_nothing() {
    if can_run() {
        http::carry(Plan { io: "packet", workers: 2, ..Plan::new(Kind::Nat, true) }, REQUESTS);
    }
}

#[test]
fn nat_between_two_interfaces_loses_nothing() {
    if can_run() {
        for offload in [true, false] {
            http::carry(Plan::new(Kind::NatTwoArmed, offload), 10_000);
        }
    }
}

#[test]
fn nat_between_two_interfaces_by_other_ways_loses_nothing() {
    if can_run() {
        for io in ["generic", "packet"] {
            http::carry(
                Plan { io, queues: 2, workers: 2, ..Plan::new(Kind::NatTwoArmed, true) },
                REQUESTS,
            );
        }
    }
}
