//! A batch is tried out before anything is done: all or nothing.
//!
//! The commands are carried out on a plan, which is plain data: which services there would be, and
//! with which servers. It knows every reason for which a command can be refused. When none is, the
//! table is made as the plan says (`transition.rs`).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use super::apply::{no_such_server, not_defined, server_exists, service_exists, too_many};
use super::{State, Table, check, marks};
use crate::control::api::{CommandRefusal, Refusal, ServerSpec, ServiceKey, ServiceSpec};
use crate::control::operations::Command;
use crate::dispatch::service::Service;

/// What would be after the commands.
#[derive(Default)]
pub(super) struct Plan {
    /// What the commands concern; `None` is no such service.
    pub(super) services: HashMap<ServiceKey, Option<Planned>>,
    /// New and renewed services, in the order of their addition.
    pub(super) order: Vec<ServiceKey>,
    /// Fallback servers that services are to have, or not to have.
    pub(super) fallbacks: Vec<(ServiceKey, Option<ServerSpec>)>,
    /// What has nothing to do with which services there are.
    pub(super) others: Vec<Command>,
}

/// A service as it would be.
pub(super) struct Planned {
    pub(super) spec: ServiceSpec,
    /// Newest first.
    pub(super) servers: Vec<ServerSpec>,
    /// Whether it would be added, perhaps after one of its name has been removed.
    pub(super) is_new: bool,
}

impl Planned {
    fn of(service: &Service) -> Planned {
        let servers = service.choice().members().iter().map(|member| member.spec.clone()).collect();
        Planned { spec: service.spec(), servers, is_new: false }
    }

    fn position(&self, address: SocketAddr) -> Option<usize> {
        self.servers.iter().position(|server| server.address == address)
    }
}

impl Table {
    /// Makes all changes as one, or none. Returns how many.
    ///
    /// # Errors
    /// The first that is refused; nothing has changed then.
    pub(super) fn all_or_nothing(
        &self,
        state: &mut State,
        commands: Vec<Command>,
        now: Duration,
    ) -> Result<usize, CommandRefusal> {
        let count = commands.len();
        let mut plan = Plan::default();
        for (index, command) in commands.into_iter().enumerate() {
            self.rehearse(state, &mut plan, command)
                .map_err(|refusal| CommandRefusal { refusal, index })?;
        }
        self.make_so(state, plan, now);
        Ok(count)
    }

    /// One command, on the plan.
    pub(super) fn rehearse(
        &self,
        state: &State,
        plan: &mut Plan,
        command: Command,
    ) -> Result<(), Refusal> {
        match command {
            Command::AddService { service: spec } => {
                if plan.service(state, &spec.key).is_ok() {
                    return Err(service_exists());
                }
                check::service(&spec)?;
                check::scheduler(&spec.scheduler)?;
                // It is not what one of its name was that is removed in the same batch.
                let extras = Some(spec.extras.unwrap_or_default());
                let spec = ServiceSpec { extras, ..spec };
                let key = spec.key;
                plan.order.push(key);
                let planned = Planned { spec, servers: Vec::new(), is_new: true };
                plan.services.insert(key, Some(planned));
            }
            Command::EditService { service: spec } => {
                let planned = plan.service(state, &spec.key)?;
                check::service(&spec)?;
                check::scheduler(&spec.scheduler)?;
                // Extras that are not spoken of stay as they are.
                let extras = spec.extras.or(planned.spec.extras);
                let spec = ServiceSpec { extras, ..spec };
                check::names(&spec)?;
                holds(&spec, planned.servers.len())?;
                planned.spec = spec;
            }
            Command::DeleteService { service: key } => {
                if plan.service(state, &key)?.is_new {
                    plan.order.retain(|new| *new != key);
                }
                plan.services.insert(key, None);
            }
            Command::Flush => {
                plan.order.clear();
                plan.services.values_mut().for_each(|service| *service = None);
                let living = state.services.iter().map(|service| (service.key, None));
                plan.services.extend(living);
            }
            Command::AddServer { service: key, server } => {
                let planned = plan.service(state, &key).map_err(not_defined)?;
                check::server(&key, &server)?;
                if planned.position(server.address).is_some() {
                    return Err(server_exists());
                }
                check::server_address(server.address.ip())?;
                holds(&planned.spec, planned.servers.len() + 1)?;
                planned.servers.insert(0, self.settle(server));
            }
            Command::EditServer { service: key, server } => {
                let planned = plan.service(state, &key).map_err(not_defined)?;
                check::server(&key, &server)?;
                let index = planned.position(server.address).ok_or_else(no_such_server)?;
                planned.servers[index] = self.settle(server);
            }
            Command::DeleteServer { service: key, server } => {
                let planned = plan.service(state, &key).map_err(not_defined)?;
                let index = planned.position(server).ok_or_else(no_such_server)?;
                planned.servers.remove(index);
            }
            Command::Zero { service } => {
                if let Some(key) = &service {
                    plan.service(state, key)?;
                }
                plan.others.push(Command::Zero { service });
            }
            Command::SetMarks { marks } => {
                marks::check(&marks)?;
                plan.others.push(Command::SetMarks { marks });
            }
            Command::SetTimeouts { timeouts } => {
                check::timeouts(&timeouts)?;
                plan.others.push(Command::SetTimeouts { timeouts });
            }
            Command::SetSettings { settings } => {
                super::settings::check(&settings)?;
                plan.others.push(Command::SetSettings { settings });
            }
        }
        Ok(())
    }
}

impl Plan {
    /// The service as it would be.
    fn service(&mut self, state: &State, key: &ServiceKey) -> Result<&mut Planned, Refusal> {
        let running = state.services.find(key);
        let planned = self
            .services
            .entry(*key)
            .or_insert_with(|| running.as_ref().ok().map(|service| Planned::of(service)));
        match planned {
            Some(planned) => Ok(planned),
            None => Err(super::roster::no_such_service()),
        }
    }
}

/// Whether the scheduler can hold so many servers.
pub(super) fn holds(spec: &ServiceSpec, servers: usize) -> Result<(), Refusal> {
    let limit = match spec.scheduler.as_str() {
        "dht" => Some(spec.placement().options().most_members()),
        scheduler => schedulers::most_servers(scheduler),
    };
    match limit {
        Some(limit) if servers > limit => Err(too_many(schedulers::TooManyServers { limit })),
        _ => Ok(()),
    }
}
