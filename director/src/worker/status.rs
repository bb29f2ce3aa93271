//! What a worker tells of itself, read by the control plane at any time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use netio::PortCounters;

use super::WorkerPort;
use crate::dispatch::counters::Verdicts;

/// Where the frames of a worker's packet memory are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLedger {
    /// All there are.
    pub capacity: usize,
    /// In the pool, for the next packet.
    pub free: usize,
    /// In the rings of ports.
    pub held: usize,
    /// Packets that wait for their next hop to be resolved, or for the first fragment of theirs.
    pub waiting: usize,
}

impl FrameLedger {
    /// Frames that are nowhere to be found. Always 0 between breaths.
    pub fn lost(&self) -> usize {
        self.capacity.saturating_sub(self.free + self.held + self.waiting)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct WorkerStatus {
    /// Packets by fate.
    pub verdicts: Verdicts,
    /// Set when the worker has ended by itself: its ports carry nothing any more.
    pub ended: AtomicBool,
    lost_frames: AtomicUsize,
    /// Written ten times a second with `try_lock`, so that a reader never holds the worker up.
    ports: Mutex<Vec<PortCounters>>,
}

impl WorkerStatus {
    /// Called by the worker on every tick.
    pub(super) fn report(&self, frames: &FrameLedger, ports: &[WorkerPort]) {
        self.lost_frames.store(frames.lost(), Relaxed);
        if let Ok(mut counters) = self.ports.try_lock() {
            counters.clear();
            counters.extend(ports.iter().map(|port| port.port.counters()));
        }
    }

    /// Counters of each port, in the order of the worker's ports.
    pub fn ports(&self) -> Vec<PortCounters> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// [`FrameLedger::lost`] as of the last tick.
    pub fn lost_frames(&self) -> usize {
        self.lost_frames.load(Relaxed)
    }
}
