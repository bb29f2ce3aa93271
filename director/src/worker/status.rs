//! What a worker tells of itself, read by the control plane at any time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use netio::{Pool, PortCounters};

use super::WorkerPort;
use crate::dispatch::counters::Verdicts;

/// See the module.
#[derive(Debug, Default)]
pub struct WorkerStatus {
    /// Packets by fate.
    pub verdicts: Verdicts,
    /// Set when the worker has ended by itself: its ports carry nothing any more.
    pub ended: AtomicBool,
    frames: AtomicUsize,
    free_frames: AtomicUsize,
    /// Written ten times a second with `try_lock`, so that a reader never holds the worker up.
    ports: Mutex<Vec<PortCounters>>,
}

impl WorkerStatus {
    /// Called by the worker on every tick.
    pub(super) fn report(&self, pool: &Pool, ports: &[WorkerPort], waiting: usize) {
        let held: usize = ports.iter().map(|port| port.port.held()).sum();
        self.frames.store(pool.capacity(), Relaxed);
        self.free_frames.store(pool.available() + held + waiting, Relaxed);
        if let Ok(mut counters) = self.ports.try_lock() {
            counters.clear();
            counters.extend(ports.iter().map(|port| port.port.counters()));
        }
    }

    /// Counters of each port, in the order of the worker's ports.
    pub fn ports(&self) -> Vec<PortCounters> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Frames of packet memory that are nowhere to be found: neither free, nor in a ring, nor
    /// waiting. Always 0 between breaths.
    pub fn lost_frames(&self) -> usize {
        self.frames.load(Relaxed).saturating_sub(self.free_frames.load(Relaxed))
    }
}
