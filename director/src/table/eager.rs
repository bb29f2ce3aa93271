//! Clients that are silent do not hear that their server has failed: where the service says so
//! (`teardown = "eager"`), somebody looks for them, a part of the table at a time.
//!
//! ```text
//!   TCP, both ends may still speak     the client is to be roused; what it answers is answered with RST
//!   UDP, templates                     removed
//!   all else                           left to its timeout
//! ```
//!
//! How a client is roused is not known here.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Table;
use crate::dispatch::connection::Connection;
use crate::dispatch::connections::PART;
use crate::dispatch::state::State;

/// Connections that are looked at in one go at most, some milliseconds' worth.
const LOOKED_AT: usize = 100_000;

/// IP protocol number of TCP.
const TCP: u8 = 6;

/// A client whose connection is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silent {
    /// Its address and port.
    pub client: SocketAddr,
    /// The address and port that it talks to.
    pub virtual_address: SocketAddr,
}

/// See the module.
#[derive(Default)]
pub(super) struct Eager(Mutex<Search>);

/// How far the search has come.
#[derive(Default)]
struct Search {
    /// The part of the table that is next.
    next: Option<usize>,
    /// Whether there is more to be found in what has been searched.
    again: bool,
}

impl Eager {
    /// Some server has failed.
    pub(super) fn begin(&self) {
        let mut search = self.lock();
        match search.next {
            // What has not been searched yet need not be searched twice.
            Some(part) if part > 0 => search.again = true,
            _ => search.next = Some(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Search> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Search {
    /// All parts have been searched.
    fn end(&mut self) {
        self.next = std::mem::take(&mut self.again).then_some(0);
    }
}

impl Table {
    /// Whether [`take_eager_work`](Table::take_eager_work) has anything to look for.
    pub fn has_eager_work(&self) -> bool {
        self.eager.lock().next.is_some()
    }

    /// Goes on looking for dead connections, and removes those that need nobody's answer. Returns
    /// clients that are to be roused: about `at_most` of them, the removed ones counted. Nobody else
    /// waits meanwhile, but new connections for microseconds.
    pub fn take_eager_work(&self, at_most: usize) -> Vec<Silent> {
        let mut search = self.eager.lock();
        let mut silent = Vec::new();
        let mut found = 0;
        for _ in 0..LOOKED_AT / PART {
            let Some(part) = search.next else { break };
            let is_there = self.shared.connections.sift_lost(part, |connection| {
                if !connection.service().policy.rouses_lost() {
                    return false;
                }
                let fate = fate(connection);
                found += usize::from(fate != Fate::Left);
                if fate == Fate::Roused {
                    silent.push(Silent {
                        client: connection.tuple.client.into(),
                        virtual_address: connection.tuple.peer.into(),
                    });
                }
                fate == Fate::Removed
            });
            match is_there {
                true => search.next = Some(part + 1),
                false => search.end(),
            }
            if found >= at_most {
                break;
            }
        }
        silent
    }
}

#[derive(PartialEq, Eq)]
enum Fate {
    Roused,
    Removed,
    Left,
}

fn fate(connection: &Connection) -> Fate {
    match connection.state {
        _ if connection.tuple.template => Fate::Removed,
        State::Udp => Fate::Removed,
        State::Established | State::FinWait | State::CloseWait
            if connection.tuple.protocol == TCP =>
        {
            Fate::Roused
        }
        _ => Fate::Left,
    }
}
