//! The buckets of all indices, of which each shard has two, one for each direction.
//!
//! ```text
//!   bucket 0 of lane 0 | bucket 0 of lane 1 | ... | bucket 1 of lane 0 | bucket 1 of lane 1 | ...
//! ```
//!
//! Indices grow together, since hashes spread connections over them. So all buckets are in one array
//! without gaps, of huge pages where the kernel has them, and from its number to a bucket it is one
//! multiplication.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use netio::{Lines, prefetch};

use super::index::{Buckets, FILL, FIRST, Index};
use super::reserve::{Reserve, Waker};
use super::slots::per_shard;
use super::{SHARDS, Way};

/// One for each direction of a shard.
const LANES: usize = 2 * SHARDS;

/// Numbers in a line.
const LINE: usize = 16;

/// See the module.
pub(super) struct Lanes {
    buckets: Reserve<AtomicU32, 16>,
    /// How many buckets each lane has.
    counts: Lines<AtomicU32, LINE>,
    /// How many entries; only writers look, so readers keep the line above.
    entries: Lines<AtomicU32, LINE>,
}

impl Lanes {
    /// For a table for `limit` connections.
    pub(super) fn new(limit: usize, waker: &Waker) -> Lanes {
        let rows = per_shard(limit).div_ceil(FILL as usize).max(FIRST as usize);
        let lanes = Lanes {
            buckets: Reserve::new(rows * LANES, limit, waker),
            counts: Lines::zeroed(LANES / LINE),
            entries: Lines::zeroed(LANES / LINE),
        };
        lanes.counts.iter().flat_map(|line| &line.0).for_each(|count| count.store(FIRST, Relaxed));
        lanes.buckets.reach(FIRST as usize * LANES - 1);
        lanes
    }

    /// Has the memory at hand that will soon be used. Not for workers.
    pub(super) fn prepare(&self) {
        self.buckets.prepare();
    }

    /// The index of a shard for packets that go this way.
    #[inline(always)]
    pub(super) fn of(&self, shard: usize, way: Way) -> Index<Lane<'_>> {
        let way = match way {
            Way::In => 0,
            Way::Out => 1,
        };
        Index(Lane { lanes: self, number: (2 * shard + way) % LANES })
    }
}

/// One index's part.
#[derive(Clone, Copy)]
pub(super) struct Lane<'a> {
    lanes: &'a Lanes,
    number: usize,
}

impl Lane<'_> {
    #[inline(always)]
    fn line(self, bucket: u32) -> usize {
        bucket as usize * LANES + self.number
    }
}

impl<'a> Buckets for Lane<'a> {
    type Half = AtomicU32;

    #[inline(always)]
    fn get(&self, bucket: u32) -> Option<&[AtomicU32]> {
        Some(&self.lanes.buckets.get(self.line(bucket))?.0)
    }

    fn make(&self, bucket: u32) -> Option<&[AtomicU32]> {
        let line = self.line(bucket);
        if line < self.lanes.buckets.len() {
            self.lanes.buckets.reach(line);
        }
        self.get(bucket)
    }

    #[inline(always)]
    fn prefetch(&self, bucket: u32) {
        if let Some(line) = self.lanes.buckets.get(self.line(bucket)) {
            prefetch(line);
        }
    }

    #[inline(always)]
    fn count(&self) -> &AtomicU32 {
        &self.lanes.counts[self.number / LINE].0[self.number % LINE]
    }

    fn entries(&self) -> &AtomicU32 {
        &self.lanes.entries[self.number / LINE].0[self.number % LINE]
    }
}
