//! The words of `POST /v1/explain`: a packet, and what would become of it.

use serde::{Deserialize, Serialize};

/// A packet to be explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// An Ethernet frame, hexadecimal, at most 64 KiB.
    pub packet: String,
    /// The interface it arrives on; without one any that the director serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
}

/// What becomes of a packet, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is sent on; in mode nlb: this host takes it.
    Forwarded,
    /// It is dropped, and its sender is told.
    Answered,
    /// The host's own stack gets it.
    Passed,
    /// It is dropped.
    Dropped,
}

/// The whole answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The packet in words.
    pub packet: String,
    /// What becomes of it.
    pub outcome: Outcome,
    /// Why, as counters name it (`no_route`, `sent_nat`).
    pub reason: String,
    /// What that means.
    pub meaning: String,
    /// The decisions, in their order.
    pub steps: Vec<Step>,
    /// What of the packet is another on the way out. Empty unless it is forwarded.
    pub changes: Vec<Change>,
    /// The ICMP error or reset that its sender gets, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// What was assumed, because it cannot be known here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Which stage has made it: `steering`, `connection`, `service`, `template`, `scheduler`, `mtu`,
    /// `route`, `neighbour`, `filter`.
    pub stage: String,
    /// What it was.
    pub text: String,
    /// What it was made of, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// One field of a packet, before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Its name.
    pub field: String,
    /// Before; nothing: it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// After; nothing: it is not there any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}
