//! Workers as the control API shows them: how long their breaths take, and where their packet memory
//! is.

use serde::{Deserialize, Serialize};

/// A worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerView {
    /// Its number.
    pub worker: u32,
    /// How long breaths took in which packets came, seconds: receive, decide, send, and what else was
    /// due.
    pub breaths: HistogramView,
    /// How many packets came in such a breath.
    pub batches: HistogramView,
    /// Where its packet memory is.
    pub frames: FramesView,
}

/// How often something was how large.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistogramView {
    /// Upper bounds of all buckets but the last, which has none; a bound belongs to its bucket.
    pub bounds: Vec<f64>,
    /// How often a value was in each bucket and in none before it: one more than bounds.
    pub counts: Vec<u64>,
    /// All values together.
    pub sum: f64,
}

/// Frames of a worker's packet memory, ten times a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramesView {
    /// All there are.
    pub capacity: u64,
    /// For the next packet.
    pub free: u64,
    /// In rings, to receive into.
    pub receiving: u64,
    /// In rings, being sent.
    pub transmitting: u64,
    /// Packets that wait for their next hop, or for a first fragment.
    pub waiting: u64,
}

/// What the kernel counts for an AF_XDP socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketView {
    /// Frames dropped for another reason than a full ring; in copy mode also for want of a chunk.
    pub rx_dropped: u64,
    /// Frames dropped because the RX ring was full.
    pub rx_ring_full: u64,
    /// Times the fill ring was found empty.
    pub fill_ring_empty: u64,
    /// Descriptors that the kernel found invalid: a defect if it is not 0.
    pub tx_invalid: u64,
}

/// Connections in one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateCount {
    /// `tcp`, `udp`, `sctp`, or `template` for those that are for persistence only.
    pub protocol: String,
    /// The state, as `ipvsadm -L -c` names it.
    pub state: String,
    /// How many.
    pub connections: u64,
}
