//! The rules that hold at every step, and what a case may ask of the whole cluster.

use crate::buckets::BucketSet;
use crate::host::HostSet;
use crate::membership::{Event, Service, State};

use super::node::Node;
use super::world::{Violation, World};

impl World {
    /// Who serves what has changed somewhere.
    pub(super) fn recount(&mut self) {
        self.coverage.until(self.now);
        for (place, &group) in self.groups.iter().enumerate() {
            let (mut once, mut twice) = (BucketSet::EMPTY, BucketSet::EMPTY);
            for map in self.nodes.iter().filter(|node| node.runs).filter_map(|n| n.map(group)) {
                twice = twice.union(&once.intersection(map.serving));
                once = once.union(map.serving);
            }
            self.coverage.set(place, BucketSet::ALL.minus(&once), twice);
        }
        if self.once
            && let Some(place) = self.coverage.any_twice()
        {
            let group = self.groups[place].0;
            self.violate(format!("group {group}: a bucket has two servers"));
        }
        self.check_taint();
    }

    /// Nobody answers for a flow that another holds: where one serves and another that it hears
    /// has flows, it knows.
    fn check_taint(&mut self) {
        if !self.once {
            return;
        }
        let mut pins = Vec::new();
        for (place, holder) in self.nodes.iter().enumerate().filter(|(_, node)| node.runs) {
            for map in holder.membership.maps() {
                let pinned = holder.flows(map.group, self.now).0.minus(map.serving);
                if map.pinned_pass && !pinned.is_empty() {
                    pins.push((place, map.group, pinned));
                }
            }
        }
        let mut wrong = None;
        for (owner, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.runs) {
            for (holder, group, pinned) in pins.iter().filter(|(holder, ..)| *holder != owner) {
                let unmarked = node
                    .map(*group)
                    .is_some_and(|map| !pinned.intersection(map.serving).is_subset(map.tainted));
                let host = self.nodes[*holder].membership.host();
                let mut others = node.membership.others();
                if unmarked && others.any(|other| other.host == host && other.heard) {
                    let group = group.0;
                    wrong =
                        Some(format!("group {group}: node {owner} would reset flows of {holder}"));
                }
            }
        }
        if let Some(what) = wrong {
            self.violate(what);
        }
    }

    pub(super) fn violate(&mut self, what: String) {
        if self.violations.len() < 20 {
            self.violations.push(Violation { at: self.now, what });
        }
    }

    /// Whether all running members have converged on exactly these nodes, and each bucket has one
    /// server.
    pub fn settled(&self, members: HostSet) -> bool {
        self.coverage.whole() && self.agreed(members)
    }

    /// Whether all running members have converged on exactly these hosts.
    pub fn agreed(&self, members: HostSet) -> bool {
        self.nodes.iter().filter(|node| node.runs).all(|node| {
            let status = node.membership.status();
            match status.state {
                State::Converged | State::ConvergedDefault => status.view.hosts == members,
                State::Draining => status.view.hosts == members,
                State::Converging => false,
                _ => true,
            }
        })
    }

    /// Whether every running member serves its share of the map, no more and no less.
    pub fn as_computed(&self) -> bool {
        let active = |node: &&Node| node.runs && node.membership.service() == Service::Active;
        self.nodes.iter().filter(active).all(|node| {
            let host = node.membership.host();
            node.membership.maps().all(|map| *map.serving == map.target.of(host))
        })
    }

    /// Whether every running member sees exactly these hosts, agreed or not.
    pub fn sees(&self, members: HostSet) -> bool {
        let active = |node: &&Node| node.runs && node.membership.service() == Service::Active;
        self.nodes.iter().filter(active).all(|n| n.membership.status().view.hosts == members)
    }

    /// Convergences all nodes have begun.
    pub fn convergences(&self) -> u64 {
        self.nodes.iter().map(|node| node.membership.convergences()).sum()
    }

    /// Whether a node has told of an event.
    pub fn told(&self, place: usize, is: impl Fn(&Event) -> bool) -> bool {
        self.nodes[place].events.iter().any(is)
    }
}
