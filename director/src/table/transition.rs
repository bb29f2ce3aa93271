//! The table is made as a plan says, with nothing that packets would notice in between.
//!
//! A service that stays, or that is removed and added again, stays the service that it is, with
//! its servers' connections: its list and its scheduler are exchanged as one. Services that go
//! lose their servers only after workers have been shown that they are gone.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use schedulers::placement::Member as Placed;
use schedulers::{Scheduler, TooManyServers};

use super::apply::{drain, makes_of, prepare_new, put_away};
use super::rehearsal::{Plan, Planned};
use super::trash::Role;
use super::{State, Table};
use crate::control::api::{ServerSpec, ServiceKey, ServiceSpec};
use crate::dispatch::service::{Choice, Member, RealServer, Service};
use crate::dispatch::transmitter::Transmitter;

impl Table {
    /// Makes the table as `plan` says, and publishes that as one change.
    pub(super) fn make_so(&self, state: &mut State, mut plan: Plan, now: Duration) {
        // In the order of their addition, those that stay where they are before all others.
        let order = std::mem::take(&mut plan.order);
        let mut going = Vec::new();
        let staying = plan.services.extract_if(|_, planned| match planned {
            Some(planned) => !planned.is_new,
            None => true,
        });
        for (key, planned) in staying.collect::<Vec<_>>() {
            match planned {
                Some(planned) => self.make_service(state, key, planned, now),
                None => going.extend(state.services.remove(&key)),
            }
        }
        for key in order {
            if let Some(Some(planned)) = plan.services.remove(&key) {
                self.make_service(state, key, planned, now);
            }
        }
        for (key, fallback) in plan.fallbacks {
            self.declare_fallback(state, &key, fallback.as_ref(), now);
        }
        going.iter().for_each(|service| state.hide(service));
        for command in plan.others {
            let made = self.apply(state, command, now);
            // A service that was zeroed and then removed is not there any more.
            debug_assert!(made.is_ok() || !going.is_empty(), "{made:?}");
        }
        self.publish(state);
        going.iter().for_each(|service| drain(state, service, now));
        // Those servers may have been in what was published.
        self.publish(state);
    }

    /// Makes one service as it is planned.
    fn make_service(&self, state: &mut State, key: ServiceKey, planned: Planned, now: Duration) {
        let Planned { spec, servers, is_new } = planned;
        let known = state.services.find(&key).ok().cloned();
        let is_added = known.is_none();
        let Some(service) = known.or_else(|| self.empty_service(&spec)) else { return };
        if is_new {
            state.services.push(service.clone());
        }
        let before = service.spec();
        let same_scheduler = makes_of(&before) == makes_of(&spec);
        state.touch(&service);
        let same_servers = {
            let choice = service.choice();
            let addresses = choice.members().iter().map(|member| member.spec.address);
            addresses.eq(servers.iter().map(|server| server.address))
        };
        if same_scheduler && same_servers {
            let placed = |(member, spec): (&Member, _)| member.server.placed_with(spec);
            let prepared = service
                .prepare(|choice| choice.members().iter().zip(&servers).map(placed).collect());
            let mut choice = service.choice();
            if prepared.is_some() {
                choice.offer(&prepared);
                // What is prepared fits the list with all edits, the first of which is to take it.
                let pairs = choice.members().iter().zip(&servers);
                pairs.for_each(|(member, server)| member.server.weigh(server));
            }
            for (index, server) in servers.into_iter().enumerate() {
                if choice.members()[index].spec != server {
                    self.edit_member(state, &service, &mut choice, index, server);
                }
            }
        } else if let Ok(mut scheduler) = self.scheduler(&spec) {
            let placed = placed(state, &service, &servers);
            prepare_new(&mut *scheduler, &placed);
            let mut choice = service.choice();
            let exchanged =
                self.exchange(state, &service, &mut choice, Some(scheduler), servers, now);
            drop(choice);
            debug_assert!(exchanged.is_ok(), "its number of servers has been rehearsed");
        }
        service.set_spec(spec);
        if is_new && !is_added {
            service.zero();
        }
        state.show(service);
    }

    /// A service without servers; `None` if there is no such scheduler, which has been rehearsed.
    fn empty_service(&self, spec: &ServiceSpec) -> Option<Arc<Service>> {
        let scheduler = self.scheduler(spec).ok()?;
        Some(Arc::new(Service::new(spec.clone(), scheduler)))
    }

    /// Puts other servers into a service, and perhaps a scheduler that does not know the old ones.
    pub(super) fn exchange(
        &self,
        state: &mut State,
        service: &Arc<Service>,
        choice: &mut Choice,
        scheduler: Option<Box<dyn Scheduler>>,
        servers: Vec<ServerSpec>,
        now: Duration,
    ) -> Result<(), TooManyServers> {
        let mut members = Vec::with_capacity(servers.len());
        let mut revived = Vec::new();
        for server in servers {
            let known = choice.position(server.address).map(|index| &choice.members()[index]);
            members.push(match known {
                Some(member) => {
                    if Transmitter::from(&member.spec) != Transmitter::from(&server) {
                        state.trash.note_former(service.key, member);
                    }
                    let binding = self.bind(service, &member.server, &server);
                    Member { server: member.server.clone(), binding, spec: server }
                }
                None => {
                    let (real, former) = self.server(state, &service.key, &server);
                    revived.push((real.clone(), former));
                    let binding = self.bind(service, &real, &server);
                    Member { server: real, binding, spec: server }
                }
            });
        }
        let before = choice.replace(members, scheduler)?;
        for member in choice.members() {
            state.note_server(&service.key, &member.spec);
        }
        for (server, former) in revived {
            self.revive(state, service, &server, former);
        }
        for member in before {
            match choice.position(member.spec.address) {
                Some(_) => state.forget_server(&service.key, &member.spec),
                None => put_away(state, service, member, now),
            }
        }
        Ok(())
    }
}

/// Servers of a service as they are planned, those among them that it has now or had.
pub(super) fn placed(state: &State, service: &Service, servers: &[ServerSpec]) -> Vec<Placed> {
    let known: HashMap<SocketAddr, Arc<RealServer>> = {
        let choice = service.choice();
        choice.members().iter().map(|it| (it.spec.address, it.server.clone())).collect()
    };
    let removed = |address| state.trash.find(&service.key, address, Role::Server);
    let placed = |spec: &ServerSpec| match (known.get(&spec.address), removed(spec.address)) {
        (Some(server), _) => server.placed_with(spec),
        (None, Some(removed)) => removed.server.placed_with(spec),
        (None, None) => Placed::new(spec.address.ip(), spec.address.port(), spec.weight),
    };
    servers.iter().map(placed).collect()
}
