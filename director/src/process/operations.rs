//! The director as the control API sees it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use arc_swap::ArcSwap;
use tracing::{info, warn};

use super::apply::{Course, Kept, NextFile, Scene};
use super::health::Health;
use super::sandbox::Sandbox;
use super::save::{Mark, OwnFile};
use super::ways::KernelWays;
use crate::capture::Feed;
use crate::config::{self, Config};
use crate::control::api::{
    BatchOutcome, ConnectionView, OnRefusal, PortView, Refusal, RefusalKind, ServiceView, Status,
    Timeouts, VerdictCount,
};
use crate::control::events::{Event, EventKind};
use crate::control::explain::{Explanation, Question};
use crate::control::health::ServerHealth;
use crate::control::operations::{Command, Operations};
use crate::control::plan::{
    ApplyRequest, FileApplied, LONGEST_TEXT, Plan, PlanRequest, Saved, Settled, Verdict,
};
use crate::control::workers::{SocketView, StateCount, WorkerView};
use crate::dispatch::connections::SHARDS;
use crate::explain;
use crate::fwmark::Rule;
use crate::health::journal::Journal;
use crate::network::{Network, Resolver};
use crate::table::Table;
use crate::worker::WorkerStatus;
use crate::worker::tap::Wanted;

/// What `ipvsadm -L` shows as `size=`: the kernel's default number of buckets. Ours grows.
const TABLE_SIZE: u32 = 4096;

/// Letters of a file's name at most: as long as a path may be.
const LONGEST_NAME: usize = 4096;

/// What a director is made of, as the control API needs it.
pub(super) struct Parts {
    /// Its own file, and how that was before it was read.
    pub(super) path: PathBuf,
    pub(super) mark: Mark,
    pub(super) epoch: Instant,
    pub(super) table: Arc<Table>,
    pub(super) network: Arc<ArcSwap<Network>>,
    pub(super) resolver: Resolver,
    /// Interface, queue, worker and kind of each port, in the order of the workers' ports.
    pub(super) ports: Vec<PortView>,
    /// How packets are taken, and why not better.
    pub(super) packets: String,
    pub(super) statuses: Vec<Arc<WorkerStatus>>,
    pub(super) health: Arc<Health>,
    pub(super) course: Arc<Course>,
    pub(super) sandbox: Sandbox,
}

/// See the module.
pub(super) struct Director {
    parts: Parts,
    file: OwnFile,
    /// By topic.
    warnings: Mutex<BTreeMap<&'static str, String>>,
    /// What is told of the director's own file, while another one is on trial.
    aside: Mutex<BTreeMap<&'static str, String>>,
}

/// What it is made of is at hand as if it were its own.
impl std::ops::Deref for Director {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl Director {
    pub(super) fn new(parts: Parts) -> Director {
        let file = OwnFile::new(parts.path.clone(), parts.mark);
        Director { file, parts, warnings: Mutex::default(), aside: Mutex::default() }
    }

    /// The director's own configuration file.
    pub(super) fn own_file(&self) -> &OwnFile {
        &self.file
    }

    pub(super) fn service_count(&self) -> usize {
        self.table.service_count()
    }

    /// Tells operators something in `dirctl status` until it is cleared. True when it is news.
    pub(super) fn warn(&self, topic: &'static str, message: String) -> bool {
        let before = self.warnings().insert(topic, message.clone());
        before != Some(message)
    }

    pub(super) fn clear_warning(&self, topic: &'static str) {
        self.warnings().remove(topic);
    }

    /// Notes what was done with a file, for `dirctl events`.
    pub(super) fn note(&self, kind: EventKind, reason: String) {
        self.health.journal().note(kind, Event { reason, ..Event::default() });
    }

    fn scene(&self) -> Scene<'_> {
        Scene {
            table: &self.table,
            watcher: &*self.health,
            sandbox: self.sandbox,
            now: self.epoch.elapsed(),
        }
    }

    /// Takes back an applied file that was not confirmed in time.
    pub(super) fn expire(&self) {
        if let Some(message) = self.course.expire(&self.scene()) {
            warn!("{message}");
            self.clear_warning("restart");
            self.warnings().append(&mut self.aside());
            self.note(EventKind::FileRolledBack, message.clone());
            self.warn("apply", message);
        }
    }

    fn saved(&self, kept: Option<Kept>) -> Saved {
        kept.map_or(Saved::NotAsked, |kept| self.file.keep(kept))
    }

    fn aside(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn warnings(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn port_views(&self) -> Vec<PortView> {
        let ports = self.statuses.iter().flat_map(|status| status.ports());
        let mut views = self.ports.clone();
        for (view, port) in views.iter_mut().zip(ports) {
            let counters = port.counters;
            view.received = counters.received;
            view.transmitted = counters.transmitted;
            view.receive_dropped = counters.receive_dropped;
            view.transmit_dropped = counters.transmit_dropped;
            view.receiving = port.held.receiving as u64;
            view.transmitting = port.held.transmitting as u64;
            view.socket = counters.kernel.map(|kernel| SocketView {
                rx_dropped: kernel.rx_dropped,
                rx_ring_full: kernel.rx_ring_full,
                fill_ring_empty: kernel.fill_ring_empty,
                tx_invalid: kernel.tx_invalid,
            });
        }
        views
    }

    fn worker_views(&self) -> Vec<WorkerView> {
        (0..).zip(&self.statuses).map(|(worker, status)| status.view(worker)).collect()
    }

    fn overflow_counts(&self) -> Vec<VerdictCount> {
        let rows = self.table.shared().overflow.rows().into_iter();
        rows.filter(|(_, _, packets)| *packets > 0)
            .map(|(reason, meaning, packets)| VerdictCount {
                verdict: String::new(),
                reason: reason.to_owned(),
                meaning: meaning.to_owned(),
                packets,
            })
            .collect()
    }

    /// Every fate with its count, zeros included.
    fn all_verdicts(&self) -> Vec<VerdictCount> {
        let mut counts: Vec<VerdictCount> = Vec::new();
        for status in &self.statuses {
            for (index, row) in status.verdicts.rows().enumerate() {
                match counts.get_mut(index) {
                    Some(count) => count.packets += row.packets,
                    None => counts.push(VerdictCount {
                        verdict: row.verdict.to_owned(),
                        reason: row.label.to_owned(),
                        meaning: row.meaning.to_owned(),
                        packets: row.packets,
                    }),
                }
            }
        }
        counts
    }
}

impl Operations for Director {
    fn apply(&self, command: Command) -> Result<(), Refusal> {
        self.table.change(command, self.epoch.elapsed())?;
        self.table.wait_until_followed();
        Ok(())
    }

    fn batch(&self, commands: Vec<Command>, on_refusal: OnRefusal) -> BatchOutcome {
        let outcome = self.table.batch(commands, on_refusal, self.epoch.elapsed());
        self.table.wait_until_followed();
        outcome
    }

    fn services(&self) -> Vec<ServiceView> {
        self.table.service_views()
    }

    fn each_service(&self) -> Box<dyn Iterator<Item = ServiceView> + Send> {
        Box::new(self.table.each_service_view())
    }

    fn timeouts(&self) -> Timeouts {
        self.table.shared().timeouts.get()
    }

    fn settings(&self) -> BTreeMap<String, u32> {
        self.table.shared().settings.all()
    }

    fn marks(&self) -> Vec<Rule> {
        self.table.marks()
    }

    fn servers(&self) -> Vec<ServerHealth> {
        self.health.servers()
    }

    fn journal(&self) -> Option<Arc<Journal>> {
        Some(self.health.journal())
    }

    fn capture(&self, wanted: &Wanted) -> Result<Feed, Refusal> {
        let (shared, services) = (self.table.shared(), self.table.published());
        Feed::begin(&self.statuses, &self.ports, shared, &services, self.epoch, wanted)
            .map_err(|busy| Refusal { error: RefusalKind::Busy, message: busy.to_string() })
    }

    fn connections(&self, part: usize) -> Option<Vec<ConnectionView>> {
        self.table.connection_views(part, self.epoch.elapsed())
    }

    fn verdicts(&self) -> Vec<VerdictCount> {
        self.all_verdicts()
    }

    fn connection_states(&self) -> Vec<StateCount> {
        self.table.connection_states()
    }

    fn explain(&self, question: Question) -> Result<Explanation, Refusal> {
        let bad = |message| Refusal { error: RefusalKind::BadRequest, message };
        let frame = explain::frame_from_hex(&question.packet).map_err(bad)?;
        let mut interfaces: Vec<String> =
            self.ports.iter().map(|port| port.interface.clone()).collect();
        interfaces.dedup();
        let scene = explain::Scene {
            shared: self.table.shared(),
            services: &self.table.published().load_full(),
            steering: &self.table.steering(),
            interfaces: &interfaces,
            now: self.epoch.elapsed(),
        };
        let network = self.network.load_full();
        if let Some(name) = &question.interface
            && !network.interfaces().any(|interface| interface.name == *name)
        {
            let served = interfaces.join(", ");
            return Err(bad(format!("there is no interface {name}; the director serves {served}")));
        }
        let mut ways = KernelWays {
            network: &self.network,
            resolver: &self.resolver,
            interfaces: &interfaces,
        };
        let interface = question.interface.as_deref();
        Ok(explain::explain(&scene, &mut ways, &frame, interface))
    }

    fn plan(&self, request: PlanRequest) -> Result<Plan, Refusal> {
        let file = called(&request.file);
        let config = parse(&request.text, &file)?;
        Ok(self.course.plan(&file, &config, &self.table))
    }

    fn follow(&self, request: ApplyRequest) -> Result<FileApplied, Refusal> {
        let ApplyRequest { file, text, confirm, save, ignore_restart } = request;
        let file = called(&file);
        let config = parse(&text, &file)?;
        let wanted = NextFile { file: file.clone(), config, confirm, ignore_restart, text, save };
        let done = self.course.follow(wanted, &self.scene())?;
        let waits = done.confirm.map_or_else(String::new, |seconds| {
            format!(", rolled back in {seconds} s unless it is confirmed")
        });
        let what =
            format!("{file} applied; services that changed: {}{waits}", done.plan.services.len());
        info!("{what}");
        self.note(EventKind::FileApplied, what);
        self.clear_warning("apply");
        let before = ["reload", "restart"].map(|topic| self.warnings().remove_entry(topic));
        *self.aside() = before.into_iter().flatten().filter(|_| done.confirm.is_some()).collect();
        match done.plan.restart.is_empty() {
            true => {}
            false => {
                let keys = done.plan.restart.join(", ");
                let message = format!("{keys} differ in {file}: restart the director for it");
                self.warn("restart", message);
            }
        }
        self.table.wait_until_followed();
        let saved = match done.confirm {
            Some(_) if save => Saved::Later,
            _ => self.saved(done.kept),
        };
        Ok(FileApplied { plan: done.plan, confirm: done.confirm, saved })
    }

    fn settle(&self, verdict: Verdict) -> Result<Settled, Refusal> {
        let (file, kept) = self.course.settle(verdict, &self.scene())?;
        let (kind, done) = match verdict {
            Verdict::Confirm => (EventKind::FileConfirmed, "confirmed"),
            Verdict::Revert => (EventKind::FileReverted, "reverted"),
        };
        info!("{file} {done}");
        self.note(kind, file.clone());
        if verdict == Verdict::Revert {
            self.clear_warning("restart");
            self.warnings().append(&mut self.aside());
            self.table.wait_until_followed();
        }
        Ok(Settled { file, verdict, saved: self.saved(kept) })
    }

    fn status(&self) -> Status {
        let lost: usize = self.statuses.iter().map(|status| status.lost_frames()).sum();
        let mut verdicts = self.all_verdicts();
        verdicts.retain(|count| count.packets > 0);
        let mut warnings: Vec<String> = self.warnings().values().cloned().collect();
        warnings.extend(self.course.waiting(self.epoch.elapsed()));
        if lost > 0 {
            warnings.push(format!("{lost} frames of packet memory are lost: please report this"));
        }
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime: self.epoch.elapsed().as_secs_f64(),
            mode: "dispatcher".to_owned(),
            config: Some(self.file.path().display().to_string()),
            applied: self.file.applied(),
            table_size: TABLE_SIZE.max(SHARDS as u32),
            connections: self.table.shared().connections.len() as u64,
            max_connections: self.table.shared().connections.limit() as u64,
            services: self.service_count() as u32,
            ports: self.port_views(),
            workers: self.worker_views(),
            verdicts,
            packets: self.packets.clone(),
            overflow: self.overflow_counts(),
            health: self.health.summary(),
            warnings,
        }
    }
}

/// The name of a file, fit for the log and for a line of the status.
fn called(name: &str) -> String {
    let clean = |letter: char| if letter.is_control() { ' ' } else { letter };
    name.chars().take(LONGEST_NAME).map(clean).collect()
}

/// The file of a request.
fn parse(text: &str, name: &str) -> Result<Config, Refusal> {
    let refuse = |error, message| Err(Refusal { error, message });
    if text.len() > LONGEST_TEXT {
        let most = LONGEST_TEXT >> 20;
        let message = format!("{name}: a file of more than {most} MiB cannot be sent");
        return refuse(RefusalKind::BadFile, message);
    }
    config::parse(text, name).or_else(|error| refuse(RefusalKind::BadFile, error.to_string()))
}
