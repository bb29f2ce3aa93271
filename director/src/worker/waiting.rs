//! Packets whose next hop is still being resolved. The kernel is asked; the packet waits, so that
//! the first SYN to a server is not lost for a second.

use std::collections::VecDeque;
use std::time::Duration;

use netio::{Frame, Pool};

use super::egress::Departure;

/// Packets that may wait at a time, per worker.
const LIMIT: usize = 512;

/// How long one waits: three tries of ARP at a second each, as in the kernel.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// A packet that is ready but for its MAC addresses.
pub(super) struct Parked {
    pub(super) frame: Frame,
    pub(super) departure: Departure,
    pub(super) since: Duration,
}

/// See the module.
pub(super) struct Waiting {
    parked: VecDeque<Parked>,
}

impl Default for Waiting {
    /// With room for all: parking must not allocate.
    fn default() -> Waiting {
        Waiting { parked: VecDeque::with_capacity(LIMIT) }
    }
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.parked.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parked.is_empty()
    }

    /// Parks a packet; gives back the one that has waited longest when there are too many.
    pub(super) fn park(&mut self, parked: Parked) -> Option<Parked> {
        let oldest = if self.parked.len() >= LIMIT { self.parked.pop_front() } else { None };
        self.parked.push_back(parked);
        oldest
    }

    /// The one that has waited longest.
    pub(super) fn take(&mut self) -> Option<Parked> {
        self.parked.pop_front()
    }

    pub(super) fn give_back(&mut self, pool: &mut Pool) {
        for parked in self.parked.drain(..) {
            pool.release(parked.frame);
        }
    }
}
