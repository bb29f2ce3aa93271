//! Which of a server's connections are still in progress, and what load it reports: what a load
//! bias builds on.
//!
//! Knows counters and buckets. Must not know time: whoever watches turns the buckets over
//! ([`Progress::turn`]). Must not know connections either: handshakes are counted as told.
//!
//! Nothing is counted before somebody with a bias watches. After that it is for good, though the bias
//! may be taken away again: counting costs little, and a count that is resumed would be wrong.
//!
//! # Why no error stays
//!
//! All workers change the counters, each by one atomic step, so that none is lost. What can go wrong is
//! that a worker adds to a bucket that has just been turned over, and that of a report and a new
//! connection at the same moment the one is taken to be before the other. The first error is gone when
//! the bucket is turned over again, after a window at most, and the second with the next report.
//! Handshakes that began before anybody watched are not in the count and yet leave it, so that it may
//! be too low by their number until it next comes to 0, where it stops; and it is taken for no more than
//! the connections there are, should the end of a handshake not have been told.

use super::{Server, split};
use crate::bias::FULL;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// Parts of the window. The oldest is forgotten as a whole, so that young is younger than between 15
/// and 16 parts of it.
pub(crate) const BUCKETS: usize = 16;

/// No load has been reported.
const UNKNOWN: u32 = u32::MAX;

/// See the module.
#[derive(Debug)]
pub(super) struct Progress {
    is_watched: AtomicBool,
    /// Whether the young are in progress, and not only those that are not established.
    has_window: AtomicBool,
    /// Whether a connection has ever been active here.
    knows_active: AtomicBool,
    /// The bucket of now.
    current: AtomicU32,
    /// Connections that were opened in each part of the window.
    opened: [AtomicU32; BUCKETS],
    /// Connections that are not yet established.
    handshakes: AtomicU32,
    /// 0..=10000, or [`UNKNOWN`].
    reported: AtomicU32,
    /// Connections that were opened since the last report.
    since_report: AtomicU64,
}

impl Progress {
    /// Nothing in progress, nothing reported, and nobody who watches.
    pub(super) fn new() -> Progress {
        Progress {
            is_watched: AtomicBool::new(false),
            has_window: AtomicBool::new(false),
            knows_active: AtomicBool::new(false),
            current: AtomicU32::new(0),
            opened: Default::default(),
            handshakes: AtomicU32::new(0),
            reported: AtomicU32::new(UNKNOWN),
            since_report: AtomicU64::new(0),
        }
    }

    /// The same counts, apart from these.
    pub(super) fn fork(&self) -> Progress {
        Progress {
            is_watched: AtomicBool::new(self.is_watched()),
            has_window: AtomicBool::new(self.has_window.load(SeqCst)),
            knows_active: AtomicBool::new(self.knows_active.load(SeqCst)),
            current: AtomicU32::new(self.current.load(SeqCst)),
            opened: self.opened.each_ref().map(|bucket| AtomicU32::new(bucket.load(SeqCst))),
            handshakes: AtomicU32::new(self.handshakes.load(SeqCst)),
            reported: AtomicU32::new(self.reported.load(SeqCst)),
            since_report: AtomicU64::new(self.since_report()),
        }
    }

    /// Counts from now on; with a window also the young.
    pub(super) fn watch(&self, has_window: bool) {
        self.has_window.store(has_window, SeqCst);
        self.is_watched.store(true, SeqCst);
    }

    pub(super) fn is_watched(&self) -> bool {
        self.is_watched.load(Relaxed)
    }

    /// A connection has been opened.
    pub(super) fn open(&self) {
        if self.is_watched() {
            if let Some(bucket) = self.opened.get(self.current.load(SeqCst) as usize) {
                increase(bucket);
            }
            self.since_report.fetch_add(1, SeqCst);
        }
    }

    /// A connection has become active.
    pub(super) fn activate(&self) {
        if self.is_watched() && !self.knows_active.load(Relaxed) {
            self.knows_active.store(true, SeqCst);
        }
    }

    /// A handshake begins. Whether that is counted.
    pub(super) fn begin(&self) -> bool {
        let is_watched = self.is_watched();
        if is_watched {
            increase(&self.handshakes);
        }
        is_watched
    }

    /// A handshake is over. Whether that is counted.
    pub(super) fn end(&self) -> bool {
        let is_watched = self.is_watched();
        if is_watched {
            let less = |count: u32| count.checked_sub(1);
            // At 0 there is nothing to do.
            let _ = self.handshakes.fetch_update(SeqCst, SeqCst, less);
        }
        is_watched
    }

    /// Begins another part of the window, so many times. Whether anybody has become too old by it.
    pub(super) fn turn(&self, times: usize) -> bool {
        let mut is_less = false;
        for _ in 0..times.min(BUCKETS) {
            let next = (self.current.load(SeqCst) as usize + 1) % BUCKETS;
            is_less |= self.opened[next].swap(0, SeqCst) > 0;
            self.current.store(next as u32, SeqCst);
        }
        is_less
    }

    /// Connections in progress, of so many that are active and not: those not yet established or
    /// the young ones, whichever are more.
    ///
    /// A young connection may have been closed again. Therefore no more are taken for young than are
    /// active; where none ever becomes active (UDP), than there are.
    pub(super) fn count(&self, active: u32, inactive: u32) -> u32 {
        let all = active.saturating_add(inactive);
        let handshakes = self.handshakes.load(SeqCst).min(all);
        if !self.has_window.load(Relaxed) {
            return handshakes;
        }
        let open = if self.knows_active.load(Relaxed) { active } else { all };
        let young =
            self.opened.iter().fold(0_u32, |sum, bucket| sum.saturating_add(bucket.load(SeqCst)));
        young.min(open).max(handshakes)
    }

    /// Takes a report: a load of 0..=10000, or none.
    pub(super) fn report(&self, load: Option<u16>) {
        self.reported.store(load.map_or(UNKNOWN, |load| load.min(FULL).into()), SeqCst);
        self.since_report.store(0, SeqCst);
    }

    /// The load last reported.
    pub(super) fn reported(&self) -> Option<u16> {
        u16::try_from(self.reported.load(SeqCst)).ok()
    }

    /// Connections that were opened since the last report.
    pub(super) fn since_report(&self) -> u64 {
        self.since_report.load(SeqCst)
    }
}

impl Server {
    /// A connection of this server is not established, from now on. To be called once when it comes
    /// into such a state (TCP: SYN sent or received; SCTP: INIT or COOKIE), after
    /// [`connection_opened`](Server::connection_opened), and followed by one
    /// [`handshake_ended`](Server::handshake_ended). Does nothing unless a load bias watches.
    ///
    /// ```
    /// # use schedulers::{Bias, Change, Options, Server, ServerId, create};
    /// # use std::sync::Arc;
    /// let server = Arc::new(Server::new(ServerId(1), "10.0.0.1".parse().unwrap(), 80, 1));
    /// let options = Options { bias: Bias::Ilb(2), ..Options::default() };
    /// let mut scheduler = create("wlc", &options).unwrap();
    /// scheduler.changed(&[server.clone()], Change::Bound).unwrap();
    ///
    /// server.connection_opened();
    /// server.handshake_begun();
    /// server.connection_moved(true);
    /// assert_eq!(server.in_progress(), 1);
    /// server.handshake_ended();
    /// server.connection_closed(true);
    /// assert_eq!(server.in_progress(), 0);
    /// ```
    pub fn handshake_begun(&self) {
        if self.progress.begin() {
            self.note_change();
        }
    }

    /// A connection that was not established is so now, or has come to its end without.
    pub fn handshake_ended(&self) {
        if self.progress.end() {
            self.note_change();
        }
    }

    /// Connections in progress: not yet established, or younger than the window of the scheduler's
    /// [`Options`](crate::Options) and not known to be closed. 0 when no load bias watches.
    pub fn in_progress(&self) -> u32 {
        let (active, inactive) = split(self.connections.load(SeqCst));
        self.progress.count(active, inactive)
    }

    /// The server reports its load: 0..=10000 (full, as is everything above), or that it is not known
    /// any more. Connections opened so far are part of it.
    ///
    /// ```
    /// # use schedulers::{Server, ServerId};
    /// # let server = Server::new(ServerId(1), "10.0.0.1".parse().unwrap(), 80, 1);
    /// assert_eq!(server.reported(), None);
    /// server.report(Some(12_000));
    /// assert_eq!(server.reported(), Some(10_000));
    /// ```
    pub fn report(&self, load: Option<u16>) {
        self.progress.report(load);
        self.note_change();
    }

    /// The load last reported, 0..=10000; `None` when it is not known.
    pub fn reported(&self) -> Option<u16> {
        self.progress.reported()
    }

    /// Connections opened since the last report. 0 when no load bias watches.
    pub fn opened_since_report(&self) -> u64 {
        self.progress.since_report()
    }

    /// Connections in progress are counted from now on; the young ones are among them if there is a
    /// window, which whoever calls this turns ([`Server::turn_window`]).
    pub(crate) fn watch_progress(&self, has_window: bool) {
        self.progress.watch(has_window);
    }

    /// So many sixteenths of the window have gone by.
    pub(crate) fn turn_window(&self, sixteenths: usize) {
        if self.progress.turn(sixteenths) {
            self.note_change();
        }
    }
}

fn increase(counter: &AtomicU32) {
    // At the largest number there is nothing to do.
    let _ = counter.fetch_update(SeqCst, SeqCst, |count| count.checked_add(1));
}
