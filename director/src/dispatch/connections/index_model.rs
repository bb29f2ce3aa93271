//! The index in every order in which the steps of its writer may be seen by a reader without the lock,
//! as the memory model has them.
//!
//! What a reader looks for is there the whole time. It finds it; or it misses it, and has been told so
//! by a table that has changed: it finds it the second time. In the table that carries traffic, the
//! second time is under the lock.

use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;

use super::*;

/// Places in a bucket of the model.
const PLACES: usize = 2;

/// Buckets that it has at first, and may have.
const START: u32 = 2;
const END: usize = 4;

/// A small table; with `FILL` entries to a bucket on average it grows.
struct Model<const FILL: u32> {
    count: AtomicU32,
    entries: AtomicU32,
    places: [AtomicU32; PLACES * END],
}

impl<const FILL: u32> Buckets for &Model<FILL> {
    type Half = AtomicU32;
    const FILL: u32 = FILL;

    fn get(&self, bucket: u32) -> Option<&[AtomicU32]> {
        self.places.chunks(PLACES).nth(bucket as usize)
    }

    fn make(&self, bucket: u32) -> Option<&[AtomicU32]> {
        self.get(bucket)
    }

    fn prefetch(&self, _bucket: u32) {}

    fn count(&self) -> &AtomicU32 {
        &self.count
    }

    fn entries(&self) -> &AtomicU32 {
        &self.entries
    }
}

impl Half for AtomicU32 {
    fn load(&self, order: Ordering) -> u32 {
        AtomicU32::load(self, order)
    }

    fn store(&self, value: u32, order: Ordering) {
        AtomicU32::store(self, value, order);
    }
}

/// Hashes by slot.
struct Hashes(Vec<u64>);

impl Hashed for Hashes {
    fn hash(&self, slot: u32) -> u64 {
        self.0[slot as usize]
    }
}

/// For each slot a hash whose two buckets of four are these, and whose tag is its own.
fn hashes(buckets: &[(u32, u32)]) -> Hashes {
    let of = |(slot, &(first, second)): (usize, &(u32, u32))| {
        (0_u64..)
            .map(|number| {
                (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & !(0xfff << 20)) | (slot as u64) << 20
            })
            .find(|&hash| {
                let trace = Trace::of(hash);
                (trace.first % 4, trace.second % 4) == (first, second)
            })
            .unwrap()
    };
    Hashes(buckets.iter().enumerate().map(of).collect())
}

/// Runs `write` on a table with the first `before` slots in it, while another thread looks for each of
/// `sought`, twice if need be. `check` is told how often it was found: at once, and at all.
fn explore<const FILL: u32>(
    buckets: &'static [(u32, u32)],
    before: u32,
    sought: &'static [u32],
    write: fn(&Index<&Model<FILL>>, &Hashes),
    may_miss: &'static [u32],
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let hashes = Arc::new(hashes(buckets));
        let model: Arc<Model<FILL>> = Arc::new(Model {
            count: AtomicU32::new(START),
            entries: AtomicU32::new(0),
            places: std::array::from_fn(|_| AtomicU32::new(0)),
        });
        for slot in 0..before {
            assert!(Index(&*model).insert(hashes.hash(slot), slot, &*hashes));
        }
        let reader = loom::thread::spawn({
            let (model, hashes) = (model.clone(), hashes.clone());
            move || {
                let index = Index(&*model);
                for &slot in sought {
                    let seen = Half::load(&model.count, Acquire);
                    let look = || index.find(hashes.hash(slot), |found| found == slot).is_some();
                    let found = look();
                    assert!(found || may_miss.contains(&slot), "slot {slot} was there");
                    assert!(found || seen == START, "slot {slot} was where it was said to be");
                    assert!(found || look(), "slot {slot} was there the second time, too");
                }
            }
        });
        let index = Index(&*model);
        write(&index, &hashes);
        reader.join().unwrap();
        for &slot in sought {
            assert_eq!(index.find(hashes.hash(slot), |found| found == slot), Some(slot));
        }
    });
}

#[test]
fn in_every_order_a_split_is_seen_by_who_looks_for_what_it_moves_and_not_by_others() {
    // Slots 0 and 1 are in bucket 0; when there is a bucket 2, slot 0 belongs there.
    explore::<1>(
        &[(2, 1), (0, 1), (1, 3)],
        2,
        &[0, 1],
        |index, hashes| {
            assert!(index.insert(hashes.hash(2), 2, hashes));
            assert_eq!(Half::load(index.0.count(), Relaxed), 3, "it has grown");
        },
        &[0],
    );
}

#[test]
fn in_every_order_an_entry_stays_while_one_is_added_to_its_bucket_and_one_is_taken_out() {
    explore::<8>(
        &[(0, 1), (0, 1), (0, 1)],
        2,
        &[0],
        |index, hashes| {
            index.remove(hashes.hash(1), 1);
            assert!(index.insert(hashes.hash(2), 2, hashes));
        },
        &[],
    );
}

#[test]
fn in_every_order_an_entry_that_makes_room_in_its_first_bucket_is_in_one_of_its_two() {
    // Both fill bucket 0; who comes has no other bucket, so slot 0 goes to its second.
    explore::<8>(
        &[(0, 1), (0, 0), (0, 0)],
        2,
        &[0, 1],
        |index, hashes| assert!(index.insert(hashes.hash(2), 2, hashes)),
        &[],
    );
}

#[test]
fn in_every_order_an_entry_that_goes_back_to_its_first_bucket_is_missed_once_at_most() {
    // Slots 0 and 1 fill bucket 0, so slot 2 is in its second, bucket 1, and slot 3 fills that. Then
    // there is a place in bucket 0, and slot 4, which has no other bucket than 1, drives slot 2 there.
    explore::<8>(
        &[(0, 0), (0, 0), (0, 1), (1, 1), (1, 1)],
        4,
        &[2, 3],
        |index, hashes| {
            index.remove(hashes.hash(0), 0);
            assert!(index.insert(hashes.hash(4), 4, hashes));
        },
        &[2],
    );
}
