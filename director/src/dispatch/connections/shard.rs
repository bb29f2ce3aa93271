//! One shard of the table: a slab of connections, an index for each direction, a timing wheel.

use std::time::Duration;

use hashbrown::HashTable;

use super::wheel::{Entry, Wheel};
use crate::dispatch::connection::{Connection, Tuple};

/// A place in the slab: all that a packet touches, in two cache lines that are fetched as one.
#[repr(align(128))]
struct Slot {
    connection: Option<Connection>,
    /// When the wheel will look at it next, in nanoseconds since start.
    looked_at: u64,
}

const _: () = assert!(size_of::<Slot>() == 128, "a packet would touch a third cache line");

/// What of a place matters only when a connection comes or goes.
#[derive(Clone, Copy, Default)]
struct Record {
    generation: u32,
    /// Hashes under which the two indexes know it.
    hash: u64,
    reply_hash: u64,
}

/// See the module.
pub struct Shard {
    slots: Vec<Slot>,
    /// One for each slot.
    records: Vec<Record>,
    free: Vec<u32>,
    forward: HashTable<u32>,
    reply: HashTable<u32>,
    wheel: Wheel,
    due: Vec<Entry>,
}

impl Shard {
    pub(super) fn new() -> Shard {
        Shard {
            slots: Vec::new(),
            records: Vec::new(),
            free: Vec::new(),
            forward: HashTable::new(),
            reply: HashTable::new(),
            wheel: Wheel::new(),
            due: Vec::new(),
        }
    }

    /// Connections in the shard, expired ones that have not been swept among them.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All connections.
    pub fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.slots.iter().filter_map(|slot| slot.connection.as_ref())
    }

    /// All connections, to change what neither names them nor says when they expire.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.slots.iter_mut().filter_map(|slot| slot.connection.as_mut())
    }

    pub(super) fn find(&self, hash: u64, tuple: &Tuple) -> Option<u32> {
        let same = |&index: &u32| self.get(index).is_some_and(|found| found.tuple == *tuple);
        self.forward.find(hash, same).copied()
    }

    pub(super) fn find_reply(&self, hash: u64, tuple: &Tuple) -> Option<u32> {
        let same = |&index: &u32| self.get(index).is_some_and(|found| found.is_answered_by(tuple));
        self.reply.find(hash, same).copied()
    }

    fn get(&self, index: u32) -> Option<&Connection> {
        self.slots[index as usize].connection.as_ref()
    }

    /// Runs `act` on a connection and sees to it that the wheel looks at it in time.
    pub(super) fn with<R>(
        &mut self,
        index: u32,
        act: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        let slot = &mut self.slots[index as usize];
        let connection = slot.connection.as_mut()?;
        let result = act(connection);
        // A shorter timeout than the one before: the entry in the wheel would come up too late.
        if nanoseconds(connection.expires) < slot.looked_at {
            let generation = self.records[index as usize].generation;
            let entry = Entry { index, generation };
            slot.looked_at = nanoseconds(self.wheel.insert(entry, connection.expires));
        }
        Some(result)
    }

    /// Puts a connection into the slab and under both hashes.
    pub(super) fn insert(&mut self, hash: u64, reply_hash: u64, connection: Connection) -> u32 {
        let expires = connection.expires;
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slots.push(Slot { connection: None, looked_at: 0 });
                self.records.push(Record::default());
                self.slots.len() as u32 - 1
            }
        };
        let record = &mut self.records[index as usize];
        (record.hash, record.reply_hash) = (hash, reply_hash);
        let entry = Entry { index, generation: record.generation };
        let slot = &mut self.slots[index as usize];
        slot.connection = Some(connection);
        slot.looked_at = nanoseconds(self.wheel.insert(entry, expires));
        let records = &self.records;
        self.forward.insert_unique(hash, index, |&other| records[other as usize].hash);
        self.reply.insert_unique(reply_hash, index, |&other| records[other as usize].reply_hash);
        index
    }

    /// Takes a connection out.
    pub(super) fn remove(&mut self, index: u32) -> Option<Connection> {
        let connection = self.slots[index as usize].connection.take()?;
        let record = &mut self.records[index as usize];
        record.generation = record.generation.wrapping_add(1);
        let (hash, reply_hash) = (record.hash, record.reply_hash);
        for (table, hash) in [(&mut self.forward, hash), (&mut self.reply, reply_hash)] {
            if let Ok(entry) = table.find_entry(hash, |&other| other == index) {
                entry.remove();
            }
        }
        self.free.push(index);
        Some(connection)
    }

    /// Looks at the connection in place `first` and at every one so many steps further; removes
    /// those that `goes` tells. `gone` is told of each.
    pub(super) fn thin_out(
        &mut self,
        first: usize,
        step: usize,
        mut goes: impl FnMut(&Connection) -> bool,
        mut gone: impl FnMut(&Connection),
    ) {
        for index in (first..self.slots.len()).step_by(step) {
            let goes = self.slots[index].connection.as_ref().is_some_and(&mut goes);
            if goes && let Some(connection) = self.remove(index as u32) {
                gone(&connection);
            }
        }
    }

    /// Removes what has expired by `now`; `gone` is told of each.
    pub(super) fn expire(&mut self, now: Duration, mut gone: impl FnMut(&Connection)) {
        let mut due = std::mem::take(&mut self.due);
        while self.wheel.sweep(now, &mut due) {
            for entry in due.drain(..) {
                let slot = &mut self.slots[entry.index as usize];
                let Some(connection) = &mut slot.connection else { continue };
                if self.records[entry.index as usize].generation != entry.generation {
                    continue;
                }
                if connection.expires <= now
                    && let Some(reprieve) = connection.reprieve()
                {
                    connection.expires = now + reprieve;
                }
                if connection.expires <= now {
                    if let Some(connection) = self.remove(entry.index) {
                        gone(&connection);
                    }
                } else if slot.looked_at <= nanoseconds(now) {
                    slot.looked_at = nanoseconds(self.wheel.insert(entry, connection.expires));
                }
            }
        }
        self.due = due;
    }
}

/// A time since start in a single word: it lasts for 584 years.
fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos() as u64
}
