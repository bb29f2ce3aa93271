//! A new configuration, host by host, on a running cluster.

use nlb::membership::{Event, Plan, Share, SlotPlan};
use nlb::simulation::plan;
use nlb::slot::GroupId;

use super::*;

/// The second version of the file: one rule is gone, one is new.
fn second(host: HostId) -> Plan {
    let mut plan = plan(host);
    plan.digest = [2; 8];
    plan.generation = 2;
    let gone = plan.slots.remove(2);
    plan.slots.push(SlotPlan { group: GroupId(200), share: Share::Weighted, ..gone });
    plan
}

#[test]
fn a_new_configuration_waits_for_all_and_then_switches_without_a_gap() {
    for seed in seeds(3) {
        let mut world = cluster(seed, 4, SECOND, 0.05);
        world.run(30 * SECOND);
        for place in 0..3 {
            let host = id(place as u8 + 1);
            world.with(place, |node, now| node.membership.reload(second(host), now));
            world.run(5 * SECOND);
        }
        let waits = world.nodes[0].membership.status().plan_waits_for;
        assert_eq!(waits, Some(set(&[4])), "seed {seed}");
        settles(&mut world, hosts(4), 10 * SECOND, seed);
        let group = |world: &World, place: usize, group: u32| {
            let mut maps = world.nodes[place].membership.maps();
            maps.find(|map| map.group == GroupId(group)).map(|map| map.serving.len())
        };
        assert_eq!(group(&world, 0, 200), None, "seed {seed}: the old one is in force");
        let kept = group(&world, 0, 102);

        world.with(3, |node, now| node.membership.reload(second(id(4)), now));
        world.ask_for(second(id(1)).slots.iter().map(|slot| slot.group).collect());
        world.mark();
        let mut least = usize::MAX;
        let done = world.run_while(15 * SECOND, |world| {
            least = least.min(group(world, 0, 102).unwrap_or(0));
            world.settled(hosts(4))
                && world
                    .nodes
                    .iter()
                    .all(|node| node.membership.maps().any(|map| map.group == GroupId(200)))
        });
        assert!(done.is_some(), "seed {seed}");
        assert_eq!(Some(least), kept, "seed {seed}: a rule that stays is served throughout");
        for place in 0..4 {
            assert_eq!(group(&world, place, 200), Some(1024), "seed {seed}");
            assert!(world.told(place, |event| *event == Event::PlanSwitched), "seed {seed}");
            assert!(
                !world.told(place, |event| matches!(event, Event::Quarantined(_))),
                "seed {seed}"
            );
        }
        sound(&world, seed);
        let before = world.convergences();
        world.run(60 * SECOND);
        assert_eq!(world.convergences(), before, "seed {seed}");
    }
}

#[test]
fn a_configuration_that_differs_only_in_weights_is_in_force_at_once() {
    let mut world = cluster(1, 2, SECOND, 0.0);
    let mut heavier = plan(id(1));
    heavier.slots[2].weight = 100;
    world.with(0, |node, now| node.membership.reload(heavier, now));
    world.run(10 * SECOND);
    let share = world.nodes[0].membership.maps().nth(2).unwrap().serving.len();
    assert_eq!(share, 2731);
    sound(&world, 1);
}

#[test]
fn when_most_hosts_restart_with_new_rules_the_rest_waits_in_quarantine() {
    let mut world = cluster(1, 3, SECOND, 0.0);
    world.once = false;
    for place in 0..2 {
        world.crash(place);
        world.run(8 * SECOND);
        let host = id(place as u8 + 1);
        let settings = nlb::simulation::settings(place, SECOND, 100 + place as u64);
        world.restart(place, settings, second(host));
        world.run(8 * SECOND);
    }
    let quarantined =
        |world: &World, place: usize| world.nodes[place].membership.status().quarantine.is_some();
    assert_eq!([0, 1, 2].map(|place| quarantined(&world, place)), [false, false, true]);
    world.with(2, |node, now| node.membership.reload(second(id(3)), now));
    world.run(10 * SECOND);
    assert!(world.agreed(hosts(3)));
    world.ask_for(second(id(1)).slots.iter().map(|slot| slot.group).collect());
    world.once = true;
    settles(&mut world, hosts(3), 10 * SECOND, 1);
    sound(&world, 1);
}

/// The same rules with a host more.
fn grown(host: HostId) -> Plan {
    Plan { digest: [3; 8], generation: 2, ..plan(host) }
}

/// Somebody may start the new host before the file is on all others: until it is, nobody shares with
/// it what he shares by other slots.
#[test]
fn a_host_that_comes_with_a_new_file_serves_when_all_others_have_it() {
    for seed in seeds(5) {
        let mut world = cluster(seed, 3, SECOND, 0.05);
        world.run(10 * SECOND);
        let kept = |world: &World| -> Vec<_> {
            (0..3)
                .map(|place| world.nodes[place].membership.maps().nth(2).unwrap().serving.len())
                .collect()
        };
        let before = kept(&world);
        world.with(0, |node, now| node.membership.reload(grown(id(1)), now));
        world.run(2 * SECOND);
        world.start(nlb::simulation::settings(3, SECOND, 40), grown(id(4)));
        world.run(20 * SECOND);
        let quarantined = |world: &World, place: usize| {
            world.nodes[place].membership.status().quarantine.is_some()
        };
        assert_eq!([0, 1, 2, 3].map(|it| quarantined(&world, it)), [false, false, false, true]);
        assert_eq!(kept(&world), before, "seed {seed}");
        for place in [2, 1] {
            let host = id(place as u8 + 1);
            world.with(place, |node, now| node.membership.reload(grown(host), now));
            world.run(3 * SECOND);
        }
        settles(&mut world, hosts(4), 20 * SECOND, seed);
        assert_eq!(kept(&world), [1024; 3], "seed {seed}");
        sound(&world, seed);
    }
}

/// Connections that live where their buckets are no more: a new owner that did not know of them would
/// answer for them with a reset.
#[test]
fn at_a_switch_nobody_forgets_that_others_hold_flows_of_his_buckets() {
    for (seed, next) in seeds(6).zip([grown, second].into_iter().cycle()) {
        let mut world = cluster(seed, 4, SECOND, 0.05);
        world.flow_rate = 500;
        world.flow_life = 3600 * SECOND;
        world.run(10 * SECOND);
        let mut lighter = plan(id(1));
        for slot in &mut lighter.slots {
            slot.weight = 10;
        }
        world.with(0, |node, now| node.membership.reload(lighter, now));
        settles(&mut world, hosts(4), 60 * SECOND, seed);
        for place in 0..4 {
            let host = id(place as u8 + 1);
            world.with(place, |node, now| node.membership.reload(next(host), now));
            world.run(SECOND / 2);
        }
        world.ask_for(next(id(1)).slots.iter().map(|slot| slot.group).collect());
        world.run(30 * SECOND);
        sound(&world, seed);
    }
}
