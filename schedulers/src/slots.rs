//! The table of slots behind the hashing schedulers: dh, sh and mh.
//!
//! Knows which server each slot belongs to and the order in which other slots are tried. Must not
//! know how a slot is computed from a key, nor how slots are dealt out.

use crate::Server;
use crate::remembered::Remembered;
use std::sync::Arc;

/// A fixed number of slots, each with a server or empty.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    slots: Box<[Option<Remembered>]>,
}

impl Slots {
    /// `size` empty slots.
    pub(crate) fn empty(size: usize) -> Slots {
        Slots { slots: vec![None; size].into_boxed_slice() }
    }

    /// How many slots there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Empties all slots.
    pub(crate) fn clear(&mut self) {
        self.slots.fill(None);
    }

    /// Fills all slots from `owners`, in slot order; slots for which there is none become empty.
    pub(crate) fn deal(&mut self, mut owners: impl Iterator<Item = Remembered>) {
        for slot in &mut self.slots {
            *slot = owners.next();
        }
    }

    /// Takes `slot` for `owner` unless it has one. Whether it was free.
    pub(crate) fn claim(&mut self, slot: usize, owner: Remembered) -> bool {
        match self.slots.get_mut(slot) {
            Some(free @ None) => {
                *free = Some(owner);
                true
            }
            _ => false,
        }
    }

    /// The server of `slot`, if there is one and it is eligible.
    pub(crate) fn choose(&self, servers: &[Arc<Server>], slot: usize) -> Option<usize> {
        let index = self.owner(slot)?.find(servers)?;
        servers[index].is_eligible().then_some(index)
    }

    /// As [`Slots::choose`]; when that server is not eligible, tries `slot_at(offset)` for every
    /// offset from `first` up, round the table once. An empty slot ends the search, as in the
    /// kernel.
    pub(crate) fn choose_or_fall_back(
        &self,
        servers: &[Arc<Server>],
        first: usize,
        slot_at: impl Fn(usize) -> usize,
    ) -> Option<usize> {
        // Without this, one packet to a service that is all quiesced would walk the whole table.
        if !servers.iter().any(|server| server.is_eligible()) {
            return None;
        }
        self.owner(first)?;
        if let Some(index) = self.choose(servers, first) {
            return Some(index);
        }
        for step in 0..self.len() {
            let slot = slot_at((step + first) % self.len());
            self.owner(slot)?;
            if let Some(index) = self.choose(servers, slot) {
                return Some(index);
            }
        }
        None
    }

    /// Whose `slot` is, in words.
    pub(crate) fn words(&self, servers: &[Arc<Server>], slot: usize) -> String {
        let place = format!("slot {slot} of {}", self.len());
        let owner = self.owner(slot).and_then(|owner| owner.find(servers));
        match owner.and_then(|index| servers.get(index)) {
            Some(server) => format!("{place}, of {}", server.name()),
            None => format!("{place}, of nobody"),
        }
    }

    fn owner(&self, slot: usize) -> Option<&Remembered> {
        self.slots.get(slot)?.as_ref()
    }

    /// How many slots each server of the list has.
    #[cfg(test)]
    pub(crate) fn shares(&self, servers: &[Arc<Server>]) -> Vec<usize> {
        let mut shares = vec![0; servers.len()];
        for owner in self.slots.iter().flatten() {
            shares[owner.find(servers).expect("a slot belongs to a removed server")] += 1;
        }
        shares
    }

    /// The index of the server of each slot.
    #[cfg(test)]
    pub(crate) fn indices(&self, servers: &[Arc<Server>]) -> Vec<Option<usize>> {
        let index = |slot: &Option<Remembered>| slot.as_ref()?.find(servers);
        self.slots.iter().map(index).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::servers;

    #[test]
    fn an_empty_slot_ends_the_search_for_another_server() {
        let list = servers(&[0, 1]);
        let mut slots = Slots::empty(4);
        assert!(slots.claim(0, Remembered::at(&list, 0).unwrap()));
        assert!(slots.claim(3, Remembered::at(&list, 1).unwrap()));
        let forward = |offset: usize| offset;
        assert_eq!(slots.choose_or_fall_back(&list, 0, forward), None);
        assert_eq!(slots.choose_or_fall_back(&list, 0, |_| 3), Some(1));
        assert_eq!(slots.choose_or_fall_back(&list, 1, |_| 3), None);
    }

    #[test]
    fn a_slot_is_claimed_once() {
        let list = servers(&[1, 1]);
        let mut slots = Slots::empty(2);
        assert!(slots.claim(1, Remembered::at(&list, 0).unwrap()));
        assert!(!slots.claim(1, Remembered::at(&list, 1).unwrap()));
        assert!(!slots.claim(2, Remembered::at(&list, 1).unwrap()));
        assert_eq!(slots.choose(&list, 1), Some(0));
        assert_eq!(slots.choose(&list, 9), None);
    }
}
