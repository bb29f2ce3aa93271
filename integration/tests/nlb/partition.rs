//! A cable that is pulled, and a segment that falls apart while the clients see both parts.

use std::time::{Duration, Instant};

use crate::bed::{Bed, Site};
use crate::can_run;
use crate::load::{Downloads, Requests, failed, requests, tally};
use crate::planned::{INTERVAL, UNANSWERED};
use crate::table::{Row, gap};
use crate::witness::Witness;

const BOTH: &[usize] = &[0, 1];

#[test]
fn a_pulled_cable_is_a_node_less_and_plugged_in_again_one_more() {
    if !can_run() {
        return;
    }
    let bed = Bed::serving("cable", Site { download_seconds: 6, ..Site::new(3) }).unwrap();
    let (all, rest) = ([1, 2, 3], [1, 3]);
    let client = &bed.cluster.client;
    let witness = Witness::start(&bed.cluster).unwrap();
    let downloads = Downloads::start(client, BOTH, 64).unwrap();
    let load = Requests::start(client, BOTH, INTERVAL);
    let before = bed.convergences(1).unwrap();
    let start = Instant::now();
    bed.cluster.wire.host().set_up("host2-eth0", false).unwrap();
    let cut = bed.node(2).unwrap().process();
    cut.wait_for_log("the link is down", Duration::from_secs(5)).unwrap();
    bed.wait_noticed(1, before).unwrap();
    let noticed = start.elapsed();
    bed.wait_converged(&rest, &rest).unwrap();
    bed.settle();
    std::thread::sleep(Duration::from_secs(1));
    load.finish().unwrap();
    let ended = downloads.finish().unwrap();
    let account = witness.finish().unwrap();
    let (served, gap) = gap(&account.unanswered(UNANSWERED), start, INTERVAL);
    let others = ended.iter().filter(|it| it.server != bed.name(2));
    let broken: Vec<_> = others.filter(|it| it.broken.is_some()).collect();
    let twice = account.greeted_twice();
    let counts = (broken.len(), twice.len());
    let case = "cable pulled, period 200ms";
    Row { case, nodes: 3, noticed: Some(noticed), served, gap, broken: counts.0, twice: counts.1 }
        .print();
    assert!(broken.is_empty(), "{broken:#?}");
    assert_eq!(twice, Vec::<String>::new());
    assert!(served < Duration::from_secs(4), "served again after {served:?}");

    let witness = Witness::start(&bed.cluster).unwrap();
    let downloads = Downloads::start(client, BOTH, 32).unwrap();
    let load = Requests::start(client, BOTH, INTERVAL);
    let before = bed.convergences(1).unwrap();
    let start = Instant::now();
    bed.cluster.wire.host().set_up("host2-eth0", true).unwrap();
    bed.wait_noticed(1, before).unwrap();
    let noticed = start.elapsed();
    bed.wait_converged(&all, &all).unwrap();
    bed.settle();
    std::thread::sleep(UNANSWERED);
    let made = load.finish().unwrap();
    let ended = downloads.finish().unwrap();
    let account = witness.finish().unwrap();
    let (served, gap) = self::gap(&account.unanswered(UNANSWERED), start, INTERVAL);
    let broken: Vec<_> = ended.iter().filter(|it| it.broken.is_some()).collect();
    let twice = account.greeted_twice();
    let counts = (broken.len(), twice.len());
    let case = "cable plugged in again, period 200ms";
    Row { case, nodes: 3, noticed: Some(noticed), served, gap, broken: counts.0, twice: counts.1 }
        .print();
    assert!(broken.is_empty(), "{broken:#?}");
    assert_eq!(twice, Vec::<String>::new());
    assert!(gap < Duration::from_secs(1), "new connections waited for {gap:?}");
    assert!(tally(&made).contains_key(bed.name(2)), "{:?}", tally(&made));
}

/// Ports of the bridge that do not see each other, and all of them the client: each host is a part
/// of its own.
fn part(bed: &Bed, apart: bool) {
    let segment = bed.cluster.wire.host();
    let set = || {
        for number in 1..=bed.cluster.hosts.len() {
            let path = format!("/sys/class/net/host{number}-eth0/brport/isolated");
            std::fs::write(path, if apart { "1" } else { "0" })?;
        }
        Ok::<(), std::io::Error>(())
    };
    segment.run(set).unwrap().unwrap();
}

fn parts_meet_again(nodes: usize) {
    let bed = Bed::serving("partition", Site::new(nodes)).unwrap();
    let all: Vec<usize> = (1..=nodes).collect();
    let client = &bed.cluster.client;
    let witness = Witness::start(&bed.cluster).unwrap();
    part(&bed, true);
    for &number in &all {
        bed.wait_converged(&[number], &[number]).unwrap();
    }
    bed.settle();
    let load = Requests::start(client, BOTH, INTERVAL);
    std::thread::sleep(Duration::from_secs(1));
    let before = bed.convergences(1).unwrap();
    let healed = Instant::now();
    part(&bed, false);
    bed.wait_noticed(1, before).unwrap();
    let noticed = healed.elapsed();
    bed.wait_converged(&all, &all).unwrap();
    bed.settle();
    std::thread::sleep(UNANSWERED);
    load.finish().unwrap();
    let account = witness.finish().unwrap();
    // While apart all of them serve everything: it is what `isolated = "serve"` says, and shows
    // that the witness sees what is answered twice.
    let last = account.last_double().expect("hosts that are apart do not serve everything each");
    let double = last.saturating_duration_since(healed);
    let after: Vec<_> =
        account.unanswered(UNANSWERED).into_iter().filter(|at| *at > healed).collect();
    let (served, gap) = gap(&after, healed, INTERVAL);
    println!("\n{nodes} nodes: answered twice until {double:.2?} after the heal");
    let case = format!("parts meet (twice for {:.2} s), 200ms", double.as_secs_f64());
    Row { case: &case, nodes, noticed: Some(noticed), served, gap, broken: 0, twice: 0 }.print();
    assert!(double < Duration::from_secs(1), "answered twice until {double:?} after the heal");

    // Exactly one owner again.
    let witness = Witness::start(&bed.cluster).unwrap();
    for family in [0, 1] {
        let made = requests(client, family, 200).unwrap();
        assert!(failed(&made).is_empty(), "{:?}", tally(&made));
        assert_eq!(tally(&made).len(), nodes, "{:?}", tally(&made));
    }
    let account = witness.finish().unwrap();
    assert_eq!(account.answered_twice(), Vec::<String>::new());
    assert_eq!(account.strangers_resets().len(), 0);
}

#[test]
fn two_parts_of_one_node_that_meet_again_have_one_owner_for_each_client() {
    if can_run() {
        parts_meet_again(2);
    }
}

#[test]
fn four_parts_of_one_node_that_meet_again_have_one_owner_for_each_client() {
    if can_run() {
        parts_meet_again(4);
    }
}
