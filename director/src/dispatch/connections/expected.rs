//! Connections that are in the table before their first packet, some of them without the client's
//! port.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::ends::hash_both;
use super::{Connections, Locked, Name, SHARDS};
use crate::dispatch::connection::{Connection, Tuple};
use crate::dispatch::state::{State, Timeouts};

impl Connections {
    /// Adds a connection that is expected. Where there is one of its name already: to the same end
    /// of the same server, that one is expected anew; to another, it makes room, unless it is alive.
    pub fn expect(&self, connection: Connection, now: Duration, timeouts: &Timeouts) {
        let (client, peer) = self.ends(&connection.tuple);
        let mut shard = self.shard_of(client);
        if let Some(slot) = shard.find(hash_both(client, peer), &Name::of(&connection.tuple)) {
            let stays = shard.with(slot, |known| {
                let same = known.server_endpoint == connection.server_endpoint;
                if same {
                    known.listen(now, timeouts);
                }
                same || known.state.is_active()
            });
            if stays == Some(true) {
                return;
            }
            if let Some(known) = shard.remove(slot) {
                self.gone(&known);
            }
        }
        self.put(&mut shard, connection);
    }

    /// Removes the connection called `tuple` if it is still expected and `is_meant`.
    pub fn forget_expected(&self, tuple: &Tuple, is_meant: impl FnOnce(&Connection) -> bool) {
        let (client, peer) = self.ends(tuple);
        let mut shard = self.shard_of(client);
        let Some(slot) = shard.find(hash_both(client, peer), &Name::of(tuple)) else { return };
        let meant = shard.with(slot, |known| known.state == State::Listen && is_meant(known));
        if meant == Some(true)
            && let Some(known) = shard.remove(slot)
        {
            self.gone(&known);
        }
    }

    /// Whether some connection is expected whose client's port is not known. To be asked before a
    /// packet's connection is looked for: another worker may [`adopt`](Self::adopt) the last one at
    /// the same time, and holds the lock of its shard while this turns false.
    pub fn has_portless(&self) -> bool {
        self.portless.load(Relaxed) > 0
    }

    /// Gives the connection that is expected from this client, at this end of the director, the
    /// client's port. True when there is a connection called `tuple` now: of two workers that come
    /// with the first packets at once, one finds what the other has done.
    pub fn adopt(&self, tuple: &Tuple) -> bool {
        let portless = Tuple { client: (tuple.client.0, 0), ..*tuple };
        let (nobody, peer) = self.ends(&portless);
        let (client, _) = self.ends(tuple);
        let (hash, portless_hash) = (hash_both(client, peer), hash_both(nobody, peer));
        let mut shards = self.both(nobody as usize % SHARDS, client as usize % SHARDS);
        let (from, to) = shards.split();
        if to.as_deref().unwrap_or(from).find(hash, &Name::of(tuple)).is_some() {
            return true;
        }
        let Some(connection) = self.take(from, portless_hash, &portless) else {
            return false;
        };
        self.put(to.unwrap_or(from), connection.of_client(tuple.client))
    }

    /// Takes an expected connection out of its shard.
    fn take(&self, shard: &mut Locked<'_>, hash: u64, portless: &Tuple) -> Option<Connection> {
        let slot = shard.find(hash, &Name::of(portless))?;
        // A client may well send from port 0.
        shard.with(slot, |known| known.state == State::Listen).filter(|expected| *expected)?;
        let connection = shard.remove(slot)?;
        self.gone(&connection);
        Some(connection)
    }

    /// Two shards, which may be the same one. Nobody else holds two at a time, and here they are
    /// locked in the order of their numbers.
    fn both(&self, from: usize, to: usize) -> Both<'_> {
        if from == to {
            return Both { low: self.shards[from].lock(self), high: None, from_is_low: true };
        }
        let low = self.shards[from.min(to)].lock(self);
        let high = Some(self.shards[from.max(to)].lock(self));
        Both { low, high, from_is_low: from < to }
    }
}

/// One shard or two, locked.
struct Both<'a> {
    low: Locked<'a>,
    high: Option<Locked<'a>>,
    from_is_low: bool,
}

impl<'a> Both<'a> {
    /// The shard that something comes from, and the one that it goes to if that is another.
    fn split(&mut self) -> (&mut Locked<'a>, Option<&mut Locked<'a>>) {
        match (&mut self.high, self.from_is_low) {
            (None, _) => (&mut self.low, None),
            (Some(high), true) => (&mut self.low, Some(high)),
            (Some(high), false) => (high, Some(&mut self.low)),
        }
    }
}
