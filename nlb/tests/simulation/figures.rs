//! The numbers an operator is promised.

use nlb::buckets::Bucket;
use nlb::simulation::cases::CASES;
use nlb::simulation::table;

use super::*;

fn within_limits(name: &str) {
    let mut faults = Vec::new();
    for case in CASES.iter().filter(|case| case.name.starts_with(name)) {
        for &nodes in case.nodes {
            let row = table::line(case, nodes, seeds(if nodes > 8 { 1 } else { 2 }));
            println!("{row}");
            faults.extend(
                row.faults.iter().map(|fault| format!("{}, {nodes}: {fault:?}", case.name)),
            );
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn a_crash_is_noticed_in_5_s_and_served_again_in_10_even_with_loss() {
    within_limits("crash");
}

#[test]
fn a_join_leaves_no_bucket_unserved_for_a_second_and_serves_none_twice() {
    within_limits("join");
}

#[test]
fn a_drain_leaves_no_bucket_unserved_for_a_second_and_serves_none_twice() {
    within_limits("drain");
}

#[test]
fn a_weight_change_leaves_no_bucket_unserved_for_a_second_and_serves_none_twice() {
    within_limits("weight");
}

#[test]
fn a_stop_or_restart_is_settled_in_10_s() {
    within_limits("stop");
    within_limits("restart");
}

#[test]
fn after_a_partition_one_side_gives_up_each_bucket_at_once() {
    within_limits("heal");
}

/// Counted on the wire: Ethernet header included, what one host receives in a second.
#[test]
fn heartbeats_of_16_nodes_are_under_24_kb_a_second_and_of_32_under_50() {
    for (nodes, most) in [(16, 24_000), (32, 50_000)] {
        let mut world = cluster(1, nodes, SECOND, 0.0);
        let (bytes, frames) = (world.sent_bytes(), world.sent());
        world.run(60 * SECOND);
        let frames = world.sent() - frames;
        let bytes = world.sent_bytes() - bytes + 14 * frames;
        println!("{nodes} nodes: {} bytes a second in {} frames", bytes / 60, frames / 60);
        assert!(bytes / 60 < most, "{nodes} nodes: {} bytes a second", bytes / 60);
        assert!(frames / 60 <= nodes as u64 + 1);
    }
}

#[test]
fn the_same_members_make_the_same_maps_whatever_happened_before() {
    let mut direct = cluster(1, 3, SECOND, 0.0);
    let mut detour = cluster(2, 5, SECOND, 0.05);
    detour.crash(4);
    settles(&mut detour, hosts(4), 30 * SECOND, 2);
    detour.crash(3);
    settles(&mut detour, hosts(3), 30 * SECOND, 2);
    direct.run(40 * SECOND);
    detour.run(40 * SECOND);
    for place in 0..3 {
        let maps = direct.nodes[place].membership.maps();
        for (slot, (a, b)) in maps.zip(detour.nodes[place].membership.maps()).enumerate() {
            assert_eq!(a.serving, b.serving, "node {place}, slot {slot}");
        }
    }
}

#[test]
fn shares_are_within_one_bucket_of_the_quota() {
    for nodes in [2, 3, 7, 16] {
        let world = cluster(1, nodes, SECOND, 0.0);
        for node in &world.nodes {
            for (slot, map) in
                node.membership.maps().enumerate().filter(|(slot, _)| [1, 2, 3].contains(slot))
            {
                let share = map.serving.len() as f64;
                let quota = 4096.0 / nodes as f64;
                assert!((share - quota).abs() <= 1.0, "{nodes} nodes, slot {slot}: {share}");
            }
        }
    }
}

#[test]
fn a_single_host_rule_is_with_the_best_priority_and_the_rest_with_the_default_host() {
    let world = cluster(1, 4, SECOND, 0.0);
    for slot in [0, 4] {
        let whole: Vec<bool> = world
            .nodes
            .iter()
            .map(|node| {
                let map = node.membership.maps().nth(slot).unwrap();
                Bucket::all().all(|bucket| map.serving.contains(bucket))
            })
            .collect();
        assert_eq!(whole, [true, false, false, false], "slot {slot}");
    }
}
