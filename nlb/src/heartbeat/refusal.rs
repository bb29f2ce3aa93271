//! Why a heartbeat was not believed, and how often.

/// A reason to refuse a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Shorter or longer than it says it is, or than a heartbeat can be.
    Truncated,
    /// Not of this software.
    Foreign,
    /// Of another version of the format.
    Version,
    /// Of another cluster on this segment.
    OtherCluster,
    /// Of this cluster's address, but not sealed with its key.
    Seal,
    /// Sealed with the key, but a field is out of its range.
    Malformed,
    /// Heard before.
    Replay,
    /// Of a second host with an id that is taken.
    DuplicateId,
}

impl Refusal {
    /// All of them, in the order of their numbers.
    pub const ALL: [Refusal; 8] = [
        Refusal::Truncated,
        Refusal::Foreign,
        Refusal::Version,
        Refusal::OtherCluster,
        Refusal::Seal,
        Refusal::Malformed,
        Refusal::Replay,
        Refusal::DuplicateId,
    ];

    /// A word for counters.
    pub const fn label(self) -> &'static str {
        match self {
            Refusal::Truncated => "truncated",
            Refusal::Foreign => "foreign",
            Refusal::Version => "version",
            Refusal::OtherCluster => "other-cluster",
            Refusal::Seal => "seal",
            Refusal::Malformed => "malformed",
            Refusal::Replay => "replay",
            Refusal::DuplicateId => "duplicate-id",
        }
    }

    /// One line for an operator.
    pub const fn explanation(self) -> &'static str {
        match self {
            Refusal::Truncated => "a heartbeat is cut off or longer than it says",
            Refusal::Foreign => "a frame of the heartbeats' type that is not of this software",
            Refusal::Version => "a heartbeat of another version: upgrade the older node",
            Refusal::OtherCluster => "a heartbeat of another cluster on this segment",
            Refusal::Seal => {
                "a heartbeat with this cluster's address and another key: give all nodes the same key, or the other cluster another address"
            }
            Refusal::Malformed => "a heartbeat with the right key and a field out of its range",
            Refusal::Replay => "a heartbeat that was heard before",
            Refusal::DuplicateId => "a heartbeat of a second node with an id that is taken",
        }
    }
}

/// Refused heartbeats by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Refusal::ALL.len()]);

impl Refusals {
    /// One more.
    pub fn count(&mut self, reason: Refusal) {
        self.0[reason as usize] += 1;
    }

    /// How many for this reason.
    pub fn get(&self, reason: Refusal) -> u64 {
        self.0[reason as usize]
    }

    /// Reasons and numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Refusal, u64)> {
        Refusal::ALL.into_iter().zip(self.0)
    }
}
