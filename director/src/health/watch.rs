//! Drives the rest: timers, tasks and sockets that check servers and ask agents, and tell the table.
//!
//! ```text
//!   runner.rs   a task for each check of each server       ──┐
//!   agents.rs   one task and two sockets for all agents    ──┼──> ruling.rs  what that means, and for
//!   stream.rs   a task for each agent that is asked by TCP ──┘               whom; table and journal
//!   roster.rs   who is watched, and how: the file's and the table's servers      hear of it
//! ```
//!
//! All of it runs on the current-thread runtime of the control plane. What is known lies under one
//! lock, which is taken for microseconds and never held while anybody waits. The table is told under
//! it: who holds a lock of the table must not ask here for [`Watch::views`].

mod agents;
mod probing;
mod roster;
mod ruling;
mod runner;
mod stream;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::journal::Journal;
use super::memory::{Memory, Remembered};
use super::plan::ServiceHealth;
use super::servers::Servers;
use crate::control::api::ServiceKey;
use crate::control::health::ServerHealth;
use agents::Wire;
pub use probing::Checks;
use roster::State;
pub use runner::{Prober, Probing};

/// Checks that are made at the same time at most: each has a file descriptor, or a process.
const AT_ONCE: usize = 256;
/// How long changes are gathered before they are written down.
const GATHER: Duration = Duration::from_millis(100);

/// Health of all servers that the file asks to be watched. Dropping it ends all that it does; how
/// servers stand in the table stays.
#[derive(Debug)]
pub struct Watch {
    inner: Arc<Inner>,
    _tasks: [Task; 2],
}

/// What health is given to work with.
pub struct Means {
    /// The table.
    pub servers: Arc<dyn Servers + Send + Sync>,
    /// Where events are noted.
    pub journal: Arc<Journal>,
    /// Who makes the checks.
    pub prober: Arc<dyn Prober>,
    /// The file of what a restart must not forget; `None`: it forgets.
    pub memory: Option<PathBuf>,
    /// When the table's time was 0.
    pub epoch: std::time::Instant,
}

/// What tasks share.
struct Inner {
    servers: Arc<dyn Servers + Send + Sync>,
    journal: Arc<Journal>,
    prober: Arc<dyn Prober>,
    epoch: Instant,
    permits: Semaphore,
    wire: Wire,
    /// Agents are due at another time than was thought.
    agents_changed: Notify,
    /// There is something to write down.
    must_remember: Notify,
    memory: Option<Arc<Memory>>,
    state: Mutex<State>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inner(..)")
    }
}

/// A task that ends when this is dropped.
#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Watch {
    /// Begins, on the runtime that this is called on. Servers that were not up when the director
    /// ended have no weight when this returns; all others are taken for up until checks say
    /// otherwise.
    ///
    /// # Errors
    /// When there is no socket to be had for asking agents.
    pub fn begin(means: Means, plans: Vec<(ServiceKey, ServiceHealth)>) -> io::Result<Watch> {
        let (wire, ears) = Wire::open()?;
        let memory = means.memory.map(|path| Arc::new(Memory::new(path)));
        let remembered = memory.as_ref().map(|memory| memory.read()).unwrap_or_default();
        let inner = Arc::new(Inner {
            servers: means.servers,
            journal: means.journal,
            prober: means.prober,
            epoch: Instant::from_std(means.epoch),
            permits: Semaphore::new(AT_ONCE),
            wire,
            agents_changed: Notify::new(),
            must_remember: Notify::new(),
            state: Mutex::new(State::new(remembered)),
            memory,
        });
        inner.follow(plans);
        let agents = tokio::spawn(agents::run(inner.clone(), ears));
        let memory = tokio::spawn(remember(Arc::downgrade(&inner)));
        Ok(Watch { inner, _tasks: [Task(agents), Task(memory)] })
    }

    /// From now on servers are watched as `plans` say. What did not change goes on as if nothing had
    /// happened; a server that was down stays so until it has been found up, and none is down because
    /// of this.
    pub fn reload(&self, plans: Vec<(ServiceKey, ServiceHealth)>) {
        self.inner.follow(plans);
    }

    /// Which servers are not up, as they would be written down.
    pub fn not_up(&self) -> Vec<Remembered> {
        self.inner.lock().not_up().1
    }

    /// These servers were not up when they were last watched, and are no better for having been away:
    /// those of them that are not watched now are taken for down when they are met again.
    pub fn remember(&self, servers: Vec<Remembered>) {
        self.inner.lock().remember(servers);
    }

    /// To be called each second: servers that came or went at run time, reports that grow old.
    pub fn reconcile(&self) {
        self.inner.reconcile();
    }

    /// All watched servers, by service and address. Their connections are not known here: they are 0.
    /// From any thread.
    pub fn views(&self) -> Vec<ServerHealth> {
        let state = self.inner.lock();
        let now = unix_seconds();
        let of_service = |(key, watched): (&ServiceKey, &roster::Watched)| {
            let view = |member: &roster::Member| member.view(*key, &state.agents, now);
            watched.members.values().map(view).collect::<Vec<_>>()
        };
        state.services.iter().flat_map(of_service).collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let list = {
            let mut state = self.inner.lock();
            let list = state.not_up();
            // With them go their tasks, which hold on to the rest.
            *state = State::new(Vec::new());
            list
        };
        let (number, servers) = list;
        if let Some(memory) = &self.inner.memory {
            memory.write(number, servers);
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time as the machines and the table have it.
    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }
}

/// Writes down what a restart must not forget, each time that it has changed.
async fn remember(inner: Weak<Inner>) {
    loop {
        let Some(strong) = inner.upgrade() else { return };
        strong.must_remember.notified().await;
        tokio::time::sleep(GATHER).await;
        let (number, servers): (u64, Vec<Remembered>) = strong.lock().not_up();
        let Some(memory) = strong.memory.clone() else { continue };
        // A disk may be slow. That a write panics is not foreseen, and would be no reason to end.
        let _ = tokio::task::spawn_blocking(move || memory.write(number, servers)).await;
    }
}

/// The next moment from `time` on that is a multiple of `beat`.
fn together(time: Duration, beat: Duration) -> Duration {
    let over = time.as_nanos() % beat.as_nanos();
    let missing = if over == 0 { 0 } else { beat.as_nanos() - over };
    time + Duration::from_nanos(missing.try_into().unwrap_or(0))
}

/// The wall clock.
fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests;
