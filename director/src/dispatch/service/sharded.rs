//! A map that is copied often and changed little between two copies.
//!
//! It consists of shards, and copies share them until one is changed: then that one is copied, and
//! the list of shards. With ten thousand entries a change costs some forty of them, whoever else
//! still looks at the map as it was. Changes after the first copy nothing more, as long as nobody
//! takes another copy of the map.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// How many shards.
const SHARDS: usize = 256;

type Shard<K, V> = Arc<HashTable<(K, V)>>;

/// See the module.
#[derive(Clone)]
pub(super) struct Sharded<K, V> {
    hasher: RandomState,
    shards: Arc<[Shard<K, V>]>,
    len: usize,
}

impl<K, V> Default for Sharded<K, V> {
    fn default() -> Sharded<K, V> {
        let empty = Arc::new(HashTable::new());
        let shards = std::iter::repeat_n(empty, SHARDS).collect();
        Sharded { hasher: RandomState::default(), shards, len: 0 }
    }
}

/// The shard for a hash. The table takes the lowest bits for the place in it, and the highest to
/// tell entries apart.
fn shard_of(hash: u64) -> usize {
    (hash >> 32) as usize % SHARDS
}

impl<K: Hash + Eq + Clone, V: Clone> Sharded<K, V> {
    /// Whether there are no entries.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let hash = self.hasher.hash_one(key);
        let entry = self.shards[shard_of(hash)].find(hash, |entry| entry.0 == *key)?;
        Some(&entry.1)
    }

    /// Sets the value of a key and returns the one before.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let before = self.swap(key, Some(value));
        self.len += usize::from(before.is_none());
        before
    }

    /// Removes a key and returns its value.
    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        // A look first: for what is not there nothing need be copied.
        self.get(key)?;
        let before = self.swap(key.clone(), None);
        self.len -= usize::from(before.is_some());
        before
    }

    fn swap(&mut self, key: K, value: Option<V>) -> Option<V> {
        let Sharded { hasher, shards, .. } = self;
        let hash = hasher.hash_one(&key);
        let table = Arc::make_mut(&mut Arc::make_mut(shards)[shard_of(hash)]);
        let rehash = |entry: &(K, V)| hasher.hash_one(&entry.0);
        match (table.entry(hash, |entry| entry.0 == key, rehash), value) {
            (Entry::Occupied(mut entry), Some(value)) => {
                Some(std::mem::replace(&mut entry.get_mut().1, value))
            }
            (Entry::Occupied(entry), None) => Some(entry.remove().0.1),
            (Entry::Vacant(entry), value) => {
                if let Some(value) = value {
                    entry.insert((key, value));
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn it_is_a_map_and_earlier_copies_stay_as_they_were(
            steps in proptest::collection::vec((0..60_u16, any::<Option<u8>>(), any::<bool>()), 1..200),
        ) {
            let (mut map, mut model) = (Sharded::<u16, u8>::default(), HashMap::new());
            let mut copies = Vec::new();
            for (key, value, copy) in steps {
                let (before, expected) = match value {
                    Some(value) => (map.insert(key, value), model.insert(key, value)),
                    None => (map.remove(&key), model.remove(&key)),
                };
                prop_assert_eq!(before, expected);
                if copy {
                    copies.push((map.clone(), model.clone()));
                }
            }
            copies.push((map, model));
            for (map, model) in copies {
                prop_assert_eq!(map.is_empty(), model.is_empty());
                for key in 0..60 {
                    prop_assert_eq!(map.get(&key), model.get(&key));
                }
            }
        }
    }

    #[test]
    fn a_change_leaves_all_other_shards_shared() {
        let mut map = Sharded::<u32, u32>::default();
        (0..10_000).for_each(|key| _ = map.insert(key, key));
        let before = map.clone();
        map.insert(7, 8);
        map.remove(&7);
        let shared = map.shards.iter().zip(before.shards.iter());
        assert_eq!(shared.filter(|(now, then)| !Arc::ptr_eq(now, then)).count(), 1);
        assert_eq!((map.get(&7), before.get(&7)), (None, Some(&7)));
    }
}
