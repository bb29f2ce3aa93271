//! The packet threads: started, watched, and told to stop.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use arc_swap::ArcSwap;
use tokio::sync::Notify;
use tracing::{debug, error, info};

use super::cores;
use super::ports::Opened;
use super::sandbox::Sandbox;
use crate::network::{Follower, Network};
use crate::table::Table;
use crate::worker::{Worker, WorkerParts, WorkerStatus};

/// About nine tenths of a core for the worker when one other program wants it too. Not the most that
/// there is: an operator must get a shell on a flooded machine.
const NICENESS: i32 = -10;

/// See the module.
pub(super) struct Workers {
    threads: Vec<JoinHandle<std::io::Result<()>>>,
    /// What each of them tells of itself.
    pub(super) statuses: Vec<Arc<WorkerStatus>>,
    /// Of which of them it has been said that frames are lost.
    told_lost: Vec<bool>,
    stop: Arc<AtomicBool>,
    /// Is notified when one of them has ended.
    pub(super) ended: Arc<Notify>,
}

impl Workers {
    /// One thread for each bench of `opened`; `cpus` as the configuration has it.
    ///
    /// # Errors
    /// When a thread cannot be started, or `cpus` names a core that may not be used.
    pub(super) fn start(
        opened: &mut Opened,
        cpus: &[usize],
        sandbox: Sandbox,
        table: &Table,
        network: &Arc<ArcSwap<Network>>,
        follower: &Follower,
        epoch: Instant,
    ) -> Result<Workers> {
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::new(Notify::new());
        let benches = opened.take_benches();
        let wanted: Vec<_> = benches.iter().map(|bench| bench.core).collect();
        let cores = cores::choose(cpus, &wanted)?;
        info!("workers: {}{}", benches.len(), list(&cores));
        let workers = benches.len();
        let (mut threads, mut statuses) = (Vec::new(), Vec::new());
        let (begins, begun) = mpsc::channel();
        for (index, bench) in benches.into_iter().enumerate() {
            let status = Arc::new(WorkerStatus::default());
            statuses.push(status.clone());
            let parts = WorkerParts {
                index,
                workers,
                ports: bench.ports,
                pool: bench.pool,
                shared: table.shared().clone(),
                services: table.published(),
                network: network.clone(),
                resolver: follower.resolver(),
                epoch,
                status: status.clone(),
                stop: stop.clone(),
            };
            let thread = std::thread::Builder::new().name(format!("worker-{index}"));
            let core = cores.get(index).copied();
            let (begins, ended) = (begins.clone(), ended.clone());
            threads.push(thread.spawn(move || {
                if let Some(core) = core {
                    cores::pin(index, core);
                }
                go_first(index);
                sandbox.enter_thread();
                // Whoever waited for it and is gone waits no more.
                let _ = begins.send(());
                drop(begins);
                let _ended = Ended(status, ended);
                Worker::new(parts).run()
            })?);
        }
        // Who is told that the director is ready finds all of them in their place. One that died on the way has
        // dropped its sender.
        drop(begins);
        let _ = begun.iter().take(workers).count();
        let told_lost = vec![false; workers];
        Ok(Workers { threads, statuses, told_lost, stop, ended })
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

    /// Says so if frames of packet memory have got lost, which would be a defect of ours: a frame is
    /// always in a pool, in a port's rings, or held by a worker on purpose. Once for each worker.
    pub(super) fn check_frames(&mut self) {
        for (index, (status, told)) in self.statuses.iter().zip(&mut self.told_lost).enumerate() {
            let lost = status.lost_frames();
            if lost > 0 && !*told {
                *told = true;
                error!(
                    "worker {index}: {lost} frames of packet memory are lost: please report this"
                );
            }
            debug_assert_eq!(lost, 0, "worker {index} has lost frames");
        }
    }

    /// Stops all of them, and waits until they have; then every frame must be where it belongs.
    ///
    /// # Errors
    /// What one of them ended of.
    pub(super) fn stop(mut self) -> Result<()> {
        self.stop.store(true, Relaxed);
        let mut outcome = Ok(());
        for (index, thread) in self.threads.drain(..).enumerate() {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    outcome = Err(error).with_context(|| format!("worker {index}"));
                }
                Err(_) => outcome = Err(anyhow::anyhow!("worker {index} panicked")),
            }
        }
        for (index, status) in self.statuses.iter().enumerate() {
            if let Some(frames) = status.last_frames() {
                info!("worker {index} has ended; {frames}");
            }
        }
        self.check_frames();
        outcome
    }
}

/// Puts the calling worker before ordinary programs on its core, where the kernel's own forwarding
/// would be too: what the control plane and an operator's commands have to do waits, packets do not.
fn go_first(index: usize) {
    if let Err(error) = netio::set_niceness(NICENESS) {
        debug!("worker {index} goes before no other program: {error} (CAP_SYS_NICE)");
    }
}

/// Gives the calling control thread the workers' place: what it publishes it does under locks that
/// they want as well, and it must not be put off while it has one.
pub(super) fn keep_up() {
    // Without CAP_SYS_NICE all threads have the same place.
    let _ = netio::set_niceness(NICENESS);
}

/// Marks a worker as ended however its thread ends, by panic too.
struct Ended(Arc<WorkerStatus>, Arc<Notify>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.ended.store(true, Relaxed);
        self.1.notify_one();
    }
}

/// ", on core 2" or ", on cores 2, 3".
fn list(cores: &[usize]) -> String {
    let numbers: Vec<_> = cores.iter().map(ToString::to_string).collect();
    match cores {
        [] => String::new(),
        [_] => format!(", on core {}", numbers[0]),
        _ => format!(", on cores {}", numbers.join(", ")),
    }
}
