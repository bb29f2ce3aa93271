//! The table follows another file, all of it or none; and goes back to what was before.
//!
//! Every command is rehearsed on a plan first (`rehearsal.rs`). Then they are carried out one by one
//! and not as a transition, for a scheduler that stays must not lose its memory because a server comes
//! or goes. Workers are shown new and removed services with one publication at the end.
//!
//! Going back puts every service, server, setting and rule that was changed to what it *was*, not to
//! what an older file says of it: a server that an operator had quiesced is quiesced again. What was not changed
//! stays as it is, also what an operator has done since.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

use super::apply::drain;
use super::declare::{self, Refused};
use super::rehearsal::{Plan, Planned, holds};
use super::views::shown;
use super::{State, Table};
use crate::config::{Config, DeclaredService};
use crate::control::api::{Refusal, ServerSpec, ServiceKey, ServiceSpec, Timeouts};
use crate::control::operations::Command;
use crate::fwmark::Rule;
use crate::plan::settings;
use crate::plan::steps::{Running, steps};

/// What it takes to go back.
#[derive(Debug)]
pub struct Undo {
    services: Vec<Former>,
    /// All services as they came, when some have gone.
    order: Vec<ServiceKey>,
    settings: BTreeMap<String, u32>,
    timeouts: Option<Timeouts>,
    marks: Option<Vec<Rule>>,
    declared: HashMap<ServiceKey, DeclaredService>,
    declared_marks: Vec<Rule>,
}

/// A service that is changed, as it was.
#[derive(Debug)]
struct Former {
    key: ServiceKey,
    /// Whether the service itself is changed, and not only servers.
    is_itself: bool,
    /// Servers that are.
    servers: HashSet<SocketAddr>,
    /// `None`: it was not there.
    was: Option<Was>,
}

#[derive(Debug)]
struct Was {
    spec: ServiceSpec,
    /// Newest first, with the methods that were asked for.
    servers: Vec<ServerSpec>,
    fallback: Option<ServerSpec>,
}

impl Running for State {
    fn has_service(&self, service: &ServiceKey) -> bool {
        self.services.find(service).is_ok()
    }

    fn has_server(&self, service: &ServiceKey, server: SocketAddr) -> bool {
        let service = self.services.find(service);
        service.is_ok_and(|service| service.choice().position(server).is_some())
    }
}

impl Table {
    /// Follows the file `new` in place of `old`: services, marks, settings and timeouts as one change.
    ///
    /// # Errors
    /// What of it cannot be; nothing has changed then.
    pub fn follow(&self, old: &Config, new: &Config, now: Duration) -> Result<Undo, Box<Refused>> {
        declare::check(&new.services, &new.marks)?;
        let mut guard = self.lock();
        let state = &mut *guard;
        let steps = steps(&state.declared, &new.services, state);
        let mut others = Vec::new();
        let settings = settings(&old.settings, &new.settings);
        if !settings.is_empty() {
            others.push(Command::SetSettings { settings });
        }
        others.extend(new.timeouts.map(|timeouts| Command::SetTimeouts { timeouts }));
        if state.declared_marks != new.marks {
            others.push(Command::SetMarks { marks: new.marks.clone() });
        }
        let all = steps.iter().map(|(key, command)| (Some(*key), command));
        let mut plan = Plan::default();
        for (service, command) in all.chain(others.iter().map(|command| (None, command))) {
            let rehearsed = self.rehearse(state, &mut plan, command.clone());
            rehearsed.map_err(|refusal| Box::new(Refused { service, refusal }))?;
        }
        let undo = self.before(state, &steps, &new.services, &others);
        let mut going = Vec::new();
        let mut rest = Vec::new();
        for (key, command) in steps {
            match command {
                Command::DeleteService { service } => going.extend(state.services.remove(&service)),
                command => rest.push((key, command)),
            }
        }
        self.carry_out(state, rest, now, |_, answer| unexpected(answer));
        for command in others {
            unexpected(self.apply(state, command, now));
        }
        for declared in &new.services {
            let fallback = declared.fallback.as_ref();
            self.declare_fallback(state, &declared.service.key, fallback, now);
        }
        going.iter().for_each(|service| state.hide(service));
        state.declared = by_key(&new.services);
        state.declared_marks.clone_from(&new.marks);
        self.publish(state);
        // Packets find the removed services no more: their servers can go.
        going.iter().for_each(|service| drain(state, service, now));
        if !going.is_empty() {
            self.publish(state);
        }
        Ok(undo)
    }

    /// What is there of what will be changed.
    fn before(
        &self,
        state: &State,
        steps: &[(ServiceKey, Command)],
        services: &[DeclaredService],
        others: &[Command],
    ) -> Undo {
        let mut touched: HashMap<ServiceKey, Former> = HashMap::new();
        let former = |key: ServiceKey| {
            let was = state.services.find(&key).ok().map(|service| {
                let choice = service.choice();
                let servers = choice.members().iter().map(|member| shown(&member.spec)).collect();
                let fallback = choice.fallback().map(|member| shown(&member.spec));
                Was { spec: service.spec(), servers, fallback }
            });
            let servers = HashSet::new();
            Former { key, is_itself: false, servers, was }
        };
        for (key, command) in steps {
            let former = touched.entry(*key).or_insert_with(|| former(*key));
            match command {
                Command::AddServer { server, .. } | Command::EditServer { server, .. } => {
                    former.servers.insert(server.address);
                }
                Command::DeleteServer { server, .. } => {
                    former.servers.insert(*server);
                }
                _ => former.is_itself = true,
            }
        }
        // A fallback server may be all that differs.
        for declared in services {
            let key = declared.service.key;
            let before = state.declared.get(&key).and_then(|before| before.fallback.as_ref());
            if before != declared.fallback.as_ref() {
                touched.entry(key).or_insert_with(|| former(key));
            }
        }
        let mut undo = Undo {
            services: touched.into_values().collect(),
            order: state.services.iter().map(|service| service.key).collect(),
            settings: BTreeMap::new(),
            timeouts: None,
            marks: None,
            declared: state.declared.clone(),
            declared_marks: state.declared_marks.clone(),
        };
        let running = self.shared.settings.all();
        for command in others {
            match command {
                Command::SetSettings { settings } => {
                    let old = running.iter().filter(|(name, _)| settings.contains_key(*name));
                    undo.settings = old.map(|(name, value)| (name.clone(), *value)).collect();
                }
                Command::SetTimeouts { .. } => undo.timeouts = Some(self.shared.timeouts.get()),
                Command::SetMarks { .. } => undo.marks = Some(state.marks.rules().to_vec()),
                _ => {}
            }
        }
        undo
    }

    /// Goes back: what [`Table::follow`] has changed is as it was before, as one change.
    pub fn go_back(&self, undo: Undo, now: Duration) {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.declared = undo.declared;
        state.declared_marks = undo.declared_marks;
        let mut plan = Plan::default();
        // Those that come back are added in the order in which they were.
        let places: HashMap<ServiceKey, usize> =
            undo.order.iter().enumerate().map(|(place, key)| (*key, place)).collect();
        let mut services = undo.services;
        services.sort_by_key(|former| places.get(&former.key).copied());
        for former in services {
            let Former { key, is_itself, servers, was } = former;
            let Some(was) = was else {
                plan.services.insert(key, None);
                continue;
            };
            let running = state.services.find(&key).ok();
            let planned = match running {
                None => {
                    plan.order.push(key);
                    Planned { spec: was.spec, servers: was.servers, is_new: true }
                }
                Some(service) => {
                    let choice = service.choice();
                    let is = choice.members().iter().map(|member| shown(&member.spec)).collect();
                    drop(choice);
                    let spec = if is_itself { was.spec } else { service.spec() };
                    let merged = merged(&was.servers, is, &servers);
                    let fits = holds(&spec, merged.len()).is_ok();
                    let servers = if fits { merged } else { was.servers };
                    Planned { spec, servers, is_new: false }
                }
            };
            let servers = planned.servers.into_iter().map(|server| self.settle(server)).collect();
            plan.services.insert(key, Some(Planned { servers, ..planned }));
            plan.fallbacks.push((key, was.fallback));
        }
        if !undo.settings.is_empty() {
            plan.others.push(Command::SetSettings { settings: undo.settings });
        }
        plan.others.extend(undo.timeouts.map(|timeouts| Command::SetTimeouts { timeouts }));
        plan.others.extend(undo.marks.map(|marks| Command::SetMarks { marks }));
        self.make_so(state, plan, now);
        state.services.reorder(&undo.order);
    }
}

/// Should a rehearsal know less than it must, the rest is still better made than left.
fn unexpected(answer: Result<(), Refusal>) {
    if let Err(refusal) = answer {
        debug_assert!(false, "{}", refusal.message);
        tracing::error!("a change that was rehearsed was refused: {}", refusal.message);
    }
}

/// The servers of a service that goes back, newest first: those of `touched` as they were, the others
/// as they are.
fn merged(
    was: &[ServerSpec],
    is: Vec<ServerSpec>,
    touched: &HashSet<SocketAddr>,
) -> Vec<ServerSpec> {
    let old: HashSet<SocketAddr> = was.iter().map(|server| server.address).collect();
    let is_new =
        |server: &&ServerSpec| !old.contains(&server.address) && !touched.contains(&server.address);
    let mut merged: Vec<ServerSpec> = is.iter().filter(is_new).cloned().collect();
    let now: HashMap<SocketAddr, ServerSpec> =
        is.into_iter().map(|server| (server.address, server)).collect();
    merged.extend(was.iter().filter_map(|server| match touched.contains(&server.address) {
        true => Some(server.clone()),
        false => now.get(&server.address).cloned(),
    }));
    merged
}

fn by_key(services: &[DeclaredService]) -> HashMap<ServiceKey, DeclaredService> {
    services.iter().map(|declared| (declared.service.key, declared.clone())).collect()
}
