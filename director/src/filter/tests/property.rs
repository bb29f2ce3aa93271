//! The program is held to its twin: the same reason, the same verdict, the same bytes, and the same
//! memory afterwards.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use nlb::filter::{Policy, Reason};
use nlb::tuple::Tuple;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::bed::Bed;
use super::packets::frames;
use super::policies::{policies, slots};
use crate::filter::layout::{FLOW_KEY, tuple};

/// Policies, each with a filter of its own; changes of policy without a new filter; frames between
/// two changes.
const POLICIES: usize = 32;
const CHANGES: usize = 4;
const FRAMES: usize = 1000;

/// Another one for every run, unless it is asked for.
fn seed() -> u64 {
    let random = || RandomState::new().build_hasher().finish();
    std::env::var("FILTER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(random)
}

/// What no frame has led to yet, in a run of all, would not be tested.
fn unreached(counts: &[u64; Reason::ALL.len()]) -> BTreeSet<Reason> {
    Reason::ALL
        .iter()
        .zip(counts)
        .filter(|(_, count)| **count == 0)
        .map(|(reason, _)| *reason)
        .collect()
}

#[test]
fn program_and_twin_decide_alike_about_every_frame_and_remember_the_same() {
    let seed = seed();
    eprintln!("FILTER_SEED={seed} brings these frames again");
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        TestRng::from_seed(RngAlgorithm::XorShift, &u128::from(seed).to_le_bytes()),
    );
    let mut draw = Draw(&mut runner);
    let mut totals = [0; Reason::ALL.len()];
    for _ in 0..POLICIES {
        let mut policy = draw.one(&policies());
        let Some(mut bed) = Bed::new(&policy) else { return };
        for _ in 0..CHANGES {
            bed.filter.publish(&policy).expect("published");
            for _ in 0..FRAMES {
                let frame = draw.one(&frames());
                if let Err(difference) = bed.step(&frame) {
                    panic!("{difference}\n{frame:02x?}\n{policy:?}");
                }
            }
            assert_same_memory(&bed);
            policy = changed(&mut draw, &policy);
        }
        for (total, count) in totals.iter_mut().zip(bed.counts) {
            *total += count;
        }
    }
    let frames: u64 = totals.iter().sum();
    for (reason, count) in Reason::ALL.iter().zip(totals) {
        eprintln!("{count:>7} {reason}");
    }
    assert_eq!(frames as usize, POLICIES * CHANGES * FRAMES);
    assert_eq!(unreached(&totals), BTreeSet::new(), "no frame ended with these reasons");
}

/// What the next publication brings: other buckets, another state, other rules.
fn changed(draw: &mut Draw<'_>, policy: &Policy) -> Policy {
    let other = draw.one(&policies());
    match draw.one(&(0..3)) {
        0 => Policy { slots: draw.one(&slots()), ..policy.clone() },
        1 => Policy { state: other.state, peers: vec![], slots: other.slots, ..policy.clone() },
        _ => other,
    }
}

/// Pins, flows given up and fragments are the same on both sides.
fn assert_same_memory(bed: &Bed) {
    let pins = bed.filter.pins(Duration::ZERO).expect("pins");
    let pins: HashSet<Tuple> = pins.into_iter().map(|pin| pin.tuple).collect();
    assert_eq!(pins, bed.twin.pins, "pins");
    let retired = bed.filter.memory.retired.keys().expect("keys");
    let retired: HashSet<Tuple> =
        retired.iter().filter_map(|key| key.first_chunk::<FLOW_KEY>().map(tuple)).collect();
    assert_eq!(retired, bed.twin.retired, "flows given up");
    let fragments = bed.filter.memory.fragments.keys().expect("keys").len();
    assert_eq!(fragments, bed.twin.fragments.len(), "first fragments");
}

/// Takes values of strategies, without making them smaller when something is wrong: what is wrong
/// depends on what went before.
struct Draw<'a>(&'a mut TestRunner);

impl Draw<'_> {
    fn one<S: Strategy>(&mut self, strategy: &S) -> S::Value {
        strategy.new_tree(self.0).expect("a value").current()
    }
}
