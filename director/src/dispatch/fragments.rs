//! Later fragments carry no ports; this remembers those of the first fragment, so that the rest of
//! the datagram follows it.
//!
//! Shared by all workers: a network card hashes later fragments by address only, so they may
//! arrive on another queue than the first. Bounded: the oldest datagram is forgotten first.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use forwarding::{Fragment, Headers};
use hashbrown::HashMap;

/// Datagrams remembered at most.
const LIMIT: usize = 16_384;

/// How long a first fragment is remembered: the reassembly time of Linux.
const LIFETIME: Duration = Duration::from_secs(30);

type Key = (IpAddr, IpAddr, u8, u32);

#[derive(Debug, Default)]
struct Memory {
    ports: HashMap<Key, (u16, u16, Duration), foldhash::quality::RandomState>,
    oldest: VecDeque<(Key, Duration)>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Fragments {
    memory: Mutex<Memory>,
}

impl Fragments {
    /// Remembers a first fragment; does nothing for other packets.
    pub fn remember(&self, headers: &Headers, now: Duration) {
        let Fragment::First { id } = headers.fragment else {
            return;
        };
        let key = (headers.source, headers.destination, headers.protocol, id);
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(&(old, since)) = memory.oldest.front() {
            if memory.oldest.len() < LIMIT && since + LIFETIME > now {
                break;
            }
            memory.oldest.pop_front();
            // A datagram remembered anew since then stays.
            if memory.ports.get(&old).is_some_and(|&(_, _, latest)| latest == since) {
                memory.ports.remove(&old);
            }
        }
        memory.ports.insert(key, (headers.source_port, headers.destination_port, now));
        memory.oldest.push_back((key, now));
    }

    /// Source and destination port of the datagram that a later fragment belongs to.
    pub fn ports(&self, headers: &Headers, now: Duration) -> Option<(u16, u16)> {
        let Fragment::Later { id } = headers.fragment else {
            return None;
        };
        let key = (headers.source, headers.destination, headers.protocol, id);
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let &(source, destination, since) = memory.ports.get(&key)?;
        (since + LIFETIME > now).then_some((source, destination))
    }
}
