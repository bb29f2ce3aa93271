//! A real server as schedulers see it: weight, thresholds, how many connections it carries, and how
//! many of those are still in progress (`progress`).
//!
//! Knows the rule of the overload flag, and whom to tell of a change. Must not know services, lists
//! or other servers.

mod progress;

use crate::board::Board;
use arc_swap::ArcSwapOption;
use progress::Progress;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};

pub(crate) use progress::BUCKETS;

/// The slot of a server that nobody watches.
const UNWATCHED: u32 = u32::MAX;

/// Names one server for the life of the process; never reused for another.
///
/// Schedulers remember servers by it. A server that is removed and comes back with its connections,
/// as the kernel revives one from its trash, should keep its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(pub u64);

/// The load and limits of one server of one service, shared by all workers.
///
/// Counters are global, not one worker's, so that lc and wlc decide on the truth.
///
/// ```
/// use schedulers::{Server, ServerId};
///
/// let server = Server::new(ServerId(1), "10.0.0.1".parse().unwrap(), 80, 5);
/// server.set_thresholds(4, 0);
/// for _ in 0..4 {
///     server.connection_opened();
/// }
/// assert!(server.is_overloaded() && !server.is_eligible());
///
/// server.connection_closed(false);
/// assert!(server.is_overloaded(), "3 is not below three quarters of 4");
/// server.connection_closed(false);
/// assert!(server.is_eligible());
/// ```
#[derive(Debug)]
pub struct Server {
    id: ServerId,
    address: IpAddr,
    port: u16,
    weight: AtomicI32,
    last_weight: AtomicI32,
    /// Upper threshold in the upper half, lower threshold in the lower.
    thresholds: AtomicU64,
    /// Active connections in the upper half, all others in the lower: one word, so that their sum
    /// is never seen half changed.
    connections: AtomicU64,
    overloaded: AtomicBool,
    progress: Progress,
    /// Its bit on `board`, or [`UNWATCHED`].
    slot: AtomicU32,
    /// Where changes are noted for a scheduler that does not want to look at every server each time.
    board: ArcSwapOption<Board>,
}

impl Server {
    /// A server without connections. `weight` 0 means quiesced.
    pub fn new(id: ServerId, address: IpAddr, port: u16, weight: i32) -> Server {
        Server {
            id,
            address,
            port,
            weight: AtomicI32::new(weight),
            last_weight: AtomicI32::new(weight),
            thresholds: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            overloaded: AtomicBool::new(false),
            progress: Progress::new(),
            slot: AtomicU32::new(UNWATCHED),
            board: ArcSwapOption::empty(),
        }
    }

    /// Another one as this one is now, that nobody watches: what happens to one of them does not
    /// concern the other.
    #[must_use]
    pub fn fork(&self) -> Server {
        Server {
            id: self.id,
            address: self.address,
            port: self.port,
            weight: AtomicI32::new(self.weight()),
            last_weight: AtomicI32::new(self.last_weight()),
            thresholds: AtomicU64::new(self.thresholds.load(SeqCst)),
            connections: AtomicU64::new(self.connections.load(SeqCst)),
            overloaded: AtomicBool::new(self.is_overloaded()),
            progress: self.progress.fork(),
            slot: AtomicU32::new(UNWATCHED),
            board: ArcSwapOption::empty(),
        }
    }

    /// Which server this is.
    pub fn id(&self) -> ServerId {
        self.id
    }

    /// The server's address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The server's port, host order.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Address and port, as they are written.
    pub(crate) fn name(&self) -> String {
        std::net::SocketAddr::new(self.address, self.port).to_string()
    }

    /// The weight, 0..=2147483647; 0 = quiesced.
    pub fn weight(&self) -> i32 {
        self.weight.load(SeqCst)
    }

    /// The last weight that was not 0 (0 if there never was one). Maglev keeps slots by it.
    pub fn last_weight(&self) -> i32 {
        self.last_weight.load(Relaxed)
    }

    /// Sets the weight; 0 = quiesced.
    pub fn set_weight(&self, weight: i32) {
        self.weight.store(weight, SeqCst);
        if weight != 0 {
            self.last_weight.store(weight, Relaxed);
        }
        self.note_change();
    }

    /// Sets the connection thresholds; `upper` 0 = no limit, `lower` 0 = three quarters of `upper`.
    ///
    /// As in the kernel, a raised upper threshold (or none) frees an overloaded server at once,
    /// and any other change counts from the next connection on that comes or goes.
    pub fn set_thresholds(&self, upper: u32, lower: u32) {
        let before = split(self.thresholds.swap(join(upper, lower), SeqCst)).0;
        if upper == 0 || upper > before {
            self.overloaded.store(false, SeqCst);
        }
        self.note_change();
    }

    /// Upper connection threshold; 0 = none.
    pub fn upper_threshold(&self) -> u32 {
        split(self.thresholds.load(SeqCst)).0
    }

    /// Lower connection threshold; 0 = three quarters of the upper one.
    pub fn lower_threshold(&self) -> u32 {
        split(self.thresholds.load(SeqCst)).1
    }

    /// Connections in an active state.
    pub fn active(&self) -> u32 {
        split(self.connections.load(SeqCst)).0
    }

    /// Connections in any other state; templates are not counted.
    pub fn inactive(&self) -> u32 {
        split(self.connections.load(SeqCst)).1
    }

    /// Active and inactive connections together.
    pub fn connections(&self) -> u64 {
        let (active, inactive) = split(self.connections.load(SeqCst));
        u64::from(active) + u64::from(inactive)
    }

    /// Whether the upper threshold has been reached and the lower not yet left again.
    pub fn is_overloaded(&self) -> bool {
        self.overloaded.load(SeqCst)
    }

    /// Whether new connections may come here: weight above 0 and not overloaded.
    pub fn is_eligible(&self) -> bool {
        self.weight() > 0 && !self.is_overloaded()
    }

    /// The load that lc and wlc compare: `active * 256 + total`, as kernels with the newest
    /// back-ports count it (`active * 257 + inactive`).
    ///
    /// ```
    /// # use schedulers::{Server, ServerId};
    /// # let server = Server::new(ServerId(1), "10.0.0.1".parse().unwrap(), 80, 1);
    /// server.connection_opened();
    /// assert_eq!(server.overhead(), 1);
    /// server.connection_moved(true);
    /// assert_eq!(server.overhead(), 257);
    /// ```
    pub fn overhead(&self) -> u64 {
        let (active, inactive) = split(self.connections.load(SeqCst));
        u64::from(active) * 257 + u64::from(inactive)
    }

    /// A connection has been bound to this server; it starts as inactive, as in the kernel.
    pub fn connection_opened(&self) {
        self.count(|active, inactive| (active, inactive.saturating_add(1)));
        self.progress.open();
        self.review_overload();
        self.note_change();
    }

    /// A connection has changed between active and inactive.
    pub fn connection_moved(&self, to_active: bool) {
        if to_active {
            self.progress.activate();
        }
        self.count(|active, inactive| {
            if to_active {
                (active.saturating_add(1), inactive.saturating_sub(1))
            } else {
                (active.saturating_sub(1), inactive.saturating_add(1))
            }
        });
        self.note_change();
    }

    /// A connection has expired that was active or not.
    pub fn connection_closed(&self, was_active: bool) {
        self.count(|active, inactive| {
            if was_active {
                (active.saturating_sub(1), inactive)
            } else {
                (active, inactive.saturating_sub(1))
            }
        });
        self.review_overload();
        self.note_change();
    }

    /// Has changes noted in `slot` of `board` from now on. Who calls this looks at the server
    /// *afterwards*: a change that is not noted there yet is seen then.
    pub(crate) fn watch(&self, board: &Arc<Board>, slot: u32) {
        let same = |known: &Arc<Board>| Arc::ptr_eq(known, board);
        if !self.board.load().as_ref().is_some_and(same) {
            // The slot goes first and comes last: whoever reads the new one finds the new board
            // with it. Whoever has read the old one had made its change before, see above.
            self.slot.store(UNWATCHED, SeqCst);
            self.board.store(Some(board.clone()));
        }
        self.slot.store(slot, SeqCst);
    }

    /// Nobody wants to know of changes any more.
    pub(crate) fn unwatch(&self) {
        self.slot.store(UNWATCHED, SeqCst);
        self.board.store(None);
    }

    /// To be called after each change that schedulers can see.
    fn note_change(&self) {
        // A server of a small service gets by with reading a word that it has at hand.
        let slot = self.slot.load(SeqCst);
        if slot != UNWATCHED
            && let Some(board) = &*self.board.load()
        {
            board.mark(slot);
        }
    }

    /// Changes both counters as one. They stop at 0 and at the largest number: a connection counted
    /// once too often must not turn a server into the most loaded of all.
    fn count(&self, change: impl Fn(u32, u32) -> (u32, u32)) {
        let apply = |connections| {
            let (active, inactive) = split(connections);
            let (active, inactive) = change(active, inactive);
            Some(join(active, inactive))
        };
        // The closure never declines, so that this cannot fail.
        let _ = self.connections.fetch_update(SeqCst, SeqCst, apply);
    }

    /// Sets or clears the overload flag; between the thresholds it keeps its value (hysteresis).
    fn review_overload(&self) {
        self.settle_overload(self.look());
    }

    /// Thresholds and connections as they are now.
    fn look(&self) -> (u64, u64) {
        (self.thresholds.load(SeqCst), self.connections.load(SeqCst))
    }

    /// Writes the flag for what was `seen`, until that is still so after the writing.
    ///
    /// Two workers may come here at once, and the one with the older count may be the last to
    /// write. Since each looks again, whoever writes last has seen the last count. A flag left
    /// standing on an idle server would never be cleared, for nothing would happen there any more
    /// (older kernels had this race).
    fn settle_overload(&self, mut seen: (u64, u64)) {
        loop {
            let (upper, lower) = split(seen.0);
            let (active, inactive) = split(seen.1);
            let total = u64::from(active) + u64::from(inactive);
            let cleared_below = if lower == 0 { upper - upper / 4 } else { lower };
            let overloaded = if upper > 0 && total >= u64::from(upper) {
                true
            } else if upper == 0 || total < u64::from(cleared_below) {
                false
            } else {
                return;
            };
            // Nearly always there is nothing to change: leave the cache line to its readers.
            if self.is_overloaded() != overloaded {
                self.overloaded.store(overloaded, SeqCst);
            }
            let now = self.look();
            if now == seen {
                return;
            }
            seen = now;
        }
    }
}

/// The two halves of a word, the upper first.
fn split(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

/// A word of two halves.
fn join(upper: u32, lower: u32) -> u64 {
    u64::from(upper) << 32 | u64::from(lower)
}

#[cfg(test)]
mod tests;
