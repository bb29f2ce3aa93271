//! A host of a cluster without a dispatcher (`mode = "nlb"`).
//!
//! ```text
//!    heartbeats <--> segment <--> host: membership ---- maps ----> filter (XDP)
//!    who has VIP? -> segment           ^      ^                      |
//!    dirctl, curl -> control ----------'      '--- flows: sockets, pins
//! ```
//!
//! The clients' packets never come here: the filter passes this host's share to the kernel's own
//! stack, where the services listen. What runs here puts the virtual addresses on the host without
//! telling the neighbours, tells them the cluster's Ethernet address instead, and keeps the filter
//! where [`nlb::membership`] is.
//!
//! `identity` who this host is, `plan` what the file comes to, `segment` the sockets, `sockets` and
//! `flows` what connections it holds, `host` the mind; `operations` what operators ask of it,
//! `answers` what it says to that, `explain` where a packet goes, `remote` the same from afar,
//! `reload` the file once more.

mod about;
mod answers;
mod explain;
mod flows;
mod host;
mod identity;
mod operations;
pub(crate) mod plan;
mod reload;
mod remote;
mod segment;
mod sockets;

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::nlb::delivery::Delivery;
use ::nlb::host::Nonce;
use ::nlb::key::ClusterKey;
use ::nlb::membership::{self, Command, Membership, Settings};
use anyhow::{Context, Result};
use arc_swap::ArcSwap;
use netio::bpf::XdpMode;
use netio::interface;
use nix::time::{ClockId, clock_gettime};
use realserver_agent::host::Preparation;
use realserver_agent::key_file;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tracing::{info, warn};

use crate::config::Config;
use crate::config::nlb::{InitialState, Isolated, Key, Nlb};
use crate::control;
use crate::filter::{Capacity, Filter, Place};
use crate::network::{Follower, Network};
use crate::process::{Sandbox, Signals, interfaces};
use about::About;
use host::Host;
use identity::Identity;
use operations::Control;
use reload::Reload;
use remote::Remote;
use segment::Segment;
use sockets::Held;

/// How often what has no event of its own is looked after.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// How often the virtual addresses are announced after a start, once a second.
const ANNOUNCEMENTS: u32 = 5;

/// Runs a host with the configuration of the file `path` until SIGTERM or SIGINT.
///
/// # Errors
/// What kept it from starting, or made it end.
pub(crate) async fn run(
    path: PathBuf,
    config: Config,
    sandbox: Sandbox,
    mut signals: Signals,
) -> Result<()> {
    let (listener, socket) = control::socket::bind(&config.control)?;
    let metrics = match config.metrics {
        Some(address) => Some(control::exporter::bind(address).await?),
        None => None,
    };
    let (follower, network) =
        Follower::start().await.context("cannot follow the kernel's network tables")?;
    let identity = Identity::find(&network.load(), &config.nlb.hosts)?;
    let _lock = interfaces(std::slice::from_ref(&identity.interface))?;
    let key = secret(&config.nlb)?;
    let vips = plan::vips(&config);
    let rules = plan::rules(&config)?;
    let primary = config.nlb.primary.context("nlb.primary is missing")?;
    let segment = Segment::open(&identity, config.nlb.delivery, primary, &vips)?;

    let policy = host::policy(&identity, segment.cluster(), &config.nlb, vips.clone(), rules, &key);
    let mut filter = Filter::open(&policy, Capacity::default())?;
    let how = attach(&mut filter, &identity)?;
    // Only now: without the filter the stack would answer what is others' business.
    let mut quiet = Preparation::new()?;
    if config.nlb.delivery != Delivery::Unicast {
        quiet.take_nothing_of_groups(&identity.interface);
    }
    let prepared = quiet.add_vips(&vips).await;

    sandbox.close();

    // From here on time counts: others would miss a host that joined before it was ready.
    let settings = settings(&config.nlb, &identity, key.clone(), primary);
    let wanted = plan::plan(&config, &policy.rules, identity.host, generation(&path));
    let membership = Membership::new(settings, wanted, clock());
    let host = Host::new(membership, filter, policy, key, config.nlb.udp_pin);
    let host = Arc::new(Mutex::new(host));
    info!(
        "ready: host {} on {} ({how}), cluster {primary} at {}",
        identity.host,
        identity.interface,
        segment::show(segment.cluster())
    );
    let wake = Arc::new(Notify::new());
    let remote_control = config.nlb.remote_control;
    let about = About::new(path.clone(), &config, &identity, name());
    let again = Reload::new(&path, identity.host, config);
    let control = Arc::new(Control::new(host.clone(), wake.clone(), about, again));
    let mut node = Node {
        host,
        wake,
        control: control.clone(),
        segment,
        identity,
        network,
        dump: None,
        announcements: ANNOUNCEMENTS,
    };
    let outcome = match prepared {
        Ok(()) => {
            let from_afar = remote_control.then(|| control.clone());
            let server =
                tokio::spawn(control::server::serve_with_metrics(listener, metrics, control));
            let remote = tokio::spawn(from_afar_to(from_afar, primary));
            signals.manager.ready(&node.identity.about());
            let outcome = node.serve(&follower, &mut signals).await;
            server.abort();
            remote.abort();
            outcome
        }
        Err(error) => Err(error),
    };
    node.leave();
    quiet.undo().await;
    drop(socket);
    info!("ended");
    outcome
}

/// Serves remote control, if it is wanted. That the port is taken is told and ends nothing.
async fn from_afar_to(control: Option<Arc<Control>>, primary: IpAddr) {
    let Some(control) = control else { return };
    let (host, addresses) = (control.about.host, control.about.addresses.clone());
    let bound = Remote::bind(host, control.key(), primary, &addresses, Remote::PORT).await;
    match bound {
        Ok(remote) => remote.serve(control).await,
        Err(error) => {
            warn!("{error:#}");
            control.about.warn("remote", format!("no remote control: {error:#}"));
        }
    }
}

/// The loop's own things.
struct Node {
    host: Arc<Mutex<Host>>,
    /// Somebody has changed something behind the loop's back.
    wake: Arc<Notify>,
    control: Arc<Control>,
    segment: Segment,
    identity: Identity,
    network: Arc<ArcSwap<Network>>,
    /// A look at the kernel's sockets that is under way.
    dump: Option<JoinHandle<std::io::Result<Vec<Held>>>>,
    announcements: u32,
}

impl Node {
    async fn serve(&mut self, follower: &Follower, signals: &mut Signals) -> Result<()> {
        let mut publications = follower.publications();
        let mut housekeeping = interval(HOUSEKEEPING);
        housekeeping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let next = self.drive()?;
            let answering = lock(&self.host).answers();
            let host = self.host.clone();
            let mut heard = |payload: &[u8]| lock(&host).membership.receive(payload, clock());
            tokio::select! {
                _ = signals.terminate.recv() => return signals.end("SIGTERM"),
                _ = signals.interrupt.recv() => return signals.end("SIGINT"),
                _ = signals.hangup.recv() => {
                    signals.manager.reloading();
                    drop(self.control.reload("SIGHUP"));
                    signals.manager.ready(&self.identity.about());
                }
                () = self.wake.notified() => {}
                turn = self.segment.turn(answering, &mut heard) => {
                    turn.with_context(|| format!("interface {}", self.identity.interface))?;
                }
                counted = counted(&mut self.dump) => {
                    self.dump = None;
                    match counted {
                        Ok(held) => lock(&self.host).take_flows(&held, clock(), clock())?,
                        Err(error) => warn!("the kernel's sockets cannot be listed: {error}"),
                    }
                }
                _ = housekeeping.tick() => self.keep_house()?,
                Ok(()) = publications.changed() => self.look_at_network(),
                () = sleep_until(Instant::now() + next) => lock(&self.host).membership.tick(clock()),
            }
        }
    }

    /// Does what has become due, and says when to come back at the latest.
    fn drive(&mut self) -> Result<Duration> {
        let mut host = lock(&self.host);
        if host.membership.flows_wanted() && self.dump.is_none() {
            self.dump = Some(tokio::task::spawn_blocking(sockets::held));
        }
        host.follow()?;
        while let Some(heartbeat) = host.membership.take_heartbeat(clock()) {
            self.segment.beat(&heartbeat);
        }
        host.tell();
        let due = host.membership.next_tick();
        Ok(due.map_or(HOUSEKEEPING, |due| due.saturating_sub(clock())))
    }

    fn keep_house(&mut self) -> Result<()> {
        lock(&self.host).keep_house(clock())?;
        if self.dump.is_none() {
            self.dump = Some(tokio::task::spawn_blocking(sockets::held));
        }
        if self.announcements > 0 && lock(&self.host).answers() {
            self.announcements -= 1;
            self.segment.announce();
        }
        self.look_at_network();
        Ok(())
    }

    /// Link and addresses may be others.
    fn look_at_network(&mut self) {
        let network = self.network.load();
        let up = network
            .interface(self.identity.index)
            .is_some_and(|interface| interface.up && interface.carrier);
        let mut host = lock(&self.host);
        host.membership.link(up, clock());
        let vips = &host.policy().vips;
        let own: Vec<IpAddr> = network
            .addresses()
            .map(|address| address.address)
            .filter(|address| !address.is_loopback() && !vips.contains(address))
            .collect();
        host.set_addresses(own);
    }

    /// Says goodbye to the others, so that they need not wait.
    fn leave(&mut self) {
        let mut host = lock(&self.host);
        host.membership.command(Command::Stop, clock());
        while let Some(heartbeat) = host.membership.take_heartbeat(clock()) {
            self.segment.beat(&heartbeat);
        }
        if let Err(error) = host.follow() {
            warn!("{error:#}");
        }
        host.tell();
    }
}

/// Waits for the look at the kernel's sockets, if there is one.
async fn counted(
    dump: &mut Option<JoinHandle<std::io::Result<Vec<Held>>>>,
) -> std::io::Result<Vec<Held>> {
    match dump {
        Some(dump) => dump.await.map_err(std::io::Error::other)?,
        None => std::future::pending().await,
    }
}

fn lock(host: &Mutex<Host>) -> std::sync::MutexGuard<'_, Host> {
    host.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `CLOCK_MONOTONIC`, which the filter stamps its notes with too.
fn clock() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

fn settings(nlb: &Nlb, identity: &Identity, key: ClusterKey, cluster: IpAddr) -> Settings {
    Settings {
        cluster,
        key,
        host: identity.host,
        nonce: nonce(),
        name: name(),
        addresses: identity.addresses.clone(),
        period: nlb.period,
        tolerance: nlb.tolerance,
        handover_timeout: nlb.handover_timeout,
        isolated: match nlb.isolated {
            Isolated::Serve => membership::Isolated::Serve,
            Isolated::Stop => membership::Isolated::Stop,
        },
        initial: match nlb.initial_state {
            InitialState::Started => membership::Initial::Started,
            InitialState::Stopped => membership::Initial::Stopped,
            InitialState::Suspended => membership::Initial::Suspended,
        },
    }
}

/// The time of this start, with chance below the microsecond.
fn nonce() -> Nonce {
    use std::hash::{BuildHasher, Hasher};
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let chance = std::collections::hash_map::RandomState::new().build_hasher().finish();
    Nonce(((since.as_micros() as u64) << 12 | chance & 0xfff).max(1))
}

fn name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// For people: when the file was last written, seconds since 1970.
fn generation(path: &Path) -> u64 {
    let written = path.metadata().and_then(|file| file.modified()).ok();
    written.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |time| time.as_secs())
}

/// The cluster's key, from the file or from a file of its own.
pub(crate) fn secret(nlb: &Nlb) -> Result<ClusterKey> {
    let bytes = match nlb.key.as_ref().context("nlb.key is missing")? {
        Key::Text(text) => text.clone().into_bytes(),
        Key::File(path) => {
            let read = key_file::bytes(path).with_context(|| {
                format!(
                    "nlb.key_file {}: make it with `openssl rand -hex 32`, the same on every host",
                    path.display()
                )
            })?;
            let mode = path.metadata().map_or(0, |file| file.permissions().mode());
            if mode & 0o007 != 0 {
                warn!("nlb.key_file {0} can be read by everybody: chmod 600 {0}", path.display());
            }
            match read.strip_suffix(b"\n") {
                Some(line) => line.to_vec(),
                None => read,
            }
        }
    };
    let from = match &nlb.key {
        Some(Key::File(path)) => format!("nlb.key_file {}", path.display()),
        _ => "nlb.key".to_owned(),
    };
    ClusterKey::new(&bytes).with_context(|| from)
}

/// Puts the filter before the interface, in the driver if that can.
fn attach(filter: &mut Filter, identity: &Identity) -> Result<&'static str> {
    let ifindex = identity.index;
    let veth = interface::driver(&identity.interface)?.as_deref() == Some("veth");
    let native = Place { ifindex, mode: XdpMode::Native, claim: veth };
    let Err(error) = filter.attach(native) else { return Ok("filter in the driver") };
    let generic = Place { ifindex, mode: XdpMode::Generic, claim: true };
    filter.attach(generic).with_context(|| format!("in the driver: {error:#}"))?;
    Ok("filter at the entry to the stack")
}
