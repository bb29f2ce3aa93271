//! The configuration file meets the running table: only what differs between the file as it was
//! and as it is now is changed.
//!
//! So what an operator or a checker did at run time to a service or server that the file has not
//! changed stays as it is: a reload must not bring a quiesced server back.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::Table;
use super::check;
use crate::config::DeclaredService;
use crate::control::api::{Refusal, RefusalKind, ServiceKey};
use crate::control::operations::Command;

/// What a reload did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Commands carried out.
    pub made: usize,
    /// What could not be done, and why: service, refusal.
    pub refused: Vec<(ServiceKey, Refusal)>,
}

impl Table {
    /// Makes the table follow the file; published as one change.
    ///
    /// # Errors
    /// When a service or server of the file can never be accepted; nothing has changed then.
    pub fn declare(
        &self,
        services: &[DeclaredService],
        now: Duration,
    ) -> Result<Changes, (ServiceKey, Refusal)> {
        for declared in services {
            let key = declared.service.key;
            let fail = |refusal| (key, refusal);
            check::service(&declared.service).map_err(fail)?;
            if schedulers::find(&declared.service.scheduler).is_none() {
                let message = format!("there is no scheduler '{}'", declared.service.scheduler);
                return Err(fail(check::refuse(RefusalKind::NoSuchScheduler, message)));
            }
            for server in &declared.servers {
                check::server(&key, server).map_err(fail)?;
            }
        }
        let before = std::mem::take(&mut self.lock().declared);
        let after: HashMap<_, _> =
            services.iter().map(|declared| (declared.service.key, declared.clone())).collect();
        let mut changes = Changes::default();
        self.quiet.store(true, Relaxed);
        for key in before.keys().filter(|key| !after.contains_key(key)) {
            self.try_change(*key, Command::DeleteService { service: *key }, now, &mut changes);
        }
        for declared in services {
            self.declare_service(declared, before.get(&declared.service.key), now, &mut changes);
        }
        self.quiet.store(false, Relaxed);
        let mut state = self.lock();
        state.declared = after;
        self.publish(&state);
        Ok(changes)
    }

    fn declare_service(
        &self,
        declared: &DeclaredService,
        before: Option<&DeclaredService>,
        now: Duration,
        changes: &mut Changes,
    ) {
        let key = declared.service.key;
        let running = super::apply::find(&self.lock(), &key).is_ok();
        if !running {
            let service = declared.service.clone();
            self.try_change(key, Command::AddService { service }, now, changes);
        } else if before.is_none_or(|before| before.service != declared.service) {
            let service = declared.service.clone();
            self.try_change(key, Command::EditService { service }, now, changes);
        }
        let declared_addresses: HashSet<SocketAddr> =
            declared.servers.iter().map(|server| server.address).collect();
        let old_servers = before.map(|before| &before.servers[..]).unwrap_or_default();
        for old in old_servers.iter().filter(|old| !declared_addresses.contains(&old.address)) {
            let command = Command::DeleteServer { service: key, server: old.address };
            self.try_change(key, command, now, changes);
        }
        for server in &declared.servers {
            let old = old_servers.iter().find(|old| old.address == server.address);
            if running && old == Some(server) {
                continue;
            }
            let present = super::apply::find(&self.lock(), &key)
                .is_ok_and(|service| service.choice().position(server.address).is_some());
            let (service, server) = (key, server.clone());
            let command = if present {
                Command::EditServer { service, server }
            } else {
                Command::AddServer { service, server }
            };
            self.try_change(key, command, now, changes);
        }
    }

    fn try_change(&self, key: ServiceKey, command: Command, now: Duration, changes: &mut Changes) {
        match self.change(command, now) {
            Ok(()) => changes.made += 1,
            // Somebody removed it at run time already: what was wanted is so.
            Err(refusal)
                if matches!(
                    refusal.error,
                    RefusalKind::NoSuchService | RefusalKind::NoSuchServer
                ) => {}
            Err(refusal) => changes.refused.push((key, refusal)),
        }
    }
}
