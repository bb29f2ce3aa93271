//! Which slots may hold the connection with this hash. One index for each direction of a shard.
//!
//! A table of buckets, each a cache line of sixteen entries; an entry is a slot's number and twelve
//! bits of the hash. Every hash has two buckets and its entry is in the first unless that was full
//! (two choices: Azar, Broder, Karlin and Upfal 1994), so one line is all that more than nine of ten
//! look-ups touch. The table grows by one bucket at a time (linear hashing: Litwin 1980): no
//! insertion ever moves more than a bucket's entries.
//!
//! One writes, under the shard's lock; all read at any time, without. A reader may miss an entry that is
//! just being moved, and may be shown one that is no longer true. So what it finds must be looked
//! at, and what it does not find must be looked for again under the lock.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bits of an entry that are the slot's number, plus one: 0 is an empty place.
const SLOT_BITS: u32 = 20;
const SLOT_MASK: u32 = (1 << SLOT_BITS) - 1;

/// Slots that an index can tell apart.
pub(super) const SLOTS: u32 = SLOT_MASK;

/// Entries for each bucket on average before the table grows, of sixteen places. Seven bytes of
/// index for each direction of a connection come of that.
pub(super) const FILL: u32 = 9;

/// Buckets of an empty index.
pub(super) const FIRST: u32 = 8;

/// Where an index has its buckets.
pub(super) trait Buckets {
    /// What an entry is kept in.
    type Half: Half;
    /// See [`FILL`].
    const FILL: u32 = FILL;
    /// The places of a bucket that is in use.
    fn get(&self, bucket: u32) -> Option<&[Self::Half]>;
    /// Takes a bucket into use. `None` when there is no such one.
    fn make(&self, bucket: u32) -> Option<&[Self::Half]>;
    /// Asks for the memory of a bucket.
    fn prefetch(&self, bucket: u32);
    /// How many buckets are in use: [`FIRST`] or more.
    fn count(&self) -> &Self::Half;
    /// How many entries there are; of interest to the writer alone.
    fn entries(&self) -> &Self::Half;
}

/// Half a word: an atomic one, of the standard library or of the model that the tests use.
pub(super) trait Half {
    fn load(&self, order: Ordering) -> u32;
    fn store(&self, value: u32, order: Ordering);
}

impl Half for AtomicU32 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u32 {
        AtomicU32::load(self, order)
    }

    #[inline(always)]
    fn store(&self, value: u32, order: Ordering) {
        AtomicU32::store(self, value, order);
    }
}

/// See the module.
pub(super) struct Index<B>(pub(super) B);

/// What the writer has to know of slots that are in the index.
pub(super) trait Hashed {
    /// The hash that a slot was added under.
    fn hash(&self, slot: u32) -> u64;
    /// Asks for the memory that tells it.
    fn prefetch(&self, _slot: u32) {}
}

/// What a hash says about its entry.
#[derive(Clone, Copy, Debug)]
struct Trace {
    first: u32,
    second: u32,
    tag: u32,
}

impl Trace {
    #[inline(always)]
    fn of(hash: u64) -> Trace {
        // The low bits chose the shard.
        Trace {
            first: (hash >> 32) as u32,
            second: (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32,
            tag: ((hash >> 20) as u32) << SLOT_BITS,
        }
    }
}

/// The bucket of `half`, one half of a hash, where there are `buckets`: by so many of its bits as
/// number them all, or one bit fewer where that bucket is still to come.
#[inline(always)]
fn bucket_of(half: u32, buckets: u32) -> u32 {
    let mask = u32::MAX >> (buckets - 1).leading_zeros();
    let bucket = half & mask;
    if bucket < buckets { bucket } else { half & (mask >> 1) }
}

impl<B: Buckets> Index<B> {
    /// Asks for the memory that [`find`](Index::find) will most likely look at. The bucket that is there.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) -> u32 {
        let bucket = bucket_of(Trace::of(hash).first, self.0.count().load(Acquire));
        self.0.prefetch(bucket);
        bucket
    }

    /// The first slot that may have the hash; `bucket` is that which has been asked for.
    #[inline(always)]
    pub(super) fn guess(&self, hash: u64, bucket: u32) -> Option<u32> {
        let tag = Trace::of(hash).tag;
        for place in self.0.get(bucket)? {
            let entry = place.load(Acquire);
            if (entry ^ tag) & !SLOT_MASK == 0
                && let Some(slot) = (entry & SLOT_MASK).checked_sub(1)
            {
                return Some(slot);
            }
        }
        self.find(hash, |_| true)
    }

    /// The first slot that `is_it` among those that may have the hash.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let trace = Trace::of(hash);
        let buckets = self.0.count().load(Acquire);
        for half in [trace.first, trace.second] {
            for place in self.bucket(half, buckets)? {
                let entry = place.load(Acquire);
                if (entry ^ trace.tag) & !SLOT_MASK == 0
                    && let Some(slot) = (entry & SLOT_MASK).checked_sub(1)
                    && is_it(slot)
                {
                    return Some(slot);
                }
            }
        }
        None
    }

    #[inline(always)]
    fn bucket(&self, half: u32, buckets: u32) -> Option<&[B::Half]> {
        self.0.get(bucket_of(half, buckets))
    }

    /// Adds `slot`, below [`SLOTS`], under `hash`. False when there is no place for it: that is a
    /// matter of memory or of very bad luck. For the writer.
    #[must_use]
    pub(super) fn insert(&self, hash: u64, slot: u32, others: &impl Hashed) -> bool {
        let entries = self.0.entries().load(Relaxed) + 1;
        let trace = Trace::of(hash);
        let entry = trace.tag | (slot + 1);
        if entries > self.0.count().load(Relaxed) * B::FILL {
            self.split(others);
        }
        let buckets = self.0.count().load(Relaxed);
        let halves = [trace.first, trace.second];
        let place = halves
            .iter()
            .find_map(|&half| self.free_place(half, buckets))
            .or_else(|| halves.iter().find_map(|&half| self.displace(half, buckets, others)));
        let Some(place) = place else { return false };
        place.store(entry, Release);
        self.0.entries().store(entries, Relaxed);
        true
    }

    fn free_place(&self, half: u32, buckets: u32) -> Option<&B::Half> {
        self.bucket(half, buckets)?.iter().find(|place| place.load(Relaxed) == 0)
    }

    /// Moves some entry of a full bucket to the other bucket of its hash; the place that it had.
    fn displace(&self, half: u32, buckets: u32, others: &impl Hashed) -> Option<&B::Half> {
        let here = bucket_of(half, buckets);
        self.bucket(half, buckets)?.iter().find(|place| {
            let entry = place.load(Relaxed);
            let Some(slot) = (entry & SLOT_MASK).checked_sub(1) else { return true };
            let Trace { first, second, .. } = Trace::of(others.hash(slot));
            let other = if bucket_of(first, buckets) == here { second } else { first };
            match self.free_place(other, buckets) {
                Some(free) => {
                    free.store(entry, Release);
                    true
                }
                None => false,
            }
        })
    }

    /// Takes `slot` out, which was added under `hash`. For the writer.
    pub(super) fn remove(&self, hash: u64, slot: u32) {
        let trace = Trace::of(hash);
        let entry = trace.tag | (slot + 1);
        let buckets = self.0.count().load(Relaxed);
        let mut places = [trace.first, trace.second]
            .into_iter()
            .filter_map(|half| self.bucket(half, buckets))
            .flatten();
        if let Some(place) = places.find(|place| place.load(Relaxed) == entry) {
            place.store(0, Release);
            let entries = self.0.entries();
            entries.store(entries.load(Relaxed) - 1, Relaxed);
        }
    }

    /// Adds a bucket and moves to it what belongs there, all from one other.
    fn split(&self, others: &impl Hashed) {
        let before = self.0.count().load(Relaxed);
        let source = before - (1 << before.ilog2());
        let (Some(from), Some(to)) = (self.0.get(source), self.0.make(before)) else { return };
        let slots = from.iter().map(|place| place.load(Relaxed) & SLOT_MASK);
        slots.filter_map(|slot| slot.checked_sub(1)).for_each(|slot| others.prefetch(slot));
        let moves = |hash: u64| {
            let trace = Trace::of(hash);
            let is_by_first = bucket_of(trace.first, before) == source;
            let half = if is_by_first { trace.first } else { trace.second };
            bucket_of(half, before + 1) == before
        };
        let mut moved = 0_u64;
        for (place, (old, new)) in from.iter().zip(to).enumerate() {
            let entry = old.load(Relaxed);
            let Some(slot) = (entry & SLOT_MASK).checked_sub(1) else { continue };
            if moves(others.hash(slot)) {
                new.store(entry, Relaxed);
                moved |= 1 << place;
            }
        }
        // From here on readers look in the new bucket; only then the old one may forget.
        self.0.count().store(before + 1, Release);
        for (place, old) in from.iter().enumerate() {
            if moved & 1 << place != 0 {
                old.store(0, Release);
            }
        }
    }
}

#[cfg(test)]
#[path = "index_model.rs"]
mod model;
#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
