//! A virtual service as workers see it: its scheduler, its servers, its counters.

mod services;
mod sharded;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use schedulers::{Change, Expirations, Key, Scheduler, Server, TooManyServers};

use super::ftp::FTP;
use super::policy::Policy;
pub use super::real_server::RealServer;
use super::traffic::Traffic;
use super::transmitter::Transmitter;
use crate::control::api::{ServerSpec, ServiceKey, ServiceSpec};
pub use services::Services;

/// One place in a service's list.
#[derive(Clone, Debug)]
pub struct Member {
    /// The server.
    pub server: Arc<RealServer>,
    /// As it was asked for, forwarding method included.
    pub spec: ServerSpec,
}

/// Scheduler and servers of a service: they change together, under one lock that only a new
/// connection and the control plane take.
pub struct Choice {
    scheduler: Box<dyn Scheduler>,
    /// What the scheduler walks over, newest first.
    loads: Vec<Arc<Server>>,
    members: Vec<Member>,
}

impl Choice {
    /// Servers, newest first.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Where the server with `address` stands.
    pub fn position(&self, address: SocketAddr) -> Option<usize> {
        self.members.iter().position(|member| member.spec.address == address)
    }

    /// Puts a server at the head.
    ///
    /// # Errors
    /// When the scheduler cannot hold one more; nothing has changed then.
    pub fn add(&mut self, member: Member) -> Result<(), TooManyServers> {
        self.loads.insert(0, member.server.load.clone());
        self.members.insert(0, member);
        let accepted = self.scheduler.changed(&self.loads, Change::Added);
        if accepted.is_err() {
            self.remove(0);
        }
        accepted
    }

    /// Takes the server at `index` out.
    pub fn remove(&mut self, index: usize) -> Member {
        let id = self.loads.remove(index).id();
        let member = self.members.remove(index);
        // A shorter list than one it held is never refused.
        let _ = self.scheduler.changed(&self.loads, Change::Removed { index, id });
        member
    }

    /// Replaces what was asked for of the server at `index`; its address stays.
    pub fn edit(&mut self, index: usize, spec: ServerSpec) {
        let load = &self.members[index].server.load;
        load.set_weight(spec.weight);
        load.set_thresholds(spec.upper_threshold, spec.lower_threshold);
        self.members[index].spec = spec;
        // As above: the list has not grown.
        let _ = self.scheduler.changed(&self.loads, Change::Edited { index });
    }

    /// Tells the scheduler how long to remember.
    pub fn set_expirations(&mut self, expirations: &Expirations) {
        self.scheduler.set_expirations(expirations);
    }

    /// Puts other servers, newest first, and another scheduler in place of those there are, as one
    /// change. Returns the servers that were there.
    ///
    /// # Errors
    /// When the scheduler cannot hold them; nothing has changed then but the weights and thresholds of
    /// servers that stay.
    pub fn replace(
        &mut self,
        members: Vec<Member>,
        mut scheduler: Box<dyn Scheduler>,
    ) -> Result<Vec<Member>, TooManyServers> {
        let loads: Vec<_> = members.iter().map(|member| member.server.load.clone()).collect();
        for Member { server, spec } in &members {
            server.load.set_weight(spec.weight);
            server.load.set_thresholds(spec.upper_threshold, spec.lower_threshold);
        }
        scheduler.changed(&loads, Change::Bound)?;
        self.scheduler = scheduler;
        self.loads = loads;
        Ok(std::mem::replace(&mut self.members, members))
    }

    /// Binds another scheduler to the same servers.
    ///
    /// # Errors
    /// When it cannot hold them; the old one stays.
    pub fn replace_scheduler(&mut self, mut new: Box<dyn Scheduler>) -> Result<(), TooManyServers> {
        new.changed(&self.loads, Change::Bound)?;
        self.scheduler = new;
        Ok(())
    }

    /// The member for a new connection.
    fn choose(&mut self, key: &Key, now: Duration) -> Option<&Member> {
        let index = self.scheduler.choose(&self.loads, key, now)?;
        self.members.get(index)
    }
}

/// A virtual service. Workers share it; what an edit changes is behind the lock of [`Choice`] or
/// in a new snapshot.
pub struct Service {
    /// Its name.
    pub key: ServiceKey,
    /// Counters.
    pub traffic: Traffic,
    /// What it does beyond the kernel's.
    pub policy: Policy,
    choice: Mutex<Choice>,
    /// What bypassing connections have in place of a server, once there has been one.
    nobody: OnceLock<Arc<RealServer>>,
    spec: Mutex<ServiceSpec>,
    /// `spec.one_packet`, for workers, who take no lock to ask.
    one_packet: AtomicBool,
    /// Whether `spec.persistence` has the engine `sip`, likewise.
    by_call: AtomicBool,
}

/// What the scheduler has decided for a new connection.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The server.
    pub server: Arc<RealServer>,
    /// How packets reach it now; the connection keeps this.
    pub transmitter: Transmitter,
}

impl Service {
    /// A service without servers.
    pub fn new(mut spec: ServiceSpec, scheduler: Box<dyn Scheduler>) -> Service {
        Service {
            key: spec.key,
            traffic: Traffic::default(),
            policy: Policy::new(spec.extras.get_or_insert_default()),
            choice: Mutex::new(Choice { scheduler, loads: Vec::new(), members: Vec::new() }),
            nobody: OnceLock::new(),
            one_packet: AtomicBool::new(spec.one_packet),
            by_call: AtomicBool::new(has_engine(&spec)),
            spec: Mutex::new(spec),
        }
    }

    /// In place of a server, for connections that bypass them all: it is in no list, and is
    /// always there.
    pub fn nobody(&self) -> &Arc<RealServer> {
        self.nobody.get_or_init(|| Arc::new(RealServer::nobody(self.key.is_ipv6())))
    }

    /// The same, if connections bypass the servers or did.
    pub fn bypassed(&self) -> Option<&Arc<RealServer>> {
        self.nobody.get()
    }

    /// Whether a connection or a template refers to one of its servers, or bypasses them.
    pub fn has_connections(&self) -> bool {
        let choice = self.choice();
        let servers = choice.members().iter().map(|member| &member.server);
        servers.chain(self.bypassed()).any(|server| server.has_connections())
    }

    /// Counters of the service and its servers begin anew.
    pub fn zero(&self) {
        self.traffic.zero();
        self.choice().members().iter().for_each(|member| member.server.traffic.zero());
    }

    /// Locks scheduler and servers. A worker that panicked while it held the lock has left a
    /// consistent list behind (each change is complete before the scheduler hears of it).
    pub fn choice(&self) -> MutexGuard<'_, Choice> {
        self.choice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The service as it was asked for.
    pub fn spec(&self) -> ServiceSpec {
        self.spec.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces what was asked for; the key stays, and so do extras that are not spoken of.
    pub fn set_spec(&self, spec: ServiceSpec) {
        self.one_packet.store(spec.one_packet, Relaxed);
        self.by_call.store(has_engine(&spec), Relaxed);
        let mut current = self.spec.lock().unwrap_or_else(PoisonError::into_inner);
        let extras = spec.extras.or(current.extras);
        self.policy.set(&extras.unwrap_or_default());
        *current = ServiceSpec { extras, ..spec };
    }

    /// Timeout (seconds) and client prefix of its templates, when it is persistent.
    pub fn persistence(&self) -> Option<(u32, u8)> {
        let spec = self.spec.lock().unwrap_or_else(PoisonError::into_inner);
        let persistence = spec.persistence.as_ref()?;
        Some((persistence.timeout, persistence.prefix))
    }

    /// The server's port for a packet to `port`, where the server was added with `own`. Its own
    /// counts for the one port that the service has, not for those of a service for every port, of
    /// a persistent mark, or of FTP's data connections.
    pub fn port_at_server(&self, own: u16, port: u16) -> u16 {
        let counts = match self.key {
            ServiceKey::Address { address, .. } => address.port() == port,
            ServiceKey::Fwmark { .. } => self.persistence().is_none(),
        };
        if counts && own != 0 { own } else { port }
    }

    /// Whether each datagram is scheduled by itself.
    pub fn is_one_packet(&self) -> bool {
        self.one_packet.load(Relaxed)
    }

    /// Whether its templates go by the Call-ID of SIP.
    pub fn goes_by_call(&self) -> bool {
        self.by_call.load(Relaxed)
    }

    /// Its virtual address and port, when it is named by them and has a port.
    pub fn address(&self) -> Option<(IpAddr, u16)> {
        match self.key {
            ServiceKey::Address { address, .. } if address.port() != 0 => {
                Some((address.ip(), address.port()))
            }
            _ => None,
        }
    }

    /// Its port, 0 when it serves every port.
    pub fn port(&self) -> u16 {
        match self.key {
            ServiceKey::Address { address, .. } => address.port(),
            ServiceKey::Fwmark { .. } => 0,
        }
    }

    /// The port its templates carry: 0 when they are for connections to more than one port.
    pub fn template_port(&self) -> u16 {
        match self.port() {
            FTP => 0,
            port => port,
        }
    }

    /// Asks the scheduler for a server.
    pub fn schedule(&self, key: &Key, now: Duration) -> Option<Decision> {
        let mut choice = self.choice();
        let member = choice.choose(key, now)?;
        Some(Decision {
            server: member.server.clone(),
            transmitter: Transmitter::from(&member.spec),
        })
    }
}

fn has_engine(spec: &ServiceSpec) -> bool {
    spec.persistence.as_ref().is_some_and(|persistence| persistence.engine.is_some())
}
