//! An array that grows while others read it: each segment doubles it, and none ever moves.
//!
//! Knows where element `n` is. Must not know what an element means; who may write is for others to say.

use std::sync::OnceLock;

use netio::{Line, Lines, Zeroed};

/// Segments at most: the array can double this often, less one.
const SEGMENTS: usize = 20;

/// See the module. The first two segments have `2^FIRST` lines each.
pub(super) struct Segments<W, const N: usize, const FIRST: u32> {
    segments: [OnceLock<Lines<W, N>>; SEGMENTS],
}

impl<W: Zeroed, const N: usize, const FIRST: u32> Segments<W, N, FIRST> {
    pub(super) fn new() -> Self {
        Segments { segments: [const { OnceLock::new() }; SEGMENTS] }
    }

    /// The line in place `index`, if it is there already.
    #[inline(always)]
    pub(super) fn get(&self, index: u32) -> Option<&Line<W, N>> {
        let (segment, offset) = place::<FIRST>(index);
        self.segments.get(segment)?.get()?.get(offset)
    }

    /// The same; made, zeroed, with all of its segment if it is not there. `None` past the last
    /// segment.
    pub(super) fn make(&self, index: u32) -> Option<&Line<W, N>> {
        let (segment, offset) = place::<FIRST>(index);
        let lines = 1 << (FIRST as usize + segment.saturating_sub(1));
        self.segments.get(segment)?.get_or_init(|| Lines::zeroed(lines)).get(offset)
    }
}

/// Segment and place in it.
#[inline(always)]
fn place<const FIRST: u32>(index: u32) -> (usize, usize) {
    // In units of the first segment: 0, 1, 2..=3, 4..=7, ...
    let doubled = (index >> FIRST).checked_ilog2();
    let (segment, start) = match doubled {
        None => (0, 0),
        Some(log) => (log as usize + 1, 1 << (FIRST + log)),
    };
    (segment, (index - start) as usize)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn every_index_has_a_line_of_its_own_that_never_moves() {
        let array = Segments::<AtomicU64, 8, 3>::new();
        assert!(array.get(0).is_none() && array.get(8).is_none());
        for index in 0..1000 {
            array.make(index).unwrap().0[0].store(u64::from(index) + 1, Relaxed);
        }
        let first = std::ptr::from_ref(array.get(0).unwrap());
        assert!((0..1000).all(|it| array.get(it).unwrap().0[0].load(Relaxed) == u64::from(it) + 1));
        assert_eq!(std::ptr::from_ref(array.get(0).unwrap()), first);
        assert!(array.get(1024).is_none(), "what nobody has made is not there");
        assert!(array.make(u32::MAX).is_none(), "there is an end");
    }
}
