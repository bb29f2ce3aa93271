//! What has been told of the table to those who follow it outside of the packet path: the kernel's
//! part of the director, and who keeps neighbours resolved.
//!
//! They hear differences. So each service's share of it is remembered; after a change only the
//! shares of the services concerned are made anew and compared. Several services may have an
//! interest in the same thing, which is told with the first and taken back with the last.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;

use super::interests::{Interest, of_server, of_service};
use super::{State, Table, ftp};
use crate::control::api::ServiceKey;
use crate::dispatch::ftp::Ports;
use crate::dispatch::transmitter::Transmitter;

/// See the module.
#[derive(Default)]
pub(super) struct Told {
    shares: HashMap<ServiceKey, Share>,
    interests: Counted<Interest>,
    servers: Counted<IpAddr>,
}

/// What one service, with its servers that are and those that were, has to do with it.
#[derive(Default)]
pub(super) struct Share {
    /// Each once.
    pub(super) interests: Vec<Interest>,
    /// Addresses of servers that are not the director itself, each once.
    pub(super) servers: Vec<IpAddr>,
}

/// What is new for those who follow the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tidings {
    /// Interests that there were not before.
    pub added: Vec<Interest>,
    /// Interests that there are no longer.
    pub removed: Vec<Interest>,
    /// Whether [`Table::server_addresses`] gives others than before.
    pub other_servers: bool,
}

/// Things, and how many have them.
struct Counted<T>(HashMap<T, u32>);

impl<T> Default for Counted<T> {
    fn default() -> Counted<T> {
        Counted(HashMap::new())
    }
}

impl<T: Copy + Eq + Hash> Counted<T> {
    /// One more has it; whether nobody had.
    fn add(&mut self, thing: T) -> bool {
        let count = self.0.entry(thing).or_default();
        *count += 1;
        *count == 1
    }

    /// One less has it; whether nobody has any more.
    fn remove(&mut self, thing: T) -> bool {
        let Some(count) = self.0.get_mut(&thing) else { return false };
        *count -= 1;
        let is_gone = *count == 0;
        if is_gone {
            self.0.remove(&thing);
        }
        is_gone
    }
}

impl State {
    /// The share of the service `key`, whether or not there is one.
    pub(super) fn share(&self, key: &ServiceKey, ports: &Ports) -> Share {
        let marks = &self.marks;
        let mut share = Share::default();
        share.interests.extend(self.trash.interests(key, ports, marks));
        if let Ok(service) = self.services.find(key) {
            share.interests.extend(of_service(key));
            share.interests.extend(ftp::of_service(service));
            for member in service.choice().everyone() {
                let spec = &member.spec;
                let transmitter = Transmitter::from(spec);
                share.interests.extend(of_server(key, transmitter, spec.address, marks));
                share.interests.extend(ftp::of_server(ports, key, transmitter, spec.address));
                if !spec.forwarding.is_local() {
                    share.servers.push(spec.address.ip());
                }
            }
        }
        share.interests.sort_unstable();
        share.interests.dedup();
        share.servers.sort_unstable();
        share.servers.dedup();
        share
    }

    /// Names of services that there are or were.
    pub(super) fn known_keys(&self) -> Vec<ServiceKey> {
        let living = self.services.iter().map(|service| service.key);
        let mut keys: Vec<_> = living.chain(self.trash.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

impl Table {
    /// What is new since the last call.
    pub fn tidings(&self) -> Tidings {
        let mut guard = self.lock();
        let state = &mut *guard;
        let touched = std::mem::take(&mut state.news.touched);
        let keys: Vec<ServiceKey> = match std::mem::take(&mut state.news.all_touched) {
            true => {
                let told: Vec<_> = state.told.shares.keys().copied().collect();
                let mut keys = [state.known_keys(), told].concat();
                keys.sort_unstable();
                keys.dedup();
                keys
            }
            false => touched.into_iter().collect(),
        };
        let mut tidings = Tidings::default();
        // All that is to come before anything that is to go: what moves from one service to
        // another is not told.
        let mut former = Vec::new();
        for key in keys {
            let share = state.share(&key, &self.shared.ftp);
            let told = &mut state.told;
            let new = share.interests.iter().filter(|interest| told.interests.add(**interest));
            tidings.added.extend(new);
            for server in &share.servers {
                tidings.other_servers |= told.servers.add(*server);
            }
            former.extend(match share.interests.is_empty() && share.servers.is_empty() {
                true => told.shares.remove(&key),
                false => told.shares.insert(key, share),
            });
        }
        for share in former {
            let told = &mut state.told;
            let gone = share.interests.iter().filter(|interest| told.interests.remove(**interest));
            tidings.removed.extend(gone);
            for server in share.servers {
                tidings.other_servers |= told.servers.remove(server);
            }
        }
        tidings
    }

    /// Addresses of all servers that are not the director itself, as of the last
    /// [`tidings`](Table::tidings): worth keeping resolved.
    pub fn server_addresses(&self) -> Vec<IpAddr> {
        self.lock().told.servers.0.keys().copied().collect()
    }
}
