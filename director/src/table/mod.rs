//! The one table of services and servers, seen from the control plane: what `ipvsadm` and the
//! configuration file change, and what workers are shown of it.
//!
//! Changes are made under one lock and published as a new snapshot of [`Services`], one by one or
//! many as one ([`Table::batch`]); what a change does not concern is shared between the two. With
//! ten thousand services a change costs no more than with ten, but for the copy of a small part.

mod apply;
mod batch;
mod check;
mod declare;
mod eager;
mod extras;
mod fallback;
mod follow;
mod followed;
mod ftp;
mod interests;
mod marks;
mod publication;
mod rehearsal;
mod roster;
mod servers;
mod settings;
mod standing;
#[cfg(test)]
mod tests;
mod told;
mod transition;
mod trash;
mod views;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::Notify;

use crate::config::DeclaredService;
use crate::control::api::ServiceKey;
use crate::dispatch::Shared;
use crate::dispatch::service::Services;
use crate::dispatch::settings::Setting;
use crate::fwmark::Rule;
use crate::steer::MarkedSet;
pub use declare::{Changes, Refused};
use eager::Eager;
pub use eager::Silent;
pub use follow::Undo;
use followed::Followed;
pub use interests::Interest;
use marks::Marks;
use publication::News;
use roster::Roster;
pub use told::Tidings;
use told::Told;
use trash::Trash;

/// Tells whether an address is the director's own.
pub type IsLocal = Box<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// See the module.
pub struct Table {
    shared: Arc<Shared>,
    published: Arc<ArcSwap<Services>>,
    state: Mutex<State>,
    is_local: IsLocal,
    changed: Arc<Notify>,
    followed: Followed,
    eager: Eager,
    next_server: AtomicU64,
    seed: u64,
}

/// What the lock protects.
#[derive(Default)]
struct State {
    services: Roster,
    /// What workers are shown with the next publication.
    shown: Services,
    /// Whether NAT servers are noted in it.
    notes_nat_servers: bool,
    /// Snapshots that workers may still look at.
    retired: Vec<Arc<Services>>,
    /// What has happened since it was last told.
    news: News,
    told: Told,
    /// Removed servers that may come back.
    trash: Trash,
    /// Whether servers have been removed since connections were last looked through for it.
    orphaned: bool,
    /// The rules that set firewall marks.
    marks: Marks,
    /// What the configuration file said last.
    declared: HashMap<ServiceKey, DeclaredService>,
    declared_marks: Vec<Rule>,
}

impl Table {
    /// An empty table. `seed` feeds schedulers that draw lots.
    pub fn new(shared: Arc<Shared>, is_local: IsLocal, seed: u64) -> Table {
        Table {
            shared,
            published: Arc::default(),
            state: Mutex::default(),
            is_local,
            changed: Arc::default(),
            followed: Followed::default(),
            eager: Eager::default(),
            next_server: AtomicU64::new(1),
            seed,
        }
    }

    /// What workers look services up in.
    pub fn published(&self) -> Arc<ArcSwap<Services>> {
        self.published.clone()
    }

    /// Is notified after every change.
    pub fn changed(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    /// The tables that workers share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many services there are.
    pub fn service_count(&self) -> usize {
        self.lock().services.len()
    }

    /// The rules that set firewall marks, in the order in which they were written.
    pub fn marks(&self) -> Vec<Rule> {
        self.lock().marks.rules().to_vec()
    }

    /// Which packets the steering program has to take for their firewall mark.
    pub fn marked(&self) -> MarkedSet {
        self.lock().marked()
    }

    /// VIPs of all services, each once.
    pub fn vips(&self) -> Vec<IpAddr> {
        let state = self.lock();
        let mut vips: Vec<IpAddr> =
            state.services.iter().filter_map(|service| service.key.vip()).collect();
        vips.sort_unstable();
        vips.dedup();
        vips
    }

    /// After a change: with `expire_nodest_conn`, the connections of servers that are gone end.
    pub fn end_orphans(&self) {
        let orphaned = std::mem::take(&mut self.lock().orphaned);
        if orphaned && self.shared.settings.is_on(Setting::ExpireNodestConn) {
            self.shared.connections.remove_orphans();
        }
    }

    /// Once a second or so: reviews the defences, and forgets removed servers whose time is over and
    /// which no connection refers to. `now` is time since start.
    pub fn sweep(&self, now: Duration) {
        self.shared.review_defence();
        self.shared.drop_entries(now);
        let mut guard = self.lock();
        let state = &mut *guard;
        state.drop_retired();
        let busy = state.busy_marks();
        let mut changed = state.marks.sweep(&busy);
        state.news.all_touched |= changed;
        let forgotten = state.trash.sweep(now, |service| {
            state.news.touched.insert(service);
            changed = true;
        });
        self.shared.connections.unbind(&forgotten, now);
        if changed {
            self.changed.notify_one();
        }
    }

    /// Brings the rates of all services and servers up to date, unless `run_estimation` is 0; to be
    /// called every two seconds.
    pub fn estimate(&self) {
        if !self.shared.settings.is_on(Setting::RunEstimation) {
            return;
        }
        // Not under the table's lock: it takes a while, and nobody else counts estimates.
        let services: Vec<_> = self.lock().services.iter().cloned().collect();
        for service in services {
            service.traffic.estimate();
            for member in service.choice().everyone() {
                member.server.traffic.estimate();
            }
        }
    }
}
