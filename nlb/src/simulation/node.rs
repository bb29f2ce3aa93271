//! One node: its membership, its clock, and the flows its clients have with it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::buckets::{Bucket, BucketSet};
use crate::heartbeat::Operator;
use crate::host::{HostId, Nonce};
use crate::key::ClusterKey;
use crate::membership::{
    Event, Initial, Isolated, Mark, Membership, Plan, Settings, Share, SlotMap, SlotPlan,
};
use crate::slot::{GroupId, Slot};

/// A node of the world.
#[derive(Debug)]
pub struct Node {
    /// Its part in the cluster.
    pub membership: Membership,
    /// Whether its machine runs.
    pub runs: bool,
    /// What its clock shows beyond the world's time.
    pub clock_ahead: Duration,
    /// All it has told so far.
    pub events: Vec<Event>,
    /// Payload bytes it has sent.
    pub sent_bytes: u64,
    /// Heartbeats it has sent.
    pub sent: u64,
    /// Flows by group and bucket: when each ends.
    flows: BTreeMap<(GroupId, Bucket), Vec<Duration>>,
    opened: BTreeMap<GroupId, u64>,
    pub(super) wake: Option<Duration>,
    pub(super) seen_version: Option<u64>,
}

/// The usual settings of the node with this place (host id = place + 1).
pub fn settings(place: usize, period: Duration, nonce: u64) -> Settings {
    let host = HostId::new(place as u8 + 1).expect("at most 32 nodes have an id of their own");
    Settings {
        cluster: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 10)),
        key: ClusterKey::new(b"the simulated cluster").expect("long enough"),
        host,
        nonce: Nonce(nonce),
        name: format!("node{host}"),
        addresses: vec![IpAddr::V4(Ipv4Addr::new(10, 0, 0, host.get()))],
        period,
        tolerance: 5,
        handover_timeout: Duration::from_secs(30),
        isolated: Isolated::Serve,
        initial: Initial::Started,
    }
}

/// The usual plan: default rule, echo, a group without affinity, one with affinity, and a
/// single-host rule whose handling priority is the host id.
pub fn plan(host: HostId) -> Plan {
    let slot = |group: u32, share: Share, hold: bool| SlotPlan {
        group: GroupId(group),
        protocol: 0,
        first_port: 0,
        share,
        hold,
        weight: 50,
        priority: host.get(),
        operator: Operator::Enabled,
    };
    Plan {
        digest: [1; 8],
        generation: 1,
        marks: ["addresses", "rule 1 (tcp 80)", "rule 2 (tcp 443)", "rule 3 (tcp 25)"]
            .iter()
            .zip(1..)
            .map(|(name, digest)| Mark { name: (*name).to_owned(), digest: [digest; 8] })
            .collect(),
        slots: vec![
            slot(0, Share::DefaultHost, false),
            slot(1, Share::Equal, false),
            slot(101, Share::Weighted, false),
            slot(102, Share::Weighted, true),
            slot(103, Share::Priority, false),
        ],
    }
}

impl Node {
    /// A node that starts now.
    pub fn new(settings: Settings, plan: Plan, now: Duration) -> Node {
        Node {
            membership: Membership::new(settings, plan, now),
            runs: true,
            clock_ahead: Duration::ZERO,
            events: Vec::new(),
            sent_bytes: 0,
            sent: 0,
            flows: BTreeMap::new(),
            opened: BTreeMap::new(),
            wake: Some(now),
            seen_version: None,
        }
    }

    /// What its filter does with a group; `None` when its rules do not have it.
    pub fn map(&self, group: GroupId) -> Option<SlotMap<'_>> {
        self.membership.maps().find(|map| map.group == group)
    }

    /// Whether its filter passes new flows of a bucket.
    pub fn serves(&self, group: GroupId, bucket: Bucket) -> bool {
        self.runs && self.map(group).is_some_and(|map| map.serving.contains(bucket))
    }

    pub(super) fn open(&mut self, group: GroupId, bucket: Bucket, until: Duration) {
        self.flows.entry((group, bucket)).or_default().push(until);
        let opened = self.opened.entry(group).or_default();
        *opened += 1;
        let total = *opened;
        let here = self.slots().find(|(_, there)| *there == group);
        if let Some((slot, _)) = here {
            self.membership.opened(slot, total);
        }
    }

    fn slots(&self) -> impl Iterator<Item = (Slot, GroupId)> {
        Slot::all().zip(self.membership.maps().map(|map| map.group))
    }

    /// Buckets with flows, and their number.
    pub fn flows(&self, group: GroupId, now: Duration) -> (BucketSet, u32) {
        let mut buckets = BucketSet::EMPTY;
        let mut count = 0;
        let all = (group, Bucket::of_hash(0))..=(group, Bucket::of_hash(u64::MAX));
        for ((_, bucket), ends) in self.flows.range(all) {
            let alive = ends.iter().filter(|&&end| end > now).count() as u32;
            if alive > 0 {
                buckets.insert(*bucket);
                count += alive;
            }
        }
        (buckets, count)
    }

    pub(super) fn forget_ended(&mut self, now: Duration) {
        for ends in self.flows.values_mut() {
            ends.retain(|&end| end > now);
        }
        self.flows.retain(|_, ends| !ends.is_empty());
    }

    /// All its flows end: the machine went down, or the host serves nothing.
    pub(super) fn break_flows(&mut self) {
        self.flows.clear();
    }

    pub(super) fn report_flows(&mut self, now: Duration) {
        let slots: Vec<(Slot, GroupId)> = self.slots().collect();
        for (slot, group) in slots {
            let (buckets, count) = self.flows(group, now);
            self.membership.flows(slot, &buckets, count, now + self.clock_ahead);
        }
    }
}
