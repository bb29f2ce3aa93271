//! One change at a time, with the kernel's answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use schedulers::{Flags, Options, Scheduler, Server, ServerId};

use super::check::{self, refuse};
use super::{State, Table};
use crate::control::api::{Refusal, RefusalKind, ServerSpec, ServiceKey, ServiceSpec};
use crate::control::operations::Command;
use crate::dispatch::service::{Member, RealServer, Service};
use crate::dispatch::transmitter::Transmitter;

impl Table {
    /// Makes one change at `now` (time since start).
    ///
    /// # Errors
    /// A refusal changes nothing.
    pub fn change(&self, command: Command, now: Duration) -> Result<(), Refusal> {
        let mut state = self.lock();
        self.apply(&mut state, command, now)?;
        self.publish(&state);
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
            Command::AddService { service } => self.add_service(state, service),
            Command::EditService { service } => self.edit_service(state, service),
            Command::DeleteService { service } => delete_service(state, &service, now),
            Command::Flush => {
                let keys: Vec<_> = state.services.iter().map(|service| service.key).collect();
                keys.iter().try_for_each(|key| delete_service(state, key, now))
            }
            Command::AddServer { service, server } => self.add_server(state, &service, server),
            Command::EditServer { service, server } => self.edit_server(state, &service, server),
            Command::DeleteServer { service, server } => {
                delete_server(state, &service, server, now)
            }
            Command::Zero { service } => zero(state, service.as_ref()),
            Command::SetMarks { marks } => {
                super::marks::check(&marks)?;
                state.marks.replace(marks);
                Ok(())
            }
            Command::SetTimeouts { timeouts } => {
                let longest = [timeouts.tcp, timeouts.tcp_fin, timeouts.udp].into_iter().max();
                if longest > Some(2_678_400) {
                    return Err(refuse(RefusalKind::Invalid, "a timeout is at most 2678400 s"));
                }
                self.shared.timeouts.set(timeouts);
                Ok(())
            }
            Command::SetSettings { settings } => self.set_settings(state, &settings),
        }
    }

    fn scheduler(&self, spec: &ServiceSpec) -> Result<Box<dyn Scheduler>, Refusal> {
        let seed = self.seed.wrapping_add(self.next_server.load(Relaxed));
        let options = Options { flags: Flags(spec.flags), seed };
        let mut scheduler = schedulers::create(&spec.scheduler, &options).ok_or_else(|| {
            let names: Vec<_> = schedulers::REGISTRY.iter().map(|entry| entry.name).collect();
            refuse(
                RefusalKind::NoSuchScheduler,
                format!(
                    "there is no scheduler '{}'; there are: {}",
                    spec.scheduler,
                    names.join(" ")
                ),
            )
        })?;
        scheduler.set_expirations(&self.expirations());
        Ok(scheduler)
    }

    fn add_service(&self, state: &mut State, spec: ServiceSpec) -> Result<(), Refusal> {
        // What is there already is said before what is wrong, as the kernel does.
        if find(state, &spec.key).is_ok() {
            return Err(refuse(RefusalKind::ServiceExists, "the service exists already"));
        }
        check::service(&spec)?;
        let scheduler = self.scheduler(&spec)?;
        state.services.push(Arc::new(Service::new(spec, scheduler)));
        Ok(())
    }

    fn edit_service(&self, state: &mut State, spec: ServiceSpec) -> Result<(), Refusal> {
        let service = find(state, &spec.key)?;
        check::service(&spec)?;
        let old = service.spec();
        if old.scheduler != spec.scheduler || old.flags != spec.flags {
            let scheduler = self.scheduler(&spec)?;
            service.choice().replace_scheduler(scheduler).map_err(too_many)?;
        }
        service.set_spec(spec);
        Ok(())
    }

    /// The method a server really gets: one of our own addresses is served by our own stack.
    fn settle(&self, mut spec: ServerSpec) -> ServerSpec {
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
    ) -> Result<(), Refusal> {
        let service = find(state, key).map_err(not_defined)?.clone();
        check::server(key, &spec)?;
        let mut choice = service.choice();
        if choice.position(spec.address).is_some() {
            return Err(refuse(RefusalKind::ServerExists, "the server exists already"));
        }
        check::server_address(spec.address.ip())?;
        let spec = self.settle(spec);
        let address = spec.address;
        let revived = state.trash.find(key, address);
        let server = match revived {
            Some(removed) => removed.server.clone(),
            None => {
                let id = ServerId(self.next_server.fetch_add(1, Relaxed));
                let (ip, port) = (spec.address.ip(), spec.address.port());
                Arc::new(RealServer::new(Arc::new(Server::new(id, ip, port, spec.weight))))
            }
        };
        server.load.set_weight(spec.weight);
        server.load.set_thresholds(spec.upper_threshold, spec.lower_threshold);
        choice.add(Member { server: server.clone(), spec }).map_err(too_many)?;
        // The service itself may have been removed as well, and be another one now.
        if revived.is_some_and(|removed| !Arc::ptr_eq(&removed.service, &service)) {
            server.traffic.zero();
            self.shared.connections.rebind(&server, &service);
        }
        server.set_available(true);
        state.trash.forget(key, address);
        Ok(())
    }

    fn edit_server(
        &self,
        state: &mut State,
        key: &ServiceKey,
        spec: ServerSpec,
    ) -> Result<(), Refusal> {
        let service = find(state, key).map_err(not_defined)?.clone();
        check::server(key, &spec)?;
        let mut choice = service.choice();
        let index = choice.position(spec.address).ok_or_else(no_such_server)?;
        let spec = self.settle(spec);
        let member = &choice.members()[index];
        if Transmitter::from(&member.spec) != Transmitter::from(&spec) {
            state.trash.note_former(*key, member);
        }
        choice.edit(index, spec);
        Ok(())
    }
}

pub(super) fn find<'a>(state: &'a State, key: &ServiceKey) -> Result<&'a Arc<Service>, Refusal> {
    state
        .services
        .iter()
        .find(|service| service.key == *key)
        .ok_or_else(|| refuse(RefusalKind::NoSuchService, "there is no such service"))
}

fn delete_service(state: &mut State, key: &ServiceKey, now: Duration) -> Result<(), Refusal> {
    let index = state
        .services
        .iter()
        .position(|service| service.key == *key)
        .ok_or_else(|| refuse(RefusalKind::NoSuchService, "there is no such service"))?;
    let service = state.services.remove(index);
    let mut choice = service.choice();
    while !choice.members().is_empty() {
        let member = choice.remove(0);
        state.trash.put(&service, member, now);
    }
    state.trash.put_bypassed(&service, now);
    state.orphaned = true;
    Ok(())
}

fn delete_server(
    state: &mut State,
    key: &ServiceKey,
    address: SocketAddr,
    now: Duration,
) -> Result<(), Refusal> {
    let service = find(state, key).map_err(not_defined)?.clone();
    let mut choice = service.choice();
    let index = choice.position(address).ok_or_else(no_such_server)?;
    let member = choice.remove(index);
    state.trash.put(&service, member, now);
    state.orphaned = true;
    Ok(())
}

fn zero(state: &State, key: Option<&ServiceKey>) -> Result<(), Refusal> {
    let services = match key {
        Some(key) => std::slice::from_ref(find(state, key)?),
        None => &state.services[..],
    };
    for service in services {
        service.traffic.zero();
        for member in service.choice().members() {
            member.server.traffic.zero();
        }
    }
    Ok(())
}

fn no_such_server() -> Refusal {
    refuse(RefusalKind::NoSuchServer, "the service has no such server")
}

fn not_defined(_: Refusal) -> Refusal {
    refuse(RefusalKind::NoSuchService, "the service is not defined")
}

fn too_many(error: schedulers::TooManyServers) -> Refusal {
    refuse(RefusalKind::Invalid, format!("the scheduler holds at most {} servers", error.limit))
}
