//! Distributed hash table (dht): the same server for the same key, with a second one that stands in
//! for it.
//!
//! No scheduler of the kernel. The rule is in [`placement`](crate::placement); this keeps a table of
//! the service's list. The key is the client's address unless the service has another. A server that is
//! quiesced or overloaded is replaced by the next one in the key's row, the replica, and so on: a key has
//! no destination only when no server is eligible.
//!
//! Where the list is changed without [`Scheduler::plan`], [`Scheduler::changed`] makes the table
//! itself. That is right, and keeps new connections waiting meanwhile.

use crate::placement::{HashBy, Member, PlacementOptions, Table};
use crate::remembered::Remembered;
use crate::weight::weight_words;
use crate::{
    Change, Entry, Key, Options, Preparation, Prepared, Scheduler, Server, TooManyServers,
};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ENTRY: Entry = Entry {
    name: "dht",
    summary: "distributed hash table: the same server for the same key, or its replica",
    create: |options| Box::new(DistributedHashTable::new(options)),
};

/// With 512 variants or fewer.
pub(super) const MOST_SERVERS: usize = u16::MAX as usize;

#[derive(Debug)]
struct DistributedHashTable {
    options: PlacementOptions,
    by: HashBy,
    /// `None`: there has been no list yet.
    table: Option<Arc<Table>>,
    /// The table's members in the service's list.
    servers: Vec<Remembered>,
    /// For the next change.
    offered: Option<Arc<Table>>,
}

/// What is prepared.
struct Renewal {
    new: Arc<Table>,
    /// Held so that it is not this scheduler that lets it go at last.
    _old: Option<Arc<Table>>,
}

impl DistributedHashTable {
    fn new(options: &Options) -> DistributedHashTable {
        DistributedHashTable {
            options: options.placement,
            by: options.key,
            table: None,
            servers: Vec::new(),
            offered: None,
        }
    }
}

/// A table for `members`, with as much of `old` as still holds.
fn renewed(
    old: Option<&Table>,
    members: &[Member],
    options: PlacementOptions,
) -> Result<Table, TooManyServers> {
    match old {
        Some(old) => old.rebuilt(members),
        None => Table::build(members, options),
    }
}

impl Scheduler for DistributedHashTable {
    fn plan(&self, members: &[Member]) -> Option<Preparation> {
        let (old, options) = (self.table.clone(), self.options);
        if old.as_ref().is_some_and(|table| table.is_of(members)) {
            return None;
        }
        let members = members.to_vec();
        Some(Preparation::new(move || match renewed(old.as_deref(), &members, options) {
            Ok(table) => Prepared::new(Renewal { new: Arc::new(table), _old: old }),
            // It is `changed` that refuses, and quickly.
            Err(error) => Prepared::new(error),
        }))
    }

    fn offer(&mut self, prepared: &Prepared) {
        self.offered = prepared.get().map(|renewal: &Renewal| renewal.new.clone());
    }

    fn changed(&mut self, servers: &[Arc<Server>], _: Change) -> Result<(), TooManyServers> {
        let members: Vec<_> = servers.iter().map(|server| Member::of(server)).collect();
        let fits = |table: &Arc<Table>| table.is_of(&members);
        let offered = self.offered.take().filter(fits);
        if !self.table.as_ref().is_some_and(fits) {
            let table = match offered {
                Some(table) => table,
                None => renewed(self.table.as_deref(), &members, self.options)?.into(),
            };
            self.table = Some(table);
        }
        self.servers.clear();
        let all = 0..servers.len();
        self.servers.extend(all.filter_map(|index| Remembered::at(servers, index)));
        Ok(())
    }

    fn choose(&mut self, servers: &[Arc<Server>], key: &Key, _: Duration) -> Option<usize> {
        let hash = key.hash_by(self.by);
        let table = self.table.as_ref()?;
        let eligible = |member: usize| {
            let index = self.servers.get(member)?.find(servers)?;
            servers[index].is_eligible().then_some(index)
        };
        // Nearly always the owner is, and is found without a walk.
        table.owner(hash).and_then(eligible).or_else(|| table.walk(hash).skip(1).find_map(eligible))
    }

    fn fork(&self, _: &[Arc<Server>], _: &Key) -> Box<dyn Scheduler> {
        Box::new(DistributedHashTable {
            options: self.options,
            by: self.by,
            table: self.table.clone(),
            servers: self.servers.clone(),
            offered: None,
        })
    }

    fn figure(&self, _: usize, server: &Server) -> String {
        weight_words(server)
    }

    fn bearings(&self, servers: &[Arc<Server>], key: &Key) -> String {
        let Some(table) = &self.table else { return String::new() };
        let hash = key.hash_by(self.by);
        let row =
            table.walk(hash).take(3).filter_map(|member| self.servers.get(member)?.find(servers));
        let names: Vec<String> = row.map(|index| servers[index].name()).collect();
        format!("the key's row begins with {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests;
