//! Loss, one-way ways, partitions, clocks.

use nlb::membership::{Event, Service, State};

use super::*;

#[test]
fn five_percent_loss_makes_no_cluster_flap() {
    for (nodes, minutes) in [(2, 60), (8, 20), (32, 3)] {
        for seed in seeds(2) {
            let mut world = cluster(seed, nodes, SECOND, 0.05);
            world.flow_rate = 5;
            let before = world.convergences();
            world.run(minutes * 60 * SECOND);
            sound(&world, seed);
            assert_eq!(world.convergences(), before, "seed {seed}, {nodes} nodes");
        }
    }
}

#[test]
fn joins_and_crashes_in_ten_percent_loss_serve_nothing_twice() {
    for seed in seeds(5) {
        let mut world = cluster(seed, 6, SECOND, 0.1);
        for victim in 0..3 {
            world.crash(victim);
            let left = hosts(6).minus(hosts(victim + 1));
            settles(&mut world, left, 20 * SECOND, seed);
        }
        sound(&world, seed);
    }
}

/// Heartbeats of one node reach nobody, while it hears all: the others take over, and it must stop
/// before they do.
#[test]
fn a_node_that_nobody_hears_stops_before_others_serve_its_buckets() {
    for nodes in [3, 5, 8] {
        for seed in seeds(3) {
            let mut world = cluster(seed, nodes, SECOND, 0.0);
            for other in 1..nodes {
                world.network.cut(0, other);
            }
            let mut rest = hosts(nodes);
            rest.remove(id(1));
            let done = world.run_while(15 * SECOND, |world| {
                world.nodes[1..].iter().all(|node| {
                    node.membership.status().view.hosts == rest
                        && matches!(
                            node.membership.state(),
                            State::Converged | State::ConvergedDefault
                        )
                })
            });
            assert!(done.is_some(), "seed {seed}");
            world.run(SECOND);
            assert!(
                world.nodes[0].membership.maps().all(|map| map.serving.is_empty()),
                "seed {seed}"
            );
            sound(&world, seed);
            world.run(30 * SECOND);
            assert!(world.told(0, |event| matches!(event, Event::OneWay(_))), "seed {seed}");
            sound(&world, seed);
            world.network.heal();
            settles(&mut world, hosts(nodes), 15 * SECOND, seed);
            sound(&world, seed);
        }
    }
}

/// Two nodes that cannot hear each other in one direction, while all others hear both: one of the
/// two is left out, by all alike, and only one.
#[test]
fn one_broken_way_between_two_leaves_out_the_higher_id_and_nobody_flaps() {
    for seed in seeds(3) {
        let mut world = cluster(seed, 5, SECOND, 0.0);
        world.network.cut(1, 3);
        let rest = set(&[1, 2, 3, 5]);
        let left_out = world.run_while(30 * SECOND, |world| {
            [0, 1, 2, 4].iter().all(|&place: &usize| {
                let status = world.nodes[place].membership.status();
                status.view.hosts == rest
                    && matches!(status.state, State::Converged | State::ConvergedDefault)
            })
        });
        assert!(left_out.is_some(), "seed {seed}");
        world.run(2 * SECOND);
        let before = world.nodes[0].membership.convergences();
        world.run(120 * SECOND);
        assert_eq!(world.nodes[0].membership.convergences(), before, "seed {seed}: flaps");
        assert!(world.nodes[3].membership.maps().all(|map| map.serving.is_empty()), "seed {seed}");
        assert!(world.told(3, |event| *event == Event::OneWay(set(&[2]))), "seed {seed}");
        sound(&world, seed);
        world.network.heal();
        settles(&mut world, hosts(5), 15 * SECOND, seed);
        sound(&world, seed);
    }
}

/// Each part takes everything: nobody can know better. What matters is that each is whole.
#[test]
fn each_part_of_a_partition_serves_everything_it_can_be_asked() {
    for seed in seeds(3) {
        let mut world = cluster(seed, 5, SECOND, 0.0);
        world.once = false;
        world.network.part(&[0, 1], &[2, 3, 4]);
        world.run(15 * SECOND);
        for (part, members) in [(0..2, set(&[1, 2])), (2..5, set(&[3, 4, 5]))] {
            let nodes = &world.nodes[part];
            for node in nodes {
                assert_eq!(node.membership.status().view.hosts, members, "seed {seed}");
            }
            let served: usize = nodes
                .iter()
                .flat_map(|node| {
                    node.membership.maps().map(|map| map.serving.len()).collect::<Vec<_>>()
                })
                .sum();
            assert_eq!(served, 5 * 4096, "seed {seed}");
        }
    }
}

#[test]
fn a_partition_that_heals_at_any_moment_ends_with_every_bucket_served_once() {
    for seed in seeds(6) {
        for cut in [2500, 4900, 5500, 7300, 7400, 7500, 7600, 9000] {
            let mut world = cluster(seed, 4, SECOND, 0.02);
            world.once = false;
            world.network.part(&[0, 1], &[2, 3]);
            world.run(ms(cut));
            world.network.heal();
            world.run(2 * SECOND);
            settles(&mut world, hosts(4), 15 * SECOND, seed);
            let before = world.convergences();
            world.once = true;
            world.run(40 * SECOND);
            sound(&world, seed);
            assert_eq!(world.convergences(), before, "seed {seed}, healed after {cut} ms");
        }
    }
}

#[test]
fn a_node_without_a_link_serves_nothing_and_comes_back_without_serving_twice() {
    for seed in seeds(3) {
        let mut world = cluster(seed, 4, SECOND, 0.0);
        world.with(0, |node, now| node.membership.link(false, now));
        assert_eq!(world.nodes[0].membership.service(), Service::Stopped);
        assert!(world.nodes[0].membership.maps().all(|map| map.serving.is_empty()));
        world.network.part(&[0], &[1, 2, 3]);
        settles(&mut world, set(&[2, 3, 4]), 10 * SECOND, seed);
        world.network.heal();
        world.with(0, |node, now| node.membership.link(true, now));
        settles(&mut world, hosts(4), 10 * SECOND, seed);
        sound(&world, seed);
    }
}

/// A virtual machine that stood still: the others have taken over when it goes on.
#[test]
fn a_clock_that_jumps_ahead_costs_a_convergence_and_serves_nothing_twice() {
    for seed in seeds(3) {
        for jump in [SECOND, 4 * SECOND, 60 * SECOND, 86_400 * SECOND] {
            let mut world = cluster(seed, 4, SECOND, 0.0);
            world.nodes[2].clock_ahead += jump;
            world.with(2, |node, now| node.membership.tick(now));
            settles(&mut world, hosts(4), 15 * SECOND, seed);
            sound(&world, seed);
        }
    }
}

#[test]
fn a_clock_that_goes_back_changes_nothing() {
    let mut world = cluster(1, 3, SECOND, 0.0);
    let before = world.convergences();
    let now = world.now;
    world.nodes[1].membership.tick(now - 5 * SECOND);
    world.nodes[1].membership.tick(Duration::ZERO);
    world.run(30 * SECOND);
    assert_eq!(world.convergences(), before);
    sound(&world, 1);
}

#[test]
fn a_node_that_stood_still_serves_nothing_from_its_first_moment_on() {
    for seed in seeds(3) {
        let mut world = cluster(seed, 4, SECOND, 0.0);
        world.nodes[1].runs = false;
        settles(&mut world, set(&[1, 3, 4]), 12 * SECOND, seed);
        world.once = false;
        world.nodes[1].runs = true;
        world.with(1, |node, now| node.membership.tick(now));
        world.once = true;
        assert!(world.nodes[1].membership.maps().all(|map| map.serving.is_empty()));
        settles(&mut world, hosts(4), 10 * SECOND, seed);
        sound(&world, seed);
    }
}

#[test]
fn an_isolated_node_serves_or_stops_as_configured() {
    use nlb::membership::Isolated;
    for (isolated, serves) in [(Isolated::Serve, true), (Isolated::Stop, false)] {
        let mut world = World::new(1, groups());
        for place in 0..2 {
            let host = id(place as u8 + 1);
            let settings = nlb::membership::Settings {
                isolated,
                ..nlb::simulation::settings(place, SECOND, place as u64 + 1)
            };
            world.start(settings, nlb::simulation::plan(host));
        }
        settles(&mut world, hosts(2), 10 * SECOND, 1);
        world.crash(1);
        world.run(12 * SECOND);
        let all = world.nodes[0].membership.maps().all(|map| map.serving.len() == 4096);
        let none = world.nodes[0].membership.maps().all(|map| map.serving.is_empty());
        assert!(if serves { all } else { none }, "{isolated:?}");
    }
}

/// Of two that serve the same, the side goes on that has more to lose.
#[test]
fn when_parts_meet_the_side_with_fewer_connections_gives_up() {
    for busy in [[0, 1], [2, 3]] {
        let mut world = cluster(1, 4, SECOND, 0.0);
        world.once = false;
        world.network.part(&[0, 1], &[2, 3]);
        world.run(20 * SECOND);
        for place in busy {
            for slot in nlb::slot::Slot::all().take(5) {
                world.with(place, |node, _| node.membership.opened(slot, 1_000_000));
            }
        }
        world.network.heal();
        world.run(2 * SECOND);
        for place in 0..4 {
            let gave_up = world.told(place, |event| matches!(event, Event::Overlap(_)));
            assert_eq!(gave_up, !busy.contains(&place), "node {place}, busy: {busy:?}");
        }
        world.once = true;
        settles(&mut world, hosts(4), 15 * SECOND, 1);
        sound(&world, 1);
    }
}
