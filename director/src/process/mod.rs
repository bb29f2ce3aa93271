//! The running director: opens the ports, starts the workers, follows the kernel, the configuration
//! file and the operator, and puts everything back when it ends.

mod addresses;
mod lock;
mod operations;
mod ports;
mod reload;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use arc_swap::ArcSwap;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info, warn};

use crate::config::{self, Config, Mode};
use crate::control;
use crate::dispatch::Shared;
use crate::dispatch::traffic::ESTIMATE_INTERVAL;
use crate::network::{Follower, Network};
use crate::table::Table;
use crate::worker::{Worker, WorkerParts, WorkerStatus};
use addresses::Addresses;
use operations::Director;
use ports::Opened;

/// How often the control plane looks after what has no event of its own.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// Runs a director with the configuration file `path` until SIGTERM or SIGINT.
///
/// # Errors
/// What kept it from starting, or made it end: wrong file, missing capability, missing or busy
/// interface, a port that is gone.
pub async fn run(path: PathBuf) -> Result<()> {
    let config = config::load(&path)?;
    if config.mode == Mode::Nlb {
        bail!("{}: mode = \"nlb\" is not built yet; mode = \"dispatcher\" is", path.display());
    }
    let epoch = Instant::now();
    let (listener, socket) = control::socket::bind(&config.control)?;
    let _locks = lock::interfaces(&config.interfaces)?;
    let (follower, network) =
        Follower::start().await.context("cannot follow the kernel's network tables")?;

    let shared = Arc::new(Shared::new(config.max_connections));
    let local = network.clone();
    let is_local = Box::new(move |address| local.load().is_local(address));
    let table = Arc::new(Table::new(shared.clone(), is_local, seed()));
    if let Some(timeouts) = config.timeouts {
        shared.timeouts.set(timeouts);
    }

    let mut opened = ports::open(&config)?;
    info!("{}", opened.summary);
    let workers = Workers::start(&mut opened, &shared, &table, &network, &follower, epoch)?;
    let director = Arc::new(Director::new(
        path.clone(),
        epoch,
        table.clone(),
        opened.views(),
        workers.statuses.clone(),
    ));
    reload::first(&table, &config, epoch)?;
    let mut addresses = Addresses::new(&config, network.clone())?;
    // Steering comes last: from here on packets arrive.
    follow_table(&mut opened, &table, &mut addresses, &network, &follower)?;
    let server = tokio::spawn(control::server::serve(listener, director.clone()));
    info!(
        "ready: {} services, control socket {}",
        director.service_count(),
        config.control.display()
    );

    let outcome = serve(
        &mut opened,
        &table,
        &mut addresses,
        &network,
        &follower,
        &workers,
        &director,
        epoch,
        config,
    )
    .await;

    // The kernel gets the traffic back first, then everything else is put away.
    opened.detach();
    server.abort();
    let stopped = workers.stop();
    addresses.remove_all();
    drop(socket);
    info!("ended");
    // A worker that has ended knows why better than who noticed it.
    stopped.and(outcome)
}

/// The control plane's loop.
#[allow(clippy::too_many_arguments, reason = "the parts that run() owns")]
async fn serve(
    opened: &mut Opened,
    table: &Arc<Table>,
    addresses: &mut Addresses,
    network: &ArcSwap<Network>,
    follower: &Follower,
    workers: &Workers,
    director: &Arc<Director>,
    epoch: Instant,
    mut config: Config,
) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let changed = table.changed();
    let mut housekeeping = tokio::time::interval(HOUSEKEEPING);
    let mut estimation = tokio::time::interval(ESTIMATE_INTERVAL);
    loop {
        tokio::select! {
            _ = terminate.recv() => { info!("SIGTERM: ending"); return Ok(()); }
            _ = interrupt.recv() => { info!("SIGINT: ending"); return Ok(()); }
            _ = hangup.recv() => reload::again(director, table, &mut config, epoch),
            () = changed.notified() => {
                if let Err(error) = follow_table(opened, table, addresses, network, follower) {
                    // The table has changed and the kernel was not told in full: say so, loudly.
                    error!("{error:#}");
                    director.warn("steering", format!("{error:#}"));
                } else {
                    director.clear_warning("steering");
                }
            }
            _ = housekeeping.tick() => {
                table.sweep(epoch.elapsed());
                workers.check()?;
            }
            _ = estimation.tick() => table.estimate(),
        }
    }
}

/// Brings what depends on the table up to date: steering, VIPs, neighbours.
fn follow_table(
    opened: &mut Opened,
    table: &Table,
    addresses: &mut Addresses,
    network: &ArcSwap<Network>,
    follower: &Follower,
) -> Result<()> {
    opened.steer(&table.interests())?;
    if let Err(error) = addresses.follow(&table.vips()) {
        warn!("{error:#}");
    }
    let network = network.load();
    let next_hops = table.server_addresses().into_iter().filter_map(|server| {
        network.route(server).map(|route| (route.interface, route.next_hop(server)))
    });
    follower.resolver().keep_resolved(next_hops);
    Ok(())
}

/// The packet threads.
struct Workers {
    threads: Vec<JoinHandle<std::io::Result<()>>>,
    statuses: Vec<Arc<WorkerStatus>>,
    stop: Arc<AtomicBool>,
}

impl Workers {
    fn start(
        opened: &mut Opened,
        shared: &Arc<Shared>,
        table: &Table,
        network: &Arc<ArcSwap<Network>>,
        follower: &Follower,
        epoch: Instant,
    ) -> Result<Workers> {
        let stop = Arc::new(AtomicBool::new(false));
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
            threads.push(thread.spawn(move || {
                pin(index);
                let _ended = Ended(status);
                Worker::new(parts).run()
            })?);
        }
        Ok(Workers { threads, statuses, stop })
    }

    /// Fails when a worker has ended by itself.
    fn check(&self) -> Result<()> {
        match self.statuses.iter().position(|status| status.ended.load(Relaxed)) {
            Some(index) => bail!("worker {index} has ended"),
            None => Ok(()),
        }
    }

    fn stop(self) -> Result<()> {
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
struct Ended(Arc<WorkerStatus>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.ended.store(true, Relaxed);
    }
}

/// Keeps a worker on one core. Not being allowed to is no reason to stop.
fn pin(index: usize) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut set = nix::sched::CpuSet::new();
    if set.set(index % cores).is_ok()
        && let Err(errno) = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)
    {
        warn!("worker {index} is not pinned to a core: {errno}");
    }
}

/// A seed that differs from run to run.
fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
