//! What many connections have in common: their service, their server and how packets reach it.
//!
//! A connection's slot has no room for all that, so it holds a number. Workers look numbers up in a
//! snapshot; the control plane makes a binding before a scheduler may choose it, and takes it away
//! when nothing refers to it any more. A number is not used again for a while, so nobody with an
//! old snapshot takes one binding for another.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use hashbrown::HashMap;

use crate::dispatch::service::{RealServer, Service};
use crate::dispatch::transmitter::Transmitter;

/// How long a number is nobody's.
const QUARANTINE: Duration = Duration::from_secs(60);

/// Bindings that a change of one copies with it.
const CHUNK: usize = 256;

/// See the module.
#[derive(Clone)]
pub struct Binding {
    /// Its number.
    pub(super) id: u32,
    /// The service.
    pub service: Arc<Service>,
    /// The server.
    pub server: Arc<RealServer>,
    /// How packets reach the server.
    pub transmitter: Transmitter,
    /// The server's address.
    pub address: IpAddr,
    /// The same as a number.
    pub(super) bits: u128,
}

impl Binding {
    /// Its number: below [`Bindings::len`], and nobody else's at the time.
    #[inline(always)]
    pub fn id(&self) -> usize {
        self.id as usize
    }

    /// The same with another server in place of this one's.
    pub(in crate::dispatch) fn with(&self, server: Arc<RealServer>) -> Binding {
        Binding { server, ..self.clone() }
    }

    /// The server's address as a number; one of IPv4 is in the lowest 32 bits.
    #[inline(always)]
    pub fn address_bits(&self) -> u128 {
        self.bits
    }

    /// Counts a packet of a connection, or one about it (an ICMP error): `bytes` of IP.
    pub fn counted(&self, bytes: usize, incoming: bool) {
        self.counted_all(1, bytes as u64, incoming);
    }

    /// Counts several.
    pub fn counted_all(&self, packets: u64, bytes: u64, incoming: bool) {
        if !self.transmitter.has_server() {
            return;
        }
        for traffic in [&self.service.traffic, &self.server.traffic] {
            if incoming {
                traffic.incoming(packets, bytes);
            } else {
                traffic.outgoing(packets, bytes);
            }
        }
    }
}

type Chunk = [Option<Arc<Binding>>; CHUNK];

/// All bindings at one time, by number.
#[derive(Clone, Default)]
pub struct Bindings {
    chunks: Vec<Arc<Chunk>>,
}

impl Bindings {
    /// Binding number `id`.
    #[inline(always)]
    pub fn get(&self, id: u32) -> Option<&Arc<Binding>> {
        self.chunks.get(id as usize / CHUNK)?[id as usize % CHUNK].as_ref()
    }

    /// Numbers are below this.
    pub fn len(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    fn set(&mut self, id: u32, binding: Option<Arc<Binding>>) {
        let chunk = id as usize / CHUNK;
        if chunk == self.chunks.len() {
            self.chunks.push(Arc::new([const { None }; CHUNK]));
        }
        if let Some(chunk) = self.chunks.get_mut(chunk) {
            Arc::make_mut(chunk)[id as usize % CHUNK] = binding;
        }
    }
}

/// What only changes need.
#[derive(Default)]
struct Ledger {
    next: u32,
    /// Numbers to be used again.
    free: Vec<u32>,
    /// Numbers that are no more in use, and since when.
    quarantined: VecDeque<(u32, Duration)>,
    /// Numbers of a server's bindings, by where the server is in memory.
    by_server: HashMap<usize, Vec<u32>, foldhash::fast::RandomState>,
}

/// All bindings, and how they change.
#[derive(Default)]
pub(super) struct Registry {
    current: Arc<ArcSwap<Bindings>>,
    ledger: Mutex<Ledger>,
}

impl Registry {
    /// For a reader that keeps the newest snapshot at hand.
    pub(super) fn published(&self) -> Arc<ArcSwap<Bindings>> {
        self.current.clone()
    }

    pub(super) fn newest(&self) -> Guard<Arc<Bindings>> {
        self.current.load()
    }

    /// The binding of a server of `service`, made if there is none. Where `server` was of another
    /// service so far, which has been removed, its connections count for this one from now on.
    /// `is_first` when it is the server's first.
    pub(super) fn bind(
        &self,
        service: &Arc<Service>,
        server: &Arc<RealServer>,
        transmitter: Transmitter,
    ) -> (Arc<Binding>, bool) {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let Ledger { next, free, by_server, .. } = &mut *ledger;
        let ids = by_server.entry(Arc::as_ptr(server).addr()).or_default();
        let current = self.current.load();
        let known = |id: &u32| current.get(*id);
        let is_elsewhere = |binding: &Arc<Binding>| !Arc::ptr_eq(&binding.service, service);
        if let Some(binding) = ids.iter().filter_map(known).find(|it| it.transmitter == transmitter)
            && !is_elsewhere(binding)
        {
            return (binding.clone(), false);
        }
        let mut changed = Bindings::clone(&current);
        for &id in &*ids {
            if let Some(binding) = current.get(id).filter(|binding| is_elsewhere(binding)) {
                let moved = Binding { service: service.clone(), ..Binding::clone(binding) };
                changed.set(id, Some(Arc::new(moved)));
            }
        }
        let is_same = |id: &&u32| changed.get(**id).is_some_and(|it| it.transmitter == transmitter);
        let is_first = ids.is_empty();
        let id = match ids.iter().find(is_same) {
            Some(&id) => id,
            None => {
                let id = free.pop().unwrap_or(*next);
                *next = (*next).max(id + 1);
                ids.push(id);
                let binding = Binding {
                    id,
                    service: service.clone(),
                    server: server.clone(),
                    transmitter,
                    address: server.load.address(),
                    bits: match server.load.address() {
                        IpAddr::V4(v4) => u128::from(v4.to_bits()),
                        IpAddr::V6(v6) => v6.to_bits(),
                    },
                };
                changed.set(id, Some(Arc::new(binding)));
                id
            }
        };
        let binding = changed.get(id).cloned();
        self.current.store(Arc::new(changed));
        // It has just been put there.
        let binding = binding.unwrap_or_else(|| unreachable!("binding {id} was set"));
        (binding, is_first)
    }

    /// Forgets the bindings of servers that nothing refers to any more; `forgotten` is told of each
    /// that had some.
    pub(super) fn unbind(
        &self,
        servers: &[Arc<RealServer>],
        now: Duration,
        mut forgotten: impl FnMut(&RealServer),
    ) {
        let mut guard = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let Ledger { free, quarantined, by_server, .. } = &mut *guard;
        while let Some((id, _)) = quarantined.pop_front_if(|(_, since)| *since + QUARANTINE <= now)
        {
            free.push(id);
        }
        if servers.is_empty() {
            return;
        }
        let mut changed = Bindings::clone(&self.current.load());
        for server in servers {
            let Some(ids) = by_server.remove(&Arc::as_ptr(server).addr()) else { continue };
            for id in ids {
                changed.set(id, None);
                quarantined.push_back((id, now));
            }
            forgotten(server);
        }
        self.current.store(Arc::new(changed));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::parts;
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    #[test]
    fn a_server_has_one_binding_for_each_way_to_it() {
        let registry = Registry::default();
        let (service, server) = parts();
        let bind = |transmitter| registry.bind(&service, &server, transmitter);
        let (nat, first) = bind(Transmitter::Nat);
        assert!(first);
        let (direct, first) = bind(Transmitter::Direct);
        assert!(!first && nat.id != direct.id);
        assert_eq!(bind(Transmitter::Nat).0.id, nat.id);
        assert_eq!(registry.newest().get(nat.id).unwrap().transmitter, Transmitter::Nat);
    }

    #[test]
    fn a_server_that_comes_back_with_another_service_brings_its_connections() {
        let registry = Registry::default();
        let ((old, server), (new, _)) = (parts(), parts());
        let nat = registry.bind(&old, &server, Transmitter::Nat).0.id;
        let direct = registry.bind(&old, &server, Transmitter::Direct).0.id;
        assert_eq!(registry.bind(&new, &server, Transmitter::Direct).0.id, direct);
        for id in [nat, direct] {
            assert!(Arc::ptr_eq(&registry.newest().get(id).unwrap().service, &new));
        }
    }

    #[test]
    fn a_number_is_used_again_only_when_no_worker_can_remember_it() {
        let registry = Registry::default();
        let (service, server) = parts();
        let bind = |server| registry.bind(&service, server, Transmitter::Nat).0.id;
        let unbind = |servers: &[Arc<RealServer>], now| {
            let mut forgotten = 0;
            registry.unbind(servers, now, |_| forgotten += 1);
            forgotten
        };
        let first = bind(&server);
        let gone = [server.clone()];
        assert_eq!(unbind(&gone, NOW), 1);
        assert!(registry.newest().get(first).is_none());
        assert_eq!(unbind(&gone, NOW), 0);
        let (other, third) = (parts().1, parts().1);
        assert_ne!(bind(&other), first);
        unbind(&[], NOW + QUARANTINE);
        assert_eq!(bind(&third), first);
    }

    #[test]
    fn thousands_of_bindings_are_found_by_their_numbers() {
        let registry = Registry::default();
        let service = parts().0;
        let servers: Vec<_> = (0..1000).map(|_| parts().1).collect();
        let bind = |server| registry.bind(&service, server, Transmitter::Nat).0.id;
        let ids: Vec<_> = servers.iter().map(bind).collect();
        let newest = registry.newest();
        for (id, server) in ids.iter().zip(&servers) {
            assert!(Arc::ptr_eq(&newest.get(*id).unwrap().server, server));
        }
        assert!(newest.get(5000).is_none());
    }
}
