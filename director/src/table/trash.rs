//! What has left the table but not yet its connections: removed servers, and forwarding methods
//! that a server no longer has.
//!
//! As in the kernel, a removed server is kept for a while, and longer while it has connections: it
//! comes back with them and with its counters when it is added again (as with the kernel's trash). Until then
//! its packets must keep coming to us: those of clients would be reset by the kernel's stack, those
//! of NAT servers would reach clients untranslated.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::ftp;
use super::interests::{Interest, of_server, of_service};
use super::marks::Marks;
use crate::control::api::ServiceKey;
use crate::dispatch::connections::Connections;
use crate::dispatch::ftp::Ports;
use crate::dispatch::service::{Member, RealServer, Service};
use crate::dispatch::transmitter::Transmitter;

/// How long a removed server is kept at least, to be revived with its counters (as with the kernel's trash).
pub(super) const TRASH_TIME: Duration = Duration::from_secs(120);

/// See the module.
#[derive(Default)]
pub(super) struct Trash {
    removed: Vec<Removed>,
    former: Vec<Former>,
}

/// A removed server.
pub(super) struct Removed {
    /// The service that it was removed from, or that was removed with it.
    pub(super) service: Arc<Service>,
    pub(super) server: Arc<RealServer>,
    transmitter: Transmitter,
    since: Duration,
    /// Whether it had connections when last looked at.
    busy: bool,
}

/// A server's forwarding method before an edit: its connections keep it.
struct Former {
    service: ServiceKey,
    server: Arc<RealServer>,
    transmitter: Transmitter,
}

impl Trash {
    /// Keeps a server that has just been removed.
    pub(super) fn put(&mut self, service: &Arc<Service>, member: Member, now: Duration) {
        member.server.set_available(false);
        self.keep(service, member.server, Transmitter::from(&member.spec), now);
    }

    /// Keeps what the connections that bypass the servers of a service have in place of one, now
    /// that the service has been removed: they go on.
    pub(super) fn put_bypassed(&mut self, service: &Arc<Service>, now: Duration) {
        if let Some(nobody) = service.bypassed() {
            self.keep(service, nobody.clone(), Transmitter::Bypass, now);
        }
    }

    fn keep(
        &mut self,
        service: &Arc<Service>,
        server: Arc<RealServer>,
        transmitter: Transmitter,
        now: Duration,
    ) {
        self.removed.push(Removed {
            service: service.clone(),
            transmitter,
            since: now,
            busy: server.has_connections(),
            server,
        });
    }

    /// The removed server that would come back as `address` of the service `key`.
    pub(super) fn find(&self, key: &ServiceKey, address: SocketAddr) -> Option<&Removed> {
        self.removed.iter().find(|removed| removed.is(key, address))
    }

    /// Forgets a server that has come back.
    pub(super) fn forget(&mut self, key: &ServiceKey, address: SocketAddr) {
        self.removed.retain(|removed| !removed.is(key, address));
    }

    /// Notes that a server had another forwarding method so far.
    pub(super) fn note_former(&mut self, service: ServiceKey, member: &Member) {
        let (transmitter, server) = (Transmitter::from(&member.spec), &member.server);
        let is_known =
            |known: &Former| Arc::ptr_eq(&known.server, server) && known.transmitter == transmitter;
        if server.has_connections() && !self.former.iter().any(is_known) {
            self.former.push(Former { service, server: server.clone(), transmitter });
        }
    }

    /// Forgets what nobody needs any more by `now`. True when [`interests`](Trash::interests) may
    /// have become fewer.
    pub(super) fn sweep(&mut self, now: Duration, connections: &Connections) -> bool {
        let before = self.removed.len() + self.former.len();
        self.former.retain(|former| former.server.has_connections());
        self.removed.retain(|removed| {
            let stays = now < removed.since + TRASH_TIME || removed.server.has_connections();
            if !stays {
                connections.unbind(&removed.server, now);
            }
            stays
        });
        let mut changed = self.removed.len() + self.former.len() != before;
        for removed in &mut self.removed {
            if removed.busy && !removed.server.has_connections() {
                removed.busy = false;
                changed = true;
            }
        }
        changed
    }

    /// Services, by name, of which removed servers still have connections.
    pub(super) fn busy_services(&self) -> impl Iterator<Item = ServiceKey> + '_ {
        self.removed.iter().filter(|removed| removed.busy).map(|removed| removed.service.key)
    }

    /// What must still be steered to us.
    pub(super) fn interests<'a>(
        &'a self,
        ports: &'a Ports,
        marks: &'a Marks,
    ) -> impl Iterator<Item = Interest> + 'a {
        let services = self.removed.iter().filter(|removed| removed.busy).flat_map(|removed| {
            let data = ftp::of_service(&removed.service);
            of_service(&removed.service.key).into_iter().chain(data)
        });
        let removed = self
            .removed
            .iter()
            .map(|removed| (&removed.service.key, removed.transmitter, removed.server.address()));
        let former = self
            .former
            .iter()
            .map(|former| (&former.service, former.transmitter, former.server.address()));
        services.chain(removed.chain(former).flat_map(|(service, transmitter, server)| {
            let data = ftp::of_server(ports, service, transmitter, server);
            of_server(service, transmitter, server, marks).into_iter().chain(data)
        }))
    }
}

impl Removed {
    fn is(&self, key: &ServiceKey, address: SocketAddr) -> bool {
        self.service.key == *key && self.server.address() == address
    }
}
