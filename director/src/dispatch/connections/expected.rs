//! Connections that are in the table before their first packet, some of them without the client's
//! port.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::ends::hash_both;
use super::{Connections, SHARDS, Shard, lock};
use crate::dispatch::connection::{Connection, Tuple};
use crate::dispatch::state::{State, Timeouts};

impl Connections {
    /// Adds a connection that is expected. Where there is one of its name already: to the same end
    /// of the same server, that one is expected anew; to another, it makes room, unless it is alive.
    pub fn expect(&self, connection: Connection, now: Duration, timeouts: &Timeouts) {
        let (client, peer) = self.ends(&connection.tuple);
        let mut shard = self.shard_of(client);
        if let Some(index) = shard.find(hash_both(client, peer), &connection.tuple) {
            let stays = shard.with(index, |known| {
                let same = known.server_endpoint == connection.server_endpoint;
                if same {
                    known.listen(now, timeouts);
                }
                same || known.state.is_active()
            });
            if stays == Some(true) {
                return;
            }
            if let Some(known) = shard.remove(index) {
                self.gone(&known);
            }
        }
        self.put(&mut shard, connection);
    }

    /// Removes the connection called `tuple` if it is still expected and `is_meant`.
    pub fn forget_expected(&self, tuple: &Tuple, is_meant: impl FnOnce(&Connection) -> bool) {
        let (client, peer) = self.ends(tuple);
        let mut shard = self.shard_of(client);
        let Some(index) = shard.find(hash_both(client, peer), tuple) else { return };
        let meant = shard.with(index, |known| known.state == State::Listen && is_meant(known));
        if meant == Some(true)
            && let Some(known) = shard.remove(index)
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
        if to.as_deref().unwrap_or(from).find(hash, tuple).is_some() {
            return true;
        }
        let Some(connection) = self.take(from, portless_hash, &portless) else {
            return false;
        };
        self.put(to.unwrap_or(from), connection.of_client(tuple.client));
        true
    }

    /// Takes an expected connection out of its shard.
    fn take(&self, shard: &mut Shard, hash: u64, portless: &Tuple) -> Option<Connection> {
        let index = shard.find(hash, portless)?;
        // A client may well send from port 0.
        shard.with(index, |known| known.state == State::Listen).filter(|expected| *expected)?;
        let connection = shard.remove(index)?;
        self.gone(&connection);
        Some(connection)
    }

    /// Two shards, which may be the same one. Nobody else holds two at a time, and here they are
    /// locked in the order of their numbers.
    fn both(&self, from: usize, to: usize) -> Both<'_> {
        if from == to {
            return Both { low: lock(&self.shards[from]), high: None, from_is_low: true };
        }
        let low = lock(&self.shards[from.min(to)]);
        let high = Some(lock(&self.shards[from.max(to)]));
        Both { low, high, from_is_low: from < to }
    }
}

/// One shard or two, locked.
struct Both<'a> {
    low: MutexGuard<'a, Shard>,
    high: Option<MutexGuard<'a, Shard>>,
    from_is_low: bool,
}

impl Both<'_> {
    /// The shard that something comes from, and the one that it goes to if that is another.
    fn split(&mut self) -> (&mut Shard, Option<&mut Shard>) {
        match (&mut self.high, self.from_is_low) {
            (None, _) => (&mut self.low, None),
            (Some(high), true) => (&mut self.low, Some(high)),
            (Some(high), false) => (high, Some(&mut self.low)),
        }
    }
}
