//! Who of a service's servers gets a new connection: the list, its scheduler, and the fallback
//! server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use schedulers::placement::Member as Placed;
use schedulers::{
    Change, Expirations, Key, Preparation, Prepared, Scheduler, Server, TooManyServers,
};

use crate::control::api::ServerSpec;
use crate::dispatch::connections::Binding;
use crate::dispatch::real_server::RealServer;
use crate::dispatch::transmitter::Transmitter;
use crate::dispatch::witness::Candidate;
use crate::health::servers::Standing;

/// One place in a service's list.
#[derive(Clone)]
pub struct Member {
    /// The server.
    pub server: Arc<RealServer>,
    /// What its new connections will have in common.
    pub binding: Arc<Binding>,
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
    /// Who takes new connections while that is asked for. No scheduler sees it.
    fallback: Option<Member>,
    falls_back: bool,
}

/// A server, how its packets reach it, and as it was asked for.
type Copied = (Arc<RealServer>, Transmitter, ServerSpec);

/// What has been copied of a choice.
pub(super) struct Forked {
    pub(super) scheduler: Box<dyn Scheduler>,
    pub(super) loads: Vec<Arc<Server>>,
    pub(super) members: Vec<Copied>,
    pub(super) fallback: Option<Copied>,
    pub(super) falls_back: bool,
}

impl Choice {
    /// No servers yet.
    pub(super) fn by(scheduler: Box<dyn Scheduler>) -> Choice {
        Choice {
            scheduler,
            loads: Vec::new(),
            members: Vec::new(),
            fallback: None,
            falls_back: false,
        }
    }

    /// Servers, newest first.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Where the server with `address` stands.
    pub fn position(&self, address: SocketAddr) -> Option<usize> {
        self.members.iter().position(|member| member.spec.address == address)
    }

    /// A copy for one choice by `key`: `server` makes copies of servers, and `bind` their bindings, once the
    /// copy of the scheduler is in place.
    pub(super) fn fork(
        &self,
        key: &Key,
        mut server: impl FnMut(&Arc<RealServer>) -> Arc<RealServer>,
    ) -> Forked {
        let mut copy = |member: &Member| {
            (server(&member.server), member.binding.transmitter, member.spec.clone())
        };
        let members: Vec<_> = self.members.iter().map(&mut copy).collect();
        let fallback = self.fallback.as_ref().map(&mut copy);
        let loads: Vec<_> = members.iter().map(|(server, ..)| server.load.clone()).collect();
        let scheduler = self.scheduler.fork(&loads, key);
        Forked { scheduler, loads, members, fallback, falls_back: self.falls_back }
    }

    /// Takes in what has been copied of another one, but for its scheduler.
    pub(super) fn take_in(
        &mut self,
        loads: Vec<Arc<Server>>,
        members: Vec<Member>,
        fallback: Option<Member>,
        falls_back: bool,
    ) {
        (self.loads, self.members) = (loads, members);
        (self.fallback, self.falls_back) = (fallback, falls_back);
    }

    /// What the scheduler goes by for `key`: where it begins, and each server's figure.
    pub(super) fn weigh(&self, key: &Key) -> (String, Vec<Candidate>) {
        let candidates = self.loads.iter().zip(&self.members).enumerate();
        let candidates = candidates.map(|(index, (load, member))| Candidate {
            server: member.server.address(),
            figure: self.scheduler.figure(index, load),
            excluded: match (load.weight(), load.is_overloaded()) {
                (..=0, _) if member.spec.weight > 0 => Some("down or draining, see dirctl servers"),
                (..=0, _) => Some("weight 0"),
                (_, true) => Some("at its upper threshold"),
                _ => None,
            },
        });
        (self.scheduler.bearings(&self.loads, key), candidates.collect())
    }

    /// The fallback server, if there is one.
    pub fn fallback(&self) -> Option<&Member> {
        self.fallback.as_ref()
    }

    /// All servers, the fallback server last.
    pub fn everyone(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().chain(&self.fallback)
    }

    /// Puts another fallback server, or none, in place of the one there is, which is returned.
    pub fn set_fallback(&mut self, member: Option<Member>) -> Option<Member> {
        std::mem::replace(&mut self.fallback, member)
    }

    /// Says whether new connections go to the fallback server, if there is one.
    pub fn fall_back(&mut self, on: bool) {
        self.falls_back = on;
    }

    /// The fallback server, while new connections go there.
    pub(super) fn standing_in(&self) -> Option<&Member> {
        self.fallback.as_ref().filter(|_| self.falls_back)
    }

    /// The servers as tables of hashing schedulers have them, newest first.
    pub fn placed(&self) -> Vec<Placed> {
        self.loads.iter().map(|load| Placed::of(load)).collect()
    }

    /// What the scheduler would rather do before it has these servers, if anything.
    pub fn plan(&self, servers: &[Placed]) -> Option<Preparation> {
        self.scheduler.plan(servers)
    }

    /// Hands what has come of that to the scheduler, for the next change.
    pub fn offer(&mut self, prepared: &Option<Prepared>) {
        prepared.iter().for_each(|prepared| self.scheduler.offer(prepared));
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

    /// Takes all servers out, as one change; newest first.
    pub fn remove_all(&mut self) -> Vec<Member> {
        self.loads.clear();
        // As above.
        let _ = self.scheduler.changed(&self.loads, Change::Bound);
        std::mem::take(&mut self.members)
    }

    /// Replaces what was asked for of the server at `index`; its address stays. `binding` is that of
    /// the forwarding method it now has.
    pub fn edit(&mut self, index: usize, spec: ServerSpec, binding: Arc<Binding>) {
        self.members[index].server.weigh(&spec);
        (self.members[index].spec, self.members[index].binding) = (spec, binding);
        // As above: the list has not grown.
        let _ = self.scheduler.changed(&self.loads, Change::Edited { index });
    }

    /// Health judges the server at `index` so from now on. The effective weights before and after.
    pub fn stand(&mut self, index: usize, standing: Standing) -> (i32, i32) {
        let Member { server, spec, .. } = &self.members[index];
        let before = server.load.weight();
        server.set_standing(standing);
        server.weigh(spec);
        let after = server.load.weight();
        if before != after {
            // As above.
            let _ = self.scheduler.changed(&self.loads, Change::Edited { index });
        }
        (before, after)
    }

    /// Puts a new life of the server at `index` in place of the old one, which is returned.
    pub fn renew(&mut self, index: usize, next: Arc<RealServer>, binding: Arc<Binding>) -> Member {
        self.loads[index] = next.load.clone();
        let spec = self.members[index].spec.clone();
        let next = Member { server: next, binding, spec };
        let old = std::mem::replace(&mut self.members[index], next);
        // As above.
        let _ = self.scheduler.changed(&self.loads, Change::Replaced { index });
        old
    }

    /// Tells the scheduler how long to remember.
    pub fn set_expirations(&mut self, expirations: &Expirations) {
        self.scheduler.set_expirations(expirations);
    }

    /// Puts other servers, newest first, in place of those there are, and another scheduler if there is
    /// one, as one change. Returns the servers that were there.
    ///
    /// # Errors
    /// When the scheduler cannot hold them; nothing has changed then but the weights and thresholds of
    /// servers that stay.
    pub fn replace(
        &mut self,
        members: Vec<Member>,
        scheduler: Option<Box<dyn Scheduler>>,
    ) -> Result<Vec<Member>, TooManyServers> {
        let loads: Vec<_> = members.iter().map(|member| member.server.load.clone()).collect();
        for Member { server, spec, .. } in &members {
            server.weigh(spec);
        }
        match scheduler {
            Some(mut scheduler) => {
                scheduler.changed(&loads, Change::Bound)?;
                self.scheduler = scheduler;
            }
            None => self.scheduler.changed(&loads, Change::Bound)?,
        }
        self.loads = loads;
        Ok(std::mem::replace(&mut self.members, members))
    }

    /// Binds another scheduler to the same servers. Returns the old one, with whose tables the lock
    /// need not be held.
    ///
    /// # Errors
    /// When it cannot hold them; the old one stays.
    pub fn replace_scheduler(
        &mut self,
        mut new: Box<dyn Scheduler>,
    ) -> Result<Box<dyn Scheduler>, TooManyServers> {
        new.changed(&self.loads, Change::Bound)?;
        Ok(std::mem::replace(&mut self.scheduler, new))
    }

    /// The member for a new connection.
    pub(super) fn choose(&mut self, key: &Key, now: Duration) -> Option<&Member> {
        let index = self.scheduler.choose(&self.loads, key, now)?;
        self.members.get(index)
    }
}
