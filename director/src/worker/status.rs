//! What a worker tells of itself, read by the control plane at any time.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use netio::{Held, PortCounters};

use super::WorkerPort;
use super::histogram::Histogram;
use super::tap::Taps;
use crate::control::workers::{FramesView, WorkerView};
use crate::dispatch::counters::Verdicts;

/// What a worker tells of one of its ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStatus {
    /// What it has counted.
    pub counters: PortCounters,
    /// Chunks of packet memory that are with it.
    pub held: Held,
}

/// What is told ten times a second.
#[derive(Debug, Default)]
struct Told {
    ports: Vec<PortStatus>,
    frames: Option<FrameLedger>,
}

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
    /// Who wants to see its packets.
    pub taps: Taps,
    lost_frames: AtomicUsize,
    /// Where all frames were in the end.
    last: OnceLock<FrameLedger>,
    /// How long breaths took in which packets came, microseconds: from the reading of the clock that
    /// began them to the next one, so that it costs no reading of its own.
    pub breaths: Histogram<18>,
    /// How many packets came in each of those.
    pub batches: Histogram<12>,
    /// Written ten times a second with `try_lock`, so that a reader never holds the worker up.
    told: Mutex<Told>,
}

impl WorkerStatus {
    /// Called by the worker on every tick.
    pub(super) fn report(&self, frames: &FrameLedger, ports: &[WorkerPort]) {
        self.lost_frames.store(frames.lost(), Relaxed);
        if let Ok(mut told) = self.told.try_lock() {
            told.frames = Some(*frames);
            told.ports.clear();
            told.ports.extend(
                ports.iter().map(|port| PortStatus {
                    counters: port.port.counters(),
                    held: port.port.held(),
                }),
            );
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

    /// Each port, in the order of the worker's ports.
    pub fn ports(&self) -> Vec<PortStatus> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).ports.clone()
    }

    /// The worker as the control API shows it, under this number.
    pub fn view(&self, worker: u32) -> WorkerView {
        let frames = self.told.lock().unwrap_or_else(PoisonError::into_inner).frames;
        let frames = frames.map_or_else(FramesView::default, |frames| FramesView {
            capacity: frames.capacity as u64,
            free: frames.free as u64,
            receiving: frames.held.receiving as u64,
            transmitting: frames.held.transmitting as u64,
            waiting: frames.waiting as u64,
        });
        WorkerView {
            worker,
            breaths: self.breaths.view(1e-6),
            batches: self.batches.view(1.0),
            frames,
        }
    }

    /// [`FrameLedger::lost`] as of the last tick, or of the end.
    pub fn lost_frames(&self) -> usize {
        self.lost_frames.load(Relaxed)
    }
}
