//! Recent answers, in a table of fixed size: a new answer takes the place of an old one. Clients
//! choose the questions, so the table must not grow with them, and a full one must not forget
//! everything at once.

use std::hash::{BuildHasher, Hash};

/// Answers remembered at most.
const SLOTS: usize = 4096;

/// See the module.
pub(super) struct Recent<K, V> {
    slots: Box<[Option<(K, V)>]>,
    hasher: foldhash::fast::RandomState,
}

impl<K: Hash + Eq, V: Copy> Recent<K, V> {
    pub(super) fn new() -> Recent<K, V> {
        let slots = std::iter::repeat_with(|| None).take(SLOTS).collect();
        Recent { slots, hasher: foldhash::fast::RandomState::default() }
    }

    /// The answer to `key`, when it is remembered.
    pub(super) fn get(&self, key: &K) -> Option<V> {
        match &self.slots[self.slot(key)] {
            Some((known, value)) if known == key => Some(*value),
            _ => None,
        }
    }

    /// Remembers an answer.
    pub(super) fn put(&mut self, key: K, value: V) {
        let slot = self.slot(&key);
        self.slots[slot] = Some((key, value));
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.slots.fill_with(|| None);
    }

    fn slot(&self, key: &K) -> usize {
        self.hasher.hash_one(key) as usize % SLOTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_that_to_the_same_question_or_none() {
        let mut recent = Recent::new();
        for key in 0..40_000u32 {
            assert_eq!(recent.get(&key), None);
            recent.put(key, key * 2);
            assert_eq!(recent.get(&key), Some(key * 2));
        }
        let known = (0..40_000).filter_map(|key| Some((key, recent.get(&key)?)));
        let known: Vec<_> = known.collect();
        assert!(known.iter().all(|(key, value)| *value == key * 2));
        assert!((SLOTS / 2..=SLOTS).contains(&known.len()), "{} remembered", known.len());
        recent.clear();
        assert!((0..40_000).all(|key| recent.get(&key).is_none()));
    }
}
