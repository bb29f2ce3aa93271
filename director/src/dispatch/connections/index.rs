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

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use netio::{HalfWords, prefetch};

use super::segments::Segments;

/// Bits of an entry that are the slot's number, plus one: 0 is an empty place.
const SLOT_BITS: u32 = 20;
const SLOT_MASK: u32 = (1 << SLOT_BITS) - 1;

/// Slots that an index can tell apart.
pub(super) const SLOTS: u32 = SLOT_MASK;

/// Entries in a bucket, and how many there are on average before the table grows. Seven bytes of
/// index for each direction of a connection come of that.
const PLACES: u32 = 16;
const FILL: u32 = 9;

/// Buckets of an empty index, 2^3 of 64 bytes.
const FIRST: u32 = 3;

/// Buckets at most.
const MOST: u32 = (SLOTS + 1) / FILL * 2;

/// See the module.
pub(super) struct Index {
    segments: Segments<AtomicU32, 16, FIRST>,
    /// How many buckets there are.
    buckets: AtomicU32,
    /// How many entries; of interest to the writer alone.
    entries: AtomicU32,
}

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

impl Index {
    pub(super) fn new() -> Index {
        let index = Index {
            segments: Segments::new(),
            buckets: AtomicU32::new(1 << FIRST),
            entries: AtomicU32::new(0),
        };
        index.segments.make(0);
        index
    }

    /// Asks for the memory that [`find`](Index::find) will most likely look at.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        if let Some(bucket) = self.bucket(Trace::of(hash).first, self.buckets.load(Acquire)) {
            prefetch(bucket);
        }
    }

    /// The first slot that may have the hash.
    #[inline(always)]
    pub(super) fn guess(&self, hash: u64) -> Option<u32> {
        self.find(hash, |_| true)
    }

    /// The first slot that `is_it` among those that may have the hash.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let trace = Trace::of(hash);
        let buckets = self.buckets.load(Acquire);
        for half in [trace.first, trace.second] {
            for place in &self.bucket(half, buckets)?.0 {
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
    fn bucket(&self, half: u32, buckets: u32) -> Option<&HalfWords> {
        self.segments.get(bucket_of(half, buckets))
    }

    /// Adds `slot`, below [`SLOTS`], under `hash`. False when there is no place for it: that is a
    /// matter of memory or of very bad luck. For the writer.
    #[must_use]
    pub(super) fn insert(&self, hash: u64, slot: u32, others: &impl Hashed) -> bool {
        let entries = self.entries.load(Relaxed) + 1;
        let trace = Trace::of(hash);
        let entry = trace.tag | (slot + 1);
        if entries > self.buckets.load(Relaxed) * FILL {
            self.split(others);
        }
        let buckets = self.buckets.load(Relaxed);
        let halves = [trace.first, trace.second];
        let place = halves
            .iter()
            .find_map(|&half| self.free_place(half, buckets))
            .or_else(|| halves.iter().find_map(|&half| self.displace(half, buckets, others)));
        let Some(place) = place else { return false };
        place.store(entry, Release);
        self.entries.store(entries, Relaxed);
        true
    }

    fn free_place(&self, half: u32, buckets: u32) -> Option<&AtomicU32> {
        self.bucket(half, buckets)?.0.iter().find(|place| place.load(Relaxed) == 0)
    }

    /// Moves some entry of a full bucket to the other bucket of its hash; the place that it had.
    fn displace(&self, half: u32, buckets: u32, others: &impl Hashed) -> Option<&AtomicU32> {
        let here = bucket_of(half, buckets);
        self.bucket(half, buckets)?.0.iter().find(|place| {
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
        let buckets = self.buckets.load(Relaxed);
        let mut places = [trace.first, trace.second]
            .into_iter()
            .filter_map(|half| self.bucket(half, buckets))
            .flat_map(|bucket| &bucket.0);
        if let Some(place) = places.find(|place| place.load(Relaxed) == entry) {
            place.store(0, Release);
            self.entries.store(self.entries.load(Relaxed) - 1, Relaxed);
        }
    }

    /// Adds a bucket and moves to it what belongs there, all from one other.
    fn split(&self, others: &impl Hashed) {
        let before = self.buckets.load(Relaxed);
        if before >= MOST {
            return;
        }
        let source = before - (1 << before.ilog2());
        let (Some(from), Some(to)) = (self.segments.get(source), self.segments.make(before)) else {
            return;
        };
        let slots = from.0.iter().map(|place| place.load(Relaxed) & SLOT_MASK);
        slots.filter_map(|slot| slot.checked_sub(1)).for_each(|slot| others.prefetch(slot));
        let moves = |entry: u32, hash: u64| {
            let trace = Trace::of(hash);
            let is_by_first = bucket_of(trace.first, before) == source;
            let half = if is_by_first { trace.first } else { trace.second };
            entry != 0 && bucket_of(half, before + 1) == before
        };
        let mut moved = [false; PLACES as usize];
        for ((old, new), moved) in from.0.iter().zip(&to.0).zip(&mut moved) {
            let entry = old.load(Relaxed);
            let Some(slot) = (entry & SLOT_MASK).checked_sub(1) else { continue };
            *moved = moves(entry, others.hash(slot));
            if *moved {
                new.store(entry, Relaxed);
            }
        }
        // From here on readers look in the new bucket; only then the old one may forget.
        self.buckets.store(before + 1, Release);
        for (old, _) in from.0.iter().zip(moved).filter(|(_, moved)| *moved) {
            old.store(0, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// A hash for each slot (the finalizer of SplitMix64).
    fn hash(slot: u32) -> u64 {
        let mut bits = u64::from(slot + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    struct Mixed;

    impl Hashed for Mixed {
        fn hash(&self, slot: u32) -> u64 {
            hash(slot)
        }
    }

    fn has(index: &Index, slot: u32) -> bool {
        index.find(hash(slot), |found| found == slot) == Some(slot)
    }

    #[test]
    fn a_hundred_thousand_entries_are_found_and_take_little_more_than_seven_bytes_each() {
        let index = Index::new();
        for slot in 0..100_000 {
            assert!(index.insert(hash(slot), slot, &Mixed), "{slot}");
        }
        assert!((0..100_000).all(|slot| has(&index, slot)));
        assert!((100_000..200_000).all(|slot| !has(&index, slot)));
        let bytes = index.buckets.load(Relaxed) * 64;
        assert!(bytes <= 100_000 * 64 / 9 + 64, "{bytes} bytes");
    }

    #[test]
    fn more_than_nine_of_ten_entries_are_in_the_first_of_their_buckets() {
        let index = Index::new();
        for slot in 0..100_000 {
            assert!(index.insert(hash(slot), slot, &Mixed));
        }
        let buckets = index.buckets.load(Relaxed);
        let is_first = |slot: &u32| {
            let bucket = index.bucket(Trace::of(hash(*slot)).first, buckets).unwrap();
            bucket.0.iter().any(|place| place.load(Relaxed) & SLOT_MASK == slot + 1)
        };
        let first = (0..100_000).filter(is_first).count();
        assert!(first > 90_000, "{first}");
    }

    #[test]
    fn hashes_that_are_all_the_same_fill_two_buckets_and_are_then_refused() {
        let index = Index::new();
        struct Same;
        impl Hashed for Same {
            fn hash(&self, _slot: u32) -> u64 {
                7 << 32 | 5
            }
        }
        let taken = (0..1000).filter(|&slot| index.insert(Same.hash(slot), slot, &Same)).count();
        assert!((16..=32).contains(&taken), "{taken}");
        assert!(index.find(Same.hash(0), |slot| slot == 3).is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn it_has_what_was_added_and_not_removed(
            steps in prop::collection::vec((any::<bool>(), 0u32..400), 1..2000)
        ) {
            let index = Index::new();
            let mut model = HashMap::new();
            for (add, slot) in steps {
                let known = model.contains_key(&slot);
                if add && !known {
                    prop_assert!(index.insert(hash(slot), slot, &Mixed));
                    model.insert(slot, ());
                } else if !add && known {
                    index.remove(hash(slot), slot);
                    model.remove(&slot);
                }
            }
            prop_assert!((0..400).all(|slot| has(&index, slot) == model.contains_key(&slot)));
            prop_assert_eq!(index.entries.load(Relaxed) as usize, model.len());
        }
    }

    /// What is there before a reader begins and stays there is missed only while it is being moved,
    /// and is there when looked for again.
    #[test]
    fn readers_find_what_is_there_while_the_table_grows() {
        let index = Index::new();
        for slot in 0..1000 {
            assert!(index.insert(hash(slot), slot, &Mixed));
        }
        let missed = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let looks = (0..200).flat_map(|_| 0..1000);
                looks.filter(|&slot| !has(&index, slot)).count()
            });
            for slot in 1000..60_000 {
                assert!(index.insert(hash(slot), slot, &Mixed));
            }
            reader.join().unwrap()
        });
        assert!(missed < 2000, "{missed} of 200,000");
        assert!((0..60_000).all(|slot| has(&index, slot)));
    }
}
