//! The least loaded of a list, also of a very long one: what wlc, lc, sed, nq, fo and ovf have in
//! common. They differ only in the [`Measure`].
//!
//! Knows burdens and the order of a list. Must not know what makes a burden.
//!
//! A few servers are walked, as the kernel walks all. Many are kept in a [`Tree`]: a tournament in
//! which the lighter of two goes on to the next round, and the newer one when they are equal. A
//! server whose load changes is marked on the tree's [`Board`] by whoever changes it; a choice
//! measures the marked ones anew, has each play its way up again, and takes the winner. So it
//! decides on the counts of all workers as they are at that moment, as the walk does, for the price
//! of log n comparisons per change.

use crate::board::Board;
use crate::weight::{Burden, Measure, UNBEARABLE, each, is_lighter, least_loaded};
use crate::{Change, Key, Scheduler, Server, TooManyServers};
use std::sync::Arc;
use std::time::Duration;

/// Up to so many servers a walk is as quick as a tree, and needs no marks.
const FEW: usize = 16;

/// Chooses the server of the lightest burden, the newest of equals.
pub(crate) struct Least {
    measure: Measure,
    tree: Option<Tree>,
}

impl Least {
    /// The lightest by `measure`.
    pub(crate) fn by(measure: Measure) -> Least {
        Least { measure, tree: None }
    }

    /// Follows a change of the list; `servers` is the list after it.
    pub(crate) fn follow(&mut self, servers: &[Arc<Server>], change: Change) {
        if servers.len() <= FEW {
            if self.tree.take().is_some() {
                servers.iter().for_each(|server| server.unwatch());
            }
            return;
        }
        let measure = self.measure;
        let tree = self.tree.get_or_insert_with(|| Tree::of(servers.len()));
        match change {
            Change::Added if tree.len + 1 == servers.len() && tree.has_room() => {
                tree.push(&servers[0], measure);
            }
            Change::Removed { index: 0, .. } if tree.len == servers.len() + 1 => tree.pop(),
            // Whoever has edited the server has marked it.
            Change::Edited { .. } if tree.len == servers.len() => {}
            _ => {
                if tree.capacity() < servers.len() {
                    *tree = Tree::of(servers.len());
                }
                tree.fill(servers, measure);
            }
        }
    }

    /// The index of the lightest that can be borne.
    pub(crate) fn lightest(&mut self, servers: &[Arc<Server>]) -> Option<usize> {
        match &mut self.tree {
            Some(tree) if tree.len == servers.len() => {
                tree.review(servers, self.measure);
                tree.winner()
            }
            _ => least_loaded(each(servers), self.measure),
        }
    }
}

impl Scheduler for Least {
    fn changed(&mut self, servers: &[Arc<Server>], change: Change) -> Result<(), TooManyServers> {
        self.follow(servers, change);
        Ok(())
    }

    fn choose(&mut self, servers: &[Arc<Server>], _: &Key, _: Duration) -> Option<usize> {
        self.lightest(servers)
    }
}

/// A tournament. Places are counted from the *tail* of the list: a new server comes in at the head,
/// and so takes the next place while all others keep theirs.
struct Tree {
    /// Servers; their places are 0..len.
    len: usize,
    /// Burdens by place, a power of two of them; nobody can be chosen from `len` on.
    burdens: Box<[Burden]>,
    /// Who goes on from each match, by place: match 1 is the final, 2n and 2n + 1 come before n,
    /// and those from capacity / 2 on are the first round.
    winners: Box<[u32]>,
    /// Marks by place.
    board: Arc<Board>,
}

impl Tree {
    /// An empty tree with room for `servers`.
    fn of(servers: usize) -> Tree {
        let capacity = servers.next_power_of_two().max(2);
        Tree {
            len: 0,
            burdens: vec![UNBEARABLE; capacity].into(),
            winners: vec![0; capacity].into(),
            board: Arc::new(Board::new(capacity)),
        }
    }

    fn capacity(&self) -> usize {
        self.burdens.len()
    }

    fn has_room(&self) -> bool {
        self.len < self.capacity()
    }

    /// Takes all servers in anew.
    fn fill(&mut self, servers: &[Arc<Server>], measure: Measure) {
        self.burdens.fill(UNBEARABLE);
        self.len = servers.len();
        for (place, server) in servers.iter().rev().enumerate() {
            server.watch(&self.board, place as u32);
            self.burdens[place] = measure(server);
        }
        self.play_all();
    }

    /// Takes in a server that has come to the head.
    fn push(&mut self, server: &Server, measure: Measure) {
        server.watch(&self.board, self.len as u32);
        self.burdens[self.len] = measure(server);
        self.len += 1;
        self.play(self.len - 1);
    }

    /// Lets the server at the head go. It may go on marking the place: that costs the next one
    /// there a look.
    fn pop(&mut self) {
        self.len -= 1;
        self.burdens[self.len] = UNBEARABLE;
        self.play(self.len);
    }

    /// Measures those that have changed since the last time.
    fn review(&mut self, servers: &[Arc<Server>], measure: Measure) {
        let board = self.board.clone();
        // Each of them has log n matches to play; the whole tournament has n.
        let many = board.marked() > self.capacity() / 16;
        board.take(|place| {
            let server = self.len.checked_sub(place + 1).and_then(|index| servers.get(index));
            if let Some(server) = server {
                self.burdens[place] = measure(server);
                if !many {
                    self.play(place);
                }
            }
        });
        if many {
            self.play_all();
        }
    }

    /// The index of the winner in the list.
    fn winner(&self) -> Option<usize> {
        let place = self.winners[1] as usize;
        let is_borne = is_lighter(self.burdens[place], UNBEARABLE);
        is_borne.then(|| self.len - 1 - place)
    }

    /// Plays the matches on the way of the one at `place`, as far as they can end otherwise.
    fn play(&mut self, place: usize) {
        let mut number = (self.capacity() + place) / 2;
        while number > 0 {
            let winner = self.match_of(number);
            let before = std::mem::replace(&mut self.winners[number], winner);
            if before == winner && winner as usize != place {
                return;
            }
            number /= 2;
        }
    }

    fn play_all(&mut self) {
        for number in (1..self.capacity()).rev() {
            self.winners[number] = self.match_of(number);
        }
    }

    /// Who wins the match: of equals, who came later.
    fn match_of(&self, number: usize) -> u32 {
        let first_round = self.capacity() / 2;
        let (older, newer) = match number < first_round {
            true => (self.winners[2 * number], self.winners[2 * number + 1]),
            false => {
                let older = 2 * (number - first_round) as u32;
                (older, older + 1)
            }
        };
        let burden = |place: u32| self.burdens[place as usize];
        if is_lighter(burden(older), burden(newer)) { older } else { newer }
    }
}

#[cfg(test)]
mod tests;
