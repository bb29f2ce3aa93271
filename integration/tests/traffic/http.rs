//! HTTP: nginx, curl and wrk, by every method, over both families, with peers' checksum offload
//! on and off.

use std::collections::BTreeMap;

use integration::topology::Kind;

use crate::bed::{Bed, FAMILIES, Plan};
use crate::{can_run, web};

/// The issue asks for this many by each method, over each family, with offload on and off.
const REQUESTS: u64 = 10_000;

/// Segments sent a second time, why (a timer for the tail of a flight, for the whole, for a SYN),
/// and how many of them the receiver had already.
const SENT_AGAIN: &[&str] = &[
    "RetransSegs",
    "TCPLossProbes",
    "TCPTimeouts",
    "TCPSynRetrans",
    "TCPDSACKOldSent",
    "TCPDSACKOfoSent",
];

/// `requests` requests over each family; every server must have its share and nothing be lost.
pub(crate) fn carry(plan: Plan, requests: u64) {
    let bed = Bed::build(plan).unwrap();
    let _web = web::start(&bed).unwrap();
    for (family, vip) in FAMILIES {
        let names: Vec<_> =
            bed.servers().iter().map(|_| web::curl(bed.client(), vip).unwrap()).collect();
        // Round robin: as many fetches as servers meet them all.
        for server in bed.servers() {
            assert!(names.iter().any(|name| name == server.name()), "{family}: only {names:?}");
        }
        let served = web::wrk(&bed, vip, requests).unwrap();
        println!("{}, {family}: {served:?}", bed.title());
        fair_shares(&served, bed.servers().len());
    }
    bed.nothing_was_lost().unwrap();
    // On a busy machine a segment may be late and is sent again: the receiver says so (DSACK). What
    // it does not say so of was lost, or came when its connection had ended.
    let counters = bed.tcp_counters(SENT_AGAIN).unwrap();
    println!("{}: {counters:?}", bed.title());
    let count = |name| counters.get(name).copied().unwrap_or(0);
    let twice = count("TCPDSACKOldSent") + count("TCPDSACKOfoSent");
    let lost = count("RetransSegs").saturating_sub(twice);
    let allowed = bed.may_be_lost().unwrap();
    assert!(lost <= allowed, "{lost} segments lost: {counters:?}\n{}", bed.counters());
    bed.director.stop().unwrap();
}

/// Round robin gives all the same; what is under way when wrk stops counts for nobody.
fn fair_shares(served: &BTreeMap<String, u64>, servers: usize) {
    let total: u64 = served.values().sum();
    let fair = total / servers as u64;
    assert_eq!(served.len(), servers, "not every server had requests: {served:?}");
    for count in served.values() {
        assert!(count.abs_diff(fair) <= fair / 10 + 50, "not shared out evenly: {served:?}");
    }
}

#[test]
fn quick_nginx_answers_curl_and_wrk_through_nat() {
    if can_run() {
        carry(Plan::new(Kind::Nat, true), 3000);
    }
}

macro_rules! every_request_is_answered {
    ($($name:ident: $kind:ident, $offload:literal;)*) => {$(
        #[test]
        fn $name() {
            if can_run() {
                carry(Plan::new(Kind::$kind, $offload), REQUESTS);
            }
        }
    )*};
}

every_request_is_answered! {
    every_request_through_nat_is_answered_with_peers_offload_on: Nat, true;
    every_request_through_nat_is_answered_with_peers_offload_off: Nat, false;
    every_request_through_tunnels_is_answered_with_peers_offload_on: Tunnel, true;
    every_request_through_tunnels_is_answered_with_peers_offload_off: Tunnel, false;
    every_request_by_direct_routing_is_answered_with_peers_offload_on: Direct, true;
    every_request_by_direct_routing_is_answered_with_peers_offload_off: Direct, false;
}
