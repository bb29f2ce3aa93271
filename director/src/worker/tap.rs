//! Packets copied for somebody who wants to see them: what a capture asks of a worker.
//!
//! Each capture has a tap at each worker. The worker copies what the tap wants into the tap's ring and
//! goes on; what finds no room is lost, and counted. The control plane empties rings. When there is no
//! tap a breath costs one relaxed load, and a packet a branch that is always taken the same way.
//!
//! Knows verdicts and bytes. Must not know who looks at them, nor how they are written.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use forwarding::Headers;

use crate::dispatch::verdict::{DropReason, Method, PassReason};

/// Bytes of a ring: a tenth of a second of 10 MB/s.
pub const RING: usize = 1 << 20;

/// Captures at a time at most: as many as a byte has bits.
pub const MOST_TAPS: usize = 4;

/// Bytes of a packet that are copied at most.
pub const LONGEST: usize = 65_535;

/// What became of a packet that was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Forwarded: as it arrived.
    Forwarded(Method),
    /// Dropped: as it arrived.
    Dropped(DropReason),
    /// Dropped, and its sender was told: as it arrived.
    Answered(DropReason),
    /// Given to the kernel's stack.
    Passed(PassReason),
    /// Dropped after it had been rewritten: as it would have left.
    Lost(DropReason),
    /// As it left.
    Left(Method),
    /// An answer of the director's own, as it left.
    Own,
}

/// Which packets a capture wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Those that are forwarded.
    pub forwarded: bool,
    /// Those that are passed up for one of these reasons, a bit for each.
    pub passed: u64,
    /// Those that are dropped for one of these, likewise.
    pub dropped: u64,
    /// Of those one in so many; 1 is all.
    pub sample: u32,
    /// Only those to this service, and its answers to clients.
    pub service: Option<End>,
    /// Bytes of each that are copied at most, up to [`LONGEST`].
    pub snaplen: usize,
    /// Also as they leave.
    pub both: bool,
}

/// Where packets go: a part that is not given is any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// IP protocol number.
    pub protocol: Option<u8>,
    /// Address.
    pub address: IpAddr,
    /// Port.
    pub port: Option<u16>,
}

/// All reasons there are, as bits.
pub const EVERY_DROP: u64 = (1 << DropReason::ALL.len()) - 1;
/// The same for reasons to pass a packet up.
pub const EVERY_PASS: u64 = (1 << PassReason::ALL.len()) - 1;
const _: () = assert!(DropReason::ALL.len() < 64 && PassReason::ALL.len() < 64);

impl Wanted {
    fn wants(&self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Forwarded(_) => self.forwarded,
            Outcome::Passed(reason) => self.passed & 1 << reason as u32 != 0,
            Outcome::Dropped(reason) | Outcome::Answered(reason) | Outcome::Lost(reason) => {
                self.dropped & 1 << reason as u32 != 0
            }
            Outcome::Left(_) | Outcome::Own => self.both,
        }
    }
}

impl End {
    fn is(&self, protocol: u8, address: IpAddr, port: u16) -> bool {
        self.address == address
            && self.protocol.is_none_or(|own| own == protocol)
            && self.port.is_none_or(|own| own == port)
    }
}

/// The share that one worker has in one capture.
#[derive(Debug)]
pub struct Tap {
    wanted: Wanted,
    ring: Mutex<Vec<u8>>,
    lost: AtomicU64,
    /// Packets until the next one of the sample. The worker alone writes it.
    to_go: AtomicU32,
}

/// A packet in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since 1970.
    pub time: u64,
    /// Number of the worker's port that it came by, or, if it has left, leaves by.
    pub port: u16,
    /// What became of it.
    pub outcome: Outcome,
    /// Bytes that it has.
    pub length: u32,
    /// Those that were copied.
    pub bytes: &'a [u8],
}

/// Bytes before a packet in a ring.
const HEAD: usize = 20;

impl Tap {
    /// An empty ring for packets that are `wanted`.
    pub fn new(wanted: Wanted) -> Tap {
        Tap {
            wanted,
            ring: Mutex::new(Vec::with_capacity(RING)),
            lost: AtomicU64::new(0),
            to_go: AtomicU32::new(1),
        }
    }

    /// Packets that found no room.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Takes what is in the ring, in exchange for an empty one with as much room.
    pub fn take(&self, ring: &mut Vec<u8>) {
        ring.clear();
        ring.reserve(RING);
        std::mem::swap(ring, &mut self.ring.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether it is this packet's turn in the sample.
    fn is_next(&self) -> bool {
        let to_go = self.to_go.load(Relaxed);
        let next = if to_go <= 1 { self.wanted.sample } else { to_go - 1 };
        self.to_go.store(next, Relaxed);
        to_go <= 1
    }

    /// Never waits: a ring that is just being emptied is as good as full.
    pub(crate) fn put(&self, record: &Record<'_>) {
        let bytes = &record.bytes[..record.bytes.len().min(self.wanted.snaplen)];
        if let Ok(mut ring) = self.ring.try_lock()
            && ring.len() + HEAD + bytes.len() <= RING
        {
            let (kind, reason) = numbers(record.outcome);
            ring.extend_from_slice(&record.time.to_le_bytes());
            ring.extend_from_slice(&record.port.to_le_bytes());
            ring.extend_from_slice(&[kind, reason]);
            ring.extend_from_slice(&record.length.to_le_bytes());
            ring.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            ring.extend_from_slice(bytes);
        } else {
            self.lost.store(self.lost.load(Relaxed) + 1, Relaxed);
        }
    }
}

impl<'a> Record<'a> {
    /// The first record of a ring, and what follows.
    pub fn read(ring: &'a [u8]) -> Option<(Record<'a>, &'a [u8])> {
        let (time, rest) = ring.split_first_chunk::<8>()?;
        let (port, rest) = rest.split_first_chunk::<2>()?;
        let (&[kind, reason], rest) = rest.split_first_chunk::<2>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (captured, rest) = rest.split_first_chunk::<4>()?;
        let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*captured) as usize)?;
        let record = Record {
            time: u64::from_le_bytes(*time),
            port: u16::from_le_bytes(*port),
            outcome: outcome(kind, usize::from(reason))?,
            length: u32::from_le_bytes(*length),
            bytes,
        };
        Some((record, rest))
    }
}

fn numbers(outcome: Outcome) -> (u8, u8) {
    match outcome {
        Outcome::Forwarded(method) => (0, method as u8),
        Outcome::Dropped(reason) => (1, reason as u8),
        Outcome::Answered(reason) => (2, reason as u8),
        Outcome::Passed(reason) => (3, reason as u8),
        Outcome::Lost(reason) => (4, reason as u8),
        Outcome::Left(method) => (5, method as u8),
        Outcome::Own => (6, 0),
    }
}

fn outcome(kind: u8, number: usize) -> Option<Outcome> {
    let drop = || DropReason::ALL.get(number).copied();
    let method = || Method::ALL.get(number).copied();
    Some(match kind {
        0 => Outcome::Forwarded(method()?),
        1 => Outcome::Dropped(drop()?),
        2 => Outcome::Answered(drop()?),
        3 => Outcome::Passed(PassReason::ALL.get(number).copied()?),
        4 => Outcome::Lost(drop()?),
        5 => Outcome::Left(method()?),
        6 => Outcome::Own,
        _ => return None,
    })
}

type List = Vec<Arc<Tap>>;

/// The taps at one worker.
#[derive(Debug, Default)]
pub struct Taps {
    are_there: AtomicBool,
    list: ArcSwap<List>,
    /// Held by who changes the list; never by the worker.
    turn: Mutex<()>,
}

impl Taps {
    /// Adds a tap; false when there are [`MOST_TAPS`] already.
    pub fn add(&self, tap: Arc<Tap>) -> bool {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.list.load_full();
        if before.len() >= MOST_TAPS {
            return false;
        }
        let mut list = List::clone(&before);
        list.push(tap);
        self.list.store(Arc::new(list));
        self.are_there.store(true, Relaxed);
        true
    }

    /// Removes a tap. Returns what the worker may still look at until its next breath: whoever drops it
    /// last has to give back its memory, and that should not be the worker.
    pub fn remove(&self, tap: &Arc<Tap>) -> Arc<Vec<Arc<Tap>>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.list.load_full();
        let list: List = before.iter().filter(|it| !Arc::ptr_eq(it, tap)).cloned().collect();
        self.are_there.store(!list.is_empty(), Relaxed);
        self.list.store(Arc::new(list));
        before
    }

    /// Shows each of them.
    #[cfg(test)]
    pub(crate) fn each(&self, see: impl FnMut(&Arc<Tap>)) {
        self.list.load().iter().for_each(see);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.load().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The worker's side of its taps.
#[derive(Debug)]
pub(super) struct Watcher {
    /// As of the beginning of the breath; `None` without taps.
    taps: Option<Arc<List>>,
    wants_forwarded: bool,
    wants_headers: bool,
    /// Nanoseconds since 1970, at the beginning of the breath.
    time: u64,
    /// The packet that is being handled, as it came.
    came: Vec<u8>,
    length: usize,
    headers: Option<Headers>,
    port: usize,
    /// How it was forwarded.
    method: Method,
    /// The taps that have taken it, a bit for each.
    taken: u8,
}

impl Watcher {
    pub(super) fn new() -> Watcher {
        Watcher {
            taps: None,
            wants_forwarded: false,
            wants_headers: false,
            time: 0,
            came: Vec::with_capacity(LONGEST),
            length: 0,
            headers: None,
            port: 0,
            method: Method::Nat,
            taken: 0,
        }
    }

    /// The port that the packet came by.
    pub(super) fn port(&self) -> usize {
        self.port
    }

    /// How the packet was forwarded, of which there are several pieces.
    pub(super) fn method(&self) -> Method {
        self.method
    }

    /// Once per breath: which taps there are.
    #[inline(always)]
    pub(super) fn refresh(&mut self, taps: &Taps) {
        if taps.are_there.load(Relaxed) || self.taps.is_some() {
            self.look(taps);
        }
    }

    #[cold]
    fn look(&mut self, taps: &Taps) {
        let list = taps.list.load();
        if list.is_empty() {
            self.taps = None;
            (self.wants_forwarded, self.wants_headers, self.taken) = (false, false, 0);
            return;
        }
        let is_new = self.taps.as_ref().is_none_or(|own| !Arc::ptr_eq(own, &list));
        if is_new {
            self.wants_forwarded = list.iter().any(|tap| tap.wanted.forwarded);
            self.wants_headers = list.iter().any(|tap| tap.wanted.service.is_some());
            self.taps = Some(arc_swap::Guard::into_inner(list));
        }
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        self.time = now.map_or(0, |now| now.as_nanos() as u64);
    }

    /// Whether packets are to be shown.
    #[inline(always)]
    pub(super) fn is_there(&self) -> bool {
        self.taps.is_some()
    }

    /// Whether it matters what is forwarded.
    #[inline(always)]
    pub(super) fn wants_forwarded(&self) -> bool {
        self.wants_forwarded
    }

    /// A packet has come by port number `port`, before anything is done with it.
    #[cold]
    pub(super) fn remember(&mut self, port: usize, frame: &[u8]) {
        self.taken = 0;
        self.port = port;
        self.length = frame.len();
        self.came.clear();
        self.came.extend_from_slice(&frame[..frame.len().min(LONGEST)]);
        self.headers = None;
        if self.wants_headers {
            self.headers = forwarding::parse(frame).ok();
        }
    }

    /// What is handled now is not what was remembered.
    pub(super) fn forget(&mut self) {
        self.taken = 0;
        self.port = 0;
        self.length = 0;
        self.came.clear();
        self.headers = None;
    }

    /// What has become of the packet that was remembered; `translated` is who it comes from now, if it is
    /// a server's answer.
    #[cold]
    pub(super) fn note(&mut self, outcome: Outcome, translated: Option<(u8, IpAddr, u16)>) {
        let Some(taps) = &self.taps else { return };
        if let Outcome::Forwarded(method) = outcome {
            self.method = method;
        }
        let record = Record {
            time: self.time,
            port: self.port as u16,
            outcome,
            length: self.length as u32,
            bytes: &self.came,
        };
        for (place, tap) in taps.iter().enumerate() {
            let is_of = |end: End| {
                let came = self.headers.as_ref();
                let to = came.map(|it| (it.protocol, it.destination, it.destination_port));
                let mut ends = to.into_iter().chain(translated);
                ends.any(|(protocol, address, port)| end.is(protocol, address, port))
            };
            if tap.wanted.wants(outcome) && tap.wanted.service.is_none_or(is_of) && tap.is_next() {
                tap.put(&record);
                self.taken |= 1 << place;
            }
        }
    }

    /// A packet that leaves by port number `port`, or would have, as it is now. Those who have taken it as
    /// it came take it; one that is lost also those who ask for its reason.
    #[cold]
    pub(super) fn note_leaving(&self, outcome: Outcome, port: usize, frame: &[u8]) {
        let Some(taps) = &self.taps else { return };
        let bytes = &frame[..frame.len().min(LONGEST)];
        let length = frame.len() as u32;
        let record = Record { time: self.time, port: port as u16, outcome, length, bytes };
        for (place, tap) in taps.iter().enumerate() {
            let is_its = self.taken & 1 << place != 0;
            let is_lost = matches!(outcome, Outcome::Lost(_))
                && tap.wanted.service.is_none()
                && tap.wanted.sample == 1;
            if tap.wanted.wants(outcome) && (is_its || is_lost) {
                tap.put(&record);
            }
        }
    }
}

#[cfg(test)]
mod tests;
