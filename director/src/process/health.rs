//! Health in the running director: what the file asks for, given to who watches; what is known, given
//! to who asks.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};

use super::apply::Watcher;
use crate::config::Config;
use crate::control::api::{ServerView, ServiceKey};
use crate::control::health::{HealthState, HealthSummary, ServerHealth};
use crate::health::journal::Journal;
use crate::health::memory::Remembered;
use crate::health::path::Path;
use crate::health::plan::ServiceHealth;
use crate::health::servers::{Servers, Standing};
use crate::health::watch::{Checks, Means, Watch};
use crate::table::Table;

/// See the module. What is watched ends with it.
pub(super) struct Health {
    watch: Watch,
    journal: Arc<Journal>,
    table: Arc<Table>,
}

impl Health {
    /// Begins to watch what the file asks for. The table has the file's services already, and no
    /// packet comes yet: who is remembered as failed gets none when this returns.
    ///
    /// # Errors
    /// When there are no sockets to ask agents with.
    pub(super) fn begin(
        config: &Config,
        table: &Arc<Table>,
        path: Path,
        epoch: Instant,
    ) -> Result<Health> {
        let journal = Arc::new(Journal::default());
        let means = Means {
            servers: table.clone(),
            journal: journal.clone(),
            prober: Arc::new(Checks { path: Some(Arc::new(path)) }),
            memory: config.health.memory.clone(),
            epoch,
        };
        let watch = Watch::begin(means, plans(config)).context("no socket to ask agents with")?;
        Ok(Health { watch, journal, table: table.clone() })
    }

    /// The file has been read again.
    pub(super) fn reload(&self, config: &Config) {
        let plans = plans(config);
        let watched: HashSet<ServiceKey> = plans.iter().map(|(key, _)| *key).collect();
        self.watch.reload(plans);
        // A server that was away while its service ceased to be watched stands as it did then.
        for service in self.table.each_service_view() {
            let key = service.spec.key;
            for server in service.servers.iter().filter(|_| !watched.contains(&key)) {
                if server.effective_weight != server.spec.weight {
                    self.table.stand(&key, server.spec.address, Standing::UNCHECKED);
                }
            }
        }
    }

    /// To be called once a second.
    pub(super) fn reconcile(&self) {
        self.watch.reconcile();
    }

    /// What has happened.
    pub(super) fn journal(&self) -> Arc<Journal> {
        self.journal.clone()
    }

    /// How many of the watched servers are how; `None` when nobody is watched.
    pub(super) fn summary(&self) -> Option<HealthSummary> {
        HealthSummary::of(&self.watch.views())
    }

    /// All servers of all services, those that nobody watches too, in the order of the services.
    pub(super) fn servers(&self) -> Vec<ServerHealth> {
        let watched = self.watch.views().into_iter();
        let mut watched: HashMap<_, _> =
            watched.map(|server| ((server.service, server.address), server)).collect();
        let mut servers = Vec::new();
        for service in self.table.each_service_view() {
            for view in service.servers {
                let key = service.spec.key;
                let known = watched.remove(&(key, view.spec.address));
                servers.push(counted(known.unwrap_or_else(|| unwatched(key, &view)), &view));
            }
        }
        servers
    }
}

impl Watcher for Health {
    fn follow(&self, config: &Config) {
        self.reload(config);
    }

    fn not_up(&self) -> Vec<Remembered> {
        self.watch.not_up()
    }

    fn remember(&self, servers: Vec<Remembered>) {
        self.watch.remember(servers);
    }
}

/// What health says of a server, with what the table counts.
fn counted(health: ServerHealth, view: &ServerView) -> ServerHealth {
    ServerHealth {
        weight: view.spec.weight,
        effective_weight: view.effective_weight,
        active: view.active,
        inactive: view.inactive,
        ..health
    }
}

fn unwatched(service: ServiceKey, view: &ServerView) -> ServerHealth {
    ServerHealth {
        service,
        address: view.spec.address,
        weight: view.spec.weight,
        effective_weight: view.effective_weight,
        state: HealthState::Unchecked,
        since: 0,
        reason: String::new(),
        kept: false,
        active: view.active,
        inactive: view.inactive,
        checks: Vec::new(),
        direction: None,
    }
}

fn plans(config: &Config) -> Vec<(ServiceKey, ServiceHealth)> {
    let watched = config.services.iter().filter(|declared| declared.health.is_watched());
    watched.map(|declared| (declared.service.key, declared.health.clone())).collect()
}
