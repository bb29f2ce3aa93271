//! The connection table, shared by all workers: a request and its NAT reply may arrive on
//! different queues.
//!
//! It is cut into shards. A shard is chosen by protocol and client, which request and reply have in
//! common, so both directions of a connection live in one shard, and an index for each leads to it.
//!
//! ```text
//!   established.rs   packets that change nothing but the time      no lock
//!   mod.rs           everything else: states, new ones, the end    the shard's lock
//!
//!   shard.rs ── slots.rs ── slot.rs, place.rs       64 bytes for a connection
//!            ── lanes.rs ── index.rs                7 bytes for a connection, for each direction
//!            ── wheel.rs                            when they expire
//!   reserve.rs       arrays that have their place before they have their memory
//!   binding.rs       what connections have in common: service, server, method
//!   ends.rs          hashes, and which addresses are servers'
//!   eviction.rs      who has to go when the table is full
//!   rounds.rs        looking at all of them, a part at a time
//! ```

mod binding;
mod ends;
mod established;
mod eviction;
mod expected;
mod index;
mod lanes;
mod place;
mod reserve;
mod rounds;
mod shard;
mod slot;
mod slots;
mod wheel;

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwap;
use foldhash::SharedSeed;
use foldhash::quality::{RandomState, SeedableRandomState};

use super::connection::{Connection, Endpoint, Tuple};
use super::service::{RealServer, Service};
use super::transmitter::Transmitter;
use binding::Registry;
pub use binding::{Binding, Bindings};
use ends::{Servers, hash_bits, hash_both, hash_end};
pub(super) use established::{Probe, Sight};
use lanes::Lanes;
use reserve::Waker;
use shard::{Locked, Shard};
use slot::Name;
pub(super) use slot::{MANY, ticks, time};
use slots::Arena;

/// Shards in a table: many more than workers, so that two seldom meet at a lock, and few enough that
/// what every look-up asks of its shard stays in the nearest cache.
pub const SHARDS: usize = 64;

/// Slots that are visited without letting go of the shard's lock, for which new connections
/// wait meanwhile, some twenty microseconds at most.
pub const PART: usize = 64;

/// Connections that a table can hold at most.
pub const MOST: usize = index::SLOTS as usize * SHARDS / 2;

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
    shards: Vec<Shard>,
    arena: Arena,
    lanes: Lanes,
    waker: Waker,
    hasher: SeedableRandomState,
    bindings: Registry,
    servers: Servers,
    count: AtomicUsize,
    limit: usize,
    /// Connections whose client's port is not known yet.
    portless: AtomicUsize,
    /// Where eviction goes on looking.
    hand: AtomicU32,
}

impl Connections {
    /// A table for at most `limit` connections, and never more than [`MOST`]. Memory grows with use.
    pub fn new(limit: usize) -> Connections {
        let seed = RandomState::default().build_hasher().finish();
        Connections::hashed(
            limit,
            SeedableRandomState::with_seed(seed, SharedSeed::global_random()),
        )
    }

    /// An empty table with the same hashes, for what one packet can meet.
    pub(super) fn fork(&self) -> Connections {
        /// Room enough for copies, and for what a packet opens.
        const ROOM: usize = 1024;
        Connections::hashed(ROOM, self.hasher.clone())
    }

    /// Puts a copy of a connection in, whose server counts it already.
    pub(super) fn restore(&self, connection: Connection) {
        let mut shard = self.shard_of(self.ends(&connection.tuple).0);
        self.put(&mut shard, connection);
    }

    /// Whether there shall be room for more than there is.
    pub(super) fn limit_to_content(&mut self, has_room: bool) {
        if !has_room {
            self.limit = self.len();
        }
    }

    /// Shows the connections that a packet may belong to, see [`with`](Self::with), and leaves them as
    /// they are.
    pub(super) fn peek_both(
        &self,
        protocol: u8,
        source: Endpoint,
        destination: Endpoint,
        mut see: impl FnMut(&Connection),
    ) {
        let (from, to) = (self.hash_end(protocol, source), self.hash_end(protocol, destination));
        if self.servers.may_have(source.0) {
            let answer = Tuple { protocol, template: false, client: destination, peer: source };
            let mut shard = self.shard_of(to);
            let found = shard.find_reply(hash_both(to, from), &Name::of(&answer), source.0);
            if let Some(slot) = found {
                shard.visit(slot..slot + 1, &mut see);
            }
        }
        self.peek_tuple(
            &Tuple { protocol, template: false, client: source, peer: destination },
            see,
        );
    }

    /// Shows the connection or template called `tuple`, and leaves it as it is.
    pub(super) fn peek_tuple(&self, tuple: &Tuple, see: impl FnMut(&Connection)) {
        let (client, peer) = self.ends(tuple);
        let mut shard = self.shard_of(client);
        if let Some(slot) = shard.find(hash_both(client, peer), &Name::of(tuple)) {
            shard.visit(slot..slot + 1, see);
        }
    }

    /// A table whose hashes are the same in every run, for simulations that must be repeatable.
    /// Not for traffic: clients choose the keys, and could choose them to collide.
    pub fn with_seed(limit: usize, seed: u64) -> Connections {
        Connections::hashed(limit, SeedableRandomState::with_seed(seed, SharedSeed::global_fixed()))
    }

    fn hashed(limit: usize, hasher: SeedableRandomState) -> Connections {
        let limit = limit.min(MOST);
        let waker = Waker::default();
        Connections {
            shards: (0..SHARDS).map(Shard::new).collect(),
            arena: Arena::new(limit, &waker),
            lanes: Lanes::new(limit, &waker),
            waker,
            hasher,
            bindings: Registry::default(),
            servers: Servers::new(),
            count: AtomicUsize::new(0),
            limit,
            portless: AtomicUsize::new(0),
            hand: AtomicU32::new(0),
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

    /// Most connections that may be in the table.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How many further connections may be made.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.len())
    }

    /// What connections to `server` by this method have in common. To be called before a scheduler
    /// may choose it, and again when the server has come back with another service.
    pub fn bind(
        &self,
        service: &Arc<Service>,
        server: &Arc<RealServer>,
        transmitter: Transmitter,
    ) -> Arc<Binding> {
        let (binding, is_first) = self.bindings.bind(service, server, transmitter);
        if is_first {
            self.servers.add(binding.address);
        }
        binding
    }

    /// Forgets that: these servers are gone, and no connection or template refers to them.
    pub fn unbind(&self, servers: &[Arc<RealServer>], now: Duration) {
        self.bindings.unbind(servers, now, |server| self.servers.remove(server.load.address()));
    }

    /// All bindings, for a worker that keeps the newest at hand.
    pub fn bindings(&self) -> Arc<ArcSwap<Bindings>> {
        self.bindings.published()
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
        let (way, mut shard, slot) = self.find(protocol, source, destination)?;
        shard.with(slot, |connection| act(way, connection))
    }

    /// The same for one who only looks: the connection stays as it is.
    pub fn peek<R>(
        &self,
        protocol: u8,
        source: Endpoint,
        destination: Endpoint,
        see: impl FnOnce(Way, &Connection) -> R,
    ) -> Option<R> {
        let (way, mut shard, slot) = self.find(protocol, source, destination)?;
        shard.see(slot, |connection| see(way, connection))
    }

    /// The connection of a packet: its shard, locked, and its slot there.
    #[inline]
    fn find(
        &self,
        protocol: u8,
        source: Endpoint,
        destination: Endpoint,
    ) -> Option<(Way, Locked<'_>, u32)> {
        let from = self.hash_end(protocol, source);
        let to = self.hash_end(protocol, destination);
        if self.servers.may_have(source.0) {
            let answer = Tuple { protocol, template: false, client: destination, peer: source };
            let shard = self.shard_of(to);
            let found = shard.find_reply(hash_both(to, from), &Name::of(&answer), source.0);
            if let Some(slot) = found {
                return Some((Way::Out, shard, slot));
            }
        }
        let tuple = Tuple { protocol, template: false, client: source, peer: destination };
        let shard = self.shard_of(from);
        let slot = shard.find(hash_both(from, to), &Name::of(&tuple))?;
        Some((Way::In, shard, slot))
    }

    /// Finds the connection or template named `tuple`, seen from the client, and runs `act` on it.
    pub fn with_tuple<R>(
        &self,
        tuple: &Tuple,
        act: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        let (client, peer) = self.ends(tuple);
        let mut shard = self.shard_of(client);
        let slot = shard.find(hash_both(client, peer), &Name::of(tuple))?;
        shard.with(slot, act)
    }

    /// Adds a connection and runs `act` on it. When another worker has just added one of the same
    /// tuple, that one is kept and used. `None` when there is no place for it.
    pub fn insert<R>(
        &self,
        mut connection: Connection,
        act: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        let tuple = connection.tuple;
        let (client, peer) = self.ends(&tuple);
        let mut shard = self.shard_of(client);
        shard.expect(hash_both(client, self.hash_end(tuple.protocol, connection.server_endpoint)));
        if let Some(slot) = shard.find(hash_both(client, peer), &Name::of(&tuple)) {
            return shard.with(slot, act);
        }
        let result = act(&mut connection);
        self.put(&mut shard, connection).then_some(result)
    }

    /// Puts a new connection into its shard. False when there is no place.
    fn put(&self, shard: &mut Locked<'_>, connection: Connection) -> bool {
        let (hash, reply_hash) = self.hashes(&connection.tuple, connection.server_endpoint);
        let is_portless = connection.tuple.is_portless();
        let elsewhere = connection.elsewhere();
        if shard.insert(hash, reply_hash, connection).is_err() {
            return false;
        }
        self.count.fetch_add(1, Relaxed);
        if let Some(address) = elsewhere {
            self.servers.add(address);
        }
        if is_portless {
            self.portless.fetch_add(1, Relaxed);
        }
        true
    }

    /// Removes the connection that a client's packet belongs to.
    pub fn remove(&self, tuple: &Tuple) {
        let (client, peer) = self.ends(tuple);
        let mut shard = self.shard_of(client);
        if let Some(slot) = shard.find(hash_both(client, peer), &Name::of(tuple))
            && let Some(connection) = shard.remove(slot)
        {
            self.gone(&connection);
        }
    }

    /// A keyed hash of a flow, the same for all its packets: chooses the source port of a tunnel.
    pub fn flow_hash(&self, client: Endpoint, peer: Endpoint) -> u32 {
        let ends = hash_both(self.hash_end(0, client), self.hash_end(0, peer));
        (ends ^ (ends >> 32)) as u32
    }

    /// A keyed hash of bytes that come from an end, wide enough to stand for both.
    pub fn hash_of(&self, from: Endpoint, bytes: &[u8]) -> u128 {
        let half = |number: u8| {
            let mut state = self.hasher.build_hasher();
            state.write_u64(self.hash_end(number, from));
            state.write(bytes);
            u128::from(state.finish())
        };
        half(1) << 64 | half(2)
    }

    /// Removes what has expired by `now` from one shard; `shard` is taken modulo [`SHARDS`].
    pub fn expire(&self, shard: usize, now: Duration) {
        self.expire_some(shard, now, usize::MAX);
    }

    /// The same, but looks at `limit` connections at most; the rest is for the next time. Returns
    /// how many it looked at.
    pub fn expire_some(&self, shard: usize, now: Duration, limit: usize) -> usize {
        let gone = |connection: &Connection| self.gone(connection);
        self.shards[shard % SHARDS].lock(self).expire(now, limit, gone)
    }

    /// Has the memory at hand that new connections will soon need. To be called when that is asked
    /// for, by a thread that packets do not wait for.
    pub fn prepare(&self) {
        self.arena.prepare();
        self.lanes.prepare();
    }

    /// Who is to be woken to [`prepare`](Self::prepare). `wake` is called by workers, once in some
    /// ten thousand new connections. Only the first one that is named is.
    pub fn on_growth(&self, wake: Box<dyn Fn() + Send + Sync>) {
        let _ = self.waker.set(wake);
    }

    /// Connections in one shard.
    pub fn len_of(&self, shard: usize) -> usize {
        self.shards.get(shard).map_or(0, |shard| shard.lock(self).len())
    }

    /// Slots of a shard that have ever been used.
    fn used_of(&self, shard: usize) -> u32 {
        self.shards[shard].lock(self).used()
    }

    /// A connection has been taken out of its shard.
    fn gone(&self, connection: &Connection) {
        self.count.fetch_sub(1, Relaxed);
        if let Some(address) = connection.elsewhere() {
            self.servers.remove(address);
        }
        if connection.tuple.is_portless() {
            self.portless.fetch_sub(1, Relaxed);
        }
    }

    /// The shard of a client.
    fn shard_of(&self, client: u64) -> Locked<'_> {
        self.shards[client as usize % SHARDS].lock(self)
    }

    #[inline(always)]
    fn hash_end(&self, protocol: u8, end: Endpoint) -> u64 {
        hash_end(&self.hasher, protocol, end)
    }

    /// Hashes of client and peer.
    fn ends(&self, tuple: &Tuple) -> (u64, u64) {
        let hash = |end| self.hash_end(tuple.protocol, end);
        (hash(tuple.client), hash(tuple.peer))
    }

    /// Hashes under which a connection is known to its client's packets and to its server's.
    fn hashes(&self, tuple: &Tuple, server: Endpoint) -> (u64, u64) {
        let (client, peer) = self.ends(tuple);
        (hash_both(client, peer), hash_both(client, self.hash_end(tuple.protocol, server)))
    }
}

#[cfg(test)]
mod tests;
