//! The running director: opens the ports, starts the workers, follows the kernel, the configuration
//! file and the operator, and puts everything back when it ends.

mod addresses;
mod apply;
mod cores;
mod health;
mod lock;
mod neighbours;
mod operations;
mod ports;
mod reload;
mod rouser;
mod sandbox;
mod save;
mod ways;
mod workers;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use arc_swap::ArcSwap;
use netio::ServiceManager;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, info, warn};

use crate::config::{self, Mode};
use crate::control;
use crate::dispatch::Shared;
use crate::dispatch::traffic::ESTIMATE_INTERVAL;
use crate::keeper::Keeper;
use crate::network::{Follower, Network};
use crate::node;
use crate::table::Table;
use addresses::Addresses;
use apply::Course;
use health::Health;
pub(crate) use lock::interfaces;
use neighbours::Neighbours;
use operations::Director;
use ports::Opened;
use rouser::Rouser;
pub(crate) use sandbox::Sandbox;
use workers::Workers;

/// How often the control plane looks after what has no event of its own.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// Files that may be open at most, as the unit says: a check of a server, a client of the control API and a
/// scrape of the metrics are one each, and a shell's 1024 are soon too few.
const OPEN_FILES: u64 = 65_536;

/// Raises the limit as far as that, where it is lower and may be raised.
fn allow_open_files() {
    use nix::sys::resource::{Resource::RLIMIT_NOFILE, getrlimit, setrlimit};
    let raised =
        getrlimit(RLIMIT_NOFILE).and_then(|(now, most)| match now < OPEN_FILES.min(most) {
            true => setrlimit(RLIMIT_NOFILE, OPEN_FILES.min(most), most),
            false => Ok(()),
        });
    if let Err(error) = raised {
        warn!("the limit of open files stays as it is: {error}");
    }
}

/// Runs a director with the configuration file `path` until SIGTERM or SIGINT.
///
/// # Errors
/// What kept it from starting, or made it end: wrong file, missing capability, missing or busy
/// interface, a port that is gone.
pub async fn run(path: PathBuf) -> Result<()> {
    allow_open_files();
    // Before anything is set up: a signal from now on is answered when the director is ready.
    let signals = Signals::new()?;
    let mark = save::look(&path);
    let config = config::load(&path)?;
    // Before there is another thread.
    let sandbox = Sandbox::begin(&config, &path);
    if config.mode == Mode::Nlb {
        return node::run(path, config, sandbox, signals).await;
    }
    let epoch = Instant::now();
    let (listener, socket) = control::socket::bind(&config.control)?;
    let metrics = match config.metrics {
        Some(address) => Some(control::exporter::bind(address).await?),
        None => None,
    };
    let _locks = interfaces(&config.interfaces)?;
    let (follower, network) =
        Follower::start().await.context("cannot follow the kernel's network tables")?;

    let shared = Shared::new(config.max_connections).with_ftp(config.ftp_ports.clone());
    let shared = Arc::new(shared);
    let local = network.clone();
    let is_local = Box::new(move |address| local.load().is_local(address));
    let table = Arc::new(Table::new(shared.clone(), is_local, seed()));
    if let Some(timeouts) = config.timeouts {
        shared.timeouts.set(timeouts);
    }

    let mut opened = ports::open(&config)?;
    info!("{}", opened.summary);
    let cpus = &config.cpus;
    let _keeper =
        Keeper::start(&shared, move || sandbox.enter_thread()).context("a thread for memory")?;
    let mut workers =
        Workers::start(&mut opened, cpus, sandbox, &table, &network, &follower, epoch)?;
    reload::first(&table, &config, epoch)?;
    let way = crate::health::path::Path::new(network.clone(), follower.resolver());
    let health = Arc::new(Health::begin(&config, &table, way, epoch)?);
    let mut addresses = Addresses::new(&config, network.clone())?;
    let control = config.control.clone();
    let course = Arc::new(Course::new(config));
    let director = Arc::new(Director::new(operations::Parts {
        mark,
        resolver: follower.resolver(),
        path: path.clone(),
        epoch,
        table: table.clone(),
        network: network.clone(),
        ports: opened.views(),
        packets: opened.summary.trim_start_matches("packets: ").to_owned(),
        statuses: workers.statuses.clone(),
        health: health.clone(),
        course: course.clone(),
        sandbox,
    }));
    // Steering comes last: from here on packets arrive. A table that does not fit ends us here; at
    // run time the operator is told, and what is there goes on.
    opened.steer(&table.tidings(), table.marked())?;
    let mut running = Running {
        opened: &mut opened,
        table: &table,
        addresses: &mut addresses,
        network: &network,
        follower: &follower,
        workers: &mut workers,
        director: &director,
        health: &health,
        epoch,
        course,
        behind: false,
        neighbours: Neighbours::default(),
        rouser: Rouser::default(),
        sandbox,
    };
    running.neighbours.have_changed();
    running.follow();
    let server =
        tokio::spawn(control::server::serve_with_metrics(listener, metrics, director.clone()));
    workers::keep_up();
    sandbox.close();
    info!("ready: {} services, control socket {}", director.service_count(), control.display());
    signals.manager.ready(&running.about());
    let outcome = running.serve(signals).await;

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

/// What an operator or a service manager asks for.
pub(crate) struct Signals {
    pub(crate) terminate: Signal,
    pub(crate) interrupt: Signal,
    pub(crate) hangup: Signal,
    /// Who is told what becomes of it.
    pub(crate) manager: ServiceManager,
}

impl Signals {
    fn new() -> Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            manager: ServiceManager::from_environment(),
        })
    }
}

impl Signals {
    /// Says that the end has come, and why.
    ///
    /// # Errors
    /// None: this is how the control loop ends well.
    pub(crate) fn end(&self, why: &str) -> Result<()> {
        info!("{why}: ending");
        self.manager.stopping();
        Ok(())
    }
}

/// The control plane, with the parts that [`run`] owns.
struct Running<'a> {
    opened: &'a mut Opened,
    table: &'a Arc<Table>,
    addresses: &'a mut Addresses,
    network: &'a ArcSwap<Network>,
    follower: &'a Follower,
    workers: &'a mut Workers,
    director: &'a Arc<Director>,
    health: &'a Health,
    epoch: Instant,
    course: Arc<Course>,
    /// Whether the kernel has not been told all of the last change.
    behind: bool,
    neighbours: Neighbours,
    rouser: Rouser,
    sandbox: Sandbox,
}

impl Running<'_> {
    /// What a service manager shows beside the state.
    fn about(&self) -> String {
        format!("{} services", self.director.service_count())
    }

    /// The control plane's loop.
    async fn serve(mut self, mut signals: Signals) -> Result<()> {
        let changed = self.table.changed();
        let mut publications = self.follower.publications();
        let mut housekeeping = interval(HOUSEKEEPING);
        let mut estimation = interval(ESTIMATE_INTERVAL);
        let mut rousing = interval(rouser::PERIOD);
        rousing.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = signals.terminate.recv() => return signals.end("SIGTERM"),
                _ = signals.interrupt.recv() => return signals.end("SIGINT"),
                _ = signals.hangup.recv() => {
                    signals.manager.reloading();
                    reload::again(self.director, self.table, &self.course, self.sandbox, self.epoch);
                    self.health.reload(&self.course.config());
                    signals.manager.ready(&self.about());
                }
                () = self.course.due(self.epoch) => self.director.expire(),
                () = changed.notified() => {
                    self.table.end_orphans();
                    self.follow();
                }
                () = self.workers.ended.notified() => self.workers.check()?,
                _ = housekeeping.tick() => {
                    self.table.sweep(self.epoch.elapsed());
                    self.health.reconcile();
                    self.workers.check_frames();
                    self.addresses.announce_again();
                    // A route to a server is another one, or an address of ours is gone.
                    let moved = publications.has_changed().unwrap_or(false);
                    if moved {
                        publications.mark_unchanged();
                        self.neighbours.have_changed();
                    }
                    if moved || self.behind || self.neighbours.are_behind() {
                        self.follow();
                    }
                }
                _ = estimation.tick() => self.table.estimate(),
                _ = rousing.tick(), if self.table.has_eager_work() => self.rouse(),
            }
        }
    }

    /// Has the kernel follow the table. What cannot be done is tried again by housekeeping.
    fn follow(&mut self) {
        let failed = self.follow_table().err();
        let director = &self.director;
        match failed {
            Some(error) => {
                // The table has changed and the kernel was not told in full: say so, loudly.
                let message = format!("{error:#}");
                if director.warn("kernel", message.clone()) {
                    error!("{message}");
                }
                self.behind = true;
            }
            None => {
                director.clear_warning("kernel");
                self.behind = false;
            }
        }
    }

    /// Goes on rousing silent clients of servers that have failed.
    fn rouse(&mut self) {
        let silent = self.table.take_eager_work(rouser::AT_ONCE);
        match self.rouser.rouse(&silent) {
            Err(error) => {
                let message = format!(
                    "silent clients of failed servers are not roused (teardown = \"eager\"): a raw \
                     socket cannot be opened: {error}; it takes the capability CAP_NET_RAW"
                );
                if self.director.warn("eager", message.clone()) {
                    error!("{message}");
                }
            }
            Ok(()) if silent.is_empty() => {}
            Ok(()) => self.director.clear_warning("eager"),
        }
    }

    /// Brings what depends on the table up to date: steering, VIPs, neighbours. One that fails does
    /// not keep the others from it.
    fn follow_table(&mut self) -> Result<()> {
        let change = self.table.last_change();
        let tidings = self.table.tidings();
        let steered = self.opened.steer(&tidings, self.table.marked());
        let followed = self.addresses.follow(|| self.table.vips());
        self.table.has_been_followed(change);
        if tidings.other_servers {
            self.neighbours.have_changed();
        }
        self.neighbours.follow(self.table, &self.network.load(), &self.follower.resolver());
        steered.and(followed)
    }
}

/// A seed that differs from run to run.
fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
