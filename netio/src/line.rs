//! Cache lines of words that threads share: what big tables are made of.
//!
//! Knows how to get many of them without touching one: the kernel gives zeroed pages as they are
//! used, so that a table may double while packets wait and nobody notices. Must not know what the
//! words mean.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// 64 bytes that begin a cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Line<W, const N: usize>(pub [W; N]);

/// A line of eight words.
pub type Words = Line<AtomicU64, 8>;

/// A line of sixteen half words.
pub type HalfWords = Line<AtomicU32, 16>;

const _: () = assert!(size_of::<Words>() == 64 && size_of::<HalfWords>() == 64);

/// Words that are valid when all their bits are 0. Sealed: only this file may promise that.
pub trait Zeroed: sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for AtomicU32 {}
impl sealed::Sealed for AtomicU64 {}
impl Zeroed for AtomicU32 {}
impl Zeroed for AtomicU64 {}

impl<W: Zeroed, const N: usize> Line<W, N> {
    /// `count` lines of zeroes. Where there are many, memory is taken when it is first touched.
    pub fn zeroed(count: usize) -> Box<[Line<W, N>]> {
        // SAFETY: a line is an array of atomic words, for which `Zeroed` promises that all bits 0
        // is a value; padding there may be has no values.
        unsafe { Box::new_zeroed_slice(count).assume_init() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn lines_begin_cache_lines_and_are_zero() {
        for count in [0, 1, 3, 100_000] {
            let lines = Words::zeroed(count);
            assert_eq!(lines.len(), count);
            assert!(lines.as_ptr().addr().is_multiple_of(64));
            assert!(lines.iter().flat_map(|line| &line.0).all(|word| word.load(Relaxed) == 0));
        }
        assert!(
            HalfWords::zeroed(5).iter().flat_map(|line| &line.0).all(|it| it.load(Relaxed) == 0)
        );
    }
}
