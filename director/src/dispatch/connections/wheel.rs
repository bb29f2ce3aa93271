//! A timing wheel: which connections may expire in which quarter of a second.
//!
//! An entry says "look at this connection then", not "it expires then": a packet that refreshes a
//! connection leaves its entry where it is, and when the entry comes up the connection is put
//! further on. So an established packet costs the wheel nothing.

use std::time::Duration;

/// Slots in the wheel; times further ahead than the wheel is long are looked at once per turn.
const SLOTS: usize = 512;

/// Milliseconds per slot: how exactly connections expire.
const SLOT_MS: u64 = 250;

/// A connection in the slab of its shard; the generation tells a reused place from the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// The wheel of one shard.
#[derive(Debug)]
pub(super) struct Wheel {
    slots: Vec<Vec<Entry>>,
    /// The next tick to be swept.
    tick: u64,
}

impl Wheel {
    pub(super) fn new() -> Wheel {
        Wheel { slots: vec![Vec::new(); SLOTS], tick: 0 }
    }

    /// Puts an entry where `at` will be swept, or at the far end of the wheel. Returns when it
    /// will come up.
    pub(super) fn insert(&mut self, entry: Entry, at: Duration) -> Duration {
        let wanted = at.as_millis() as u64 / SLOT_MS + 1;
        let tick = wanted.clamp(self.tick, self.tick + SLOTS as u64 - 1);
        self.slots[tick as usize % SLOTS].push(entry);
        Duration::from_millis(tick * SLOT_MS)
    }

    /// The next slot that is due by `now`, emptied into `due`; false when none is.
    pub(super) fn sweep(&mut self, now: Duration, due: &mut Vec<Entry>) -> bool {
        let current = now.as_millis() as u64 / SLOT_MS;
        if self.tick > current {
            return false;
        }
        // After a pause longer than a turn every slot is swept once; more would find nothing.
        if current - self.tick >= SLOTS as u64 {
            self.tick = current - SLOTS as u64 + 1;
        }
        due.append(&mut self.slots[self.tick as usize % SLOTS]);
        self.tick += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u32) -> Entry {
        Entry { index, generation: 0 }
    }

    fn sweep_all(wheel: &mut Wheel, now: Duration) -> Vec<u32> {
        let mut due = Vec::new();
        while wheel.sweep(now, &mut due) {}
        due.iter().map(|entry| entry.index).collect()
    }

    #[test]
    fn an_entry_comes_up_after_its_time_and_within_two_slots() {
        let mut wheel = Wheel::new();
        wheel.insert(entry(1), Duration::from_secs(10));
        assert_eq!(sweep_all(&mut wheel, Duration::from_millis(9_999)), [0; 0]);
        assert_eq!(sweep_all(&mut wheel, Duration::from_millis(10_500)), [1]);
    }

    #[test]
    fn a_time_beyond_the_wheel_comes_up_once_per_turn() {
        let mut wheel = Wheel::new();
        let at = wheel.insert(entry(1), Duration::from_secs(900));
        assert!(at < Duration::from_secs(900));
        assert_eq!(sweep_all(&mut wheel, Duration::from_secs(128)), [1]);
    }

    #[test]
    fn no_entry_is_lost_when_sweeping_pauses_for_hours() {
        let mut wheel = Wheel::new();
        for index in 0..1000 {
            wheel.insert(entry(index), Duration::from_millis(u64::from(index) * 100));
        }
        let mut due = sweep_all(&mut wheel, Duration::from_secs(36_000));
        due.sort_unstable();
        assert_eq!(due, (0..1000).collect::<Vec<_>>());
    }
}
