//! Heartbeats: what hosts tell each other about themselves, once a period and at every event.
//!
//! Knows bytes and their seal. Must not know what a host makes of them (that is
//! [`membership`](crate::membership)). One heartbeat is the payload of one Ethernet frame of type
//! [`ETHERTYPE`]; numbers are big endian, sets of hosts have host `id` as bit `id - 1`.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | `SwYd` |
//! | 4 | 1 | version of this table, [`VERSION`] |
//! | 5 | 1 | family of the cluster address: 4 or 6 |
//! | 6 | 2 | length of the whole payload, seal included |
//! | 8 | 16 | cluster: the primary virtual address; IPv4 in the first 4 bytes, the others 0 |
//! | 24 | 1 | host id, 1 to 32 |
//! | 25 | 1 | [`Phase`]: 1 converging, 2 converged, 3 quarantined, 4 goodbye |
//! | 26 | 1 | flags: 1 agreed, 2 draining; others 0 |
//! | 27 | 1 | reserved, 0 |
//! | 28 | 8 | nonce of this boot, not 0 |
//! | 36 | 8 | sequence, rises with each heartbeat of a boot |
//! | 44 | 8 | epoch: how many times this cluster has converged |
//! | 52 | 4 | view: the hosts this one takes for members, itself included |
//! | 56 | 8 | roll: digest of the members, their boots, weights and rules |
//! | 64 | 4 | heard: the hosts whose heartbeats arrive here |
//! | 68 | 4 | lost: the hosts others hear and this one has not for two tolerances |
//! | 72 | 8 | digest of the configuration in force |
//! | 80 | 8 | digest of the configuration that comes next; the same when none waits |
//! | 88 | 8 | generation of the configuration, for people |
//! | 96 | 2 | milliseconds to the next heartbeat at the latest |
//! | 98 | 4 | revision: what was told of a slot under another one is void |
//! | 102 | 4 each | tag of each heard host in order: low half of its nonce, so it knows that *this* boot is heard |
//! | .. | 1 + 5/17 each | dedicated addresses, at most [`MAX_ADDRESSES`]: count, then family and 4 or 16 bytes |
//! | .. | 1 + n | host name, at most [`MAX_NAME`] bytes of UTF-8 |
//! | .. | 2 + 4 each | marks: how many the configuration has, how many follow, and the first half of each digest |
//! | .. | 1 + 11 each | slots: count, then [`SlotTerms`] (2 bytes) and [`SlotReport`] (9 bytes) |
//! | .. | 1 + n each | [`Detail`]s: count, then slot, kind, form and the buckets |
//! | end | 16 | HMAC-SHA256 of all before, its first 16 bytes |
//!
//! A slot's terms: weight 0-100; operator state in the two low bits and handling priority (0-32)
//! above them. Its report: connections opened since the last convergence and flows now (32 bits
//! each, saturating), then claim and pins (two bits each: 0 none, 1 all, 2 some). Forms of buckets:
//! 0 a count and so many bucket numbers in rising order, 1 all 512 bytes of
//! [`BucketSet::to_bytes`](crate::buckets::BucketSet::to_bytes).
//!
//! Everything but the details always fits a frame ([`MAX_PAYLOAD`]); details take turns.

use std::net::IpAddr;
use std::time::Duration;

use crate::buckets::BucketSet;
use crate::host::{HostId, HostSet, MAX_HOSTS, Nonce};
use crate::slot::Slot;

mod buckets;
mod decode;
mod encode;
mod reader;
pub mod refusal;
pub mod replay;

pub use decode::decode;
pub use encode::Room;
pub use refusal::{Refusal, Refusals};

/// The Ethernet type, registered for this purpose.
pub const ETHERTYPE: u16 = 0x886f;
/// Most bytes of a heartbeat: what an Ethernet frame of 1514 bytes carries.
pub const MAX_PAYLOAD: usize = 1500;
/// Version of the format; a host refuses the others.
pub const VERSION: u8 = 1;
/// Most dedicated addresses told.
pub const MAX_ADDRESSES: usize = 4;
/// Most bytes of a host name told.
pub const MAX_NAME: usize = 63;
/// Most marks told; of a longer configuration the digest of the whole tells the rest.
pub const MAX_MARKS: usize = 48;

const MAGIC: [u8; 4] = *b"SwYd";
const FIXED: usize = 102;
const SEAL: usize = 16;

/// Digest of a configuration: the first eight bytes of a SHA-256.
pub type Digest = [u8; 8];

/// Where a host stands, as it tells others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its view is not agreed yet; it serves what it served.
    Converging = 1,
    /// Its view is agreed and in force.
    Converged = 2,
    /// It does not fit the others and serves nothing.
    Quarantined = 3,
    /// It leaves now; its flows end.
    Goodbye = 4,
}

/// What an operator made of a slot on one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operator {
    /// Serves its share.
    #[default]
    Enabled = 0,
    /// Serves nothing, old flows neither.
    Disabled = 1,
    /// Takes no new flows; old ones go on.
    Draining = 2,
}

/// A host's offer for one slot: all of it enters the map, so all hosts must know it alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotTerms {
    /// Load weight, 0 to 100; 0 = no share.
    pub weight: u8,
    /// Handling priority in a single-host slot, 1 to 32, the lowest serves; 0 = never.
    pub priority: u8,
    /// What the operator made of it.
    pub operator: Operator,
}

/// How much of a slot's buckets is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// None.
    #[default]
    None = 0,
    /// All 4096.
    All = 1,
    /// Some; a [`Detail`] in this heartbeat or a later one says which.
    Some = 2,
}

/// What a host says about a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotReport {
    /// Connections opened since the last convergence.
    pub opened: u32,
    /// Flows it holds now.
    pub flows: u32,
    /// [Converging](Phase::Converging): the buckets it serves. [Converged](Phase::Converged): those
    /// it still serves beyond its share of the agreed view.
    pub claim: Extent,
    /// Buckets it does not serve but holds flows in.
    pub pins: Extent,
}

/// What a [`Detail`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The claim of [`SlotReport::claim`].
    Claim = 0,
    /// The pins of [`SlotReport::pins`].
    Pins = 1,
}

/// The buckets behind an [`Extent::Some`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The slot.
    pub slot: Slot,
    /// Claim or pins.
    pub subject: Subject,
    /// The buckets.
    pub buckets: BucketSet,
}

/// A view of the cluster. Two hosts agree when both parts are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// The members.
    pub hosts: HostSet,
    /// Digest of the members' boots, weights, operator states and coming configurations.
    pub roll: u64,
}

/// The hosts heard, and which boot of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    hosts: HostSet,
    tags: [u32; MAX_HOSTS],
}

impl Heard {
    /// Nobody.
    pub const NOBODY: Heard = Heard { hosts: HostSet::EMPTY, tags: [0; MAX_HOSTS] };

    /// Adds a boot of a host.
    pub fn insert(&mut self, host: HostId, nonce: Nonce) {
        self.insert_tag(host, tag(nonce));
    }

    fn insert_tag(&mut self, host: HostId, tag: u32) {
        self.hosts.insert(host);
        self.tags[host.index()] = tag;
    }

    /// The hosts, whichever boot.
    pub fn hosts(&self) -> HostSet {
        self.hosts
    }

    /// Whether this boot of a host is heard.
    pub fn hears(&self, host: HostId, nonce: Nonce) -> bool {
        self.hosts.contains(host) && self.tags[host.index()] == tag(nonce)
    }
}

fn tag(nonce: Nonce) -> u32 {
    nonce.0 as u32
}

/// One heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The primary virtual address.
    pub cluster: IpAddr,
    /// Who speaks.
    pub host: HostId,
    /// Which boot of it.
    pub nonce: Nonce,
    /// Rises with each heartbeat of a boot.
    pub sequence: u64,
    /// Where it stands.
    pub phase: Phase,
    /// Everyone in its view has shown the same view for long enough.
    pub agreed: bool,
    /// It takes no new flows and leaves when its last flow ends.
    pub draining: bool,
    /// How many times the cluster has converged.
    pub epoch: u64,
    /// Whom it takes for members.
    pub view: View,
    /// Whom it hears.
    pub heard: Heard,
    /// Whom it has given up hearing though others hear them.
    pub lost: HostSet,
    /// Configuration in force.
    pub digest: Digest,
    /// Configuration that waits for the others; equal to `digest` when none does.
    pub next: Digest,
    /// Generation of the configuration, for people.
    pub generation: u64,
    /// The next heartbeat comes within this, in whole milliseconds, at most 65 s.
    pub interval: Duration,
    /// What was told of slots under another revision is void.
    pub revision: u32,
    /// Dedicated addresses, at most [`MAX_ADDRESSES`].
    pub addresses: Vec<IpAddr>,
    /// Host name, at most [`MAX_NAME`] bytes.
    pub name: String,
    /// How many parts the configuration has.
    pub marks_total: u8,
    /// Half digests of the first parts, at most [`MAX_MARKS`].
    pub marks: Vec<u32>,
    /// Terms and report of every slot.
    pub slots: Vec<(SlotTerms, SlotReport)>,
    /// Buckets behind reports, as many as fit.
    pub details: Vec<Detail>,
}

#[cfg(test)]
mod tests;
