//! A big array that has its place for good before it has its memory: one base, and a multiplication.
//!
//! Memory comes in huge pages as lines come into use. To get one takes the kernel longer than a packet
//! should have to wait, so somebody else gets it ahead: when half of a page is in use, the next one is
//! asked for ([`Waker`], [`Reserve::prepare`]).

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use netio::{Line, Lines, Zeroed};

/// Lines in a huge page.
const PAGE: usize = (2 << 20) / 64;

/// When so many lines more are in use, somebody is woken.
const STEP: usize = PAGE / 2;

/// A table for fewer connections than this does without huge pages.
const LARGE: usize = 1 << 16;

/// Wakes who prepares memory.
pub(super) type Waker = Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>;

/// See the module.
pub(super) struct Reserve<W, const N: usize> {
    lines: Lines<W, N>,
    /// Lines below this are in use, or soon will be.
    reached: AtomicUsize,
    /// Lines below this have their memory.
    ready: AtomicUsize,
    waker: Waker,
}

impl<W: Zeroed, const N: usize> Reserve<W, N> {
    /// Room for `count` lines of a table for `limit` connections.
    pub(super) fn new(count: usize, limit: usize, waker: &Waker) -> Reserve<W, N> {
        let is_large = limit >= LARGE;
        let reserve = Reserve {
            lines: Lines::reserved(count, is_large),
            reached: AtomicUsize::new(0),
            ready: AtomicUsize::new(0),
            waker: waker.clone(),
        };
        if is_large {
            reserve.prepare();
        }
        reserve
    }

    /// Notes that a line comes into use.
    pub(super) fn reach(&self, line: usize) {
        let end = (line / STEP + 1) * STEP;
        if end > self.reached.load(Relaxed)
            && self.reached.fetch_max(end, Relaxed) < end
            && let Some(wake) = self.waker.get()
        {
            wake();
        }
    }

    /// Has the memory at hand that will be used next. Not for workers.
    pub(super) fn prepare(&self) {
        let wanted = (self.reached.load(Relaxed) + STEP).next_multiple_of(PAGE);
        let ready = self.ready.fetch_max(wanted, Relaxed);
        if ready < wanted {
            self.lines.prepare(ready..wanted);
        }
    }
}

impl<W: Zeroed, const N: usize> Deref for Reserve<W, N> {
    type Target = [Line<W, N>];

    #[inline(always)]
    fn deref(&self) -> &[Line<W, N>] {
        &self.lines
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn the_next_page_is_asked_for_once_when_half_of_one_is_in_use_and_is_there_then() {
        let waker = Waker::default();
        let woken = Arc::new(AtomicUsize::new(0));
        let count = woken.clone();
        assert!(waker.set(Box::new(move || _ = count.fetch_add(1, Relaxed))).is_ok());
        let reserve: Reserve<AtomicU64, 8> = Reserve::new(4 * PAGE, LARGE, &waker);
        let ready = || reserve.ready.load(Relaxed);
        assert_eq!(ready(), PAGE);
        for line in 0..STEP {
            reserve.reach(line);
        }
        reserve.prepare();
        assert_eq!((woken.load(Relaxed), ready()), (1, PAGE));
        reserve.reach(STEP);
        reserve.reach(STEP + 1);
        reserve.prepare();
        assert_eq!((woken.load(Relaxed), ready()), (2, 2 * PAGE));
        reserve.reach(4 * PAGE - 1);
        reserve.prepare();
        assert_eq!(reserve.len(), 4 * PAGE, "there is no more");
    }
}
