//! One change at a time, with the kernel's answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use schedulers::placement::Member as Placed;
use schedulers::{Flags, Options, Scheduler, Server, ServerId};

use super::check::{self, refuse};
use super::trash::Role;
use super::{State, Table};
use crate::control::api::{
    Bias, BiasWindow, Extras, Placement, Refusal, RefusalKind, ServerSpec, ServiceKey, ServiceSpec,
};
use crate::control::operations::Command;
use crate::dispatch::connections::Binding;
use crate::dispatch::service::{Choice, Member, RealServer, Service};
use crate::dispatch::transmitter::Transmitter;

impl Table {
    /// Makes one change at `now` (time since start).
    ///
    /// # Errors
    /// A refusal changes nothing.
    pub fn change(&self, command: Command, now: Duration) -> Result<(), Refusal> {
        let mut state = self.lock();
        self.apply(&mut state, command, now)?;
        self.publish(&mut state);
        Ok(())
    }

    /// Makes one change that is still to be published: the caller may have more of them.
    pub(super) fn apply(
        &self,
        state: &mut State,
        command: Command,
        now: Duration,
    ) -> Result<(), Refusal> {
        match command {
            Command::AddService { service } => self.add_service(state, service, now),
            Command::EditService { service } => self.edit_service(state, service),
            Command::DeleteService { service } => delete_service(state, &service, now),
            Command::Flush => {
                let keys: Vec<_> = state.services.iter().map(|service| service.key).collect();
                keys.iter().try_for_each(|key| delete_service(state, key, now))
            }
            Command::AddServer { service, server } => self.add_server(state, &service, server, now),
            Command::EditServer { service, server } => self.edit_server(state, &service, server),
            Command::DeleteServer { service, server } => {
                delete_server(state, &service, server, now)
            }
            Command::Zero { service } => zero(state, service.as_ref()),
            Command::SetMarks { marks } => {
                super::marks::check(&marks)?;
                state.set_marks(marks);
                Ok(())
            }
            Command::SetTimeouts { timeouts } => {
                check::timeouts(&timeouts)?;
                self.shared.timeouts.set(timeouts);
                Ok(())
            }
            Command::SetSettings { settings } => self.set_settings(state, &settings),
        }
    }

    /// A scheduler for a service.
    pub(super) fn scheduler(&self, spec: &ServiceSpec) -> Result<Box<dyn Scheduler>, Refusal> {
        let seed = self.seed.wrapping_add(self.next_server.load(Relaxed));
        let extras = spec.extras.unwrap_or_default();
        let options = Options {
            flags: Flags(spec.flags),
            seed,
            bias: extras.bias.into(),
            bias_window: Duration::from_millis(extras.bias_window.0.into()),
            key: spec.placement().hash_by(),
            placement: spec.placement().options(),
        };
        let Some(mut scheduler) = schedulers::create(&spec.scheduler, &options) else {
            return Err(check::no_such_scheduler(&spec.scheduler));
        };
        scheduler.set_expirations(&self.expirations());
        Ok(scheduler)
    }

    fn add_service(
        &self,
        state: &mut State,
        spec: ServiceSpec,
        now: Duration,
    ) -> Result<(), Refusal> {
        // What is there already is said before what is wrong, as the kernel does.
        if state.services.find(&spec.key).is_ok() {
            return Err(service_exists());
        }
        check::service(&spec)?;
        let scheduler = self.scheduler(&spec)?;
        let service = Arc::new(Service::new(spec, scheduler));
        let key = service.key;
        state.services.push(service.clone());
        state.show(service);
        // The file's, though it was an operator who removed it and adds it again.
        let fallback = state.declared.get(&key).and_then(|declared| declared.fallback.clone());
        self.declare_fallback(state, &key, fallback.as_ref(), now);
        Ok(())
    }

    fn edit_service(&self, state: &mut State, spec: ServiceSpec) -> Result<(), Refusal> {
        let service = state.services.find(&spec.key)?.clone();
        check::service(&spec)?;
        let old = service.spec();
        // Extras that are not spoken of stay as they are.
        let spec = ServiceSpec { extras: spec.extras.or(old.extras), ..spec };
        check::names(&spec)?;
        if makes_of(&old) != makes_of(&spec) {
            let mut scheduler = self.scheduler(&spec)?;
            let placed = service.choice().placed();
            prepare_new(&mut *scheduler, &placed);
            let replaced = service.choice().replace_scheduler(scheduler).map_err(too_many)?;
            drop(replaced);
        }
        // Before and after: its persistence engine may come or go.
        state.touch(&service);
        service.set_spec(spec);
        state.touch(&service);
        Ok(())
    }

    /// The method a server really gets: one of our own addresses is served by our own stack.
    pub(super) fn settle(&self, mut spec: ServerSpec) -> ServerSpec {
        spec.forwarding = match (self.is_local)(spec.address.ip()) {
            true => spec.forwarding.at_home(),
            false => spec.forwarding.asked(),
        };
        spec
    }

    fn add_server(
        &self,
        state: &mut State,
        key: &ServiceKey,
        spec: ServerSpec,
        now: Duration,
    ) -> Result<(), Refusal> {
        let service = state.services.find(key).map_err(not_defined)?.clone();
        check::server(key, &spec)?;
        if service.choice().position(spec.address).is_some() {
            return Err(server_exists());
        }
        check::server_address(spec.address.ip())?;
        let spec = self.settle(spec);
        let (server, former) = self.server(state, key, &spec);
        let prepared = service.prepare(|choice| {
            let mut placed = choice.placed();
            placed.insert(0, server.placed_with(&spec));
            placed
        });
        let mut choice = service.choice();
        choice.offer(&prepared);
        server.weigh(&spec);
        let binding = self.bind(&service, &server, &spec);
        let member = Member { server: server.clone(), binding, spec: spec.clone() };
        if let Err(error) = choice.add(member) {
            if former.is_none() {
                self.shared.connections.unbind(&[server], now);
            }
            return Err(too_many(error));
        }
        self.revive(state, &service, &server, former);
        state.note_server(key, &spec);
        state.touch(&service);
        Ok(())
    }

    /// What new connections to a server have in common. Those that it has brought back with it count
    /// for `service` from now on.
    pub(super) fn bind(
        &self,
        service: &Arc<Service>,
        server: &Arc<RealServer>,
        spec: &ServerSpec,
    ) -> Arc<Binding> {
        self.shared.connections.bind(service, server, Transmitter::from(spec))
    }

    /// The server for what is asked for: one that has been removed and is still remembered, with
    /// the service that it was removed from, or a new one.
    pub(super) fn server(
        &self,
        state: &State,
        key: &ServiceKey,
        spec: &ServerSpec,
    ) -> (Arc<RealServer>, Option<Arc<Service>>) {
        if let Some(removed) = state.trash.find(key, spec.address, Role::Server) {
            return (removed.server.clone(), Some(removed.service.clone()));
        }
        (self.new_server(spec.address, spec.weight), None)
    }

    /// A server that there has not been.
    pub(super) fn new_server(&self, address: SocketAddr, weight: i32) -> Arc<RealServer> {
        let id = ServerId(self.next_server.fetch_add(1, Relaxed));
        let load = Server::new(id, address.ip(), address.port(), weight);
        Arc::new(RealServer::new(Arc::new(load)))
    }

    /// A server has come into the list of `service`; it may come back from `former`.
    pub(super) fn revive(
        &self,
        state: &mut State,
        service: &Arc<Service>,
        server: &Arc<RealServer>,
        former: Option<Arc<Service>>,
    ) {
        let Some(former) = former else { return };
        // The service itself may have been removed as well, and be another one now.
        if !Arc::ptr_eq(&former, service) {
            server.traffic.zero();
        }
        server.set_available(true);
        state.trash.forget(&service.key, server);
    }

    fn edit_server(
        &self,
        state: &mut State,
        key: &ServiceKey,
        spec: ServerSpec,
    ) -> Result<(), Refusal> {
        let service = state.services.find(key).map_err(not_defined)?.clone();
        check::server(key, &spec)?;
        let index = service.choice().position(spec.address).ok_or_else(no_such_server)?;
        let spec = self.settle(spec);
        // Who is in the list changes under the table's lock only.
        let prepared = service.prepare(|choice| {
            let mut placed = choice.placed();
            placed[index] = choice.members()[index].server.placed_with(&spec);
            placed
        });
        let mut choice = service.choice();
        choice.offer(&prepared);
        self.edit_member(state, &service, &mut choice, index, spec);
        Ok(())
    }

    /// Replaces what was asked for of a server.
    pub(super) fn edit_member(
        &self,
        state: &mut State,
        service: &Arc<Service>,
        choice: &mut Choice,
        index: usize,
        spec: ServerSpec,
    ) {
        let member = &choice.members()[index];
        let binding = self.bind(service, &member.server, &spec);
        if Transmitter::from(&member.spec) != Transmitter::from(&spec) {
            state.trash.note_former(service.key, member);
            state.forget_server(&service.key, &member.spec);
            state.note_server(&service.key, &spec);
            state.touch(service);
        }
        choice.edit(index, spec, binding);
    }
}

/// Lets a scheduler work that is still to be bound to these servers.
pub(super) fn prepare_new(scheduler: &mut dyn Scheduler, servers: &[Placed]) {
    if let Some(plan) = scheduler.plan(servers) {
        scheduler.offer(&plan.run());
    }
}

/// What a service's scheduler is made of: when that is another one, so is the scheduler.
pub(super) fn makes_of(spec: &ServiceSpec) -> (&str, u32, Bias, BiasWindow, Placement) {
    let Extras { bias, bias_window, .. } = spec.extras.unwrap_or_default();
    (&spec.scheduler, spec.flags, bias, bias_window, spec.placement())
}

fn delete_service(state: &mut State, key: &ServiceKey, now: Duration) -> Result<(), Refusal> {
    let service = state.services.remove(key)?;
    state.hide(&service);
    drain(state, &service, now);
    Ok(())
}

/// Removes the servers of a service that has been removed.
pub(super) fn drain(state: &mut State, service: &Arc<Service>, now: Duration) {
    let mut choice = service.choice();
    for member in choice.remove_all() {
        put_away(state, service, member, now);
    }
    if let Some(member) = choice.set_fallback(None) {
        state.forget_server(&service.key, &member.spec);
        state.trash.put_fallback(service, member, now);
    }
    state.trash.put_bypassed(service, now);
    state.orphaned = true;
}

/// A server has left the list of a service.
pub(super) fn put_away(state: &mut State, service: &Arc<Service>, member: Member, now: Duration) {
    state.forget_server(&service.key, &member.spec);
    state.touch(service);
    state.trash.put(service, member, now);
    state.orphaned = true;
}

fn delete_server(
    state: &mut State,
    key: &ServiceKey,
    address: SocketAddr,
    now: Duration,
) -> Result<(), Refusal> {
    let service = state.services.find(key).map_err(not_defined)?.clone();
    let index = service.choice().position(address).ok_or_else(no_such_server)?;
    let prepared = service.prepare(|choice| {
        let mut placed = choice.placed();
        placed.remove(index);
        placed
    });
    let mut choice = service.choice();
    choice.offer(&prepared);
    let member = choice.remove(index);
    put_away(state, &service, member, now);
    Ok(())
}

fn zero(state: &State, key: Option<&ServiceKey>) -> Result<(), Refusal> {
    match key {
        Some(key) => state.services.find(key)?.zero(),
        None => state.services.iter().for_each(|service| service.zero()),
    }
    Ok(())
}

pub(super) fn service_exists() -> Refusal {
    refuse(RefusalKind::ServiceExists, "the service exists already")
}

pub(super) fn server_exists() -> Refusal {
    refuse(RefusalKind::ServerExists, "the server exists already")
}

pub(super) fn no_such_server() -> Refusal {
    refuse(RefusalKind::NoSuchServer, "the service has no such server")
}

pub(super) fn not_defined(_: Refusal) -> Refusal {
    refuse(RefusalKind::NoSuchService, "the service is not defined")
}

pub(super) fn too_many(error: schedulers::TooManyServers) -> Refusal {
    refuse(RefusalKind::Invalid, format!("the scheduler holds at most {} servers", error.limit))
}
