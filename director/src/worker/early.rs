//! Later fragments that have come before the first one of their datagram, by another queue or out
//! of order. They wait a moment; the first one says to which connection they belong.
//!
//! Later fragments of datagrams that are none of ours come here as well: without ports steering
//! cannot tell them apart. So nobody waits long, and who has waited in vain is the kernel's.

use std::collections::VecDeque;
use std::time::Duration;

use netio::{Frame, Pool};

use super::Worker;
use crate::dispatch::service::Services;

/// Fragments that may wait at a time, per worker; more are passed up at once.
const LIMIT: usize = 64;

/// How long one waits.
const PATIENCE: Duration = Duration::from_millis(10);

/// A fragment that waits.
struct Held {
    port: usize,
    frame: Frame,
    since: Duration,
}

/// See the module.
pub(super) struct Early {
    held: VecDeque<Held>,
}

impl Default for Early {
    /// With room for all: holding must not allocate.
    fn default() -> Early {
        Early { held: VecDeque::with_capacity(LIMIT) }
    }
}

impl Early {
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Lets a fragment wait that came by port number `port`; gives it back when it has waited long
    /// enough by `now`, or too many wait.
    pub(super) fn hold(
        &mut self,
        port: usize,
        frame: Frame,
        since: Duration,
        now: Duration,
    ) -> Option<Frame> {
        if now >= since + PATIENCE || self.held.len() >= LIMIT {
            return Some(frame);
        }
        self.held.push_back(Held { port, frame, since });
        None
    }

    pub(super) fn give_back(&mut self, pool: &mut Pool) {
        for held in self.held.drain(..) {
            pool.release(held.frame);
        }
    }
}

impl Worker {
    /// Looks again at each fragment that waits.
    pub(super) fn retry_early(&mut self, now: Duration, services: &Services) {
        for _ in 0..self.early.len() {
            let Some(held) = self.early.held.pop_front() else { return };
            self.decide(now, services, held.port, held.frame, held.since);
        }
    }
}
