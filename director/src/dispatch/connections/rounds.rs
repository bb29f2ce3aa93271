//! Looking at connections one after the other, a part of the table at a time, while packets go on.

use super::place::Place;
use super::shard::{Locked, Shard};
use super::{Connections, PART, SHARDS};
use crate::dispatch::connection::Connection;
use crate::dispatch::state::State;

impl Connections {
    /// Looks at one in 32 connections, chosen by `random`, and removes those that `goes` tells.
    pub fn thin_out(
        &self,
        mut random: impl FnMut() -> u64,
        mut goes: impl FnMut(&Connection) -> bool,
    ) {
        for shard in &self.shards {
            self.thin_out_one(shard, random() as usize % 32, 32, &mut goes);
        }
    }

    /// Removes the connections and templates of servers that have been removed, but for those on
    /// which connections to other servers depend. It looks at every connection, one shard after the
    /// other.
    pub fn remove_orphans(&self) {
        // What others depend on goes after them: FTP data, its control connection, the template.
        for _ in 0..3 {
            for shard in &self.shards {
                self.thin_out_one(shard, 0, 1, |connection: &Connection| {
                    !connection.server().is_available() && connection.reprieve().is_none()
                });
            }
        }
    }

    /// Removes those that `goes` tells of the slots from `first` on, every so many steps further.
    fn thin_out_one(
        &self,
        shard: &Shard,
        first: usize,
        step: usize,
        mut goes: impl FnMut(&Connection) -> bool,
    ) {
        let used = shard.lock(self).used() as usize;
        for from in (first..used).step_by(PART * step) {
            let slots = (from..used.min(from + PART * step)).step_by(step);
            shard.lock(self).thin_out(slots, &mut goes, |connection| self.gone(connection));
        }
    }

    /// Shows the connections of a part of the table to `see`; false past the last part. Every
    /// connection is in one part for as long as it lives: at most [`PART`] of each shard are in one
    /// of them, those of the first part of every shard come first.
    pub fn visit(&self, part: usize, see: impl FnMut(&Connection)) -> bool {
        let first = part / SHARDS * PART;
        let is_there = |shard: &Locked<'_>| first < shard.used() as usize;
        let mut shard = self.shards[part % SHARDS].lock(self);
        if is_there(&shard) {
            shard.visit(first as u32..(first + PART) as u32, see);
            return true;
        }
        drop(shard);
        self.shards.iter().any(|shard| is_there(&shard.lock(self)))
    }

    /// Calls `see` with protocol, state and whether it is a template, for every connection that there is,
    /// expired ones among them that have not been swept. Takes no lock but to learn how far a shard
    /// reaches: a connection that comes, goes or moves meanwhile is seen or not, and never half.
    pub fn survey(&self, mut see: impl FnMut(u8, State, bool)) {
        for shard in 0..SHARDS {
            for slot in 0..self.used_of(shard) {
                if let Some(seen) = self.arena.get(shard, slot).and_then(Place::look) {
                    let tuple = seen.name.tuple();
                    see(tuple.protocol, seen.moment.state(), tuple.template);
                }
            }
        }
    }

    /// Looks at the connections and templates of a part of the table (see [`visit`](Self::visit)) whose
    /// server has failed, and removes those that `goes` tells; false past the last part.
    pub fn sift_lost(&self, part: usize, goes: impl FnMut(&Connection) -> bool) -> bool {
        let first = part / SHARDS * PART;
        let is_there = |shard: &Locked<'_>| first < shard.used() as usize;
        let mut shard = self.shards[part % SHARDS].lock(self);
        if is_there(&shard) {
            let slots = first as u32..(first + PART) as u32;
            shard.sift_lost(slots, goes, |connection| self.gone(connection));
            return true;
        }
        drop(shard);
        self.shards.iter().any(|shard| is_there(&shard.lock(self)))
    }
}
