//! A virtual service as workers see it: its scheduler, its servers, its counters.

mod choice;
mod services;
mod sharded;

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use schedulers::placement::Member as Placed;
use schedulers::{Key, Preparation, Prepared, Scheduler};

use super::connections::{Binding, Connections};
use super::ftp::FTP;
use super::policy::Policy;
pub use super::real_server::RealServer;
use super::traffic::Traffic;
use super::witness::Candidate;
use crate::control::api::{ServiceKey, ServiceSpec};
pub use choice::{Choice, Member};
pub use services::Services;

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
    /// Whether it goes by the names of DNS questions, likewise.
    by_name: AtomicBool,
}

/// What the scheduler has decided for a new connection.
#[derive(Clone)]
pub struct Decision {
    /// The server, and how packets reach it now; the connection keeps this.
    pub binding: Arc<Binding>,
    /// Whether it is the fallback server, which is for this connection only.
    pub is_makeshift: bool,
}

impl Service {
    /// A service without servers.
    pub fn new(mut spec: ServiceSpec, scheduler: Box<dyn Scheduler>) -> Service {
        schedule_by_name_one_by_one(&mut spec);
        Service {
            key: spec.key,
            traffic: Traffic::default(),
            policy: Policy::new(spec.extras.get_or_insert_default()),
            choice: Mutex::new(Choice::by(scheduler)),
            nobody: OnceLock::new(),
            one_packet: AtomicBool::new(spec.one_packet),
            by_call: AtomicBool::new(has_engine(&spec)),
            by_name: AtomicBool::new(spec.goes_by_name()),
            spec: Mutex::new(spec),
        }
    }

    /// A copy with all its servers, for one choice by `key`. `server` makes copies of servers;
    /// their bindings are in `connections`.
    pub(super) fn fork(
        &self,
        key: &Key,
        connections: &Connections,
        server: impl FnMut(&Arc<RealServer>) -> Arc<RealServer>,
    ) -> Arc<Service> {
        let forked = self.choice().fork(key, server);
        let copy = Arc::new(Service::new(self.spec(), forked.scheduler));
        let bound = |(server, transmitter, spec)| {
            let binding = connections.bind(&copy, &server, transmitter);
            Member { server, binding, spec }
        };
        let members = forked.members.into_iter().map(bound).collect();
        let fallback = forked.fallback.map(bound);
        copy.choice().take_in(forked.loads, members, fallback, forked.falls_back);
        copy
    }

    /// What the scheduler would go by for `key`: where it begins to look, and what each server comes to.
    pub fn weigh(&self, key: &Key) -> (String, Vec<Candidate>) {
        self.choice().weigh(key)
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
        let servers = choice.everyone().map(|member| &member.server);
        servers.chain(self.bypassed()).any(|server| server.has_connections())
    }

    /// Counters of the service and its servers begin anew.
    pub fn zero(&self) {
        self.traffic.zero();
        self.choice().everyone().for_each(|member| member.server.traffic.zero());
    }

    /// Locks scheduler and servers. A worker that panicked while it held the lock has left a
    /// consistent list behind (each change is complete before the scheduler hears of it).
    pub fn choice(&self) -> MutexGuard<'_, Choice> {
        self.choice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the scheduler work before a change, while new connections go on being scheduled: a table of
    /// many servers takes a while. `to_be` makes the servers as they will be of those there are. Hand
    /// what comes of it to [`Choice::offer`] with the change, and drop it after the lock.
    pub fn prepare(&self, to_be: impl FnOnce(&Choice) -> Vec<Placed>) -> Option<Prepared> {
        let plan = {
            let choice = self.choice();
            choice.plan(&to_be(&choice))
        };
        plan.map(Preparation::run)
    }

    /// The service as it was asked for.
    pub fn spec(&self) -> ServiceSpec {
        self.spec.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces what was asked for; the key stays, and so do extras that are not spoken of.
    pub fn set_spec(&self, spec: ServiceSpec) {
        let mut current = self.spec.lock().unwrap_or_else(PoisonError::into_inner);
        let mut spec = ServiceSpec { extras: spec.extras.or(current.extras), ..spec };
        schedule_by_name_one_by_one(&mut spec);
        self.one_packet.store(spec.one_packet, Relaxed);
        self.by_call.store(has_engine(&spec), Relaxed);
        self.by_name.store(spec.goes_by_name(), Relaxed);
        self.policy.set(&spec.extras.unwrap_or_default());
        *current = spec;
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

    /// Whether its scheduler goes by the names of DNS questions.
    pub fn goes_by_name(&self) -> bool {
        self.by_name.load(Relaxed)
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

    /// The binding of the member with the highest score; those with none do not count. While the
    /// fallback server stands in, it alone counts.
    pub fn choose_by<S: Ord>(
        &self,
        mut score: impl FnMut(&Member) -> Option<S>,
    ) -> Option<Arc<Binding>> {
        let choice = self.choice();
        if let Some(fallback) = choice.standing_in() {
            return score(fallback).map(|_| fallback.binding.clone());
        }
        let scored = choice.members().iter().filter_map(|it| Some((score(it)?, &it.binding)));
        scored.max_by(|(one, _), (other, _)| one.cmp(other)).map(|(_, binding)| binding.clone())
    }

    /// Asks the scheduler for a server.
    pub fn schedule(&self, key: &Key, now: Duration) -> Option<Decision> {
        let mut choice = self.choice();
        if let Some(fallback) = choice.standing_in() {
            return Some(Decision { binding: fallback.binding.clone(), is_makeshift: true });
        }
        let member = choice.choose(key, now)?;
        member.server.traffic.pick();
        Some(Decision { binding: member.binding.clone(), is_makeshift: false })
    }
}

/// A client asks for many names from one port: no connection may stick to a server then.
fn schedule_by_name_one_by_one(spec: &mut ServiceSpec) {
    spec.one_packet |= spec.goes_by_name();
}

fn has_engine(spec: &ServiceSpec) -> bool {
    spec.persistence.as_ref().is_some_and(|persistence| persistence.engine.is_some())
}
