//! Local checks: whether this host's services work, seen from here.
//!
//! All must pass, or the state is down. A check is good at first, so that nothing goes down because
//! the agent starts; it fails after `fall` failures in a row and is good again after `rise` passes.

mod http;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;

use futures_util::stream::{FuturesUnordered, StreamExt};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use crate::program;
use crate::role::Served;
use crate::settings::{Check, CheckKind};
use crate::standing::Standing;

/// What one check finds, as `status` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// What it looks at: `tcp 192.0.2.10:80`.
    pub name: String,
    /// Whether it counts as good.
    pub passes: bool,
    /// The last outcomes alike in a row.
    pub in_a_row: u32,
    /// What the last one was, in words.
    pub last: String,
    /// How many have been made.
    pub made: u64,
}

/// One check of one thing.
struct Runner {
    check: Check,
    /// `None` of a command.
    to: Option<SocketAddr>,
    /// Whether the last one passed.
    last_passed: Cell<bool>,
    view: RefCell<View>,
}

/// All checks of this host.
#[derive(Default)]
pub struct Checks {
    runners: Vec<Runner>,
}

impl Checks {
    /// What the settings ask for: a check of a port looks at every TCP service, or at its own port
    /// on each of their addresses.
    pub fn new(checks: &[Check], served: &[Served]) -> Checks {
        let mut runners = Vec::new();
        for check in checks {
            let targets = targets(&check.kind, served);
            if targets.is_empty() {
                tracing::warn!(
                    "a {} check looks at nothing: this host serves nothing over TCP; give it a port, \
                     or remove it",
                    word(&check.kind)
                );
            }
            runners.extend(targets.into_iter().map(|to| Runner::new(check.clone(), to)));
        }
        Checks { runners }
    }

    /// Checks for ever.
    pub async fn run(&self, standing: &Standing) {
        standing.set_failures(self.failures());
        let mut all: FuturesUnordered<_> =
            self.runners.iter().map(|runner| runner.run(self, standing)).collect();
        while all.next().await.is_some() {}
        std::future::pending::<()>().await;
    }

    /// What each finds.
    pub fn views(&self) -> Vec<View> {
        self.runners.iter().map(|runner| runner.view.borrow().clone()).collect()
    }

    /// Takes over what another one has found of the same things: a file that is read again forgets
    /// nothing.
    pub fn inherit(&self, before: &Checks) {
        for runner in &self.runners {
            let same = |it: &&Runner| it.check == runner.check && it.to == runner.to;
            if let Some(known) = before.runners.iter().find(same) {
                runner.view.replace(known.view.borrow().clone());
                runner.last_passed.set(known.last_passed.get());
            }
        }
    }

    fn failures(&self) -> Vec<String> {
        let failed = self.views().into_iter().filter(|view| !view.passes);
        failed.map(|view| format!("{}: {}", view.name, view.last)).collect()
    }
}

fn word(kind: &CheckKind) -> &'static str {
    match kind {
        CheckKind::Tcp { .. } => "tcp",
        CheckKind::Http { .. } => "http",
        CheckKind::Exec(_) => "exec",
    }
}

fn targets(kind: &CheckKind, served: &[Served]) -> Vec<Option<SocketAddr>> {
    let port = match kind {
        CheckKind::Exec(_) => return vec![None],
        CheckKind::Tcp { port } | CheckKind::Http { port, .. } => *port,
    };
    let mut targets = Vec::new();
    for served in served {
        let to = match port {
            Some(port) => Some(SocketAddr::new(served.address, port)),
            None => served.tcp(),
        };
        if to.is_some() && !targets.contains(&to) {
            targets.push(to);
        }
    }
    targets
}

impl Runner {
    fn new(check: Check, to: Option<SocketAddr>) -> Runner {
        let what = match (&check.kind, to) {
            (CheckKind::Exec(command), _) => command.join(" "),
            (_, Some(to)) => to.to_string(),
            (_, None) => String::new(),
        };
        let view = View {
            name: format!("{} {what}", word(&check.kind)),
            passes: true,
            in_a_row: 0,
            last: "not made yet".to_owned(),
            made: 0,
        };
        Runner { check, to, last_passed: Cell::new(true), view: RefCell::new(view) }
    }

    async fn run(&self, all: &Checks, standing: &Standing) {
        let mut ticks = interval_at(Instant::now(), self.check.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let outcome = self.once().await;
            if self.note(outcome) {
                standing.set_failures(all.failures());
            }
        }
    }

    async fn once(&self) -> Result<String, String> {
        let limit = self.check.timeout;
        let late = |_| format!("no answer within {limit:?}");
        match (&self.check.kind, self.to) {
            (CheckKind::Exec(command), _) => {
                let done = program::run(command, &[], limit).await;
                done.map(|_| "it ended with 0".to_owned()).map_err(|error| error.to_string())
            }
            (CheckKind::Tcp { .. }, Some(to)) => {
                let connected = timeout(limit, TcpStream::connect(to)).await.map_err(late)?;
                connected.map(|_| "connected".to_owned()).map_err(|error| error.to_string())
            }
            (CheckKind::Http { path, host, expect, .. }, Some(to)) => {
                let asked = http::status(to, path, host.as_deref());
                let status = timeout(limit, asked).await.map_err(late)?;
                let status = status.map_err(|error| error.to_string())?;
                let said = format!("status {status}");
                if expect.contains(&status) { Ok(said) } else { Err(said) }
            }
            (_, None) => Err("it has no address to look at".to_owned()),
        }
    }

    /// Notes an outcome; whether what it counts as, or why it failed, has changed.
    fn note(&self, outcome: Result<String, String>) -> bool {
        let mut view = self.view.borrow_mut();
        let good = outcome.is_ok();
        let last = outcome.unwrap_or_else(|trouble| trouble);
        let before = view.passes;
        let alike = self.last_passed.replace(good) == good;
        view.in_a_row = if alike { view.in_a_row.saturating_add(1) } else { 1 };
        view.made += 1;
        let says_more = !before && !good && view.last != last;
        view.last = last;
        let needed = if good { self.check.rise } else { self.check.fall };
        if before != good && view.in_a_row >= needed {
            view.passes = good;
            let name = &view.name;
            match good {
                true => tracing::info!("check {name}: passes again"),
                false => tracing::warn!("check {name}: failed {needed} times: {}", view.last),
            }
        }
        before != view.passes || says_more
    }
}
