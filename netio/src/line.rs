//! Cache lines of words that threads share: what big tables are made of.
//!
//! Knows how to get many of them without touching one: the kernel gives zeroed pages as they are
//! used, huge ones where it can. So a table can have its place for good before it has its memory.
//! Must not know what the words mean.

use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::mapping::{HUGE_PAGE, Mapping};

/// 64 bytes that begin a cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Line<W, const N: usize>(pub [W; N]);

/// A line of eight words.
pub type Words = Line<AtomicU64, 8>;

/// A line of sixteen half words.
pub type HalfWords = Line<AtomicU32, 16>;

const _: () = assert!(size_of::<Words>() == 64 && size_of::<HalfWords>() == 64);

/// Words that are valid when all their bits are 0, and need not be dropped. Sealed: only this file
/// may promise that.
pub trait Zeroed: sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for AtomicU32 {}
impl sealed::Sealed for AtomicU64 {}
impl Zeroed for AtomicU32 {}
impl Zeroed for AtomicU64 {}

/// From so many bytes on, lines have pages of their own, and from 2 MiB on huge ones if they can be
/// had: what the heap gives may have been used before, and is then zeroed at once.
const OWN_PAGES: usize = 64 << 10;

/// Lines that were zero when they were made.
#[derive(Debug)]
pub struct Lines<W, const N: usize> {
    first: NonNull<Line<W, N>>,
    count: usize,
    /// What they lie in; `None`: a box of their own.
    pages: Option<Mapping>,
}

// SAFETY: `Lines` owns its lines as a box of them would, and gives out shared references only.
unsafe impl<W: Send, const N: usize> Send for Lines<W, N> {}
// SAFETY: as above; a shared reference to it is one to the words, which may be shared.
unsafe impl<W: Sync, const N: usize> Sync for Lines<W, N> {}

impl<W: Zeroed, const N: usize> Lines<W, N> {
    /// `count` lines of zeroes. Where there are many, memory is taken when it is first touched.
    pub fn zeroed(count: usize) -> Lines<W, N> {
        let len = count.saturating_mul(size_of::<Line<W, N>>());
        if len >= OWN_PAGES
            && let Ok(mapping) = Mapping::anonymous(len)
        {
            return Lines { first: mapping.at(0, len).cast(), count, pages: Some(mapping) };
        }
        // SAFETY: a line is an array of atomic words, for which `Zeroed` promises that all bits 0
        // is a value; padding, if there were any, has no values.
        let lines: Box<[Line<W, N>]> = unsafe { Box::new_zeroed_slice(count).assume_init() };
        Lines { first: NonNull::from(Box::leak(lines)).cast(), count, pages: None }
    }

    /// The place of `count` lines of zeroes, which begins a huge page. Memory is taken when a line is
    /// first touched, in huge pages if `huge` and they can be had, and none is set aside for the
    /// others. Where the machine does not give away so much room, half of it, and so on.
    pub fn reserved(count: usize, huge: bool) -> Lines<W, N> {
        let len = count.saturating_mul(size_of::<Line<W, N>>());
        if len < OWN_PAGES {
            return Lines::zeroed(count);
        }
        // Room to begin with a huge page.
        let Ok(mapping) = Mapping::reserved(len.saturating_add(HUGE_PAGE)) else {
            return Lines::reserved(count / 2, huge);
        };
        let before = mapping.at(0, 0).as_ptr().align_offset(HUGE_PAGE);
        if huge {
            mapping.merge(before, len);
        }
        Lines { first: mapping.at(before, len).cast(), count, pages: Some(mapping) }
    }

    /// Has the memory of these lines at hand, so that nobody waits for it who touches one.
    pub fn prepare(&self, lines: Range<usize>) {
        let Some(mapping) = &self.pages else { return };
        let size = size_of::<Line<W, N>>();
        let (start, end) = (lines.start.min(self.count), lines.end.min(self.count));
        let before = self.first.as_ptr().addr() - mapping.at(0, 0).as_ptr().addr();
        mapping.populate(before + start * size, end.saturating_sub(start) * size);
    }
}

impl<W, const N: usize> Drop for Lines<W, N> {
    fn drop(&mut self) {
        if self.pages.is_none() {
            let lines = NonNull::slice_from_raw_parts(self.first, self.count);
            // SAFETY: it was leaked from a box of so many lines in `zeroed`, and nobody else frees it.
            drop(unsafe { Box::from_raw(lines.as_ptr()) });
        }
    }
}

impl<W: Zeroed, const N: usize> Deref for Lines<W, N> {
    type Target = [Line<W, N>];

    #[inline(always)]
    fn deref(&self) -> &[Line<W, N>] {
        // SAFETY: `first` was made for so many lines, of a box or of a mapping (whose `at` looks) that
        // lives as long as `self`; it begins a line, was zero, which is a value by `Zeroed`, and is
        // given out here alone, as shared words.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn lines_begin_cache_lines_and_are_zero() {
        for count in [0, 1, 3, 100_000] {
            let lines: Lines<AtomicU64, 8> = Lines::zeroed(count);
            assert_eq!(lines.len(), count);
            assert!(lines.as_ptr().addr().is_multiple_of(64));
            assert!(lines.iter().flat_map(|line| &line.0).all(|word| word.load(Relaxed) == 0));
            for (line, value) in lines.iter().zip(1..) {
                line.0[7].store(value, Relaxed);
            }
            assert!(lines.iter().zip(1..).all(|(line, value)| line.0[7].load(Relaxed) == value));
        }
        let reserved: Lines<AtomicU64, 8> = Lines::reserved(200_000, true);
        assert_eq!(reserved.len(), 200_000);
        assert!(reserved.as_ptr().addr().is_multiple_of(HUGE_PAGE));
        reserved.prepare(100_000..300_000);
        for place in [0, 1, 199_999] {
            assert_eq!(reserved[place].0[7].fetch_add(1, Relaxed), 0, "{place}");
        }
        let halves: Lines<AtomicU32, 16> = Lines::zeroed(5);
        assert!(halves.iter().flat_map(|line| &line.0).all(|half| half.load(Relaxed) == 0));
    }
}
