//! Who of a list has changed since somebody last looked: one bit each.
//!
//! Knows slots. Must not know servers or what about them has changed.
//!
//! Workers mark bits at any time and without a lock; the one who holds the service's lock takes
//! them. What makes it right is the order: a worker first makes its change and then marks, the
//! taker first takes the mark and then looks. So a change is looked at after it was made, or its
//! mark is still there for the next time. A bit that is set already is left alone, which keeps the
//! cache line with its readers; that is as good as setting it, for it was not taken before the
//! change. All accesses are sequentially consistent, since "before" must mean the same to both.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

/// Bits in a word.
const BITS: usize = u64::BITS as usize;

/// A bit for each slot.
#[derive(Debug)]
pub(crate) struct Board {
    words: Box<[AtomicU64]>,
}

impl Board {
    /// A board of at least so many slots, none marked.
    pub(crate) fn new(slots: usize) -> Board {
        Board { words: (0..slots.div_ceil(BITS)).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Says that the one in `slot` has changed. A slot that is not on the board has nobody who
    /// would want to know.
    pub(crate) fn mark(&self, slot: u32) {
        let Some(word) = self.words.get(slot as usize / BITS) else { return };
        let bit = 1 << (slot as usize % BITS);
        if word.load(SeqCst) & bit == 0 {
            word.fetch_or(bit, SeqCst);
        }
    }

    /// How many slots are marked.
    #[cfg(test)]
    pub(crate) fn marked(&self) -> usize {
        self.words.iter().map(|word| word.load(SeqCst).count_ones() as usize).sum()
    }

    /// Takes all marks, and calls `look` for each slot that had one.
    pub(crate) fn take(&self, mut look: impl FnMut(usize)) {
        for (place, word) in self.words.iter().enumerate() {
            // Most words have no mark; reading leaves their cache line where it is.
            if word.load(SeqCst) == 0 {
                continue;
            }
            let mut marks = word.swap(0, SeqCst);
            while marks != 0 {
                look(place * BITS + marks.trailing_zeros() as usize);
                marks &= marks - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn taken(board: &Board) -> Vec<usize> {
        let mut slots = Vec::new();
        board.take(|slot| slots.push(slot));
        slots
    }

    #[test]
    fn a_mark_is_taken_once_and_a_slot_beyond_the_board_is_nobodys() {
        let board = Board::new(130);
        [129, 0, 63, 64, 0, 100_000].iter().for_each(|slot| board.mark(*slot));
        assert_eq!(board.marked(), 4);
        assert_eq!(taken(&board), [0, 63, 64, 129]);
        assert_eq!((taken(&board), board.marked()), (vec![], 0));
    }

    #[test]
    fn no_change_is_overlooked_when_four_threads_mark_at_once() {
        const SLOTS: usize = 100;
        const CHANGES: u32 = 200_000;
        let board = Board::new(SLOTS);
        let values: Vec<AtomicU32> = (0..SLOTS).map(|_| AtomicU32::new(0)).collect();
        let mut seen = [0; SLOTS];
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|thread| {
                    let (board, values) = (&board, &values);
                    scope.spawn(move || {
                        for change in 0..CHANGES {
                            let slot = change.wrapping_mul(2_654_435_761 + thread) % SLOTS as u32;
                            values[slot as usize].fetch_add(1, SeqCst);
                            board.mark(slot);
                        }
                    })
                })
                .collect();
            while threads.iter().any(|thread| !thread.is_finished()) {
                board.take(|slot| seen[slot] = values[slot].load(SeqCst));
            }
            board.take(|slot| seen[slot] = values[slot].load(SeqCst));
        });
        let values: Vec<u32> = values.iter().map(|value| value.load(SeqCst)).collect();
        assert_eq!(seen.to_vec(), values);
        assert_eq!(values.iter().sum::<u32>(), 4 * CHANGES);
    }
}
