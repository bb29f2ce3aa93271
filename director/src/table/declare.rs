//! The configuration file meets the running table: only what differs between the file as it was
//! and as it is now is changed.
//!
//! So what an operator or a checker did at run time to a service or server that the file has not
//! changed stays as it is: a reload must not bring a quiesced server back. The lock of the table is
//! held all the way: nobody sees half a reload, and no command comes in between. The servers of a service
//! whose scheduler builds a table of them are changed as one (`servers.rs`).

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use super::servers::ServerChange;
use super::{State, Table, check, marks};
use crate::config::DeclaredService;
use crate::control::api::{Refusal, RefusalKind, ServiceKey};
use crate::control::operations::Command;
use crate::fwmark::Rule;

/// What a reload did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Commands carried out.
    pub made: usize,
    /// What could not be done, and why: service, refusal.
    pub refused: Vec<(ServiceKey, Refusal)>,
}

/// What of a file can never be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which service; `None` for the rules that set marks.
    pub service: Option<ServiceKey>,
    /// Why.
    pub refusal: Refusal,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key) = self.service {
            write!(f, "service {key}: ")?;
        }
        f.write_str(&self.refusal.message)
    }
}

impl Table {
    /// Makes the table follow the file's services and rules for marks; published as one change.
    ///
    /// # Errors
    /// When a service, server or rule of the file can never be accepted; nothing has changed then.
    pub fn declare(
        &self,
        services: &[DeclaredService],
        marks: &[Rule],
        now: Duration,
    ) -> Result<Changes, Refused> {
        marks::check(marks).map_err(|refusal| Refused { service: None, refusal })?;
        for declared in services {
            let key = declared.service.key;
            let fail = |refusal| Refused { service: Some(key), refusal };
            check::service(&declared.service).map_err(fail)?;
            check::scheduler(&declared.service.scheduler).map_err(fail)?;
            for server in declared.servers.iter().chain(&declared.fallback) {
                check::server(&key, server).map_err(fail)?;
                check::server_address(server.address.ip()).map_err(fail)?;
            }
        }
        let mut state = self.lock();
        let before = std::mem::take(&mut state.declared);
        let after: HashMap<_, _> =
            services.iter().map(|declared| (declared.service.key, declared.clone())).collect();
        let mut reload =
            Reload { table: self, state: &mut state, now, changes: Changes::default() };
        for key in before.keys().filter(|key| !after.contains_key(key)) {
            reload.change(*key, Command::DeleteService { service: *key });
        }
        for declared in services {
            reload.declare(declared, before.get(&declared.service.key));
        }
        let mut changes = reload.changes;
        if state.declared_marks != marks {
            state.declared_marks = marks.to_vec();
            state.set_marks(marks.to_vec());
            changes.made += 1;
        }
        state.declared = after;
        self.publish(&mut state);
        Ok(changes)
    }
}

/// A reload under way.
struct Reload<'a> {
    table: &'a Table,
    state: &'a mut State,
    now: Duration,
    changes: Changes,
}

impl Reload<'_> {
    fn declare(&mut self, declared: &DeclaredService, before: Option<&DeclaredService>) {
        let key = declared.service.key;
        let running = self.state.services.find(&key).is_ok();
        let service = declared.service.clone();
        if !running {
            self.change(key, Command::AddService { service });
        } else if before.is_none_or(|before| before.service != declared.service) {
            self.change(key, Command::EditService { service });
        }
        let declared_addresses: HashSet<SocketAddr> =
            declared.servers.iter().map(|server| server.address).collect();
        let old_servers = before.map(|before| &before.servers[..]).unwrap_or_default();
        let old: HashMap<_, _> = old_servers.iter().map(|old| (old.address, old)).collect();
        let mut changes = Vec::new();
        for old in old_servers.iter().filter(|old| !declared_addresses.contains(&old.address)) {
            changes.push(ServerChange::Delete(old.address));
        }
        let mut present: HashSet<SocketAddr> = match self.state.services.find(&key) {
            Ok(service) => service.choice().members().iter().map(|it| it.spec.address).collect(),
            Err(_) => HashSet::new(),
        };
        for server in &declared.servers {
            if running && old.get(&server.address) == Some(&server) {
                continue;
            }
            changes.push(match present.insert(server.address) {
                true => ServerChange::Add(server.clone()),
                false => ServerChange::Edit(server.clone()),
            });
        }
        self.change_servers(key, changes);
        let fallback = declared.fallback.as_ref();
        if self.table.declare_fallback(self.state, &key, fallback, self.now) {
            self.changes.made += 1;
        }
    }

    /// Changes servers of a service: as one if its scheduler builds something for them, else one by one.
    fn change_servers(&mut self, key: ServiceKey, changes: Vec<ServerChange>) {
        if let Some(answers) = self.table.change_servers(self.state, &key, &changes, self.now) {
            answers.into_iter().for_each(|answer| self.note(key, answer));
            return;
        }
        for change in changes {
            let service = key;
            self.change(
                key,
                match change {
                    ServerChange::Add(server) => Command::AddServer { service, server },
                    ServerChange::Edit(server) => Command::EditServer { service, server },
                    ServerChange::Delete(server) => Command::DeleteServer { service, server },
                },
            );
        }
    }

    fn change(&mut self, key: ServiceKey, command: Command) {
        let answer = self.table.apply(self.state, command, self.now);
        self.note(key, answer);
    }

    fn note(&mut self, key: ServiceKey, answer: Result<(), Refusal>) {
        match answer {
            Ok(()) => self.changes.made += 1,
            // Somebody removed it at run time already: what was wanted is so.
            Err(refusal)
                if matches!(
                    refusal.error,
                    RefusalKind::NoSuchService | RefusalKind::NoSuchServer
                ) => {}
            Err(refusal) => self.changes.refused.push((key, refusal)),
        }
    }
}
