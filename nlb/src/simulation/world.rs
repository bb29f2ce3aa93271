//! The world: nodes, the segment, clients, and the rules that hold at every step.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::time::Duration;

use crate::buckets::Bucket;
use crate::heartbeat::MAX_PAYLOAD;
use crate::membership::{Plan, Service, Settings};
use crate::slot::GroupId;

use super::measure::{Coverage, Measures};
use super::network::Network;
use super::node::Node;
use super::random::Random;

/// A rule was broken.
#[derive(Clone, Debug)]
pub struct Violation {
    /// When.
    pub at: Duration,
    /// Which rule, and how.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {:?}: {}", self.at, self.what)
    }
}

/// A frame under way: when it arrives, its number, and where.
type Frame = Reverse<(Duration, u64, usize, Vec<u8>)>;

/// A cluster in virtual time.
#[derive(Debug)]
pub struct World {
    /// Time since the beginning.
    pub now: Duration,
    /// The nodes. Their places never change.
    pub nodes: Vec<Node>,
    /// The segment.
    pub network: Network,
    /// Broken rules; empty in a right run.
    pub violations: Vec<Violation>,
    /// Whether two servers of one bucket break a rule now. Cases in which hosts cannot hear each
    /// other switch it off.
    pub once: bool,
    /// New flows a second, over all slots.
    pub flow_rate: u64,
    /// How long flows live at most.
    pub flow_life: Duration,
    frames: BinaryHeap<Frame>,
    frame_number: u64,
    random: Random,
    pub(super) groups: Vec<GroupId>,
    pub(super) coverage: Coverage,
    marked: Duration,
    next_second: Duration,
    next_flow: Duration,
}

impl World {
    /// An empty segment whose clients ask for these groups of rules.
    pub fn new(seed: u64, groups: Vec<GroupId>) -> World {
        World {
            now: Duration::ZERO,
            nodes: Vec::new(),
            network: Network::default(),
            violations: Vec::new(),
            once: true,
            flow_rate: 100,
            flow_life: Duration::from_secs(20),
            frames: BinaryHeap::new(),
            frame_number: 0,
            random: Random::new(seed),
            coverage: Coverage::new(groups.len(), Duration::ZERO),
            groups,
            marked: Duration::ZERO,
            next_second: Duration::from_secs(1),
            next_flow: Duration::ZERO,
        }
    }

    /// Clients ask for these groups of rules from now on.
    pub fn ask_for(&mut self, groups: Vec<GroupId>) {
        self.coverage = Coverage::new(groups.len(), self.now);
        self.groups = groups;
        self.recount();
    }

    /// Randomness for the case itself.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// A node starts; its place.
    pub fn start(&mut self, settings: Settings, plan: Plan) -> usize {
        self.nodes.push(Node::new(settings, plan, self.now));
        self.after(self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// A node's machine dies without a word.
    pub fn crash(&mut self, place: usize) {
        self.nodes[place].runs = false;
        self.nodes[place].break_flows();
        self.recount();
    }

    /// A machine that died starts again.
    pub fn restart(&mut self, place: usize, settings: Settings, plan: Plan) {
        self.nodes[place] = Node::new(settings, plan, self.now);
        self.after(place);
    }

    /// Does something with a node, as its program would.
    pub fn with<T>(&mut self, place: usize, act: impl FnOnce(&mut Node, Duration) -> T) -> T {
        let now = self.now + self.nodes[place].clock_ahead;
        let result = act(&mut self.nodes[place], now);
        self.after(place);
        result
    }

    /// Measuring begins now.
    pub fn mark(&mut self) {
        self.coverage.restart(self.now);
        self.marked = self.now;
    }

    /// Figures since the mark.
    pub fn measures(&mut self) -> Measures {
        self.coverage.until(self.now);
        self.coverage.figures(self.now)
    }

    /// Goes on for a while.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        self.run_until(end, |_| false);
    }

    /// Goes on until something holds, at most for `time`; when it held, from the mark on.
    pub fn run_while(
        &mut self,
        time: Duration,
        mut holds: impl FnMut(&World) -> bool,
    ) -> Option<Duration> {
        let end = self.now + time;
        self.run_until(end, &mut holds).then(|| self.now - self.marked)
    }

    fn run_until(&mut self, end: Duration, mut holds: impl FnMut(&World) -> bool) -> bool {
        loop {
            if holds(self) {
                return true;
            }
            let next = self.next_step();
            if next > end {
                self.now = end;
                return false;
            }
            self.now = self.now.max(next);
            self.step();
        }
    }

    fn next_step(&self) -> Duration {
        let frame = self.frames.peek().map(|Reverse((at, ..))| *at);
        let wake = self.nodes.iter().filter(|node| node.runs).filter_map(|node| node.wake).min();
        [frame, wake, Some(self.next_second), Some(self.next_flow)]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(self.next_second)
    }

    fn step(&mut self) {
        while let Some(Reverse((at, ..))) = self.frames.peek()
            && *at <= self.now
            && let Some(Reverse((_, _, place, payload))) = self.frames.pop()
        {
            if self.nodes[place].runs {
                self.with(place, |node, now| node.membership.receive(&payload, now));
            }
        }
        for place in 0..self.nodes.len() {
            if self.nodes[place].runs && self.nodes[place].wake.is_some_and(|at| at <= self.now) {
                self.with(place, |node, now| node.membership.tick(now));
            }
        }
        if self.next_flow <= self.now {
            self.next_flow = self.now + Duration::from_secs(1) / self.flow_rate.max(1) as u32;
            self.open_flow();
        }
        if self.next_second <= self.now {
            self.next_second = self.now + Duration::from_secs(1);
            self.count_flows();
        }
    }

    /// A new client: whoever serves its bucket takes it.
    fn open_flow(&mut self) {
        if self.flow_rate == 0 {
            return;
        }
        let group = self.groups[self.random.below(self.groups.len() as u64) as usize];
        let bucket = Bucket::of_hash(self.random.bits());
        let until = self.now + self.random.between(Duration::ZERO, self.flow_life);
        for node in self.nodes.iter_mut().filter(|node| node.serves(group, bucket)) {
            node.open(group, bucket, until);
        }
    }

    /// Once a second each node counts its flows.
    fn count_flows(&mut self) {
        for place in 0..self.nodes.len() {
            if self.nodes[place].runs {
                let now = self.now;
                self.nodes[place].forget_ended(now);
                self.with(place, |node, _| node.report_flows(now));
            }
        }
    }

    /// After anything was done with a node: what its program does then.
    fn after(&mut self, place: usize) {
        let now = self.now;
        let node = &mut self.nodes[place];
        if node.membership.service() != Service::Active {
            node.break_flows();
        }
        if node.membership.flows_wanted() {
            node.report_flows(now);
        }
        let local = now + node.clock_ahead;
        node.events.extend(node.membership.take_events());
        while let Some(payload) = self.nodes[place].membership.take_heartbeat(local) {
            self.send(place, &payload);
        }
        let node = &mut self.nodes[place];
        let wake = node.membership.next_tick();
        node.wake = wake.map(|at| at.saturating_sub(node.clock_ahead).max(now));
        if node.seen_version != Some(node.membership.maps_version()) {
            node.seen_version = Some(node.membership.maps_version());
            self.recount();
        }
    }

    fn send(&mut self, from: usize, payload: &[u8]) {
        let node = &mut self.nodes[from];
        node.sent += 1;
        node.sent_bytes += payload.len() as u64;
        if payload.len() > MAX_PAYLOAD {
            self.violate(format!("node {from} sent {} bytes", payload.len()));
        }
        for to in (0..self.nodes.len()).filter(|&to| to != from) {
            if let Some(delay) = self.network.carry(from, to, &mut self.random) {
                self.frame_number += 1;
                let frame = (self.now + delay, self.frame_number, to, payload.to_vec());
                self.frames.push(Reverse(frame));
            }
        }
    }

    /// Gives a node a payload that somebody else made: forged, old, garbage.
    pub fn inject(&mut self, place: usize, payload: &[u8]) {
        self.with(place, |node, now| node.membership.receive(payload, now));
    }

    /// The frames that are under way now.
    pub fn under_way(&self) -> Vec<Vec<u8>> {
        self.frames.iter().map(|Reverse((.., payload))| payload.clone()).collect()
    }

    /// Payload bytes sent by all nodes.
    pub fn sent_bytes(&self) -> u64 {
        self.nodes.iter().map(|node| node.sent_bytes).sum()
    }

    /// Heartbeats sent by all nodes.
    pub fn sent(&self) -> u64 {
        self.nodes.iter().map(|node| node.sent).sum()
    }
}
