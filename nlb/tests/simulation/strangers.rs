//! Nodes that do not belong, and heartbeats that somebody else made.

use std::time::Duration;

use nlb::heartbeat::Refusal;
use nlb::key::ClusterKey;
use nlb::membership::{Event, Misfit, Service, Settings, State};
use nlb::simulation::{Random, plan, settings};

use super::*;

/// A settled cluster of `nodes`, then one more with these settings, for a minute. The old ones must
/// not notice.
fn stranger(seed: u64, nodes: usize, settings: Settings, plan: nlb::membership::Plan) -> World {
    let mut world = cluster(seed, nodes, SECOND, 0.0);
    let before: u64 = world.convergences();
    world.start(settings, plan);
    world.run(60 * SECOND);
    let after: u64 = world.nodes[..nodes].iter().map(|node| node.membership.convergences()).sum();
    assert_eq!(after, before, "seed {seed}: the cluster converged again because of a stranger");
    sound(&world, seed);
    world
}

fn serves_nothing(world: &World, place: usize) {
    assert!(world.nodes[place].membership.maps().all(|map| map.serving.is_empty()));
}

#[test]
fn a_node_with_other_rules_is_quarantined_told_what_differs_and_disturbs_nobody() {
    for seed in seeds(3) {
        for nodes in [1, 2, 7] {
            let mut other = plan(id(9));
            other.digest = [2; 8];
            other.generation = 2;
            other.marks[2].digest = [9; 8];
            let world = stranger(seed, nodes, settings(8, SECOND, 99), other);
            serves_nothing(&world, nodes);
            assert_eq!(world.nodes[nodes].membership.service(), Service::Quarantined);
            let what =
                "rule 2 (tcp 443) is not that of host 1 (node1) (generation 2 here, 1 there)";
            let why = Misfit::Configuration(what.to_owned());
            assert_eq!(world.nodes[nodes].membership.status().quarantine, Some(why));
            assert!(world.told(
                0,
                |event| matches!(event, Event::PeerQuarantined(host, _) if *host == id(9))
            ));
        }
    }
}

#[test]
fn a_misfit_that_is_mended_joins() {
    let mut other = plan(id(4));
    other.digest = [2; 8];
    let mut world = stranger(1, 3, settings(3, SECOND, 99), other);
    world.with(3, |node, now| node.membership.reload(plan(id(4)), now));
    settles(&mut world, hosts(4), 10 * SECOND, 1);
    sound(&world, 1);
}

#[test]
fn a_second_node_with_a_taken_id_is_quarantined_whatever_its_nonce() {
    for seed in seeds(3) {
        for nonce in [1, u64::MAX] {
            let world = stranger(seed, 3, settings(1, SECOND, nonce), plan(id(2)));
            serves_nothing(&world, 3);
            let why = Misfit::DuplicateId("node2".to_owned());
            assert_eq!(world.nodes[3].membership.status().quarantine, Some(why), "nonce {nonce}");
            assert!(world.told(0, |event| *event == Event::DuplicateId(id(2))), "nonce {nonce}");
            assert!(world.nodes[0].membership.refusals().get(Refusal::DuplicateId) > 0);
        }
    }
}

#[test]
fn of_two_nodes_with_one_id_and_nobody_else_the_older_boot_goes_on() {
    for seed in seeds(3) {
        let mut world = World::new(seed, groups());
        world.start(settings(1, SECOND, 100), plan(id(2)));
        world.start(settings(1, SECOND, 200), plan(id(2)));
        world.run(30 * SECOND);
        assert_eq!(world.nodes[0].membership.state(), State::ConvergedDefault);
        assert_eq!(world.nodes[1].membership.service(), Service::Quarantined);
        sound(&world, seed);
        world.crash(0);
        world.run(15 * SECOND);
        assert_eq!(world.nodes[1].membership.state(), State::ConvergedDefault, "seed {seed}");
        sound(&world, seed);
    }
}

/// A node with another key, or one of another cluster with our address: the cluster goes on as if it
/// were not there, and it serves nothing until it is alone on the segment.
#[test]
fn a_node_with_another_key_is_not_believed_serves_nothing_and_is_named() {
    let key = ClusterKey::new(b"some other cluster's key").unwrap();
    let mut world = cluster(1, 3, SECOND, 0.0);
    let before = world.convergences();
    world.start(Settings { key, ..settings(3, SECOND, 99) }, plan(id(4)));
    world.run(30 * SECOND);
    assert_eq!(world.convergences(), before + 1, "only its own");
    assert!(world.nodes[0].membership.refusals().get(Refusal::Seal) > 20);
    let told = world.nodes[0].events.iter().filter(|event| **event == Event::OtherKey).count();
    assert_eq!(told, 1, "told once a minute, not at every heartbeat");
    assert!(world.nodes[3].membership.maps().all(|map| map.serving.is_empty()));
    sound(&world, 1);
    (0..3).for_each(|place| world.crash(place));
    world.run(15 * SECOND);
    assert_eq!(world.nodes[3].membership.state(), State::ConvergedDefault);
}

#[test]
fn recorded_heartbeats_change_nothing_when_they_are_played_again() {
    for seed in seeds(3) {
        let mut world = cluster(seed, 4, SECOND, 0.0);
        let mut recorded = Vec::new();
        // Of a drain, a stop and a start: what an attacker would like to repeat.
        use nlb::membership::Command;
        for command in [Command::DrainStop(Some(SECOND)), Command::Stop, Command::Start] {
            world.with(1, |node, now| node.membership.command(command, now));
            for _ in 0..3000 {
                world.run(ms(1));
                recorded.extend(world.under_way());
            }
        }
        recorded.dedup();
        settles(&mut world, hosts(4), 30 * SECOND, seed);
        world.run(10 * SECOND);
        let before = world.convergences();
        let refused = world.nodes[0].membership.refusals().get(Refusal::Replay);
        for payload in &recorded {
            for place in 0..4 {
                world.inject(place, payload);
            }
        }
        world.run(30 * SECOND);
        assert_eq!(world.convergences(), before, "seed {seed}");
        assert!(world.nodes[0].membership.refusals().get(Refusal::Replay) > refused);
        sound(&world, seed);
    }
}

/// Heartbeats recorded before a node restarted, played to it when it is back: it knows nothing of
/// the past, but they do not show that they hear its present boot.
#[test]
fn heartbeats_from_before_a_restart_are_not_believed_after_it() {
    for seed in seeds(3) {
        let mut world = cluster(seed, 3, SECOND, 0.0);
        let mut recorded = Vec::new();
        for _ in 0..5000 {
            world.run(ms(1));
            recorded.extend(world.under_way());
        }
        world.crash(2);
        settles(&mut world, hosts(2), 15 * SECOND, seed);
        world.restart(2, settings(2, SECOND, 12345), plan(id(3)));
        for payload in &recorded {
            for place in 0..3 {
                world.inject(place, payload);
            }
        }
        settles(&mut world, hosts(3), 10 * SECOND, seed);
        let before = world.convergences();
        for payload in &recorded {
            for place in 0..3 {
                world.inject(place, payload);
            }
            world.run(ms(1));
        }
        world.run(30 * SECOND);
        assert_eq!(world.convergences(), before, "seed {seed}");
        sound(&world, seed);
    }
}

#[test]
fn forged_truncated_and_mutated_heartbeats_change_nothing_and_are_counted() {
    for seed in seeds(2) {
        let mut world = cluster(seed, 3, SECOND, 0.0);
        let before = world.convergences();
        let mut random = Random::new(seed);
        let mut recent = Vec::new();
        while recent.is_empty() {
            world.run(ms(1));
            recent = world.under_way().pop().unwrap_or_default();
        }
        for _ in 0..4000 {
            world.run(ms(2));
            recent = world.under_way().pop().unwrap_or(recent);
            let mut payload = recent.clone();
            let at = random.below(payload.len() as u64) as usize;
            if random.below(2) == 0 {
                payload[at] ^= 1 << random.below(8);
            } else {
                payload.truncate(at);
            }
            for place in 0..3 {
                world.inject(place, &payload);
            }
            let length = random.below(1600) as usize;
            let garbage: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
            world.inject(0, &garbage);
        }
        let refused: u64 =
            world.nodes[0].membership.refusals().iter().map(|(_, count)| count).sum();
        assert_eq!(refused, 8000, "seed {seed}");
        world.run(Duration::from_secs(10));
        assert_eq!(world.convergences(), before);
        sound(&world, seed);
    }
}

#[test]
fn a_heartbeat_does_not_make_a_node_answer_more_often_than_a_period_in_20() {
    let mut world = cluster(1, 2, SECOND, 0.0);
    world.flow_rate = 0;
    let strangers: Vec<Vec<u8>> = (0..200u64)
        .map(|nonce| {
            let settings = settings(7, SECOND, nonce + 1000);
            let mut other = nlb::membership::Membership::new(settings, plan(id(8)), Duration::ZERO);
            other.take_heartbeat(SECOND).unwrap()
        })
        .collect();
    let before = world.nodes[0].sent;
    for payload in &strangers {
        world.inject(0, payload);
        world.run(ms(5));
    }
    let sent = world.nodes[0].sent - before;
    assert!(sent <= 22, "{sent} heartbeats in a second");
}
