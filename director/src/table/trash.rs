//! What has left the table but not yet its connections: removed servers, lives of servers that are
//! over, and forwarding methods that a server no longer has.
//!
//! As in the kernel, a removed server is kept for a while, and longer while it has connections: it
//! comes back with them and with its counters when it is added again (as with the kernel's trash). Until then
//! its packets must keep coming to us: those of clients would be reset by the kernel's stack, those
//! of NAT servers would reach clients untranslated. A life that is over does not come back; it is kept
//! for its dead connections, whose packets have to come to us to be answered.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::ftp;
use super::interests::{Interest, of_server, of_service};
use super::marks::Marks;
use crate::control::api::ServiceKey;
use crate::dispatch::ftp::Ports;
use crate::dispatch::service::{Member, RealServer, Service};
use crate::dispatch::transmitter::Transmitter;

/// How long a removed server is kept at least, to be revived with its counters (as with the kernel's trash).
pub(super) const TRASH_TIME: Duration = Duration::from_secs(120);

/// How long a life that is over is kept at least: a worker that has just chosen it for a new
/// connection has long made that by then.
const LOST_TIME: Duration = Duration::from_secs(5);

/// As what something that is in the trash may come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A server among others.
    Server,
    /// The fallback server.
    Fallback,
    /// It does not come back.
    None,
}

/// See the module.
#[derive(Default)]
pub(super) struct Trash {
    services: HashMap<ServiceKey, Heap>,
}

/// What is left of the servers of one service.
#[derive(Default)]
struct Heap {
    removed: Vec<Removed>,
    former: Vec<Former>,
}

/// A removed server, or a life of one that is over.
pub(super) struct Removed {
    /// The service that it was removed from, or that was removed with it.
    pub(super) service: Arc<Service>,
    pub(super) server: Arc<RealServer>,
    role: Role,
    transmitter: Transmitter,
    since: Duration,
    /// Whether it had connections when last looked at.
    busy: bool,
}

/// A server's forwarding method before an edit: its connections keep it.
struct Former {
    server: Arc<RealServer>,
    transmitter: Transmitter,
}

impl Trash {
    /// Keeps a server that has just been removed.
    pub(super) fn put(&mut self, service: &Arc<Service>, member: Member, now: Duration) {
        member.server.set_available(false);
        let transmitter = Transmitter::from(&member.spec);
        self.keep(service, member.server, Role::Server, transmitter, now);
    }

    /// Keeps a fallback server that has just been removed.
    pub(super) fn put_fallback(&mut self, service: &Arc<Service>, member: Member, now: Duration) {
        member.server.set_available(false);
        let transmitter = Transmitter::from(&member.spec);
        self.keep(service, member.server, Role::Fallback, transmitter, now);
    }

    /// Keeps a life of a server that has just ended.
    pub(super) fn put_lost(&mut self, service: &Arc<Service>, member: Member, now: Duration) {
        let transmitter = Transmitter::from(&member.spec);
        self.keep(service, member.server, Role::None, transmitter, now);
    }

    /// Keeps what the connections that bypass the servers of a service have in place of one, now
    /// that the service has been removed: they go on.
    pub(super) fn put_bypassed(&mut self, service: &Arc<Service>, now: Duration) {
        if let Some(nobody) = service.bypassed() {
            self.keep(service, nobody.clone(), Role::None, Transmitter::Bypass, now);
        }
    }

    fn keep(
        &mut self,
        service: &Arc<Service>,
        server: Arc<RealServer>,
        role: Role,
        transmitter: Transmitter,
        now: Duration,
    ) {
        self.services.entry(service.key).or_default().removed.push(Removed {
            service: service.clone(),
            role,
            transmitter,
            since: now,
            busy: server.has_connections(),
            server,
        });
    }

    /// The removed server that would come back as `address` of the service `key`, in this role.
    pub(super) fn find(
        &self,
        key: &ServiceKey,
        address: SocketAddr,
        role: Role,
    ) -> Option<&Removed> {
        let removed = &self.services.get(key)?.removed;
        removed.iter().find(|it| it.role == role && it.server.address() == address)
    }

    /// Forgets a server that has come back.
    pub(super) fn forget(&mut self, key: &ServiceKey, server: &Arc<RealServer>) {
        if let Some(heap) = self.services.get_mut(key) {
            heap.removed.retain(|removed| !Arc::ptr_eq(&removed.server, server));
        }
    }

    /// Notes that a server had another forwarding method so far.
    pub(super) fn note_former(&mut self, service: ServiceKey, member: &Member) {
        let (transmitter, server) = (Transmitter::from(&member.spec), &member.server);
        if !server.has_connections() {
            return;
        }
        let former = &mut self.services.entry(service).or_default().former;
        let is_known =
            |known: &Former| Arc::ptr_eq(&known.server, server) && known.transmitter == transmitter;
        if !former.iter().any(is_known) {
            former.push(Former { server: server.clone(), transmitter });
        }
    }

    /// Forgets what nobody needs any more by `now`. Tells `changed` the services of which
    /// [`interests`](Trash::interests) may have become fewer.
    /// Returns the servers that are forgotten.
    pub(super) fn sweep(
        &mut self,
        now: Duration,
        mut changed: impl FnMut(ServiceKey),
    ) -> Vec<Arc<RealServer>> {
        let mut forgotten = Vec::new();
        self.services.retain(|key, heap| {
            if heap.sweep(now, &mut forgotten) {
                changed(*key);
            }
            !heap.removed.is_empty() || !heap.former.is_empty()
        });
        forgotten
    }

    /// Services, by name, of which something is left.
    pub(super) fn keys(&self) -> impl Iterator<Item = ServiceKey> + '_ {
        self.services.keys().copied()
    }

    /// Services, by name, of which removed servers still have connections.
    pub(super) fn busy_services(&self) -> impl Iterator<Item = ServiceKey> + '_ {
        let is_busy = |heap: &Heap| heap.removed.iter().any(|removed| removed.busy);
        self.services.iter().filter(move |(_, heap)| is_busy(heap)).map(|(key, _)| *key)
    }

    /// What must still be steered to us for the service `key`.
    pub(super) fn interests(
        &self,
        key: &ServiceKey,
        ports: &Ports,
        marks: &Marks,
    ) -> Vec<Interest> {
        let mut interests = Vec::new();
        let Some(heap) = self.services.get(key) else { return interests };
        for removed in heap.removed.iter().filter(|removed| removed.busy) {
            interests.extend(of_service(key));
            interests.extend(ftp::of_service(&removed.service));
        }
        let removed =
            heap.removed.iter().map(|removed| (removed.transmitter, removed.server.address()));
        let former = heap.former.iter().map(|former| (former.transmitter, former.server.address()));
        for (transmitter, server) in removed.chain(former) {
            interests.extend(of_server(key, transmitter, server, marks));
            interests.extend(ftp::of_server(ports, key, transmitter, server));
        }
        interests
    }
}

impl Heap {
    /// Forgets what nobody needs any more; whether what is left has become less.
    fn sweep(&mut self, now: Duration, forgotten: &mut Vec<Arc<RealServer>>) -> bool {
        let before = self.removed.len() + self.former.len();
        self.former.retain(|former| former.server.has_connections());
        let stays = |it: &Removed| {
            let least = if it.server.is_lost() { LOST_TIME } else { TRASH_TIME };
            now < it.since + least || it.server.has_connections()
        };
        forgotten.extend(self.removed.extract_if(.., |it| !stays(it)).map(|it| it.server));
        let mut changed = self.removed.len() + self.former.len() != before;
        for removed in &mut self.removed {
            if removed.busy && !removed.server.has_connections() {
                removed.busy = false;
                changed = true;
            }
        }
        changed
    }
}
