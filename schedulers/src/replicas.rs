//! Sets of servers, one per destination of lblcr, in one bounded pool.
//!
//! Knows order and age of sets. Must not know loads or addresses.
//!
//! The kernel allocates each member while it handles the packet, and does without the member when
//! that fails. Here the pool is reserved at the start, and a full pool is such a failure.

use crate::ServerId;
use crate::remembered::Remembered;
use std::time::Duration;

/// Members of all sets of one service together.
const MOST_MEMBERS: usize = 64 * 1024;
/// The end of a chain.
const END: u32 = u32::MAX;

/// One destination's servers; its members are in a [`Replicas`] pool.
#[derive(Debug)]
pub(crate) struct Set {
    first: u32,
    len: u32,
    last_change: Duration,
}

impl Set {
    /// A set without members.
    pub(crate) fn empty(now: Duration) -> Set {
        Set { first: END, len: 0, last_change: now }
    }

    /// The number of members.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// When a member last came or went.
    pub(crate) fn last_change(&self) -> Duration {
        self.last_change
    }
}

#[derive(Debug)]
struct Node {
    member: Remembered,
    next: u32,
}

/// The members of all sets.
#[derive(Debug)]
pub(crate) struct Replicas {
    nodes: Vec<Node>,
    free: u32,
}

impl Replicas {
    /// A pool without members.
    pub(crate) fn new() -> Replicas {
        Replicas { nodes: Vec::with_capacity(MOST_MEMBERS), free: END }
    }

    /// A pool for the members of a fork's one set, which takes room when they come.
    pub(crate) fn of_one_set() -> Replicas {
        Replicas { nodes: Vec::new(), free: END }
    }

    /// The same set in another pool.
    pub(crate) fn copy(&self, set: &Set, pool: &mut Replicas) -> Set {
        let mut members: Vec<Remembered> = self.members(set).copied().collect();
        members.reverse();
        let mut copy = Set::empty(set.last_change);
        for member in members {
            pool.insert(&mut copy, member, set.last_change);
        }
        copy
    }

    /// A set's members, the last to join first.
    pub(crate) fn members<'a>(&'a self, set: &Set) -> impl Iterator<Item = &'a Remembered> {
        let node = |at: u32| self.nodes.get(at as usize);
        std::iter::successors(node(set.first), move |current| node(current.next))
            .map(|node| &node.member)
    }

    /// Adds a member, unless the set has it already or the pool is full.
    pub(crate) fn insert(&mut self, set: &mut Set, member: Remembered, now: Duration) {
        if self.members(set).any(|present| present.id() == member.id()) {
            return;
        }
        let node = Node { member, next: set.first };
        let at = if let Some(unused) = self.nodes.get_mut(self.free as usize) {
            let at = self.free;
            self.free = unused.next;
            *unused = node;
            at
        } else if self.nodes.len() < MOST_MEMBERS {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            return;
        };
        set.first = at;
        set.len += 1;
        set.last_change = now;
    }

    /// Takes a member out of a set, if it is in it.
    pub(crate) fn remove(&mut self, set: &mut Set, id: ServerId, now: Duration) {
        let mut before = None;
        let mut at = set.first;
        while let Some(node) = self.nodes.get(at as usize) {
            let next = node.next;
            if node.member.id() == id {
                match before {
                    None => set.first = next,
                    Some(before) => self.link(before, next),
                }
                self.link(at, self.free);
                self.free = at;
                set.len -= 1;
                set.last_change = now;
                return;
            }
            before = Some(at);
            at = next;
        }
    }

    /// Gives all of a set's members back to the pool; the set is empty afterwards.
    pub(crate) fn release(&mut self, set: &mut Set) {
        while let Some(node) = self.nodes.get(set.first as usize) {
            let next = node.next;
            self.link(set.first, self.free);
            self.free = set.first;
            set.first = next;
        }
        set.len = 0;
    }

    fn link(&mut self, at: u32, next: u32) {
        if let Some(node) = self.nodes.get_mut(at as usize) {
            node.next = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::servers;

    const NOW: Duration = Duration::from_secs(1);

    fn ids(replicas: &Replicas, set: &Set) -> Vec<u64> {
        replicas.members(set).map(|member| member.id().0).collect()
    }

    #[test]
    fn members_are_listed_newest_first_and_once() {
        let list = servers(&[1, 1, 1]);
        let mut replicas = Replicas::new();
        let mut set = Set::empty(Duration::ZERO);
        for index in [0, 1, 2] {
            replicas.insert(&mut set, Remembered::at(&list, index).unwrap(), NOW);
        }
        replicas.insert(&mut set, Remembered::at(&list, 0).unwrap(), NOW * 2);
        assert_eq!(ids(&replicas, &set), [2, 1, 0]);
        assert_eq!((set.len(), set.last_change()), (3, NOW));
    }

    #[test]
    fn any_member_can_leave() {
        let list = servers(&[1, 1, 1]);
        for (leaving, left) in [(0, [2, 1]), (1, [2, 0]), (2, [1, 0])] {
            let mut replicas = Replicas::new();
            let mut set = Set::empty(Duration::ZERO);
            for index in [0, 1, 2] {
                replicas.insert(&mut set, Remembered::at(&list, index).unwrap(), NOW);
            }
            replicas.remove(&mut set, ServerId(leaving), NOW * 5);
            replicas.remove(&mut set, ServerId(77), NOW * 6);
            assert_eq!(ids(&replicas, &set), left);
            assert_eq!((set.len(), set.last_change()), (2, NOW * 5));
        }
    }

    #[test]
    fn a_full_pool_takes_no_member_and_released_ones_are_used_again() {
        let list = servers(&[1]);
        let member = Remembered::at(&list, 0).unwrap();
        let mut replicas = Replicas::new();
        let reserved = replicas.nodes.capacity();
        let mut sets: Vec<_> = (0..=MOST_MEMBERS).map(|_| Set::empty(NOW)).collect();
        for set in &mut sets {
            replicas.insert(set, member, NOW);
        }
        assert_eq!(sets[MOST_MEMBERS].len(), 0);
        assert_eq!(sets[MOST_MEMBERS - 1].len(), 1);
        replicas.release(&mut sets[5]);
        replicas.insert(&mut sets[MOST_MEMBERS], member, NOW);
        assert_eq!(ids(&replicas, &sets[MOST_MEMBERS]), [0]);
        assert_eq!(sets[5].len(), 0);
        assert_eq!(replicas.nodes.capacity(), reserved);
    }
}
