//! What is tried: one case, one function. Each starts from a settled cluster, does one thing to it
//! and measures from then on.

use std::time::Duration;

use crate::host::{HostId, HostSet};
use crate::membership::{Command, SlotCommand};
use crate::slot::{GroupId, Slot};

use super::measure::Measures;
use super::node::{plan, settings};
use super::world::{Violation, World};

/// The usual period.
pub const SECOND: Duration = Duration::from_secs(1);

/// What one run of a case gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its figures.
    pub measures: Measures,
    /// Broken rules.
    pub violations: Vec<Violation>,
}

/// What a case must reach; `None` is not asked.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Until noticed.
    pub noticed: Option<Duration>,
    /// Until settled.
    pub settled: Duration,
    /// Without a server.
    pub gap: Option<Duration>,
    /// Served twice, in seconds of the whole load.
    pub twice: f64,
}

/// A case and how often it is tried.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What happens, in a few words.
    pub name: &'static str,
    /// In clusters of so many nodes.
    pub nodes: &'static [usize],
    /// What it must reach.
    pub limits: Limits,
    /// The case: seed and nodes to outcome.
    pub run: fn(u64, usize) -> Outcome,
}

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

const fn crash(noticed: Duration, settled: Duration) -> Limits {
    Limits { noticed: Some(noticed), settled, gap: Some(settled), twice: 0.0 }
}

const PLANNED: Limits =
    Limits { noticed: None, settled: ms(10_000), gap: Some(ms(1000)), twice: 0.0 };

/// All cases, in the order of the table.
pub const CASES: &[Case] = &[
    Case {
        name: "crash",
        nodes: &[2, 4, 8, 16, 32],
        limits: crash(ms(5000), ms(10_000)),
        run: |seed, nodes| crashed(seed, nodes, SECOND, 0.0),
    },
    Case {
        name: "crash, 5 % loss",
        nodes: &[2, 4, 8, 16, 32],
        limits: crash(ms(5000), ms(10_000)),
        run: |seed, nodes| crashed(seed, nodes, SECOND, 0.05),
    },
    Case {
        name: "crash, 100 ms period",
        nodes: &[2, 8, 32],
        limits: crash(ms(500), ms(1000)),
        run: |seed, nodes| crashed(seed, nodes, ms(100), 0.0),
    },
    Case {
        name: "crash, 100 ms, 5 % loss",
        nodes: &[2, 8, 32],
        limits: crash(ms(500), ms(1000)),
        run: |seed, nodes| crashed(seed, nodes, ms(100), 0.05),
    },
    Case { name: "join", nodes: &[2, 8, 32], limits: PLANNED, run: |s, n| joined(s, n, 0.0) },
    Case {
        name: "join, 5 % loss",
        nodes: &[2, 8, 32],
        limits: PLANNED,
        run: |s, n| joined(s, n, 0.05),
    },
    Case { name: "drain", nodes: &[2, 8, 32], limits: DRAIN, run: |s, n| drained(s, n, 0.0) },
    Case {
        name: "drain, 5 % loss",
        nodes: &[2, 8, 32],
        limits: DRAIN,
        run: |s, n| drained(s, n, 0.05),
    },
    Case { name: "weight", nodes: &[2, 8, 32], limits: WEIGHT, run: |s, n| weighed(s, n, 0.0) },
    Case {
        name: "weight, 5 % loss",
        nodes: &[2, 8, 32],
        limits: WEIGHT,
        run: |s, n| weighed(s, n, 0.05),
    },
    Case { name: "stop", nodes: &[2, 8, 32], limits: crash(ms(100), ms(5000)), run: stopped },
    Case {
        name: "restart after a crash",
        nodes: &[2, 8, 32],
        limits: Limits { noticed: None, settled: ms(10_000), gap: Some(ms(10_000)), twice: 0.0 },
        run: restarted,
    },
    Case {
        name: "heal of a partition",
        nodes: &[2, 4, 8, 16],
        // Until the first heartbeat (a period) and its answer nobody can know of the others.
        limits: Limits { noticed: None, settled: ms(10_000), gap: Some(ms(1000)), twice: 1.1 },
        run: healed,
    },
];

/// A drained node stays a member until its last flow has ended, 20 s in the simulation.
const DRAIN: Limits = Limits { settled: ms(30_000), ..PLANNED };
/// Buckets with affinity wait for their flows, 30 s at most.
const WEIGHT: Limits = Limits { settled: ms(40_000), ..PLANNED };

/// The groups of the usual plan.
pub fn groups() -> Vec<GroupId> {
    plan(id(0)).slots.iter().map(|slot| slot.group).collect()
}

/// The ids of the first `nodes` nodes.
pub fn hosts(nodes: usize) -> HostSet {
    HostId::all().take(nodes).collect()
}

fn id(place: usize) -> HostId {
    settings(place, SECOND, 1).host
}

/// A settled cluster of nodes that did not start at the same time.
pub fn cluster(seed: u64, nodes: usize, period: Duration, loss: f64) -> World {
    let mut world = World::new(seed, groups());
    world.network.loss = loss;
    for place in 0..nodes {
        let pause = world.random().between(Duration::ZERO, period / 4);
        world.run(pause);
        add(&mut world, place, period);
    }
    world.run_while(60 * period, |world| world.settled(hosts(nodes)));
    let pause = world.random().between(10 * period, 11 * period);
    world.run(pause);
    world.mark();
    world
}

fn add(world: &mut World, place: usize, period: Duration) -> usize {
    let nonce = world.random().bits() | 1;
    world.start(settings(place, period, nonce), plan(id(place)))
}

/// Runs to the end and takes the figures.
fn finish(mut world: World, members: HostSet, noticed: Option<Duration>) -> Outcome {
    let settled = world.run_while(Duration::from_secs(60), |world| world.settled(members));
    let measures = world.measures();
    // What comes after must be quiet.
    let before = world.convergences();
    let calm = world.now + Duration::from_secs(10);
    world.run_while(Duration::from_secs(40), |world| world.now >= calm && world.as_computed());
    let quiet = world.settled(members) && world.convergences() == before;
    let mut violations = std::mem::take(&mut world.violations);
    for (wrong, what) in [
        (settled.is_none(), "does not settle"),
        (settled.is_some() && !quiet, "does not stay settled"),
        (!world.as_computed(), "hosts do not serve exactly their shares"),
    ] {
        if wrong {
            violations.push(Violation { at: world.now, what: what.to_owned() });
        }
    }
    Outcome { measures: Measures { noticed, settled, ..measures }, violations }
}

fn crashed(seed: u64, nodes: usize, period: Duration, loss: f64) -> Outcome {
    let mut world = cluster(seed, nodes, period, loss);
    let victim = world.random().below(nodes as u64) as usize;
    world.crash(victim);
    let mut left = hosts(nodes);
    left.remove(id(victim));
    let noticed = world.run_while(20 * period, |world| world.sees(left));
    finish(world, left, noticed)
}

fn joined(seed: u64, nodes: usize, loss: f64) -> Outcome {
    let mut world = cluster(seed, nodes - 1, SECOND, loss);
    add(&mut world, nodes - 1, SECOND);
    let noticed = world.run_while(10 * SECOND, |world| world.sees(hosts(nodes)));
    finish(world, hosts(nodes), noticed)
}

fn drained(seed: u64, nodes: usize, loss: f64) -> Outcome {
    let mut world = cluster(seed, nodes, SECOND, loss);
    let leaver = world.random().below(nodes as u64) as usize;
    world.with(leaver, |node, now| node.membership.command(Command::DrainStop(None), now));
    let mut left = hosts(nodes);
    left.remove(id(leaver));
    let noticed = world.run_while(60 * SECOND, |world| world.sees(left));
    finish(world, left, noticed)
}

fn weighed(seed: u64, nodes: usize, loss: f64) -> Outcome {
    let mut world = cluster(seed, nodes, SECOND, loss);
    let host = world.random().below(nodes as u64) as usize;
    let slot = Slot::of_group(0);
    let half = SlotCommand::Weight(25);
    world.with(host, |node, now| node.membership.slot_command(slot, half, now));
    let affine = Slot::of_group(1);
    world.with(host, |node, now| node.membership.slot_command(affine, half, now));
    world.run(ms(100));
    finish(world, hosts(nodes), None)
}

fn stopped(seed: u64, nodes: usize) -> Outcome {
    let mut world = cluster(seed, nodes, SECOND, 0.0);
    let leaver = world.random().below(nodes as u64) as usize;
    world.with(leaver, |node, now| node.membership.command(Command::Stop, now));
    let mut left = hosts(nodes);
    left.remove(id(leaver));
    let noticed = world.run_while(20 * SECOND, |world| world.sees(left));
    finish(world, left, noticed)
}

fn restarted(seed: u64, nodes: usize) -> Outcome {
    let mut world = cluster(seed, nodes, SECOND, 0.0);
    let victim = world.random().below(nodes as u64) as usize;
    world.crash(victim);
    let down = world.random().between(ms(100), ms(4000));
    world.run(down);
    let nonce = world.random().bits() | 1;
    world.restart(victim, settings(victim, SECOND, nonce), plan(id(victim)));
    world.run(ms(100));
    finish(world, hosts(nodes), None)
}

fn healed(seed: u64, nodes: usize) -> Outcome {
    let mut world = cluster(seed, nodes, SECOND, 0.0);
    let half = nodes / 2;
    let (one, other): (Vec<usize>, Vec<usize>) = (0..nodes).partition(|&place| place < half);
    world.once = false;
    world.network.part(&one, &other);
    world.run(30 * SECOND);
    world.network.heal();
    world.mark();
    finish(world, hosts(nodes), None)
}
