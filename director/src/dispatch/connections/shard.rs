//! One shard of the table, whose slots and indices are with those of all others: a timing wheel, what is
//! only of some connections, and the lock that those take who add connections, remove them, or move them on in any but the simplest way.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;
use netio::prefetch;

use super::ends::hash_both;
use super::index::{Hashed, Index, SLOTS};
use super::lanes::Lane;
use super::place::{Place, Seen, Slot};
use super::slot::{Moment, Name, time};
use super::slots::Linked;
use super::wheel::{Spokes, Wheel};
use super::{Bindings, Connections, Way};
use crate::dispatch::connection::{Connection, Extra, Parts, Tuple};

/// See the module.
pub(super) struct Shard {
    number: usize,
    writer: Mutex<Writer>,
}

/// What the lock protects.
struct Writer {
    /// Slots that have ever been used.
    used: u32,
    /// The first free one of them, plus one; 0 is none.
    free: u32,
    /// Connections.
    count: u32,
    wheel: Wheel,
    extras: HashMap<u32, Box<Extra>, foldhash::fast::RandomState>,
}

impl Shard {
    pub(super) fn new(number: usize) -> Shard {
        Shard {
            number,
            writer: Mutex::new(Writer {
                used: 0,
                free: 0,
                count: 0,
                wheel: Wheel::new(),
                extras: HashMap::default(),
            }),
        }
    }

    /// A worker that panicked inside a shard leaves it usable: what is behind the lock is changed by
    /// code that does not panic.
    pub(super) fn lock<'a>(&'a self, table: &'a Connections) -> Locked<'a> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        Locked { shard: self, table, writer }
    }
}

/// A shard whose lock one holds.
pub(super) struct Locked<'a> {
    shard: &'a Shard,
    table: &'a Connections,
    writer: MutexGuard<'a, Writer>,
}

impl<'a> Locked<'a> {
    /// Connections in the shard, expired ones that have not been swept among them.
    pub(super) fn len(&self) -> usize {
        self.writer.count as usize
    }

    /// Slots that have ever been used.
    pub(super) fn used(&self) -> u32 {
        self.writer.used
    }

    /// Asks for the memory in which a new connection will be noted for its server's packets, and
    /// for its slot.
    pub(super) fn expect(&self, reply_hash: u64) {
        self.index(Way::Out).prefetch(reply_hash);
        let next = self.writer.free.checked_sub(1).unwrap_or(self.writer.used);
        if let Some(place) = self.place(next) {
            prefetch(place);
        }
    }

    /// The connection called `name`.
    pub(super) fn find(&self, hash: u64, name: &Name) -> Option<u32> {
        let is_it = |slot| self.look(slot).is_some_and(|seen| seen.name.is(name));
        self.index(Way::In).find(hash, is_it)
    }

    /// The connection that a server's packet belongs to; `answer` has the server, at `address`, as
    /// its peer.
    pub(super) fn find_reply(&self, hash: u64, answer: &Name, address: IpAddr) -> Option<u32> {
        let is_it = |slot| {
            self.look(slot).is_some_and(|seen| {
                seen.name.may_be_answered_by(answer)
                    && self.server_address(slot, &seen) == Some(address)
            })
        };
        self.index(Way::Out).find(hash, is_it)
    }

    fn look(&self, slot: u32) -> Option<Seen> {
        self.place(slot)?.look()
    }

    fn place(&self, slot: u32) -> Option<&'a Slot> {
        self.table.arena.get(self.shard.number, slot)
    }

    fn index(&self, way: Way) -> Index<Lane<'a>> {
        self.table.lanes.of(self.shard.number, way)
    }

    /// The slots as the wheel sees them.
    fn spokes(&self) -> Linked<'a> {
        self.table.arena.of(self.shard.number)
    }

    fn server_address(&self, slot: u32, seen: &Seen) -> Option<IpAddr> {
        let extra = if seen.name.has_extra() { self.writer.extras.get(&slot) } else { None };
        let own = extra.and_then(|extra| extra.server);
        own.or_else(|| Some(self.table.bindings.newest().get(seen.binding)?.address))
    }

    /// Runs `act` on a connection and sees to it that the wheel looks at it in time.
    pub(super) fn with<R>(
        &mut self,
        slot: u32,
        act: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        let mut connection = self.unpack(slot)?;
        let result = act(&mut connection);
        self.put_back(slot, connection);
        Some(result)
    }

    /// A connection as it is. It goes back by [`put_back`](Locked::put_back), or is removed.
    fn unpack(&mut self, slot: u32) -> Option<Connection> {
        let seen = self.look(slot)?;
        self.unpack_seen(slot, &seen)
    }

    /// The same of one that has just been seen.
    fn unpack_seen(&mut self, slot: u32, seen: &Seen) -> Option<Connection> {
        let binding = self.table.bindings.newest().get(seen.binding)?.clone();
        let extra = match seen.name.has_extra() {
            true => self.writer.extras.remove(&slot),
            false => None,
        };
        let Seen { name, moment, .. } = *seen;
        Some(Connection::from_table(Parts {
            tuple: name.tuple(),
            server_port: name.server_port(),
            binding,
            state: moment.state(),
            expires: time(moment.expires()),
            no_output: moment.has_no_output(),
            active: moment.is_active(),
            packets: moment.packets(),
            extra,
        }))
    }

    fn put_back(&mut self, slot: u32, mut connection: Connection) {
        let Some(place) = self.place(slot) else { return };
        let name = name_of(&connection);
        if let Some(extra) = connection.take_extra() {
            self.writer.extras.insert(slot, extra);
        }
        let before = place.put(&name, moment_of(&connection));
        // Another worker's packet may have come in between, but states move under the lock alone:
        // what it was before is what `unpack` saw.
        let embryonic = (before.state().is_embryonic(), connection.state.is_embryonic());
        connection.server().handshake_moved(embryonic.0, embryonic.1);
        if before.is_active() != connection.is_active() {
            connection.server().load.connection_moved(connection.is_active());
        }
        if self.writer.wheel.is_late(place.due(), connection.expires) {
            let spokes = self.spokes();
            self.writer.wheel.remove(slot, &spokes);
            let spokes = self.spokes();
            self.writer.wheel.insert(slot, connection.expires, &spokes);
        }
    }

    /// Puts a connection into a slot and under both hashes. Gives it back when there is no place.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        reply_hash: u64,
        mut connection: Connection,
    ) -> Result<u32, Connection> {
        let Some(slot) = self.allocate() else {
            return Err(connection);
        };
        let Some(place) = self.place(slot) else { return Err(connection) };
        let (forward, reply) = (self.index(Way::In), self.index(Way::Out));
        let bound = self.table.bindings.newest();
        let (shard, extras) = (self.shard.number, &self.writer.extras);
        let hashes = Hashes { shard, table: self.table, bound: &bound, extras };
        if !forward.insert(hash, slot, &Forward(&hashes)) {
            self.free(slot);
            return Err(connection);
        }
        if !reply.insert(reply_hash, slot, &Reply(&hashes)) {
            forward.remove(hash, slot);
            self.free(slot);
            return Err(connection);
        }
        let name = name_of(&connection);
        if let Some(extra) = connection.take_extra() {
            self.writer.extras.insert(slot, extra);
        }
        place.fill(&name, connection.binding.id, moment_of(&connection));
        let spokes = self.spokes();
        self.writer.wheel.insert(slot, connection.expires, &spokes);
        self.writer.count += 1;
        connection.into_table();
        Ok(slot)
    }

    fn allocate(&mut self) -> Option<u32> {
        let spokes = self.spokes();
        let writer = &mut *self.writer;
        if let Some(slot) = writer.free.checked_sub(1) {
            writer.free = spokes.links(slot).1;
            return Some(slot);
        }
        if writer.used >= SLOTS {
            return None;
        }
        if !self.table.arena.make(self.shard.number, writer.used) {
            return None;
        }
        writer.used += 1;
        Some(writer.used - 1)
    }

    fn free(&mut self, slot: u32) {
        let first = std::mem::replace(&mut self.writer.free, slot + 1);
        self.spokes().set_links(slot, 0, first);
    }

    /// Takes a connection out of the table.
    pub(super) fn remove(&mut self, slot: u32) -> Option<Connection> {
        let spokes = self.spokes();
        self.writer.wheel.remove(slot, &spokes);
        loop {
            let seen = self.look(slot)?;
            if let Some(gone) = self.remove_seen(slot, &seen) {
                return Some(gone);
            }
        }
    }

    /// Takes out a connection that is not in the wheel, if no packet has come since it was seen.
    fn remove_seen(&mut self, slot: u32, seen: &Seen) -> Option<Connection> {
        let place = self.place(slot)?;
        if !place.empty(seen.moment) {
            return None;
        }
        let mut connection = self.unpack_seen(slot, seen)?;
        let (hash, reply_hash) = self.table.hashes(&connection.tuple, connection.server_endpoint);
        self.index(Way::In).remove(hash, slot);
        self.index(Way::Out).remove(reply_hash, slot);
        self.free(slot);
        self.writer.count -= 1;
        connection.out_of_table();
        Some(connection)
    }

    /// Looks at the connections in these slots and removes those that `goes` tells. `gone` is told of
    /// each.
    pub(super) fn thin_out(
        &mut self,
        slots: impl Iterator<Item = usize>,
        mut goes: impl FnMut(&Connection) -> bool,
        mut gone: impl FnMut(&Connection),
    ) {
        for slot in slots {
            let slot = slot as u32;
            let goes = self.with(slot, |connection| goes(connection)) == Some(true);
            if goes && let Some(connection) = self.remove(slot) {
                gone(&connection);
            }
        }
    }

    /// The same, of those alone whose server has failed.
    pub(super) fn sift_lost(
        &mut self,
        slots: Range<u32>,
        goes: impl FnMut(&Connection) -> bool,
        gone: impl FnMut(&Connection),
    ) {
        let bound = self.table.bindings.newest();
        let (arena, shard) = (&self.table.arena, self.shard.number);
        let is_lost = |slot: &usize| {
            let seen = arena.get(shard, *slot as u32).and_then(Place::look);
            let binding = seen.and_then(|seen| bound.get(seen.binding));
            binding.is_some_and(|binding| binding.server.is_lost())
        };
        let end = slots.end.min(self.writer.used);
        self.thin_out((slots.start as usize..end as usize).filter(is_lost), goes, gone);
    }

    /// Shows the connections in these slots to `see`.
    pub(super) fn visit(&mut self, slots: Range<u32>, mut see: impl FnMut(&Connection)) {
        for slot in slots.start..slots.end.min(self.writer.used) {
            let _ = self.see(slot, &mut see);
        }
    }

    /// Shows a connection to `see`, which leaves it as it is.
    pub(super) fn see<R>(&mut self, slot: u32, see: impl FnOnce(&Connection) -> R) -> Option<R> {
        let mut connection = self.unpack(slot)?;
        let result = see(&connection);
        if let Some(extra) = connection.take_extra() {
            self.writer.extras.insert(slot, extra);
        }
        Some(result)
    }

    /// Removes what has expired by `now`, after looking at `limit` connections at most; `gone` is
    /// told of each. Returns how many were looked at.
    pub(super) fn expire(
        &mut self,
        now: Duration,
        limit: usize,
        mut gone: impl FnMut(&Connection),
    ) -> usize {
        let spokes = self.spokes();
        for looked in 0..limit {
            let Some(slot) = self.writer.wheel.take(now, &spokes) else {
                return looked;
            };
            let Some(mut seen) = self.look(slot) else { continue };
            if time(seen.moment.expires()) <= now {
                if seen.name.has_extra() {
                    self.reprieve(slot, now);
                    let Some(again) = self.look(slot) else { continue };
                    seen = again;
                }
                if time(seen.moment.expires()) <= now
                    && let Some(connection) = self.remove_seen(slot, &seen)
                {
                    gone(&connection);
                    continue;
                }
                // A packet has just come.
                let Some(again) = self.look(slot) else { continue };
                seen = again;
            }
            let spokes = self.spokes();
            self.writer.wheel.insert(slot, time(seen.moment.expires()), &spokes);
        }
        limit
    }

    /// Gives a connection on which others depend the time that it has to stay.
    fn reprieve(&mut self, slot: u32, now: Duration) {
        let Some(mut connection) = self.unpack(slot) else { return };
        if let Some(reprieve) = connection.reprieve() {
            connection.expires = now + reprieve;
        }
        if let Some(place) = self.place(slot) {
            place.put(&name_of(&connection), moment_of(&connection));
            if let Some(extra) = connection.take_extra() {
                self.writer.extras.insert(slot, extra);
            }
        }
    }
}

/// Tells the hashes of what is in a slot.
struct Hashes<'a> {
    shard: usize,
    table: &'a Connections,
    bound: &'a Bindings,
    extras: &'a HashMap<u32, Box<Extra>, foldhash::fast::RandomState>,
}

/// Those under which a client's packets find it.
struct Forward<'a>(&'a Hashes<'a>);

/// Those under which a server's do.
struct Reply<'a>(&'a Hashes<'a>);

impl Hashed for Forward<'_> {
    fn hash(&self, slot: u32) -> u64 {
        self.0.of(slot, |seen, _| seen.name.tuple().peer)
    }

    fn prefetch(&self, slot: u32) {
        self.0.prefetch(slot);
    }
}

impl Hashed for Reply<'_> {
    fn hash(&self, slot: u32) -> u64 {
        self.0.of(slot, |seen, server| (server, seen.name.server_port()))
    }

    fn prefetch(&self, slot: u32) {
        self.0.prefetch(slot);
    }
}

impl Hashes<'_> {
    fn prefetch(&self, slot: u32) {
        if let Some(place) = self.table.arena.get(self.shard, slot) {
            prefetch(place);
        }
    }

    /// Hash of the client with another end. A slot without a connection has no entry that anybody
    /// could look for.
    fn of(&self, slot: u32, end: impl FnOnce(&Seen, IpAddr) -> (IpAddr, u16)) -> u64 {
        let Some(seen) = self.table.arena.get(self.shard, slot).and_then(Place::look) else {
            return 0;
        };
        let Some(binding) = self.bound.get(seen.binding) else { return 0 };
        let extra = if seen.name.has_extra() { self.extras.get(&slot) } else { None };
        let server = extra.and_then(|extra| extra.server).unwrap_or(binding.address);
        let Tuple { protocol, client, .. } = seen.name.tuple();
        let hash = |end| self.table.hash_end(protocol, end);
        hash_both(hash(client), hash(end(&seen, server)))
    }
}

/// The name of a connection that still has its extra.
fn name_of(connection: &Connection) -> Name {
    let port = connection.server_endpoint.1;
    Name::of(&connection.tuple).with(port, connection.has_extra(), connection.is_slow())
}

fn moment_of(connection: &Connection) -> Moment {
    Moment::new(
        connection.state,
        connection.expires,
        connection.packets(),
        connection.is_half_seen(),
        connection.is_active(),
    )
}
