//! Later fragments carry no ports; this remembers those of the first fragment, so that the rest of
//! the datagram follows it.
//!
//! Shared by all workers: a network card hashes later fragments by address only, so they may
//! arrive on another queue than the first. Bounded: the oldest datagram is forgotten first.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forwarding::{Fragment, Headers};
use hashbrown::HashMap;

use super::one_packet::Course;

/// Datagrams remembered at most.
const LIMIT: usize = 16_384;

/// How long a first fragment is remembered: the reassembly time of Linux.
const LIFETIME: Duration = Duration::from_secs(30);

type Key = (IpAddr, IpAddr, u8, u32);

/// What is remembered of a first fragment.
struct Datagram {
    source_port: u16,
    destination_port: u16,
    since: Duration,
    /// Where it went, if it is in no connection.
    course: Option<Arc<Course>>,
}

#[derive(Default)]
struct Memory {
    datagrams: HashMap<Key, Datagram, foldhash::quality::RandomState>,
    oldest: VecDeque<(Key, Duration)>,
}

/// See the module.
#[derive(Default)]
pub struct Fragments {
    memory: Mutex<Memory>,
}

impl Fragments {
    /// Remembers a first fragment; does nothing for other packets.
    pub fn remember(&self, headers: &Headers, now: Duration) {
        let Fragment::First { id } = headers.fragment else {
            return;
        };
        let key = key(headers, id);
        let mut memory = self.memory();
        while let Some(&(old, since)) = memory.oldest.front() {
            if memory.oldest.len() < LIMIT && since + LIFETIME > now {
                break;
            }
            memory.oldest.pop_front();
            // A datagram remembered anew since then stays.
            if memory.datagrams.get(&old).is_some_and(|datagram| datagram.since == since) {
                memory.datagrams.remove(&old);
            }
        }
        let (source_port, destination_port) = (headers.source_port, headers.destination_port);
        let datagram = Datagram { source_port, destination_port, since: now, course: None };
        memory.datagrams.insert(key, datagram);
        memory.oldest.push_back((key, now));
    }

    /// Source and destination port of the datagram that a later fragment belongs to.
    pub fn ports(&self, headers: &Headers, now: Duration) -> Option<(u16, u16)> {
        self.find(headers, now, |datagram| (datagram.source_port, datagram.destination_port))
    }

    /// Remembers where the datagram of a first fragment has gone, which is remembered itself.
    pub(super) fn chart(&self, headers: &Headers, course: Arc<Course>) {
        let Fragment::First { id } = headers.fragment else {
            return;
        };
        if let Some(datagram) = self.memory().datagrams.get_mut(&key(headers, id)) {
            datagram.course = Some(course);
        }
    }

    /// Where the datagram of a later fragment has gone.
    pub(super) fn course(&self, headers: &Headers, now: Duration) -> Option<Arc<Course>> {
        self.find(headers, now, |datagram| datagram.course.clone()).flatten()
    }

    fn find<R>(
        &self,
        headers: &Headers,
        now: Duration,
        read: impl FnOnce(&Datagram) -> R,
    ) -> Option<R> {
        let Fragment::Later { id, .. } = headers.fragment else {
            return None;
        };
        let memory = self.memory();
        let datagram = memory.datagrams.get(&key(headers, id))?;
        (datagram.since + LIFETIME > now).then(|| read(datagram))
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(headers: &Headers, id: u32) -> Key {
    (headers.source, headers.destination, headers.protocol, id)
}
