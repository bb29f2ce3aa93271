//! Clusters in virtual time: what must hold whatever happens to heartbeats, clocks and nodes.
//!
//! Every failure prints its seed; the same seed fails again. `SEED=n` moves all seeds.

use std::time::Duration;

use nlb::host::{HostId, HostSet};
use nlb::simulation::World;
use nlb::simulation::cases::{SECOND, cluster, groups, hosts};

mod faults;
mod figures;
mod operator;
mod rollout;
mod strangers;

/// Seeds of this run.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let first = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    first..first + count
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn id(id: u8) -> HostId {
    HostId::new(id).unwrap()
}

fn set(ids: &[u8]) -> HostSet {
    ids.iter().map(|&number| id(number)).collect()
}

/// No rule was broken so far.
fn sound(world: &World, seed: u64) {
    let violations: Vec<String> = world.violations.iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
}

/// The cluster comes to rest on these hosts within a time.
fn settles(world: &mut World, members: HostSet, within: Duration, seed: u64) {
    let settled = world.run_while(within, |world| world.settled(members));
    let states: Vec<_> = world.nodes.iter().map(|node| node.membership.status()).collect();
    assert!(
        settled.is_some(),
        "seed {seed}: not settled on {members} at {:?}: {states:#?}",
        world.now
    );
}
