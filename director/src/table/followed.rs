//! How far those who follow the table have come: a command is answered when what it has changed
//! holds for packets too, and not only in the table.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::Table;

/// How long a command waits for that at most. Who follows does what it can in any case.
const PATIENCE: Duration = Duration::from_secs(5);

/// See the module. Changes are numbered.
#[derive(Default)]
pub(super) struct Followed {
    made: AtomicU64,
    followed: Mutex<u64>,
    further: Condvar,
}

impl Followed {
    /// Another change has been made.
    pub(super) fn another(&self) {
        self.made.fetch_add(1, SeqCst);
    }
}

impl Table {
    /// The number of the last change. What is asked of the table afterwards has it in it.
    pub fn last_change(&self) -> u64 {
        self.followed.made.load(SeqCst)
    }

    /// All changes up to that number have been followed, as far as that is possible.
    pub fn has_been_followed(&self, change: u64) {
        let mut followed = self.followed.followed.lock().unwrap_or_else(PoisonError::into_inner);
        *followed = (*followed).max(change);
        self.followed.further.notify_all();
    }

    /// Waits until what has been changed so far has been followed, some seconds at most. Not for who
    /// follows, and not for workers.
    pub fn wait_until_followed(&self) {
        let change = self.last_change();
        let followed = self.followed.followed.lock().unwrap_or_else(PoisonError::into_inner);
        // Either is an answer: that it has been followed, or that it takes too long.
        let _ = self
            .followed
            .further
            .wait_timeout_while(followed, PATIENCE, |followed| *followed < change);
    }
}
