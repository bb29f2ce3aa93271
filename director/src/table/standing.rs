//! What health says of servers, put into effect.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::Table;
use super::views::shown;
use crate::control::api::ServiceKey;
use crate::dispatch::service::{Choice, Service};
use crate::health::servers::{Pool, Servers, Standing};

impl Table {
    /// Does something about a server, if there is such a one.
    fn with_server<T>(
        &self,
        service: &ServiceKey,
        server: SocketAddr,
        act: impl FnOnce(&mut Choice, usize) -> T,
    ) -> Option<T> {
        let service = self.service(service)?;
        let mut choice = service.choice();
        let index = choice.position(server)?;
        Some(act(&mut choice, index))
    }

    pub(super) fn service(&self, key: &ServiceKey) -> Option<Arc<Service>> {
        self.lock().services.find(key).ok().cloned()
    }
}

impl Servers for Table {
    fn pool(&self, service: &ServiceKey) -> Option<Pool> {
        let service = self.service(service)?;
        let choice = service.choice();
        let servers = choice.members().iter().map(|member| shown(&member.spec)).collect();
        Some(Pool { servers })
    }

    fn stand(
        &self,
        service: &ServiceKey,
        server: SocketAddr,
        standing: Standing,
    ) -> Option<(i32, i32)> {
        let judged = self.service(service)?;
        let prepared = judged.prepare(|choice| {
            let mut placed = choice.placed();
            if let Some(index) = choice.position(server) {
                let member = &choice.members()[index];
                placed[index] = member.server.placed_as(&member.spec, standing);
            }
            placed
        });
        self.with_server(service, server, |choice, index| {
            choice.offer(&prepared);
            choice.stand(index, standing)
        })
    }

    /// A new life of the server takes the place of this one. Whoever looks for a server finds the new
    /// one before the old one is dead: no connection is begun in vain.
    fn lose(
        &self,
        service: &ServiceKey,
        server: SocketAddr,
        is_certain: bool,
        now: Duration,
    ) -> bool {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Ok(service) = state.services.find(service).cloned() else { return false };
        let mut choice = service.choice();
        let Some(index) = choice.position(server) else { return false };
        let member = &choice.members()[index];
        let stays = service.policy.keeps_lost() && !is_certain;
        if stays || !member.server.has_connections() {
            return true;
        }
        let next = Arc::new(member.server.next_life());
        let binding = self.bind(&service, &next, &member.spec);
        let old = choice.renew(index, next, binding);
        drop(choice);
        old.server.lose();
        state.trash.put_lost(&service, old, now);
        state.touch(&service);
        state.orphaned = true;
        if service.policy.rouses_lost() {
            self.eager.begin();
        }
        self.publish(state);
        true
    }

    fn report(&self, service: &ServiceKey, server: SocketAddr, load: Option<u16>) -> bool {
        self.with_server(service, server, |choice, index| {
            choice.members()[index].server.load.report(load);
        })
        .is_some()
    }

    fn fall_back(&self, service: &ServiceKey, on: bool) -> bool {
        let Some(service) = self.service(service) else { return false };
        let mut choice = service.choice();
        choice.fall_back(on);
        choice.fallback().is_some()
    }
}
