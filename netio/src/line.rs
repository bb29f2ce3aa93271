//! Cache lines of words that threads share: what big tables are made of.
//!
//! Knows how to get many of them without touching one: the kernel gives zeroed pages as they are
//! used, huge ones where it can, so that a table may double while packets wait and nobody notices.
//! Must not know what the words mean.

use std::ops::Deref;
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::mapping::Mapping;

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
pub struct Lines<W, const N: usize>(Memory<W, N>);

#[derive(Debug)]
enum Memory<W, const N: usize> {
    Heap(Box<[Line<W, N>]>),
    Pages { mapping: Mapping, count: usize },
}

impl<W: Zeroed, const N: usize> Lines<W, N> {
    /// `count` lines of zeroes. Where there are many, memory is taken when it is first touched.
    pub fn zeroed(count: usize) -> Lines<W, N> {
        let len = count.saturating_mul(size_of::<Line<W, N>>());
        if len >= OWN_PAGES
            && let Ok(mapping) = Mapping::anonymous(len)
        {
            return Lines(Memory::Pages { mapping, count });
        }
        // SAFETY: a line is an array of atomic words, for which `Zeroed` promises that all bits 0
        // is a value; padding, if there were any, has no values.
        Lines(Memory::Heap(unsafe { Box::new_zeroed_slice(count).assume_init() }))
    }
}

impl<W: Zeroed, const N: usize> Deref for Lines<W, N> {
    type Target = [Line<W, N>];

    #[inline(always)]
    fn deref(&self) -> &[Line<W, N>] {
        match &self.0 {
            Memory::Heap(lines) => lines,
            Memory::Pages { mapping, count } => {
                let first = mapping.at(0, count * size_of::<Line<W, N>>());
                // SAFETY: the mapping has that many bytes (`at` looks), begins a page and so a line,
                // was zero, which is a value by `Zeroed`, lives as long as `self`, and is given out
                // here alone, as shared words.
                unsafe { slice::from_raw_parts(first.as_ptr().cast(), *count) }
            }
        }
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
        let halves: Lines<AtomicU32, 16> = Lines::zeroed(5);
        assert!(halves.iter().flat_map(|line| &line.0).all(|half| half.load(Relaxed) == 0));
    }
}
