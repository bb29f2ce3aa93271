//! What a worker tells of itself, read by the control plane at any time.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use netio::{Held, PortCounters};

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
    pub held: Held,
    /// Packets that wait for their next hop to be resolved, or for the first fragment of theirs.
    pub waiting: usize,
    /// Packets that are just being handled: none between breaths.
    pub in_hand: usize,
}

impl FrameLedger {
    /// Frames that are nowhere to be found, or in two places. Always 0.
    pub fn lost(&self) -> usize {
        let found = self.free + self.held.total() + self.waiting + self.in_hand;
        self.capacity.abs_diff(found)
    }
}

impl fmt::Display for FrameLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FrameLedger { capacity, free, held, waiting, in_hand } = self;
        let Held { receiving, transmitting } = held;
        write!(
            f,
            "{capacity} frames of packet memory: {free} free, {receiving} to receive into, {transmitting} being \
             sent, {waiting} waiting, {in_hand} in hand"
        )
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
    /// Where all frames were in the end.
    last: OnceLock<FrameLedger>,
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

    /// Called by the worker when it ends, however it does.
    pub(super) fn conclude(&self, frames: FrameLedger, ports: &[WorkerPort]) {
        self.report(&frames, ports);
        let _ = self.last.set(frames);
    }

    /// Where all frames were when the worker ended; `None` before.
    pub fn last_frames(&self) -> Option<FrameLedger> {
        self.last.get().copied()
    }

    /// Counters of each port, in the order of the worker's ports.
    pub fn ports(&self) -> Vec<PortCounters> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// [`FrameLedger::lost`] as of the last tick, or of the end.
    pub fn lost_frames(&self) -> usize {
        self.lost_frames.load(Relaxed)
    }
}
