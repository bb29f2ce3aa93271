//! What is measured from the moment of an event on.

use std::time::Duration;

use crate::buckets::{BUCKETS, BucketSet};

/// Figures of one case.
#[derive(Clone, Debug, Default)]
pub struct Measures {
    /// From the event until all hosts see the cluster as it is.
    pub noticed: Option<Duration>,
    /// Until all have converged and each bucket has one server.
    pub settled: Option<Duration>,
    /// Seconds of the whole load that had no server.
    pub unserved: f64,
    /// Seconds of the whole load that had two.
    pub twice: f64,
    /// Longest time any one bucket had no server.
    pub gap: Duration,
    /// Convergences begun, all hosts together.
    pub convergences: u64,
}

/// Who serves what, followed over time.
#[derive(Clone, Debug, Default)]
pub(super) struct Coverage {
    since: Duration,
    none: Vec<BucketSet>,
    twice: Vec<BucketSet>,
    /// By slot and bucket: without a server since.
    bare_since: Vec<Vec<Duration>>,
    unserved: f64,
    double: f64,
    gap: Duration,
}

impl Coverage {
    pub(super) fn new(slots: usize, now: Duration) -> Coverage {
        Coverage {
            since: now,
            none: vec![BucketSet::EMPTY; slots],
            twice: vec![BucketSet::EMPTY; slots],
            bare_since: vec![vec![now; BUCKETS]; slots],
            ..Coverage::default()
        }
    }

    /// Time passes under what was served.
    pub(super) fn until(&mut self, now: Duration) {
        let seconds = now.saturating_sub(self.since).as_secs_f64();
        let whole = (self.none.len().max(1) * BUCKETS) as f64;
        let share = |sets: &[BucketSet]| sets.iter().map(BucketSet::len).sum::<usize>() as f64;
        self.unserved += seconds * share(&self.none) / whole;
        self.double += seconds * share(&self.twice) / whole;
        self.since = now;
    }

    /// From now on these buckets of a slot have no server, and those two or more.
    pub(super) fn set(&mut self, slot: usize, none: BucketSet, twice: BucketSet) {
        let (now, before) = (self.since, &self.none[slot]);
        for bucket in none.minus(before).iter() {
            self.bare_since[slot][bucket.index()] = now;
        }
        for bucket in before.minus(&none).iter() {
            self.gap = self.gap.max(now - self.bare_since[slot][bucket.index()]);
        }
        self.none[slot] = none;
        self.twice[slot] = twice;
    }

    /// Every bucket has exactly one server.
    pub(super) fn whole(&self) -> bool {
        self.none.iter().chain(&self.twice).all(BucketSet::is_empty)
    }

    pub(super) fn any_twice(&self) -> Option<usize> {
        self.twice.iter().position(|set| !set.is_empty())
    }

    /// Measuring begins anew.
    pub(super) fn restart(&mut self, now: Duration) {
        self.until(now);
        self.unserved = 0.0;
        self.double = 0.0;
        self.gap = Duration::ZERO;
        for since in self.bare_since.iter_mut().flatten() {
            *since = now;
        }
    }

    pub(super) fn figures(&self, now: Duration) -> Measures {
        let mut gap = self.gap;
        for (slot, none) in self.none.iter().enumerate() {
            for bucket in none.iter() {
                gap = gap.max(now.saturating_sub(self.bare_since[slot][bucket.index()]));
            }
        }
        Measures { unserved: self.unserved, twice: self.double, gap, ..Measures::default() }
    }
}
