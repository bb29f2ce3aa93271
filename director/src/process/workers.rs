//! The packet threads: started, watched, and told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use arc_swap::ArcSwap;
use tokio::sync::Notify;
use tracing::warn;

use super::ports::Opened;
use crate::dispatch::Shared;
use crate::network::{Follower, Network};
use crate::table::Table;
use crate::worker::{Worker, WorkerParts, WorkerStatus};

/// See the module.
pub(super) struct Workers {
    threads: Vec<JoinHandle<std::io::Result<()>>>,
    /// What each of them tells of itself.
    pub(super) statuses: Vec<Arc<WorkerStatus>>,
    stop: Arc<AtomicBool>,
    /// Is notified when one of them has ended.
    pub(super) ended: Arc<Notify>,
}

impl Workers {
    /// One thread for each bench of `opened`.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(super) fn start(
        opened: &mut Opened,
        shared: &Arc<Shared>,
        table: &Table,
        network: &Arc<ArcSwap<Network>>,
        follower: &Follower,
        epoch: Instant,
    ) -> Result<Workers> {
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::new(Notify::new());
        let cores = allowed_cores();
        let benches = opened.take_benches();
        let workers = benches.len();
        let (mut threads, mut statuses) = (Vec::new(), Vec::new());
        for (index, bench) in benches.into_iter().enumerate() {
            let status = Arc::new(WorkerStatus::default());
            statuses.push(status.clone());
            let parts = WorkerParts {
                index,
                workers,
                ports: bench.ports,
                pool: bench.pool,
                shared: shared.clone(),
                services: table.published(),
                network: network.clone(),
                resolver: follower.resolver(),
                epoch,
                status: status.clone(),
                stop: stop.clone(),
            };
            let thread = std::thread::Builder::new().name(format!("worker-{index}"));
            let core = cores.get(index % cores.len().max(1)).copied();
            let ended = ended.clone();
            threads.push(thread.spawn(move || {
                if let Some(core) = core {
                    pin(index, core);
                }
                let _ended = Ended(status, ended);
                Worker::new(parts).run()
            })?);
        }
        Ok(Workers { threads, statuses, stop, ended })
    }

    /// Looks whether all of them are at work.
    ///
    /// # Errors
    /// When one has ended by itself.
    pub(super) fn check(&self) -> Result<()> {
        match self.statuses.iter().position(|status| status.ended.load(Relaxed)) {
            Some(index) => bail!("worker {index} has ended"),
            None => Ok(()),
        }
    }

    /// Stops all of them, and waits until they have.
    ///
    /// # Errors
    /// What one of them ended of.
    pub(super) fn stop(self) -> Result<()> {
        self.stop.store(true, Relaxed);
        let mut outcome = Ok(());
        for (index, thread) in self.threads.into_iter().enumerate() {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    outcome = Err(error).with_context(|| format!("worker {index}"));
                }
                Err(_) => outcome = Err(anyhow::anyhow!("worker {index} panicked")),
            }
        }
        outcome
    }
}

/// Marks a worker as ended however its thread ends, by panic too.
struct Ended(Arc<WorkerStatus>, Arc<Notify>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.ended.store(true, Relaxed);
        self.1.notify_one();
    }
}

/// The cores that this process may use: a container or a service manager may have left it a few.
fn allowed_cores() -> Vec<usize> {
    let this_process = nix::unistd::Pid::from_raw(0);
    match nix::sched::sched_getaffinity(this_process) {
        Ok(set) => (0..nix::sched::CpuSet::count())
            .filter(|core| set.is_set(*core).unwrap_or(false))
            .collect(),
        Err(errno) => {
            warn!("workers are not pinned to cores: {errno}");
            Vec::new()
        }
    }
}

/// Keeps a worker on one core. Not being allowed to is no reason to stop.
fn pin(index: usize, core: usize) {
    let mut set = nix::sched::CpuSet::new();
    if set.set(core).is_ok()
        && let Err(errno) = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)
    {
        warn!("worker {index} is not pinned to core {core}: {errno}");
    }
}
