//! Where the slots of all shards are: in one array, in chunks that go round the shards.
//!
//! ```text
//!   chunk 0 of shard 0 | chunk 0 of shard 1 | ... | chunk 1 of shard 0 | chunk 1 of shard 1 | ...
//! ```
//!
//! A shard numbers its slots by itself. So its index needs few bits for one, and where a slot is
//! nobody has to look up. Shards grow together, since hashes spread connections over them, and a
//! round of chunks is a huge page.

use std::sync::atomic::AtomicU64;

use super::SHARDS;
use super::index::SLOTS;
use super::place::{Place, Slot};
use super::reserve::{Reserve, Waker};
use super::wheel::Spokes;

/// Slots in a chunk: 32 KiB.
const CHUNK: usize = 512;

/// Slots that a shard may have where there is room for few: chance fills them unevenly.
const FEW: usize = 4096;

/// Slots that each shard may have in a table for `limit` connections: twice its share.
pub(super) fn per_shard(limit: usize) -> usize {
    let share = limit.div_ceil(SHARDS);
    (2 * share).max(limit.min(FEW)).min(SLOTS as usize).next_multiple_of(CHUNK)
}

/// The memory of all slots.
pub(super) struct Arena {
    slots: Reserve<AtomicU64, 8>,
}

impl Arena {
    pub(super) fn new(limit: usize, waker: &Waker) -> Arena {
        Arena { slots: Reserve::new(per_shard(limit) * SHARDS, limit, waker) }
    }

    /// Has the memory at hand that will soon be used. Not for workers.
    pub(super) fn prepare(&self) {
        self.slots.prepare();
    }

    #[inline(always)]
    pub(super) fn get(&self, shard: usize, slot: u32) -> Option<&Slot> {
        self.slots.get(number(shard, slot))
    }

    /// The slot that has this number among all.
    #[inline(always)]
    pub(super) fn at(&self, number: u32) -> Option<&Slot> {
        self.slots.get(number as usize)
    }

    /// Takes a slot into use. False when there is no such one.
    pub(super) fn make(&self, shard: usize, slot: u32) -> bool {
        let number = number(shard, slot);
        if number >= self.slots.len() {
            return false;
        }
        self.slots.reach(number);
        true
    }

    /// What the wheel of a shard asks.
    pub(super) fn of(&self, shard: usize) -> Linked<'_> {
        Linked { arena: self, shard }
    }
}

/// The number of a shard's slot among all; 32 bits hold it.
#[inline(always)]
pub(super) fn number(shard: usize, slot: u32) -> usize {
    let slot = slot as usize;
    (slot / CHUNK * SHARDS + shard) * CHUNK + slot % CHUNK
}

/// The slots of one shard.
pub(super) struct Linked<'a> {
    arena: &'a Arena,
    shard: usize,
}

impl Linked<'_> {
    fn get(&self, slot: u32) -> Option<&Slot> {
        self.arena.get(self.shard, slot)
    }
}

impl Spokes for Linked<'_> {
    fn due(&self, slot: u32) -> u32 {
        self.get(slot).map_or(0, Place::due)
    }

    fn set_due(&self, slot: u32, due: u32) {
        if let Some(slot) = self.get(slot) {
            slot.set_due(due);
        }
    }

    fn links(&self, slot: u32) -> (u32, u32) {
        self.get(slot).map_or((0, 0), Place::links)
    }

    fn set_links(&self, slot: u32, before: u32, behind: u32) {
        if let Some(slot) = self.get(slot) {
            slot.set_links(before, behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_share_the_memory_and_no_slot() {
        let arena = Arena::new(1000 * SHARDS, &Waker::default());
        for slot in 0..2000 {
            for shard in [0, 1, 40, SHARDS - 1] {
                assert!(arena.make(shard, slot));
                arena.get(shard, slot).unwrap().set_links(shard as u32, slot);
            }
        }
        for slot in 0..2000 {
            for shard in [0, 1, 40, SHARDS - 1] {
                assert_eq!(arena.get(shard, slot).unwrap().links(), (shard as u32, slot));
            }
        }
    }

    #[test]
    fn a_shard_may_have_more_than_its_share_and_there_is_an_end() {
        assert_eq!(per_shard(1), CHUNK);
        assert_eq!(per_shard(4000), 4096);
        assert_eq!(per_shard(1 << 20), 32_768);
        assert_eq!(per_shard(super::super::MOST), (SLOTS as usize).next_multiple_of(CHUNK));
        let arena = Arena::new(1 << 20, &Waker::default());
        assert!(arena.make(SHARDS - 1, 32_767) && !arena.make(0, 32_768));
    }
}
