//! The least loaded server with a load bias or without: what lc, wlc, sed, nq, lblc and lblcr are
//! made of.
//!
//! Knows which of the two a service has. Without a bias it is the kernel's choice, untouched
//! ([`Least`]).

use crate::biased::{Biased, Connections};
use crate::least::Least;
use crate::weight::{Measure, Words, least_loaded};
use crate::{Bias, Change, Key, Options, Scheduler, Server, TooManyServers};
use std::sync::Arc;
use std::time::Duration;

/// Chooses the server of the lightest burden, the newest of equals.
pub(crate) enum Lightest {
    /// By what servers carry.
    Plain(Least, Measure),
    /// By what they carry and what is in progress.
    Biased(Biased<Connections>),
}

impl Lightest {
    /// The lightest by `measure`, told in `words`. Of the options it takes bias and window.
    pub(crate) fn by(measure: Measure, words: Words, options: &Options) -> Lightest {
        match options.bias {
            Bias::None => Lightest::Plain(Least::by(measure, words), measure),
            bias => Lightest::Biased(Biased::by(Connections::by(measure, bias), words, options)),
        }
    }

    /// A scheduler that does just this.
    pub(crate) fn scheduler(
        measure: Measure,
        words: Words,
        options: &Options,
    ) -> Box<dyn Scheduler> {
        match Lightest::by(measure, words, options) {
            Lightest::Plain(least, _) => Box::new(least),
            biased @ Lightest::Biased(_) => Box::new(biased),
        }
    }

    /// The same over forks of the list.
    pub(crate) fn over(&self, servers: &[Arc<Server>]) -> Lightest {
        match self {
            Lightest::Plain(least, measure) => Lightest::Plain(least.over(servers), *measure),
            Lightest::Biased(biased) => Lightest::Biased(biased.over(servers)),
        }
    }

    /// What a server comes to, in words.
    pub(crate) fn words(&self, server: &Server) -> String {
        match self {
            Lightest::Plain(least, _) => least.words(server),
            Lightest::Biased(biased) => biased.words(server),
        }
    }

    /// Follows a change of the list; `servers` is the list after it.
    pub(crate) fn follow(&mut self, servers: &[Arc<Server>], change: Change) {
        match self {
            Lightest::Plain(least, _) => least.follow(servers, change),
            Lightest::Biased(biased) => biased.follow(servers, change),
        }
    }

    /// To be called at each choice, also one that is made without this.
    pub(crate) fn attend(&mut self, servers: &[Arc<Server>], now: Duration) {
        match self {
            Lightest::Plain(..) => {}
            Lightest::Biased(biased) => biased.attend(servers, now),
        }
    }

    /// The index of the lightest that can be borne.
    pub(crate) fn lightest(&mut self, servers: &[Arc<Server>], now: Duration) -> Option<usize> {
        match self {
            Lightest::Plain(least, _) => least.lightest(servers),
            Lightest::Biased(biased) => biased.lightest(servers, now),
        }
    }

    /// The index of the lightest of those candidates that can be borne; the earlier one wins a tie.
    pub(crate) fn lightest_of<'a>(
        &self,
        candidates: impl Iterator<Item = (usize, &'a Server)>,
    ) -> Option<usize> {
        match self {
            Lightest::Plain(_, measure) => least_loaded(candidates, *measure),
            Lightest::Biased(biased) => biased.lightest_of(candidates),
        }
    }
}

impl Scheduler for Lightest {
    fn changed(&mut self, servers: &[Arc<Server>], change: Change) -> Result<(), TooManyServers> {
        self.follow(servers, change);
        Ok(())
    }

    fn choose(&mut self, servers: &[Arc<Server>], _: &Key, now: Duration) -> Option<usize> {
        self.lightest(servers, now)
    }

    fn fork(&self, servers: &[Arc<Server>], _: &Key) -> Box<dyn Scheduler> {
        Box::new(self.over(servers))
    }

    fn figure(&self, _: usize, server: &Server) -> String {
        self.words(server)
    }
}
