//! Later fragments carry no ports; this remembers those of the first fragment, so that the rest of
//! the datagram follows it, and which bytes of the datagram have gone on, so that no other bytes
//! follow in their place.
//!
//! ```text
//! fragment ── first: remembered ── later: who was first? ── nobody yet ──> it waits (worker)
//!    │           does it fit to what has gone on? (cover.rs) ── no ──> dropped
//!    v
//! its target ── not ours ──> passed up, never judged
//!    v
//! admitted: it fits, and its bytes have gone on from now ── no byte is missing ──> forgotten
//! ```
//!
//! A fragment is looked at twice because another worker may have another one of its datagram in hand
//! in between, and because it must not have been admitted when it has to wait for its first one.
//!
//! An identification that comes back is not an overlap. A datagram that is complete is forgotten
//! at once. One that has lost a fragment is forgotten after the reassembly time, or, over IPv4,
//! where 16 bits come round within seconds, when more than 64 fragments of its source have gone on
//! since its last one: so does the kernel (`ipfrag_max_dist`). Until then a fragment with its
//! number belongs to it. A spoilt datagram (`cover.rs`) is forgotten after the reassembly time only:
//! as long as that its receiver may hold what came before.
//!
//! Shared by all workers: a network card hashes later fragments by address only, so they may
//! arrive on another queue than the first. Bounded: the oldest datagram is forgotten first. Nothing
//! is allocated after the start.

mod cover;

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forwarding::{Fragment, Headers};
use hashbrown::HashMap;

use super::one_packet::Course;
use super::real_server::RealServer;
use super::verdict::DropReason;
use cover::{Cover, Misfit, Piece};

/// Datagrams remembered at most.
const LIMIT: usize = 16_384;

/// How long a first fragment is remembered: the reassembly times of Linux (RFC 8200 section 4.5
/// asks for the longer one).
const LIFETIME_V4: Duration = Duration::from_secs(30);
const LIFETIME_V6: Duration = Duration::from_secs(60);

/// Over IPv4, fragments of other datagrams between two of one: `ipfrag_max_dist` of Linux, with
/// the fragment itself.
const DISTANCE: u32 = 64;

/// Sources are counted by their hash. Two that share a counter are further apart than they seem,
/// which is no harm as long as there are fewer fragments than this in the time that a datagram takes.
const COUNTERS: usize = 4096;

type Key = (IpAddr, IpAddr, u8, u32);

/// What is remembered of a first fragment.
struct Datagram {
    source_port: u16,
    destination_port: u16,
    since: Duration,
    /// What its source's counter said when its last fragment went on.
    count: u32,
    /// What has gone on; nothing, if it is none of ours.
    cover: Cover,
    /// Where it went, if it is in no connection.
    course: Option<Arc<Course>>,
}

struct Memory {
    datagrams: HashMap<Key, Datagram, foldhash::quality::RandomState>,
    oldest: VecDeque<(Key, Duration)>,
    /// IPv4 fragments that have gone on, by source.
    counters: Box<[u32]>,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            datagrams: HashMap::with_capacity_and_hasher(LIMIT, Default::default()),
            oldest: VecDeque::with_capacity(LIMIT),
            counters: vec![0; COUNTERS].into(),
        }
    }
}

/// See the module.
#[derive(Default)]
pub struct Fragments {
    memory: Mutex<Memory>,
}

impl Fragments {
    /// What is remembered of one packet's datagram, apart from this. `server` has copies of servers.
    pub(super) fn fork(
        &self,
        headers: &Headers,
        server: impl FnOnce(&Arc<RealServer>) -> Option<Arc<RealServer>>,
    ) -> Fragments {
        let fork = Fragments::default();
        let memory = self.memory();
        if let Some(key) = key(headers)
            && let Some(datagram) = memory.datagrams.get(&key)
        {
            let course = datagram
                .course
                .as_ref()
                .and_then(|course| Some(Arc::new(course.with(server(course.server())?))));
            let count = memory.counters[memory.counter(&key)];
            let mut there = fork.memory();
            let counter = there.counter(&key);
            there.counters[counter] = count;
            there.oldest.push_back((key, datagram.since));
            there.datagrams.insert(key, Datagram { course, ..*datagram });
            drop(there);
        }
        fork
    }

    /// Source and destination port of the datagram that a later fragment belongs to, if they are known.
    pub(super) fn ports(&self, headers: &Headers) -> Option<(u16, u16)> {
        let memory = self.memory();
        let datagram = memory.datagrams.get(&key(headers)?)?;
        Some((datagram.source_port, datagram.destination_port))
    }

    /// Remembers a first fragment, unless it belongs to a datagram that is remembered.
    ///
    /// # Errors
    /// Why it must not go on.
    pub(super) fn first(&self, headers: &Headers, now: Duration) -> Result<(), DropReason> {
        let Some((key, piece)) = key(headers).zip(Piece::of(headers)) else { return Ok(()) };
        let mut memory = self.memory();
        let ports = (headers.source_port, headers.destination_port);
        if let Some(known) = memory.find(&key, now) {
            let same = ports == (known.source_port, known.destination_port);
            match known.cover.is_empty() {
                false if same => return known.cover.check(&piece).map_err(reason),
                // Perhaps none of ours. If it is, it is judged when it is admitted.
                false => return Ok(()),
                true if same => return Ok(()),
                true => {}
            }
        }
        memory.make_room(now);
        let datagram = Datagram {
            source_port: ports.0,
            destination_port: ports.1,
            since: now,
            count: memory.counters[memory.counter(&key)],
            cover: Cover::default(),
            course: None,
        };
        memory.datagrams.insert(key, datagram);
        memory.oldest.push_back((key, now));
        Ok(())
    }

    /// Source and destination port of the datagram that a later fragment belongs to, if its first
    /// one has been seen.
    ///
    /// # Errors
    /// Why it must not go on.
    pub(super) fn later(
        &self,
        headers: &Headers,
        now: Duration,
    ) -> Result<Option<(u16, u16)>, DropReason> {
        let Some((key, piece)) = key(headers).zip(Piece::of(headers)) else { return Ok(None) };
        let mut memory = self.memory();
        let Some(datagram) = memory.find(&key, now) else { return Ok(None) };
        if !datagram.cover.is_empty() {
            datagram.cover.check(&piece).map_err(reason)?;
        }
        Ok(Some((datagram.source_port, datagram.destination_port)))
    }

    /// Notes that a fragment goes on, one of ours that has been looked at before. Does nothing for
    /// a whole packet.
    ///
    /// # Errors
    /// Why it must not go on.
    pub(super) fn admit(&self, headers: &Headers, now: Duration) -> Result<(), DropReason> {
        let Some((key, piece)) = key(headers).zip(Piece::of(headers)) else { return Ok(()) };
        let mut memory = self.memory();
        let counter = memory.counter(&key);
        let count = memory.counters[counter].wrapping_add(1);
        // Complete since it was looked at: another worker has had the same fragment.
        let datagram = memory.find(&key, now).ok_or(DropReason::FragmentDuplicate)?;
        datagram.count = count;
        let fits = datagram.cover.add(&piece).map_err(reason);
        if datagram.cover.is_complete() {
            memory.datagrams.remove(&key);
        }
        memory.counters[counter] = count;
        fits
    }

    /// Remembers where the datagram of a first fragment has gone, which is remembered itself.
    pub(super) fn chart(&self, headers: &Headers, course: Arc<Course>) {
        let Some(key) = key(headers) else { return };
        if let Some(datagram) = self.memory().datagrams.get_mut(&key) {
            datagram.course.get_or_insert(course);
        }
    }

    /// Where the datagram of a later fragment has gone.
    pub(super) fn course(&self, headers: &Headers, now: Duration) -> Option<Arc<Course>> {
        self.memory().find(&key(headers)?, now)?.course.clone()
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    /// The datagram of this key, if it is still to be gone by.
    fn find(&mut self, key: &Key, now: Duration) -> Option<&mut Datagram> {
        let count = self.counters[self.counter(key)];
        let datagram = self.datagrams.get_mut(key)?;
        let is_far = key.0.is_ipv4()
            && !datagram.cover.is_empty()
            && !datagram.cover.is_spoilt()
            && count.wrapping_sub(datagram.count) >= DISTANCE;
        (is_young(key, datagram.since, now) && !is_far).then_some(datagram)
    }

    /// Which counter is that of a datagram's source.
    fn counter(&self, key: &Key) -> usize {
        self.datagrams.hasher().hash_one(key.0) as usize % COUNTERS
    }

    /// Forgets what is too old, and the oldest one when there is no room for another.
    fn make_room(&mut self, now: Duration) {
        while let Some(&(old, since)) = self.oldest.front() {
            if self.oldest.len() < LIMIT && is_young(&old, since, now) {
                break;
            }
            self.oldest.pop_front();
            // A datagram remembered anew since then stays.
            if self.datagrams.get(&old).is_some_and(|datagram| datagram.since == since) {
                self.datagrams.remove(&old);
            }
        }
    }
}

fn is_young(key: &Key, since: Duration, now: Duration) -> bool {
    let lifetime = if key.0.is_ipv4() { LIFETIME_V4 } else { LIFETIME_V6 };
    since + lifetime > now
}

fn reason(misfit: Misfit) -> DropReason {
    match misfit {
        Misfit::Duplicate => DropReason::FragmentDuplicate,
        Misfit::Overlap => DropReason::FragmentOverlap,
        Misfit::End | Misfit::Uneven => DropReason::BadFragment,
        Misfit::Scattered => DropReason::FragmentScattered,
    }
}

/// Addresses, protocol and identification of a fragment's datagram.
fn key(headers: &Headers) -> Option<Key> {
    let id = match headers.fragment {
        Fragment::Whole => return None,
        Fragment::First { id, .. } | Fragment::Later { id, .. } => id,
    };
    Some((headers.source, headers.destination, headers.protocol, id))
}
