//! A table that writes down what it is told, a prober that finds what it is told to find, and an
//! engine between them.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::control::api::{Forwarding, Protocol, ServerSpec, ServiceKey, Tunnel};
use crate::control::events::EventKind;
use crate::control::health::{HealthState, ServerHealth};
use crate::health::journal::Journal;
use crate::health::outcome::Outcome;
use crate::health::plan::{Check, ServiceHealth};
use crate::health::servers::{Pool, Servers, Standing};
use crate::health::watch::{Means, Prober, Probing, Watch};

/// What the table was told, but for reports of load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Stand(SocketAddr, bool, u16),
    Lose(SocketAddr, bool),
    FallBack(bool),
}

#[derive(Default)]
pub(super) struct Table {
    pub(super) pools: Mutex<BTreeMap<ServiceKey, Vec<ServerSpec>>>,
    pub(super) standings: Mutex<HashMap<(ServiceKey, SocketAddr), Standing>>,
    pub(super) told: Mutex<Vec<(ServiceKey, Told)>>,
    pub(super) loads: Mutex<HashMap<(ServiceKey, SocketAddr), Option<u16>>>,
}

impl Table {
    fn tell(&self, service: &ServiceKey, told: Told) {
        self.told.lock().unwrap().push((*service, told));
    }

    /// What it was told of a service since the last call.
    pub(super) fn news(&self, service: ServiceKey) -> Vec<Told> {
        let mut told = self.told.lock().unwrap();
        let (of_it, others) = told.drain(..).partition(|(key, _)| *key == service);
        *told = others;
        of_it.into_iter().map(|(_, told)| told).collect()
    }
}

impl Servers for Table {
    fn pool(&self, service: &ServiceKey) -> Option<Pool> {
        let pools = self.pools.lock().unwrap();
        pools.get(service).map(|servers| Pool { servers: servers.clone() })
    }

    fn stand(
        &self,
        service: &ServiceKey,
        server: SocketAddr,
        standing: Standing,
    ) -> Option<(i32, i32)> {
        let pool = self.pool(service)?;
        let spec = pool.servers.iter().find(|spec| spec.address == server)?;
        let place = (*service, server);
        let before = self.standings.lock().unwrap().insert(place, standing);
        let before = before.unwrap_or(Standing::UNCHECKED);
        if before != standing {
            self.tell(service, Told::Stand(server, standing.is_admitted, standing.permille));
        }
        Some((before.effective(spec.weight), standing.effective(spec.weight)))
    }

    fn lose(
        &self,
        service: &ServiceKey,
        server: SocketAddr,
        is_certain: bool,
        _: Duration,
    ) -> bool {
        self.tell(service, Told::Lose(server, is_certain));
        true
    }

    fn report(&self, service: &ServiceKey, server: SocketAddr, load: Option<u16>) -> bool {
        self.loads.lock().unwrap().insert((*service, server), load);
        true
    }

    fn fall_back(&self, service: &ServiceKey, on: bool) -> bool {
        let place = (*service, SocketAddr::from(([0; 4], 0)));
        let standing = Standing { is_admitted: on, permille: 1 };
        let is_news = self.standings.lock().unwrap().insert(place, standing) != Some(standing);
        if is_news {
            self.tell(service, Told::FallBack(on));
        }
        true
    }
}

/// Finds every server well but those of which it is told otherwise.
#[derive(Default)]
pub(super) struct Finder {
    pub(super) outcomes: Mutex<HashMap<SocketAddr, Outcome>>,
    /// How long each check takes.
    pub(super) takes: Mutex<Duration>,
    pub(super) made: AtomicUsize,
    pub(super) under_way: AtomicUsize,
    pub(super) most: AtomicUsize,
}

impl Prober for Finder {
    fn probe<'a>(&'a self, _: &'a Check, _: &'a ServiceKey, server: &'a ServerSpec) -> Probing<'a> {
        Box::pin(async {
            self.made.fetch_add(1, Relaxed);
            let under_way = self.under_way.fetch_add(1, Relaxed) + 1;
            self.most.fetch_max(under_way, Relaxed);
            let takes = *self.takes.lock().unwrap();
            // It may be broken off.
            let _guard = Leaving(&self.under_way);
            tokio::time::sleep(takes).await;
            let outcomes = self.outcomes.lock().unwrap();
            outcomes.get(&server.address).cloned().unwrap_or(Outcome::PASSED)
        })
    }
}

struct Leaving<'a>(&'a AtomicUsize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

pub(super) struct House {
    pub(super) table: Arc<Table>,
    pub(super) finder: Arc<Finder>,
    pub(super) journal: Arc<Journal>,
    pub(super) directory: tempfile::TempDir,
    heard: Mutex<u64>,
}

impl House {
    pub(super) fn new() -> House {
        House {
            table: Arc::default(),
            finder: Arc::default(),
            journal: Arc::default(),
            directory: tempfile::tempdir().unwrap(),
            heard: Mutex::new(0),
        }
    }

    pub(super) fn pool(&self, service: ServiceKey, servers: &[SocketAddr]) {
        let specs = servers.iter().map(|server| spec(*server, 100)).collect();
        self.table.pools.lock().unwrap().insert(service, specs);
    }

    pub(super) fn begin(&self, plans: &[(ServiceKey, ServiceHealth)]) -> Watch {
        let means = Means {
            servers: self.table.clone(),
            journal: self.journal.clone(),
            prober: self.finder.clone(),
            memory: Some(self.directory.path().join("health.json")),
            epoch: std::time::Instant::now(),
        };
        Watch::begin(means, plans.to_vec()).unwrap()
    }

    pub(super) fn finds(&self, server: SocketAddr, outcome: Outcome) {
        self.finder.outcomes.lock().unwrap().insert(server, outcome);
    }

    /// Events since the last call.
    pub(super) fn events(&self) -> Vec<EventKind> {
        let mut heard = self.heard.lock().unwrap();
        let events = self.journal.after(*heard);
        *heard += events.len() as u64;
        events.into_iter().map(|event| event.kind).collect()
    }
}

pub(super) fn failed() -> Outcome {
    Outcome::Failed("connection refused".to_owned())
}

pub(super) fn spec(address: SocketAddr, weight: i32) -> ServerSpec {
    ServerSpec {
        address,
        forwarding: Forwarding::Nat,
        tunnel: Tunnel::default(),
        weight,
        upper_threshold: 0,
        lower_threshold: 0,
    }
}

pub(super) fn service(number: u8) -> ServiceKey {
    let address = SocketAddr::from(([192, 0, 2, number], 80));
    ServiceKey::Address { protocol: Protocol::Tcp, address }
}

/// A server on a loopback address of its own.
pub(super) fn server(number: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 1, number], 80))
}

/// One check each second; rise 2, fall 3.
pub(super) fn checked() -> ServiceHealth {
    let check = Check { interval: SECOND, timeout: SECOND / 2, ..Check::default() };
    ServiceHealth { checks: vec![check], ..ServiceHealth::default() }
}

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// The states of a service's servers, by address.
pub(super) fn states(views: &[ServerHealth], service: ServiceKey) -> Vec<HealthState> {
    views.iter().filter(|view| view.service == service).map(|view| view.state).collect()
}
