//! What shall be in the kernel's map, followed change by change.
//!
//! Several services and servers may want the same key (all on one address share that of its later
//! fragments), so keys are counted. What has changed since the map was last made equal is *open*.

use std::collections::HashMap;

use hashbrown::HashSet;

use super::keys::{Key, KeySet};
use super::marked::MarkedSet;

/// See the module.
///
/// ```
/// use director::steer::{Key, Kind, Wanted};
///
/// let key = Key::new(Kind::Service, 6, "192.0.2.10".parse().unwrap(), 80);
/// let mut wanted = Wanted::default();
/// wanted.add(key);
/// wanted.add(key);
/// wanted.remove(key);
/// assert!(wanted.contains(&key));
/// ```
#[derive(Debug, Default)]
pub struct Wanted {
    counts: HashMap<Key, u32, foldhash::quality::RandomState>,
    open: HashSet<Key, foldhash::quality::RandomState>,
}

impl Wanted {
    /// One more wants the key.
    pub fn add(&mut self, key: Key) {
        let count = self.counts.entry(key).or_default();
        *count += 1;
        if *count == 1 {
            self.open.insert(key);
        }
    }

    /// One less wants the key.
    pub fn remove(&mut self, key: Key) {
        let Some(count) = self.counts.get_mut(&key) else { return };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&key);
            self.open.insert(key);
        }
    }

    /// Whether anybody wants the key.
    pub fn contains(&self, key: &Key) -> bool {
        self.counts.contains_key(key)
    }

    /// Keys that somebody wants.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether nobody wants any.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The keys that somebody wants, and these marks.
    pub fn to_set(&self, marked: MarkedSet) -> KeySet {
        let mut set = KeySet::new();
        set.set_marked(marked);
        self.counts.keys().for_each(|key| set.insert_key(*key));
        set
    }

    /// Keys that may have come or gone.
    pub(super) fn open(&self) -> impl Iterator<Item = Key> + '_ {
        self.open.iter().copied()
    }

    /// The map has all keys that somebody wants, and no others.
    pub(super) fn close(&mut self) {
        self.open.clear();
        // After a flood of changes, not as much memory as they took.
        self.open.shrink_to(1024);
    }
}
