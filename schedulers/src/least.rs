//! The least loaded of a list, also of a very long one: what wlc, lc, sed, nq, fo and ovf have in
//! common. They differ only in the [`Measure`].
//!
//! Knows burdens and the order of a list. Must not know what makes a burden.
//!
//! A few servers are walked, as the kernel walks all. Many are in a tournament ([`Watched`]) in which
//! the lighter of two goes on to the next round, and the newer one when they are equal. So a choice
//! decides on the counts of all workers as they are at that moment, as the walk does, for the price
//! of log n comparisons per change.

use crate::watched::{Rule, Watched};
use crate::weight::{Burden, Measure, UNBEARABLE, Words, each, is_lighter, least_loaded};
use crate::{Change, Key, Scheduler, Server, TooManyServers};
use std::sync::Arc;
use std::time::Duration;

/// Chooses the server of the lightest burden, the newest of equals.
pub(crate) struct Least {
    measure: Measure,
    words: Words,
    watched: Watched<Burden>,
}

impl Least {
    /// The lightest by `measure`; `words` tell what a server comes to.
    pub(crate) fn by(measure: Measure, words: Words) -> Least {
        let lighter = |older, newer| if is_lighter(older, newer) { older } else { newer };
        let rule = Rule { nobody: UNBEARABLE, measure, join: lighter };
        Least { measure, words, watched: Watched::by(rule) }
    }

    /// The same over forks of the list.
    pub(crate) fn over(&self, servers: &[Arc<Server>]) -> Least {
        Least { watched: self.watched.fork(servers), ..*self }
    }

    /// What a server comes to, in words.
    pub(crate) fn words(&self, server: &Server) -> String {
        (self.words)(server)
    }

    /// Follows a change of the list; `servers` is the list after it.
    pub(crate) fn follow(&mut self, servers: &[Arc<Server>], change: Change) {
        self.watched.follow(servers, change);
    }

    /// The index of the lightest that can be borne.
    pub(crate) fn lightest(&mut self, servers: &[Arc<Server>]) -> Option<usize> {
        let Some(tree) = self.watched.review(servers) else {
            return least_loaded(each(servers), self.measure);
        };
        is_lighter(tree.all(), UNBEARABLE)
            .then(|| tree.descend(|older, newer| !is_lighter(older, newer)))
            .flatten()
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

    fn fork(&self, servers: &[Arc<Server>], _: &Key) -> Box<dyn Scheduler> {
        Box::new(self.over(servers))
    }

    fn figure(&self, _: usize, server: &Server) -> String {
        self.words(server)
    }
}

#[cfg(test)]
mod tests;
