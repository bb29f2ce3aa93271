//! A worker's share in the sweep of the connection table: a little in every breath, so that no
//! packet ever waits for it.

use std::time::Duration;

use crate::dispatch::connections::{Connections, SHARDS};

/// Connections looked at in one breath at most: some ten microseconds.
const LIMIT: usize = 64;

/// Shards looked into in one breath at most, most of which have nothing.
const SHARDS_AT_A_TIME: usize = 64;

/// See the module.
pub(super) struct Sweep {
    first: usize,
    step: usize,
    next: usize,
}

impl Sweep {
    /// Every so many workers' shard from number `index` on. Nothing is to be done yet.
    pub(super) fn of_worker(index: usize, workers: usize) -> Sweep {
        Sweep { first: index, step: workers.max(1), next: SHARDS }
    }

    /// It is time for another round. One that is not over goes on: what it has left comes first.
    pub(super) fn begin(&mut self) {
        if self.is_over() {
            self.next = self.first;
        }
    }

    /// Whether nothing is left of the round.
    pub(super) fn is_over(&self) -> bool {
        self.next >= SHARDS
    }

    /// Removes some of what has expired by `now`.
    pub(super) fn go_on(&mut self, connections: &Connections, now: Duration) {
        let mut left = LIMIT;
        for _ in 0..SHARDS_AT_A_TIME {
            if self.is_over() {
                return;
            }
            left -= connections.expire_some(self.next, now, left);
            if left == 0 {
                return;
            }
            self.next += self.step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_workers_together_look_into_every_shard_once_a_round() {
        let connections = Connections::new(10);
        let mut looked = vec![0; SHARDS];
        for index in 0..2 {
            let mut sweep = Sweep::of_worker(index, 2);
            assert!(sweep.is_over());
            sweep.begin();
            while !sweep.is_over() {
                let before = sweep.next;
                sweep.go_on(&connections, Duration::from_secs(1));
                (before..sweep.next.min(SHARDS)).step_by(2).for_each(|shard| looked[shard] += 1);
            }
        }
        assert!(looked.iter().all(|times| *times == 1));
    }
}
