//! Numbers at random that nobody can foretell: a keyed hash of a counter, whose key the operating
//! system gave.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Dice {
    keys: RandomState,
    thrown: u64,
}

impl Dice {
    /// The next number.
    pub(crate) fn throw(&mut self) -> u64 {
        self.thrown += 1;
        self.keys.hash_one(self.thrown)
    }

    /// `time`, up to so many percent of it longer or shorter.
    pub(crate) fn vary(&mut self, time: Duration, percent: u64) -> Duration {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX / 1000);
        let most = micros / 100 * percent;
        Duration::from_micros(micros - most + self.throw() % (2 * most + 1))
    }

    /// From nothing to just less than `time`.
    pub(crate) fn below(&mut self, time: Duration) -> Duration {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.throw() % micros.max(1))
    }
}
