//! The least loaded of a list when connections in progress count too: the place of
//! [`Least`](crate::least::Least) with a load bias.
//!
//! Knows time, the window in which connections are young, and the order of a list. Must not know what
//! makes a load: that is a [`Scale`], `connections.rs` for lc, wlc, sed, nq, lblc and lblcr, and the
//! reports of `registry/load.rs`.
//!
//! A load on a scale is relative to the other servers (a full one is known only from those that
//! there are), so that the scale is made anew every sixteenth of the window, and at once when a
//! server does not fit it. All servers are measured then. In between only those are that have
//! changed, as without a bias: a few servers are walked, many are in a tournament ([`Watched`]).

mod connections;

pub(crate) use connections::Connections;

use crate::server::BUCKETS;
use crate::watched::{Measures, Rule, Watched};
use crate::weight::{Words, each};
use crate::{Change, Options, Server};
use std::sync::Arc;
use std::time::Duration;

/// After how long the scale is made anew when there is no window: a sixteenth of the default one.
const WITHOUT_WINDOW: Duration = Duration::from_micros(312_500);
/// Windows are as long as so many of this at least, so that no packet has all servers measured again
/// and again.
const SHORTEST_PART: Duration = Duration::from_millis(1);

/// What a server comes to, or a part of the list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Standing {
    /// The lightest value; infinite when no server may be chosen.
    pub(crate) value: f64,
    /// The highest load, in the unit of the scale.
    pub(crate) load: f64,
    /// The largest weight that counts.
    pub(crate) weight: i32,
}

impl Standing {
    /// Of a server that must not be chosen, and of an empty list.
    pub(crate) const NONE: Standing = Standing { value: f64::INFINITY, load: 0.0, weight: 0 };

    fn join(older: Standing, newer: Standing) -> Standing {
        Standing {
            value: older.value.min(newer.value),
            load: older.load.max(newer.load),
            weight: older.weight.max(newer.weight),
        }
    }
}

/// What makes a load, and how loads compare.
pub(crate) trait Scale: Measures<Standing> {
    /// Whether a list that comes to `whole` can be measured by it.
    fn fits(&self, whole: Standing) -> bool;

    /// The one for a list as it is now; `None` when it is this one.
    fn renewed(&self, servers: &[Arc<Server>]) -> Option<Self>;
}

/// Chooses the server of the lightest value, the newest of equals.
pub(crate) struct Biased<S> {
    watched: Watched<Standing, S>,
    words: Words,
    /// How long a part of the window is.
    part: Duration,
    has_window: bool,
    /// When the next part begins.
    next_part: Option<Duration>,
}

impl<S: Scale> Biased<S> {
    /// The lightest by `scale`. Of the options it takes the window; `words` tell what a server carries.
    pub(crate) fn by(scale: S, words: Words, options: &Options) -> Biased<S> {
        let window = options.bias_window;
        let has_window = !window.is_zero();
        let part = if has_window { window / BUCKETS as u32 } else { WITHOUT_WINDOW };
        let rule = Rule { nobody: Standing::NONE, measure: scale, join: Standing::join };
        Biased {
            watched: Watched::by(rule),
            words,
            part: part.max(SHORTEST_PART),
            has_window,
            next_part: None,
        }
    }

    /// The same over forks of the list, whose connections in progress are counted already.
    pub(crate) fn over(&self, servers: &[Arc<Server>]) -> Biased<S> {
        Biased { watched: self.watched.fork(servers), ..*self }
    }

    /// What a server carries and comes to, in words.
    pub(crate) fn words(&self, server: &Server) -> String {
        let Standing { value, .. } = self.scale().measure(server);
        let (words, in_progress) = ((self.words)(server), server.in_progress());
        match value.is_finite() {
            true => format!(
                "{words}, {in_progress} in progress: comes to {value:.4}, the lowest takes it"
            ),
            false => words,
        }
    }

    /// Follows a change of the list; `servers` is the list after it.
    pub(crate) fn follow(&mut self, servers: &[Arc<Server>], change: Change) {
        let newcomers = match change {
            Change::Removed { .. } | Change::Edited { .. } => &[],
            Change::Added => &servers[..servers.len().min(1)],
            Change::Replaced { index } => servers.get(index..=index).unwrap_or_default(),
            Change::Bound => servers,
        };
        newcomers.iter().for_each(|server| server.watch_progress(self.has_window));
        self.watched.follow(servers, change);
    }

    /// The index of the lightest that may be chosen.
    pub(crate) fn lightest(&mut self, servers: &[Arc<Server>], now: Duration) -> Option<usize> {
        self.attend(servers, now);
        let (whole, lightest) = self.look(servers);
        if self.scale().fits(whole) {
            return lightest;
        }
        self.renew(servers);
        // Whatever other workers have changed since is small; the next choice will see it.
        self.look(servers).1
    }

    /// The index of the lightest of those `candidates` that may be chosen, the earlier of equals. They
    /// are compared on the scale that holds, which is that of the whole list.
    pub(crate) fn lightest_of<'a>(
        &self,
        candidates: impl Iterator<Item = (usize, &'a Server)>,
    ) -> Option<usize> {
        walk(self.scale(), candidates).1
    }

    fn scale(&self) -> &S {
        &self.watched.rule().measure
    }

    /// What the list comes to, and the index of the lightest.
    fn look(&mut self, servers: &[Arc<Server>]) -> (Standing, Option<usize>) {
        if let Some(tree) = self.watched.review(servers) {
            let whole = tree.all();
            let lightest = whole.value.is_finite().then(|| {
                tree.descend(|older: Standing, newer: Standing| newer.value <= older.value)
            });
            return (whole, lightest.flatten());
        }
        walk(self.scale(), each(servers))
    }

    /// Does what is due by `now`. To be called at each choice, also one that is made otherwise: the
    /// window goes on with it.
    pub(crate) fn attend(&mut self, servers: &[Arc<Server>], now: Duration) {
        let due = self.next_part.unwrap_or(now);
        let Some(late) = now.checked_sub(due) else {
            return;
        };
        let parts = 1 + late.as_nanos() / self.part.as_nanos();
        let parts = u32::try_from(parts).unwrap_or(u32::MAX);
        self.next_part = Some(due.saturating_add(self.part.saturating_mul(parts)));
        if self.has_window {
            servers.iter().for_each(|server| server.turn_window(parts as usize));
        }
        self.renew(servers);
    }

    fn renew(&mut self, servers: &[Arc<Server>]) {
        if let Some(scale) = self.scale().renewed(servers) {
            self.watched.measure_by(scale, servers);
        }
    }
}

/// What the candidates come to, and the lightest of them, the earlier of equals.
fn walk<'a>(
    scale: &impl Scale,
    candidates: impl Iterator<Item = (usize, &'a Server)>,
) -> (Standing, Option<usize>) {
    let mut whole = Standing::NONE;
    let mut lightest = None;
    for (index, server) in candidates {
        let standing = scale.measure(server);
        if standing.value < whole.value {
            lightest = Some(index);
        }
        whole = Standing::join(whole, standing);
    }
    (whole, lightest)
}

#[cfg(test)]
mod tests;
