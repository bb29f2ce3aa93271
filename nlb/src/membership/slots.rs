//! One slot on this host: what it serves, what it holds back, and which flows it has where.
//!
//! | set | meaning |
//! |---|---|
//! | target | this host's share under the view in force |
//! | serving | what new flows are passed for; beyond the target only what is held |
//! | held | lost buckets with affinity whose flows have not ended, until their deadline |
//! | pins | not served, but flows are there (or may be: none was counted since the bucket was lost) |
//! | tainted | served, but another host has pins there |

use std::time::Duration;

use crate::buckets::BucketSet;
use crate::map::{Member, Target};
use crate::slot::GroupId;

#[derive(Clone, Debug)]
struct Hold {
    until: Duration,
    buckets: BucketSet,
}

#[derive(Clone, Debug)]
pub(super) struct SlotState {
    pub(super) group: GroupId,
    /// The whole map, and of which members and weights it was made.
    pub(super) map: Target,
    members: Vec<Member>,
    pub(super) target: BucketSet,
    pub(super) serving: BucketSet,
    pub(super) tainted: BucketSet,
    holds: Vec<Hold>,
    flows: BucketSet,
    pub(super) flow_count: u32,
    unsure: BucketSet,
    opened: u64,
    opened_before: u64,
    /// Connections since the last convergence, as of the beginning of the present one.
    pub(super) opened_frozen: Option<u32>,
}

impl SlotState {
    pub(super) fn new(group: GroupId) -> SlotState {
        SlotState {
            group,
            map: Target::nobody(),
            members: Vec::new(),
            target: BucketSet::EMPTY,
            serving: BucketSet::EMPTY,
            tainted: BucketSet::EMPTY,
            holds: Vec::new(),
            flows: BucketSet::EMPTY,
            flow_count: 0,
            unsure: BucketSet::EMPTY,
            opened: 0,
            opened_before: 0,
            opened_frozen: None,
        }
    }

    /// Of a rule that is new on a host that has been at work: it may hold flows there already.
    pub(super) fn uncounted(group: GroupId) -> SlotState {
        SlotState { unsure: BucketSet::ALL, ..SlotState::new(group) }
    }

    pub(super) fn pins(&self) -> BucketSet {
        self.flows.union(&self.unsure).minus(&self.serving)
    }

    /// What it serves beyond its share.
    pub(super) fn extras(&self) -> BucketSet {
        self.serving.minus(&self.target)
    }

    /// Whether the map is already that of these members.
    pub(super) fn is_map_of(&self, members: &[Member]) -> bool {
        self.members == members
    }

    pub(super) fn set_map(&mut self, map: Target, members: Vec<Member>) {
        self.map = map;
        self.members = members;
    }

    /// A view comes in force: gives up what is no longer this host's, or holds it until its flows
    /// end.
    pub(super) fn commit(&mut self, target: BucketSet, hold_until: Option<Duration>) {
        self.target = target;
        if hold_until.is_none() {
            self.holds.clear();
        }
        let lost = self.extras();
        self.unsure = self.unsure.union(&lost);
        let mut waiting = lost;
        for hold in &mut self.holds {
            hold.buckets = hold.buckets.intersection(&waiting);
            waiting = waiting.minus(&hold.buckets);
        }
        if let Some(until) = hold_until {
            self.holds.push(Hold { until, buckets: waiting });
            waiting = BucketSet::EMPTY;
        }
        self.serving = self.serving.minus(&waiting);
        self.holds.retain(|hold| !hold.buckets.is_empty());
        self.opened_before = self.opened;
        self.opened_frozen = None;
    }

    /// The flows there are now.
    pub(super) fn count_flows(&mut self, flows: &BucketSet, count: u32) {
        self.flows = flows.clone();
        self.flow_count = count;
        self.unsure = BucketSet::EMPTY;
    }

    /// Releases what is held and has no flows any more; whether there was any.
    pub(super) fn release_idle(&mut self) -> bool {
        if self.holds.is_empty() {
            return false;
        }
        let flows = &self.flows.union(&self.unsure);
        let idle = |hold: &Hold| hold.buckets.minus(flows);
        let released = self.holds.iter().fold(BucketSet::EMPTY, |all, hold| all.union(&idle(hold)));
        for hold in &mut self.holds {
            hold.buckets = hold.buckets.intersection(flows);
        }
        self.release(&released)
    }

    /// Releases what was held long enough; whether there was any.
    pub(super) fn expire(&mut self, now: Duration) -> bool {
        let due = |hold: &&Hold| hold.until <= now;
        if !self.holds.iter().any(|hold| due(&hold)) {
            return false;
        }
        let released = self
            .holds
            .iter()
            .filter(due)
            .fold(BucketSet::EMPTY, |all, hold| all.union(&hold.buckets));
        self.holds.retain(|hold| hold.until > now);
        self.unsure = self.unsure.union(&released);
        self.release(&released)
    }

    fn release(&mut self, released: &BucketSet) -> bool {
        self.holds.retain(|hold| !hold.buckets.is_empty());
        self.serving = self.serving.minus(released);
        !released.is_empty()
    }

    pub(super) fn next_expiry(&self) -> Option<Duration> {
        self.holds.iter().map(|hold| hold.until).min()
    }

    /// Gives up buckets at once; their flows stay pinned.
    pub(super) fn give_up(&mut self, buckets: &BucketSet) {
        self.unsure = self.unsure.union(&buckets.intersection(&self.serving));
        self.serving = self.serving.minus(buckets);
        for hold in &mut self.holds {
            hold.buckets = hold.buckets.minus(buckets);
        }
        self.holds.retain(|hold| !hold.buckets.is_empty());
    }

    pub(super) fn count_opened(&mut self, total: u64) {
        self.opened = self.opened.max(total);
    }

    /// Connections since the last convergence; while converging, as of its beginning, so that two
    /// hosts that compare them both see the same.
    pub(super) fn opened(&self) -> u32 {
        self.opened_frozen.unwrap_or_else(|| self.opened_now())
    }

    pub(super) fn freeze_opened(&mut self) {
        self.opened_frozen
            .get_or_insert((self.opened - self.opened_before).min(u32::MAX.into()) as u32);
    }

    fn opened_now(&self) -> u32 {
        (self.opened - self.opened_before).min(u32::MAX.into()) as u32
    }
}
