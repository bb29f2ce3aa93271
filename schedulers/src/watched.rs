//! What a very long list comes to, without looking at all of it each time.
//!
//! Knows servers, their order, and which have changed. Must not know what is looked for: that is a
//! [`Rule`], which says what a server comes to and what two of them come to together.
//!
//! The values are in a tree over the list. A server whose load changes is marked on the tree's
//! [`Board`] by whoever changes it; a [`review`](Watched::review) measures the marked ones anew and
//! joins them again with their neighbours, as far up as that makes a difference. For a short list
//! there is no tree, and so no marks: a walk is as quick.

use crate::board::Board;
use crate::{Change, Server};
use std::sync::Arc;

/// Up to so many servers are better walked.
pub(crate) const FEW: usize = 16;

/// What a server comes to. A plain function is one, and so is a measure that changes in time.
pub(crate) trait Measures<T>: Copy {
    /// What this server comes to.
    fn measure(&self, server: &Server) -> T;
}

impl<T> Measures<T> for fn(&Server) -> T {
    fn measure(&self, server: &Server) -> T {
        self(server)
    }
}

/// What is looked for.
#[derive(Clone, Copy)]
pub(crate) struct Rule<T, M = fn(&Server) -> T> {
    /// What nobody comes to: joined with it, every value stays as it is.
    pub(crate) nobody: T,
    /// What a server comes to.
    pub(crate) measure: M,
    /// What an older and a newer part of the list come to together.
    pub(crate) join: fn(T, T) -> T,
}

/// See the module.
pub(crate) struct Watched<T, M = fn(&Server) -> T> {
    rule: Rule<T, M>,
    tree: Option<Tree<T, M>>,
}

impl<T: Copy + PartialEq, M: Measures<T>> Watched<T, M> {
    /// Nobody yet.
    pub(crate) fn by(rule: Rule<T, M>) -> Watched<T, M> {
        Watched { rule, tree: None }
    }

    /// The same over other servers, which are forks of the list: only the rule is remembered, the rest
    /// is measured.
    pub(crate) fn fork(&self, servers: &[Arc<Server>]) -> Watched<T, M> {
        let mut fork = Watched::by(self.rule);
        fork.follow(servers, Change::Bound);
        fork
    }

    /// The rule that holds.
    pub(crate) fn rule(&self) -> &Rule<T, M> {
        &self.rule
    }

    /// Measures all of the list anew, from now on by `measure`.
    pub(crate) fn measure_by(&mut self, measure: M, servers: &[Arc<Server>]) {
        self.rule.measure = measure;
        let Some(tree) = self.tree.as_mut() else { return };
        tree.rule.measure = measure;
        if tree.len == servers.len() {
            tree.measure_all(servers);
        }
    }

    /// Follows a change of the list; `servers` is the list after it.
    pub(crate) fn follow(&mut self, servers: &[Arc<Server>], change: Change) {
        if servers.len() <= FEW {
            if self.tree.take().is_some() {
                servers.iter().for_each(|server| server.unwatch());
            }
            return;
        }
        let rule = self.rule;
        let tree = self.tree.get_or_insert_with(|| Tree::of(servers.len(), rule));
        match change {
            Change::Added if tree.len + 1 == servers.len() && tree.has_room() => {
                tree.push(&servers[0]);
            }
            Change::Removed { index: 0, .. } if tree.len == servers.len() + 1 => tree.pop(),
            // Whoever has edited the server has marked it.
            Change::Edited { .. } if tree.len == servers.len() => {}
            _ => {
                if tree.capacity() < servers.len() {
                    *tree = Tree::of(servers.len(), rule);
                }
                tree.fill(servers);
            }
        }
    }

    /// The tree of the list as it is now; `None` when the list is better walked.
    pub(crate) fn review(&mut self, servers: &[Arc<Server>]) -> Option<&Tree<T, M>> {
        let tree = self.tree.as_mut().filter(|tree| tree.len == servers.len())?;
        tree.review(servers);
        Some(tree)
    }

    #[cfg(test)]
    pub(crate) fn board(&self) -> Option<&Arc<Board>> {
        self.tree.as_ref().map(|tree| &tree.board)
    }
}

/// Values of the list and of its parts. Places are counted from the *tail* of the list: a new server
/// comes in at the head, and so takes the next place while all others keep theirs.
pub(crate) struct Tree<T, M = fn(&Server) -> T> {
    rule: Rule<T, M>,
    /// Servers; their places are 0..len.
    len: usize,
    /// The whole list is part 1, part n consists of parts 2n (older) and 2n + 1 (newer), and the
    /// servers are the last half of all.
    parts: Box<[T]>,
    /// Marks by place.
    board: Arc<Board>,
}

impl<T: Copy + PartialEq, M: Measures<T>> Tree<T, M> {
    /// What the whole list comes to.
    pub(crate) fn all(&self) -> T {
        self.parts[1]
    }

    /// The index in the list of the server that is found by asking again and again, of an older and
    /// a newer part, whether it is the newer; `None` when that leads to nobody.
    pub(crate) fn descend(&self, mut is_newer: impl FnMut(T, T) -> bool) -> Option<usize> {
        let mut number = 1;
        while number < self.capacity() {
            number *= 2;
            number += usize::from(is_newer(self.parts[number], self.parts[number + 1]));
        }
        self.len.checked_sub(number - self.capacity() + 1)
    }

    /// An empty tree with room for `servers`.
    fn of(servers: usize, rule: Rule<T, M>) -> Tree<T, M> {
        let capacity = servers.next_power_of_two();
        let parts = vec![rule.nobody; 2 * capacity].into();
        Tree { rule, len: 0, parts, board: Arc::new(Board::new(capacity)) }
    }

    fn capacity(&self) -> usize {
        self.parts.len() / 2
    }

    fn has_room(&self) -> bool {
        self.len < self.capacity()
    }

    /// Takes all servers in anew.
    fn fill(&mut self, servers: &[Arc<Server>]) {
        let capacity = self.capacity();
        self.parts[capacity..].fill(self.rule.nobody);
        self.len = servers.len();
        for (place, server) in servers.iter().rev().enumerate() {
            server.watch(&self.board, place as u32);
        }
        self.measure_all(servers);
    }

    /// Measures all servers, which are watched already.
    fn measure_all(&mut self, servers: &[Arc<Server>]) {
        // Looked at after this, they are not due for what has happened before.
        self.board.take(|_| ());
        let capacity = self.capacity();
        for (place, server) in servers.iter().rev().enumerate() {
            self.parts[capacity + place] = self.rule.measure.measure(server);
        }
        self.join_all();
    }

    /// Takes in a server that has come to the head.
    fn push(&mut self, server: &Server) {
        server.watch(&self.board, self.len as u32);
        self.len += 1;
        self.set(self.len - 1, self.rule.measure.measure(server));
    }

    /// Lets the server at the head go. It may go on marking the place: that costs the next one
    /// there a look.
    fn pop(&mut self) {
        self.len -= 1;
        self.set(self.len, self.rule.nobody);
    }

    /// Measures those that have changed since the last time.
    fn review(&mut self, servers: &[Arc<Server>]) {
        let board = self.board.clone();
        // Each of them may concern log n parts, all together no more than there are.
        let few = self.capacity() / 16;
        let mut changed = 0;
        board.take(|place| {
            let server = self.len.checked_sub(place + 1).and_then(|index| servers.get(index));
            let Some(server) = server else { return };
            let value = self.rule.measure.measure(server);
            changed += 1;
            if changed <= few {
                self.set(place, value);
            } else {
                self.parts[self.parts.len() / 2 + place] = value;
            }
        });
        if changed > few {
            self.join_all();
        }
    }

    /// Sets what the one at `place` comes to, and what follows from it.
    fn set(&mut self, place: usize, value: T) {
        let mut number = self.capacity() + place;
        let mut value = value;
        while number > 0 && self.parts[number] != value {
            self.parts[number] = value;
            number /= 2;
            if number > 0 {
                value = self.joined(number);
            }
        }
    }

    fn join_all(&mut self) {
        for number in (1..self.capacity()).rev() {
            self.parts[number] = self.joined(number);
        }
    }

    fn joined(&self, number: usize) -> T {
        (self.rule.join)(self.parts[2 * number], self.parts[2 * number + 1])
    }
}
