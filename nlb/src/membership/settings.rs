//! What a host is told: who it is, its timers, and its plan of slots.

use std::net::IpAddr;
use std::time::Duration;

use crate::heartbeat::{Digest, Operator, SlotTerms};
use crate::host::{HostId, Nonce};
use crate::key::ClusterKey;
use crate::slot::{GroupId, SLOTS};

/// A host and its timers. All but `host`, `nonce`, `name` and `addresses` are the cluster's and must
/// be part of the plan's digest.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The primary virtual address: names the cluster.
    pub cluster: IpAddr,
    /// The cluster's key.
    pub key: ClusterKey,
    /// This host.
    pub host: HostId,
    /// This boot. Of two hosts with one id that nobody else knows, the one with the smaller nonce
    /// goes on, so the time of the boot belongs in the upper bits.
    pub nonce: Nonce,
    /// Host name, for others' messages.
    pub name: String,
    /// Dedicated addresses, told to the others.
    pub addresses: Vec<IpAddr>,
    /// Time between heartbeats, 100 ms to 10 s; half of it while converging.
    pub period: Duration,
    /// Missed heartbeats until a host is taken for dead, 5 to 100.
    pub tolerance: u32,
    /// How long buckets with affinity may wait for their last flow to end before they move.
    pub handover_timeout: Duration,
    /// What to do alone.
    pub isolated: Isolated,
    /// What to do at the beginning.
    pub initial: Initial,
}

/// What a host does that hears no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolated {
    /// It serves everything: the others are dead, or it is the only one.
    Serve,
    /// It serves nothing: it is cut off.
    Stop,
}

/// State at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initial {
    /// Joins the cluster.
    Started,
    /// Waits for `start`.
    Stopped,
    /// Waits for `resume`.
    Suspended,
}

/// What the configuration says about rules, as far as membership needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Of everything all hosts must have alike. Weights, handling priorities and operator states
    /// are not in it.
    pub digest: Digest,
    /// For people: rises with each version of the file.
    pub generation: u64,
    /// The parts of the digest, so that a misfit can be told what differs.
    pub marks: Vec<Mark>,
    /// The slots, by [`Slot::index`](crate::slot::Slot::index); at most [`SLOTS`], further ones are
    /// left out.
    pub slots: Vec<SlotPlan>,
}

/// A part of the configuration that all hosts must have alike: a rule, the list of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// In the operator's words: `rule 2 (tcp 443)`.
    pub name: String,
    /// Of this part.
    pub digest: Digest,
}

/// A slot: who shares it, and what this host offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotPlan {
    /// Enters the map's hash, and tells slots apart when the plan changes.
    pub group: GroupId,
    /// How its buckets are shared.
    pub share: Share,
    /// Whether a client's flows must stay together: a lost bucket then waits for its last flow.
    pub hold: bool,
    /// This host's weight, 0 to 100.
    pub weight: u8,
    /// This host's handling priority, 1 to 32.
    pub priority: u8,
    /// What the operator made of it here.
    pub operator: Operator,
}

/// How the buckets of a slot are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// By weight.
    Weighted,
    /// Alike, whatever the weights.
    Equal,
    /// All to the host with the lowest handling priority; ties to the lowest id.
    Priority,
    /// All to the host with the lowest id.
    DefaultHost,
}

impl SlotPlan {
    /// What others are told.
    pub(super) fn terms(&self) -> SlotTerms {
        SlotTerms {
            weight: self.weight.min(100),
            priority: self.priority.min(32),
            operator: self.operator,
        }
    }
}

impl Plan {
    pub(super) fn clip(mut self) -> Plan {
        self.slots.truncate(SLOTS);
        self
    }

    pub(super) fn terms(&self) -> impl Iterator<Item = SlotTerms> {
        self.slots.iter().map(SlotPlan::terms)
    }
}
