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
use std::time::Duration;

use crate::dispatch::verdict::{DropReason, Method, PassReason};
use arc_swap::ArcSwap;

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
    pub(super) fn wants(&self, outcome: Outcome) -> bool {
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
    pub(super) fn is(&self, protocol: u8, address: IpAddr, port: u16) -> bool {
        self.address == address
            && self.protocol.is_none_or(|own| own == protocol)
            && self.port.is_none_or(|own| own == port)
    }
}

/// The share that one worker has in one capture.
#[derive(Debug)]
pub struct Tap {
    pub(super) wanted: Wanted,
    /// Nanoseconds from 1970 to the beginning of workers' time. What lies between two packets is what the
    /// pipeline took to lie between them, of whichever worker, whatever is done to the clock.
    start: u64,
    ring: Mutex<Vec<u8>>,
    lost: AtomicU64,
    /// Packets until the next one of the sample. The worker alone writes it.
    to_go: AtomicU32,
}

/// A packet in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since 1970; before it is in a ring, of workers' time.
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
    /// An empty ring for packets that are `wanted`. Workers' time began at `start`, since 1970.
    pub fn new(wanted: Wanted, start: Duration) -> Tap {
        Tap {
            wanted,
            start: start.as_nanos() as u64,
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
    pub(super) fn is_next(&self) -> bool {
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
            ring.extend_from_slice(&self.start.wrapping_add(record.time).to_le_bytes());
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

/// Taps as a worker looks at them.
pub(super) type List = Vec<Arc<Tap>>;

/// The taps at one worker.
#[derive(Debug, Default)]
pub struct Taps {
    pub(super) are_there: AtomicBool,
    pub(super) list: ArcSwap<List>,
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

#[cfg(test)]
mod tests;
