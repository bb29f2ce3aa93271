//! What the index promises its one writer and its readers.

use std::collections::HashMap;

use proptest::prelude::*;

use super::super::Way;
use super::super::lanes::Lanes;
use super::super::reserve::Waker;
use super::*;

/// A hash for each slot (the finalizer of SplitMix64).
fn hash(slot: u32) -> u64 {
    let mut bits = u64::from(slot + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Room enough in every lane.
fn lanes() -> Lanes {
    Lanes::new(SLOTS as usize * 8, &Waker::default())
}

struct Mixed;

impl Hashed for Mixed {
    fn hash(&self, slot: u32) -> u64 {
        hash(slot)
    }
}

fn has(index: &Index<impl Buckets>, slot: u32) -> bool {
    index.find(hash(slot), |found| found == slot) == Some(slot)
}

#[test]
fn a_hundred_thousand_entries_are_found_and_take_little_more_than_seven_bytes_each() {
    let lanes = lanes();
    let index = lanes.of(3, Way::Out);
    for slot in 0..100_000 {
        assert!(index.insert(hash(slot), slot, &Mixed), "{slot}");
    }
    assert!((0..100_000).all(|slot| has(&index, slot)));
    assert!((100_000..200_000).all(|slot| !has(&index, slot)));
    let bytes = index.0.count().load(Relaxed) * 64;
    assert!(bytes <= 100_000 * 64 / 9 + 64, "{bytes} bytes");
}

#[test]
fn more_than_nine_of_ten_entries_are_in_the_first_of_their_buckets() {
    let lanes = lanes();
    let index = lanes.of(3, Way::Out);
    for slot in 0..100_000 {
        assert!(index.insert(hash(slot), slot, &Mixed));
    }
    let buckets = index.0.count().load(Relaxed);
    let is_first = |slot: &u32| {
        let bucket = index.bucket(Trace::of(hash(*slot)).first, buckets).unwrap();
        bucket.iter().any(|place| place.load(Relaxed) & SLOT_MASK == slot + 1)
    };
    let first = (0..100_000).filter(is_first).count();
    assert!(first > 90_000, "{first}");
}

#[test]
fn hashes_that_are_all_the_same_fill_two_buckets_and_are_then_refused() {
    let lanes = lanes();
    let index = lanes.of(3, Way::Out);
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
        let lanes = lanes();
    let index = lanes.of(3, Way::Out);
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
        prop_assert_eq!(index.0.entries().load(Relaxed) as usize, model.len());
    }
}

/// What is there before a reader begins and stays there is missed only while it is being moved,
/// and is there when looked for again.
#[test]
fn readers_find_what_is_there_while_the_table_grows() {
    let lanes = lanes();
    let index = lanes.of(3, Way::Out);
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
