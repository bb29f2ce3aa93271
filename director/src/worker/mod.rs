//! A worker: one thread that carries packets. Its whole life is [`Worker::breath`].
//!
//! It owns its ports (one queue of each interface), the packet memory they share, and a
//! [`Dispatcher`]. It never blocks but in `poll`, takes no lock of the control plane, and reads the
//! clock once per breath. Configuration, services and the kernel's network tables reach it as
//! snapshots, loaded once per breath.

mod batch;
mod blocks;
mod early;
mod egress;
mod histogram;
mod pieces;
mod recent;
mod routes;
mod status;
mod sweep;
pub mod tap;
mod waiting;
mod watcher;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Cache};
use netio::{Frame, Pool, Port};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::dispatch::established::Sighting;
use crate::dispatch::service::Services;
use crate::dispatch::verdict::{DropReason, Method, PassReason, Verdict};
use crate::dispatch::{Dispatcher, Shared};
use crate::network::{Network, Resolver};
use crate::steer::{KeySet, Mark};
use early::Early;
use egress::{Counted, Departure};
use forwarding::{Packet, checksum, parse};
use pieces::Pieces;
use routes::KernelRoutes;
pub use status::{FrameLedger, PortStatus, WorkerStatus};
use sweep::Sweep;
use tap::Outcome;
use waiting::Waiting;
use watcher::Watcher;

/// Frames taken from a port in one breath: as many as a word has bits.
const BATCH: usize = u64::BITS as usize;

/// Breaths at most when told to stop: rings are that long, and an AF_PACKET port, which sees
/// packets as long as it is open, must not keep us.
const LAST_BREATHS: usize = 64;

/// How often timers are looked at, and the longest sleep.
const TICK: Duration = Duration::from_millis(100);

/// One queue of one interface, as a worker holds it.
pub struct WorkerPort {
    /// The way in and out.
    pub port: Box<dyn Port>,
    /// Index of the interface.
    pub interface: u32,
    /// Gives packets to the kernel's stack as if they had arrived here.
    pub upcall: Option<Upcall>,
    /// On a port that sees copies of what the kernel sees (AF_PACKET): which packets are ours.
    pub filter: Option<Filter>,
}

/// See [`WorkerPort::filter`].
pub struct Filter {
    /// What is steered to us.
    pub keys: Arc<ArcSwap<KeySet>>,
    /// What we have given to the kernel ourselves bears this.
    pub mark: Option<Mark>,
}

impl Filter {
    fn wants(&self, frame: &[u8]) -> bool {
        !self.mark.is_some_and(|mark| mark.is_on(frame)) && self.keys.load().wants(frame)
    }
}

/// See [`WorkerPort::upcall`].
pub type Upcall = Box<dyn FnMut(&[u8]) -> std::io::Result<()> + Send>;

/// What a worker is made of.
pub struct WorkerParts {
    /// Its number.
    pub index: usize,
    /// How many there are.
    pub workers: usize,
    /// Its ports.
    pub ports: Vec<WorkerPort>,
    /// The memory of their packets.
    pub pool: Pool,
    /// Tables shared by all workers.
    pub shared: Arc<Shared>,
    /// Services.
    pub services: Arc<ArcSwap<Services>>,
    /// The kernel's tables.
    pub network: Arc<ArcSwap<Network>>,
    /// Asks the kernel to resolve a next hop.
    pub resolver: Resolver,
    /// Start of the process's time.
    pub epoch: Instant,
    /// Where the worker tells how it is.
    pub status: Arc<WorkerStatus>,
    /// Set when it shall end.
    pub stop: Arc<AtomicBool>,
}

/// See the module.
pub struct Worker {
    ports: Vec<WorkerPort>,
    /// Frames to be sent, by port.
    out: Vec<Vec<Frame>>,
    pool: Pool,
    dispatcher: Dispatcher,
    shared: Arc<Shared>,
    services: Cache<Arc<ArcSwap<Services>>, Arc<Services>>,
    routes: KernelRoutes,
    waiting: Waiting,
    early: Early,
    pieces: Pieces,
    watcher: Watcher,
    epoch: Instant,
    next_tick: Duration,
    status: Arc<WorkerStatus>,
    stop: Arc<AtomicBool>,
    batch: Vec<Frame>,
    /// What is known of the plain packets of a batch, in their order.
    sightings: Box<[Sighting; BATCH]>,
    /// Where the sweep of the connection table goes on, and where it is through.
    sweep: Sweep,
}

impl Worker {
    /// Puts a worker together.
    pub fn new(parts: WorkerParts) -> Worker {
        let interfaces = parts.ports.iter().map(|port| port.interface).collect();
        let seed = (parts.index as u16).wrapping_mul(0x9e37);
        Worker {
            out: parts.ports.iter().map(|_| Vec::with_capacity(BATCH * 2)).collect(),
            ports: parts.ports,
            pieces: Pieces::new(&parts.pool),
            pool: parts.pool,
            dispatcher: Dispatcher::new(parts.shared.clone(), seed),
            shared: parts.shared,
            services: Cache::new(parts.services),
            routes: KernelRoutes::new(parts.network, parts.resolver, interfaces),
            waiting: Waiting::default(),
            early: Early::default(),
            watcher: Watcher::new(),
            epoch: parts.epoch,
            next_tick: Duration::ZERO,
            status: parts.status,
            stop: parts.stop,
            batch: Vec::with_capacity(BATCH),
            sightings: Box::new([Sighting::default(); BATCH]),
            sweep: Sweep::of_worker(parts.index, parts.workers),
        }
    }

    /// Breathes until told to stop, and then until what has been steered here by then is sent.
    ///
    /// # Errors
    /// When a port is gone for good.
    pub fn run(mut self) -> std::io::Result<()> {
        let outcome = self.work();
        self.waiting.give_back(&mut self.pool);
        self.early.give_back(&mut self.pool);
        self.status.conclude(self.frames(), &self.ports);
        outcome
    }

    fn work(&mut self) -> std::io::Result<()> {
        // When a breath began in which packets came.
        let mut busy_since = None;
        while !self.stop.load(Relaxed) {
            let now = self.epoch.elapsed();
            if let Some(began) = busy_since {
                self.status.breaths.record(microseconds(now.saturating_sub(began)));
            }
            let received = self.breath(now)?;
            busy_since = (received > 0).then_some(now);
            if received > 0 {
                self.status.batches.record(received as u64);
            } else if !self.ports.iter().any(|port| port.port.is_lively()) {
                self.sleep(now)?;
            }
        }
        for _ in 0..LAST_BREATHS {
            if self.breath(self.epoch.elapsed())? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Receive, handle, flush, tick. Returns how many packets came in.
    pub fn breath(&mut self, now: Duration) -> std::io::Result<usize> {
        let services = Arc::clone(self.services.load());
        self.routes.refresh();
        self.watcher.refresh(now, &self.status.taps);
        if self.dispatcher.refresh() {
            self.routes.forget_servers(self.dispatcher.bindings());
        }
        let mut received = 0;
        for port in 0..self.ports.len() {
            let way_in = &mut self.ports[port].port;
            received += way_in
                .receive(&mut self.pool, &mut self.batch, BATCH)
                .map_err(|error| gone(way_in, &error))?;
            let mut batch = std::mem::take(&mut self.batch);
            self.handle(now, &services, port, &mut batch);
            self.batch = batch;
        }
        if !self.early.is_empty() {
            self.retry_early(now, &services);
        }
        if self.routes.have_changed() || now >= self.next_tick {
            self.retry_waiting(now);
        }
        for (port, out) in self.ports.iter_mut().zip(&mut self.out) {
            let port = &mut port.port;
            let sent = match out.is_empty() {
                true => Ok(()),
                false => port.transmit(&mut self.pool, out),
            };
            sent.and_then(|()| port.flush(&mut self.pool)).map_err(|error| gone(port, &error))?;
        }
        if now >= self.next_tick {
            self.tick(now);
        } else if received < BATCH {
            self.dispatcher.settle();
        }
        self.sweep.go_on(&self.shared.connections, now);
        Ok(received)
    }

    /// Decides on a packet that came by port number `port` at `arrived`.
    fn decide(
        &mut self,
        now: Duration,
        services: &Services,
        port: usize,
        mut frame: Frame,
        arrived: Duration,
    ) {
        if self.watcher.is_there() {
            self.watcher.remember(port, self.pool.bytes(&frame));
        }
        let (start, len) = (frame.start(), frame.len());
        let mut packet = Packet::new(self.pool.chunk_mut(&mut frame), start, len);
        let verdict = self.dispatcher.handle(now, services, &mut self.routes, &mut packet);
        let (start, len) = (packet.start(), packet.len());
        if self.watcher.is_there() {
            self.show(&verdict);
        }
        match verdict {
            Verdict::Transmit { method, path, partial, headers } => {
                self.pool.reshape(&mut frame, start, len);
                let counted = Counted::Forwarded(method);
                self.send(now, frame, Departure { counted, path, partial, headers });
            }
            Verdict::Answer { reason } => {
                self.pool.release(frame);
                self.status.verdicts.dropped(reason);
                self.send_reply(now);
            }
            Verdict::Pass(reason @ PassReason::Fragment) => {
                if let Some(frame) = self.early.hold(port, frame, arrived, now) {
                    self.pass(port, frame, reason);
                }
            }
            Verdict::Pass(reason) => self.pass(port, frame, reason),
            Verdict::Drop(reason) => self.drop(frame, reason),
        }
    }

    /// Shows the verdict on a packet to those who capture; what the kernel's stack is to have is shown
    /// when that has it.
    #[cold]
    fn show(&mut self, verdict: &Verdict) {
        let (outcome, translated) = match *verdict {
            Verdict::Transmit { method, headers, .. } => {
                let from = (headers.protocol, headers.source, headers.source_port);
                (Outcome::Forwarded(method), (method == Method::NatReply).then_some(from))
            }
            Verdict::Answer { reason } => (Outcome::Answered(reason), None),
            Verdict::Drop(reason) => (Outcome::Dropped(reason), None),
            Verdict::Pass(_) => return,
        };
        self.watcher.note(outcome, translated);
    }

    fn drop(&mut self, frame: Frame, reason: DropReason) {
        self.status.verdicts.dropped(reason);
        self.pool.release(frame);
    }

    /// Gives a packet to the kernel's stack, which takes no checksum for granted.
    fn pass(&mut self, port: usize, mut frame: Frame, reason: PassReason) {
        let bytes = self.pool.bytes_mut(&mut frame);
        if let Ok(headers) = parse(bytes) {
            match checksum::partial(bytes, &headers) {
                Some(partial) => checksum::complete(bytes, partial, headers.end),
                None => _ = checksum::complete_sctp(bytes, &headers),
            }
        }
        let passed = match &mut self.ports[port].upcall {
            Some(upcall) => upcall(bytes).is_ok(),
            None => false,
        };
        if self.watcher.is_there() {
            let outcome = match passed {
                true => Outcome::Passed(reason),
                false => Outcome::Dropped(DropReason::PassFailed),
            };
            self.watcher.note(outcome, None);
        }
        if !passed {
            return self.drop(frame, DropReason::PassFailed);
        }
        self.status.verdicts.passed(reason);
        self.pool.release(frame);
    }

    /// Where the frames of its packet memory are.
    pub fn frames(&self) -> FrameLedger {
        FrameLedger {
            capacity: self.pool.capacity(),
            free: self.pool.available(),
            held: self.ports.iter().map(|port| port.port.held()).sum(),
            waiting: self.waiting.len() + self.early.len(),
            in_hand: self.batch.len() + self.out.iter().map(Vec::len).sum::<usize>(),
        }
    }

    /// What is due ten times a second: each worker sees to its share of the table's timers.
    fn tick(&mut self, now: Duration) {
        self.next_tick = now + TICK;
        self.sweep.begin();
        self.dispatcher.settle();
        self.status.report(&self.frames(), &self.ports);
    }

    /// Waits for a packet or the next tick; shortly only, while a packet waits for something else.
    fn sleep(&mut self, now: Duration) -> std::io::Result<()> {
        let until_tick = self.next_tick.saturating_sub(now).as_millis() as u16;
        let at_rest = self.waiting.is_empty() && self.early.is_empty() && self.sweep.is_over();
        let timeout = if at_rest { until_tick.max(1) } else { 1 };
        let ready = self.ports.iter().filter_map(|port| port.port.readiness());
        let mut ready: Vec<PollFd<'_>> =
            ready.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        match poll(&mut ready, PollTimeout::from(timeout)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Rounded up: no breath takes none.
fn microseconds(time: Duration) -> u64 {
    (time.as_nanos() as u64).div_ceil(1000)
}

/// What to say when a port is gone for good.
fn gone(port: &impl Port, error: &std::io::Error) -> std::io::Error {
    let what = port.describe();
    std::io::Error::new(error.kind(), format!("{what}: {error}: was the interface removed?"))
}
