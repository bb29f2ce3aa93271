//! Commands: the table of commands and states cell by cell, drains, slots.

use nlb::membership::{Answer, Command, Event, Service, SlotCommand, State};
use nlb::slot::Slot;

use super::*;

/// A node in the wished state, in a cluster of two.
fn standing(state: State) -> World {
    let mut world = cluster(1, 2, SECOND, 0.0);
    let commands: &[Command] = match state {
        State::Suspended => &[Command::Suspend],
        State::Stopped => &[Command::Stop],
        State::Draining => &[Command::DrainStop(None)],
        _ => &[],
    };
    for &command in commands {
        world.with(1, |node, now| node.membership.command(command, now));
    }
    let there = world.nodes[1].membership.state();
    assert!(there == state || state == State::Converged, "{there:?}");
    world
}

#[test]
fn every_command_in_every_state_does_what_the_table_says() {
    use Answer::{Already, Done, DrainInterrupted, Suspended as Locked};
    use State::{Converged, Converging, Draining, Stopped, Suspended};
    let drain = Command::DrainStop(None);
    for (command, state, answer, then) in [
        (Command::Start, Suspended, Locked, Suspended),
        (Command::Start, Stopped, Done, Converging),
        (Command::Start, Converged, Already, Converged),
        (Command::Start, Draining, Done, Converging),
        (Command::Stop, Suspended, Locked, Suspended),
        (Command::Stop, Stopped, Already, Stopped),
        (Command::Stop, Converged, Done, Stopped),
        (Command::Stop, Draining, DrainInterrupted, Stopped),
        (drain, Suspended, Locked, Suspended),
        (drain, Stopped, Already, Stopped),
        (drain, Converged, Done, Draining),
        (drain, Draining, Already, Draining),
        (Command::Suspend, Suspended, Already, Suspended),
        (Command::Suspend, Stopped, Done, Suspended),
        (Command::Suspend, Converged, Done, Suspended),
        (Command::Suspend, Draining, DrainInterrupted, Suspended),
        (Command::Resume, Suspended, Done, Stopped),
        (Command::Resume, Stopped, Already, Stopped),
        (Command::Resume, Converged, Already, Converged),
        (Command::Resume, Draining, Already, Draining),
    ] {
        let mut world = standing(state);
        let given = world.with(1, |node, now| node.membership.command(command, now));
        assert_eq!(given, answer, "{command:?} while {state}");
        assert_eq!(world.nodes[1].membership.state(), then, "after {command:?} while {state}");
        world.run(ms(500));
        let silent = matches!(then, Stopped | Suspended);
        let before = world.nodes[1].sent;
        world.run(10 * SECOND);
        assert_eq!(world.nodes[1].sent == before, silent, "heartbeats after {command:?}, {state}");
        if silent {
            assert_eq!(world.nodes[1].membership.service(), Service::Stopped);
            assert!(
                world.nodes[1].membership.maps().all(|m| m.serving.is_empty() && !m.pinned_pass)
            );
        }
        sound(&world, 1);
    }
}

#[test]
fn rules_can_be_commanded_only_while_started() {
    for (state, answer) in [
        (State::Suspended, Answer::Suspended),
        (State::Stopped, Answer::Stopped),
        (State::Converged, Answer::Done),
        (State::Draining, Answer::Done),
    ] {
        let mut world = standing(state);
        let given = world.with(1, |node, now| {
            node.membership.slot_command(Slot::of_group(0), SlotCommand::Disable, now)
        });
        assert_eq!(given, answer, "{state}");
    }
    let mut world = standing(State::Converged);
    for (slot, command, answer) in [
        (Slot::of_group(31), SlotCommand::Enable, Answer::NotFound),
        (Slot::of_group(0), SlotCommand::Enable, Answer::Already),
        (Slot::of_group(0), SlotCommand::Weight(101), Answer::BadParameters),
        (Slot::of_group(0), SlotCommand::Weight(50), Answer::Already),
        (None, SlotCommand::Drain, Answer::Done),
    ] {
        let given = world.with(1, |node, now| node.membership.slot_command(slot, command, now));
        assert_eq!(given, answer, "{slot:?} {command:?}");
    }
}

fn serving(world: &World, place: usize, slot: usize) -> usize {
    world.nodes[place].membership.maps().nth(slot).unwrap().serving.len()
}

#[test]
fn a_disabled_rule_stops_at_once_a_drained_one_at_the_next_convergence() {
    let mut world = cluster(1, 3, SECOND, 0.0);
    let group = Slot::of_group(0);
    world.with(0, |n, now| n.membership.slot_command(group, SlotCommand::Disable, now));
    assert_eq!(serving(&world, 0, 2), 0);
    assert!(!world.nodes[0].membership.maps().nth(2).unwrap().pinned_pass);
    assert_eq!(serving(&world, 0, 3), 1365, "the other rules go on");
    settles(&mut world, hosts(3), 10 * SECOND, 1);
    assert_eq!(serving(&world, 1, 2) + serving(&world, 2, 2), 4096);

    world.with(1, |n, now| n.membership.slot_command(group, SlotCommand::Drain, now));
    assert!(
        serving(&world, 1, 2) > 0 && world.nodes[1].membership.maps().nth(2).unwrap().pinned_pass
    );
    world.run(4 * SECOND);
    assert_eq!((serving(&world, 1, 2), serving(&world, 2, 2)), (0, 4096));

    world.with(0, |n, now| n.membership.slot_command(None, SlotCommand::Enable, now));
    world.with(1, |n, now| n.membership.slot_command(None, SlotCommand::Enable, now));
    world.run(10 * SECOND);
    settles(&mut world, hosts(3), 10 * SECOND, 1);
    assert_eq!(serving(&world, 0, 2) + serving(&world, 1, 2), 2731);
    sound(&world, 1);
}

#[test]
fn a_weight_of_a_third_gets_a_third() {
    let mut world = cluster(1, 2, SECOND, 0.0);
    let command = SlotCommand::Weight(25);
    world.with(0, |node, now| node.membership.slot_command(Slot::of_group(0), command, now));
    world.run(10 * SECOND);
    assert_eq!((serving(&world, 0, 2), serving(&world, 1, 2)), (1365, 2731));
    assert_eq!(serving(&world, 0, 3), 2048, "other rules keep their weights");
    let none = SlotCommand::Weight(0);
    world.with(0, |node, now| node.membership.slot_command(Slot::of_group(0), none, now));
    world.run(10 * SECOND);
    assert_eq!((serving(&world, 0, 2), serving(&world, 1, 2)), (0, 4096));
    sound(&world, 1);
}

#[test]
fn a_drain_shows_progress_and_ends_with_the_last_flow() {
    let mut world = cluster(1, 3, SECOND, 0.0);
    world.run(20 * SECOND);
    world.with(2, |node, now| node.membership.command(Command::DrainStop(None), now));
    let begun = world.nodes[2].membership.status().drain.unwrap();
    assert!(begun.flows_at_start > 50, "{begun:?}");
    world.run(10 * SECOND);
    let half = world.nodes[2].membership.status().drain.unwrap();
    assert!(half.flows_left > 0 && half.flows_left < begun.flows_at_start * 2 / 3, "{half:?}");
    assert!(world.nodes[2].membership.maps().all(|map| map.serving.is_empty() && map.pinned_pass));
    world.run(15 * SECOND);
    assert_eq!(world.nodes[2].membership.state(), State::Stopped);
    assert!(!world.told(2, |event| *event == Event::DrainInterrupted));
    settles(&mut world, hosts(2), 10 * SECOND, 1);
    sound(&world, 1);
}

#[test]
fn a_drain_ends_at_its_deadline_though_flows_are_left() {
    let mut world = cluster(1, 3, SECOND, 0.0);
    world.flow_life = 3600 * SECOND;
    world.run(20 * SECOND);
    let within = Command::DrainStop(Some(8 * SECOND));
    world.with(2, |node, now| node.membership.command(within, now));
    world.run(ms(7900));
    assert_eq!(world.nodes[2].membership.state(), State::Draining);
    world.run(ms(200));
    assert_eq!(world.nodes[2].membership.state(), State::Stopped);
    sound(&world, 1);
}

#[test]
fn the_last_node_can_be_drained_too() {
    let mut world = cluster(1, 1, SECOND, 0.0);
    world.run(20 * SECOND);
    world.with(0, |node, now| node.membership.command(Command::DrainStop(None), now));
    world.run(40 * SECOND);
    assert_eq!(world.nodes[0].membership.state(), State::Stopped);
    world.with(0, |node, now| node.membership.command(Command::Start, now));
    settles(&mut world, hosts(1), 5 * SECOND, 1);
}

/// A client with affinity stays with its host while it has flows there; then, or at the deadline of
/// 30 s, its bucket moves.
#[test]
fn buckets_with_affinity_move_when_their_flows_end_others_at_once() {
    let mut world = cluster(1, 2, SECOND, 0.0);
    world.flow_life = 10 * SECOND;
    world.run(30 * SECOND);
    world.start(nlb::simulation::settings(2, SECOND, 3), nlb::simulation::plan(id(3)));
    world.flow_rate = 0;
    world.run_while(10 * SECOND, |world| world.agreed(hosts(3)));
    world.run(ms(300));
    let (plain, affine) = (serving(&world, 2, 2), serving(&world, 2, 3));
    assert_eq!(plain, 1365);
    assert!(affine < 1365 && affine > 600, "{affine}");
    world.run(15 * SECOND);
    assert_eq!(serving(&world, 2, 3), 1365, "all flows have ended");
    sound(&world, 1);
}

/// While the cluster converges nobody acquires: a bucket released then would be without a host.
#[test]
fn a_held_bucket_whose_flows_end_during_a_convergence_is_not_released_into_it() {
    let mut world = cluster(1, 2, SECOND, 0.0);
    world.flow_life = 8 * SECOND;
    world.run(20 * SECOND);
    world.start(nlb::simulation::settings(2, SECOND, 3), nlb::simulation::plan(id(3)));
    world.run_while(10 * SECOND, |world| world.agreed(hosts(3)));
    world.mark();
    let late = serving(&world, 2, 3);
    world.flow_rate = 0;
    world.start(nlb::simulation::settings(3, SECOND, 4), nlb::simulation::plan(id(4)));
    world.run(20 * SECOND);
    assert!(world.agreed(hosts(4)) && late < 1365);
    let gap = world.measures().gap;
    assert!(gap < SECOND, "a bucket was without a server for {gap:?}");
    sound(&world, 1);
}

#[test]
fn a_busy_bucket_with_affinity_moves_at_its_deadline() {
    let mut world = cluster(1, 2, SECOND, 0.0);
    world.flow_life = 3600 * SECOND;
    world.run(30 * SECOND);
    world.start(nlb::simulation::settings(2, SECOND, 3), nlb::simulation::plan(id(3)));
    world.run(25 * SECOND);
    assert!(serving(&world, 2, 3) < 1365);
    world.run(20 * SECOND);
    assert_eq!(serving(&world, 2, 3), 1365);
    sound(&world, 1);
}

/// 32 groups with affinity and a flow in every bucket: what hosts have to say then does not fit a
/// heartbeat by far. A join, a weight change and a crash must still come to rest, and nothing may
/// be served twice on the way.
#[test]
fn as_many_busy_groups_as_there_may_be_are_handed_over_in_turns() {
    let wide = |place: usize| {
        let mut plan = nlb::simulation::plan(id(place as u8 + 1));
        let affine = plan.slots[3];
        plan.slots.truncate(2);
        plan.slots.extend((0..32).map(|number| nlb::membership::SlotPlan {
            group: nlb::slot::GroupId(500 + number),
            ..affine
        }));
        plan
    };
    let mut world = World::new(1, wide(0).slots.iter().map(|slot| slot.group).collect());
    for place in 0..3 {
        world.start(nlb::simulation::settings(place, SECOND, place as u64 + 1), wide(place));
    }
    settles(&mut world, hosts(3), 10 * SECOND, 1);
    world.flow_rate = 20_000;
    world.flow_life = 3600 * SECOND;
    world.run(4 * SECOND);
    world.flow_rate = 10;
    world.start(nlb::simulation::settings(3, SECOND, 4), wide(3));
    world.mark();
    world.run(20 * SECOND);
    assert!(world.agreed(hosts(4)));
    let gap = world.measures().gap;
    assert!(gap < SECOND, "a bucket was without a server for {gap:?}");
    world.run(25 * SECOND);
    assert!(world.as_computed(), "held buckets have moved at their deadline");
    sound(&world, 1);
    world.crash(0);
    world.run(SECOND);
    settles(&mut world, hosts(4).minus(hosts(1)), 10 * SECOND, 1);
    sound(&world, 1);
}
