//! The connection table, shared by all workers: a request and its NAT reply may arrive on
//! different queues.
//!
//! It is cut into shards, each behind a lock of its own. A shard is chosen by protocol and client,
//! which request and reply have in common, so both directions of a connection live in one shard
//! and a packet takes one lock, once: whether its source is the client or may be a server is known
//! before (`ends.rs`). Within a shard there is an index for each direction.

mod ends;
mod expected;
mod shard;
mod wheel;

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::SharedSeed;
use foldhash::quality::{RandomState, SeedableRandomState};

use super::connection::{Connection, Endpoint, Tuple};
use super::service::{RealServer, Service};
use ends::{Servers, hash_both, hash_end};
pub use shard::Shard;

/// Shards in a table. Many more than workers, so that two seldom meet.
pub const SHARDS: usize = 256;

/// Which way a packet goes through its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Client to server.
    In,
    /// Server to client.
    Out,
}

/// See the module.
pub struct Connections {
    shards: Vec<Mutex<Shard>>,
    hasher: SeedableRandomState,
    servers: Servers,
    count: AtomicUsize,
    limit: usize,
    /// Connections whose client's port is not known yet.
    portless: AtomicUsize,
}

impl Connections {
    /// A table for at most `limit` connections. Memory grows with use.
    pub fn new(limit: usize) -> Connections {
        let seed = RandomState::default().build_hasher().finish();
        Connections::hashed(
            limit,
            SeedableRandomState::with_seed(seed, SharedSeed::global_random()),
        )
    }

    /// A table whose hashes are the same in every run, for simulations that must be repeatable.
    /// Not for traffic: clients choose the keys, and could choose them to collide.
    pub fn with_seed(limit: usize, seed: u64) -> Connections {
        Connections::hashed(limit, SeedableRandomState::with_seed(seed, SharedSeed::global_fixed()))
    }

    fn hashed(limit: usize, hasher: SeedableRandomState) -> Connections {
        Connections {
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::new())).collect(),
            hasher,
            servers: Servers::new(),
            count: AtomicUsize::new(0),
            limit,
            portless: AtomicUsize::new(0),
        }
    }

    /// Connections in the table.
    pub fn len(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether no further connection may be made.
    pub fn is_full(&self) -> bool {
        self.len() >= self.limit
    }

    /// How many further connections may be made.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.len())
    }

    /// Looks at one in 32 connections, chosen by `random`, and removes those that `goes` tells.
    pub fn thin_out(
        &self,
        mut random: impl FnMut() -> u64,
        mut goes: impl FnMut(&Connection) -> bool,
    ) {
        for shard in &self.shards {
            let first = random() as usize % 32;
            lock(shard).thin_out(first, 32, &mut goes, |connection| self.gone(connection));
        }
    }

    /// Removes the connections and templates of servers that have been removed, but for those on
    /// which connections to other servers depend. It looks at every connection, one shard after the
    /// other.
    pub fn remove_orphans(&self) {
        // What others depend on goes after them: FTP data, its control connection, the template.
        for _ in 0..3 {
            for shard in &self.shards {
                let goes = |connection: &Connection| {
                    !connection.server.is_available() && connection.reprieve().is_none()
                };
                lock(shard).thin_out(0, 1, goes, |connection| self.gone(connection));
            }
        }
    }

    /// Finds the connection of a packet and runs `act` on it under the shard's lock.
    ///
    /// `source` and `destination` are the packet's. It is looked for as a server's answer to a
    /// client first, if there is a connection to such a server, then as a client's packet to a VIP:
    /// the kernel's hooks stand in this order too.
    pub fn with<R>(
        &self,
        protocol: u8,
        source: Endpoint,
        destination: Endpoint,
        act: impl FnOnce(Way, &mut Connection) -> R,
    ) -> Option<R> {
        let from = hash_end(&self.hasher, protocol, source);
        let to = hash_end(&self.hasher, protocol, destination);
        if self.servers.may_have(from) {
            let tuple = Tuple { protocol, template: false, client: destination, peer: source };
            let mut shard = self.shard_of(to);
            if let Some(index) = shard.find_reply(hash_both(to, from), &tuple) {
                return shard.with(index, |connection| act(Way::Out, connection));
            }
        }
        let tuple = Tuple { protocol, template: false, client: source, peer: destination };
        let mut shard = self.shard_of(from);
        let index = shard.find(hash_both(from, to), &tuple)?;
        shard.with(index, |connection| act(Way::In, connection))
    }

    /// Finds the connection or template named `tuple`, seen from the client, and runs `act` on it.
    pub fn with_tuple<R>(
        &self,
        tuple: &Tuple,
        act: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        let (client, peer) = self.ends(tuple);
        let mut shard = self.shard_of(client);
        let index = shard.find(hash_both(client, peer), tuple)?;
        shard.with(index, act)
    }

    /// Adds a connection and runs `act` on it. When another worker has just added one of the same
    /// tuple, that one is kept and used.
    pub fn insert<R>(
        &self,
        connection: Connection,
        act: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        let tuple = connection.tuple;
        let (client, peer) = self.ends(&tuple);
        let hash = hash_both(client, peer);
        let mut shard = self.shard_of(client);
        let index = match shard.find(hash, &tuple) {
            Some(index) => index,
            None => self.put(&mut shard, connection),
        };
        shard.with(index, act)
    }

    /// Puts a new connection into its shard.
    fn put(&self, shard: &mut Shard, connection: Connection) -> u32 {
        let (client, peer) = self.ends(&connection.tuple);
        let server = self.server_of(&connection);
        self.count.fetch_add(1, Relaxed);
        self.servers.add(server);
        if connection.tuple.is_portless() {
            self.portless.fetch_add(1, Relaxed);
        }
        shard.insert(hash_both(client, peer), hash_both(client, server), connection)
    }

    /// Removes the connection that a client's packet belongs to.
    pub fn remove(&self, tuple: &Tuple) {
        let (client, peer) = self.ends(tuple);
        let mut shard = self.shard_of(client);
        if let Some(index) = shard.find(hash_both(client, peer), tuple)
            && let Some(connection) = shard.remove(index)
        {
            self.gone(&connection);
        }
    }

    /// Counts the connections of `server` on `service` from now on: server and service have been
    /// removed and are back. It looks at every connection, one shard after the other.
    pub fn rebind(&self, server: &Arc<RealServer>, service: &Arc<Service>) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            let bound = |connection: &&mut Connection| Arc::ptr_eq(&connection.server, server);
            for connection in shard.iter_mut().filter(bound) {
                connection.service = service.clone();
            }
        }
    }

    /// A keyed hash of a flow, the same for all its packets: chooses the source port of a tunnel.
    pub fn flow_hash(&self, client: Endpoint, peer: Endpoint) -> u32 {
        let ends = hash_both(hash_end(&self.hasher, 0, client), hash_end(&self.hasher, 0, peer));
        (ends ^ (ends >> 32)) as u32
    }

    /// A keyed hash of bytes that come from an end, wide enough to stand for both.
    pub fn hash_of(&self, from: Endpoint, bytes: &[u8]) -> u128 {
        let half = |number: u8| {
            let mut state = self.hasher.build_hasher();
            state.write_u64(hash_end(&self.hasher, number, from));
            state.write(bytes);
            u128::from(state.finish())
        };
        half(1) << 64 | half(2)
    }

    /// Removes what has expired by `now` from one shard; `shard` is taken modulo [`SHARDS`].
    pub fn expire(&self, shard: usize, now: Duration) {
        lock(&self.shards[shard % SHARDS]).expire(now, |connection| self.gone(connection));
    }

    /// One shard for reading, or `None` past the last.
    pub fn shard(&self, shard: usize) -> Option<MutexGuard<'_, Shard>> {
        self.shards.get(shard).map(lock)
    }

    /// A connection has been taken out of its shard.
    fn gone(&self, connection: &Connection) {
        self.count.fetch_sub(1, Relaxed);
        self.servers.remove(self.server_of(connection));
        if connection.tuple.is_portless() {
            self.portless.fetch_sub(1, Relaxed);
        }
    }

    /// The shard of a client.
    fn shard_of(&self, client: u64) -> MutexGuard<'_, Shard> {
        lock(&self.shards[client as usize % SHARDS])
    }

    /// Hashes of client and peer.
    fn ends(&self, tuple: &Tuple) -> (u64, u64) {
        let hash = |end| hash_end(&self.hasher, tuple.protocol, end);
        (hash(tuple.client), hash(tuple.peer))
    }

    /// Hash of the server's end.
    fn server_of(&self, connection: &Connection) -> u64 {
        hash_end(&self.hasher, connection.tuple.protocol, connection.server_endpoint)
    }
}

/// A worker that panicked inside a shard leaves it usable: the slab and its indexes are changed
/// by code that does not panic, and a connection's counters are single words.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
