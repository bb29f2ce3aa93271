//! Where the slots of all shards are: in one piece of memory that grows by doubling, of huge pages
//! where the kernel has them, handed out to shards by the chunk.
//!
//! A shard numbers its slots by itself. So its index needs few bits for one, and a table that is not
//! full leaves no more than a chunk of each shard unused.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use netio::Lines;

use super::index::SLOTS;
use super::place::{Place, Slot};
use super::segments::Segments;
use super::wheel::Spokes;

/// Slots in a chunk: 32 KiB.
const CHUNK: u32 = 512;

/// Chunks of a shard at most.
const CHUNKS: usize = (SLOTS / CHUNK + 1) as usize;

/// Numbers in a line of a shard's list of chunks.
const LINE: usize = 16;

/// Slots in a huge page, 2^15.
const AHEAD: u32 = 1 << 15;

/// The memory of all slots.
pub(super) struct Arena {
    slots: Segments<AtomicU64, 8, 15>,
    /// Slots that have been handed out.
    used: AtomicU32,
}

impl Arena {
    pub(super) fn new() -> Arena {
        Arena { slots: Segments::new(), used: AtomicU32::new(0) }
    }

    /// Has the memory at hand that will soon be handed out: of huge pages it takes longer to get one
    /// than a packet should have to wait. Not for workers.
    pub(super) fn prepare(&self) {
        let used = self.used.load(Relaxed);
        if used >= AHEAD / 2
            && let Some(line) = self.slots.make(used.saturating_add(AHEAD / 2))
        {
            // Changes nothing, but is a write.
            line.0[0].fetch_or(0, Relaxed);
        }
    }

    /// The first slot of a chunk.
    fn chunk(&self) -> Option<u32> {
        let first = self.used.fetch_add(CHUNK, Relaxed);
        // Chunks do not cross segments: both are powers of two.
        self.slots.make(first).map(|_| first)
    }
}

/// The slots of one shard.
pub(super) struct Slots {
    /// The first slot of each chunk in the arena, plus one; 0 is none.
    chunks: Lines<AtomicU32, LINE>,
}

impl Slots {
    pub(super) fn new() -> Slots {
        Slots { chunks: Lines::zeroed(CHUNKS.div_ceil(LINE)) }
    }

    #[inline(always)]
    pub(super) fn get<'a>(&self, arena: &'a Arena, slot: u32) -> Option<&'a Slot> {
        let chunk = (slot / CHUNK) as usize;
        let first = self.chunks.get(chunk / LINE)?.0[chunk % LINE].load(Acquire).checked_sub(1)?;
        arena.slots.get(first + slot % CHUNK)
    }

    /// Sees to it that `slot` is there. False when there is no memory for it. For who has the
    /// shard's lock.
    pub(super) fn make(&self, arena: &Arena, slot: u32) -> bool {
        if self.get(arena, slot).is_some() {
            return true;
        }
        let chunk = (slot / CHUNK) as usize;
        let (Some(line), Some(first)) = (self.chunks.get(chunk / LINE), arena.chunk()) else {
            return false;
        };
        line.0[chunk % LINE].store(first + 1, Release);
        true
    }

    /// What the wheel asks.
    pub(super) fn of<'a>(&'a self, arena: &'a Arena) -> Linked<'a> {
        Linked { slots: self, arena }
    }
}

/// Slots and where they are.
pub(super) struct Linked<'a> {
    slots: &'a Slots,
    arena: &'a Arena,
}

impl Linked<'_> {
    fn get(&self, slot: u32) -> Option<&Slot> {
        self.slots.get(self.arena, slot)
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
        let arena = Arena::new();
        let shards = [Slots::new(), Slots::new(), Slots::new()];
        for slot in 0..2000 {
            for (shard, number) in shards.iter().zip(0..) {
                assert!(shard.make(&arena, slot));
                shard.get(&arena, slot).unwrap().set_links(number, slot);
            }
        }
        for slot in 0..2000 {
            for (shard, number) in shards.iter().zip(0..) {
                assert_eq!(shard.get(&arena, slot).unwrap().links(), (number, slot));
            }
        }
        assert!(shards[0].get(&arena, 2048).is_none(), "nobody has asked for it");
        assert_eq!(arena.used.load(Relaxed), 3 * 2048);
        arena.prepare();
        assert!(shards[0].make(&arena, SLOTS - 1));
    }
}
