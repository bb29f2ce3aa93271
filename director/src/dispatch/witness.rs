//! Who watches the pipeline decide: it is told each decision on the long way, and nobody is told when
//! nobody watches. A worker has none; `explain` does.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::connection::Connection;
use super::connections::Way;
use super::state::State;
use super::verdict::Path;
use crate::control::api::ServiceKey;

/// One decision, in the order in which they are made.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The packet belongs to a connection that is there.
    Connection {
        /// Which way it goes.
        way: Way,
        /// The client.
        client: SocketAddr,
        /// The virtual address.
        virtual_address: SocketAddr,
        /// The server.
        server: SocketAddr,
        /// State before the packet.
        before: State,
        /// State after it.
        after: State,
        /// Until it expires, before the packet.
        left: Duration,
    },
    /// There was a connection, and it is over or cannot be used.
    Ended {
        /// Why, in words.
        why: &'static str,
    },
    /// No connection is known for it.
    NoConnection,
    /// It is for this service.
    Service {
        /// Which.
        key: ServiceKey,
        /// The scheduler's name.
        scheduler: String,
    },
    /// It is for a service, and cannot open a connection.
    OpensNothing,
    /// The connection table has no room.
    TableFull,
    /// The service goes by a name in the packet, and it has one or not.
    Named {
        /// What it is called: `Call-ID`, `name in the question`.
        what: &'static str,
        /// Whether it is there.
        is_there: bool,
    },
    /// The client's template.
    Template {
        /// Its server.
        server: IpAddr,
        /// Whether it is followed; if not, why.
        left: Option<&'static str>,
    },
    /// There is no template for this client yet.
    NoTemplate {
        /// Clients that are one: the first bits of the address.
        prefix: u8,
        /// Seconds that it will live.
        timeout: u32,
    },
    /// The fallback server stands in, for no server is up.
    Fallback {
        /// Which.
        server: SocketAddr,
    },
    /// The scheduler has been asked.
    Scheduled {
        /// Where it began to look; empty when it compares all.
        bearings: String,
        /// What each server came to.
        candidates: Vec<Candidate>,
        /// Whom it chose.
        chosen: Option<SocketAddr>,
    },
    /// A new connection has been made.
    Opened {
        /// Its server.
        server: SocketAddr,
        /// Whether it is for this packet only.
        is_once: bool,
    },
    /// It goes past all servers (`cache_bypass`).
    Bypassed,
    /// It goes to a server by hash alone, and nothing is remembered (the table is full, or was).
    ByHash {
        /// Which.
        server: SocketAddr,
    },
    /// The way to an address.
    Way {
        /// Where to.
        destination: IpAddr,
        /// How; `None`: no route.
        path: Option<Path>,
    },
    /// The largest packet that fits on the way, after what a tunnel adds, and how long this one is.
    Fits {
        /// Bytes of IP that fit.
        mtu: u32,
        /// Bytes of this one.
        length: u32,
        /// Bytes that a tunnel adds.
        overhead: u32,
    },
    /// The largest segment that a SYN may announce is lowered to this, if it is larger.
    Clamped {
        /// Bytes.
        most: u16,
    },
}

impl Decision {
    /// Of a packet that has moved `connection`, which was in this state and would have expired then.
    pub(super) fn followed(
        way: Way,
        connection: &Connection,
        (before, expires): (State, Duration),
        now: Duration,
    ) -> Decision {
        Decision::Connection {
            way,
            client: connection.tuple.client.into(),
            virtual_address: connection.tuple.peer.into(),
            server: connection.server_endpoint.into(),
            before,
            after: connection.state,
            left: expires.saturating_sub(now),
        }
    }
}

/// One server, when a scheduler was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The server.
    pub server: SocketAddr,
    /// What it comes to, in the scheduler's words.
    pub figure: String,
    /// Why it must not be chosen, if it must not.
    pub excluded: Option<&'static str>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Witness(Option<RefCell<Vec<Decision>>>);

impl Witness {
    /// One that takes notes.
    pub fn attentive() -> Witness {
        Witness(Some(RefCell::default()))
    }

    /// Whether anybody is there.
    #[inline(always)]
    pub fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Notes a decision, which is worked out only if somebody is there.
    #[inline(always)]
    pub fn note(&self, decision: impl FnOnce() -> Decision) {
        if let Some(notes) = &self.0 {
            notes.borrow_mut().push(decision());
        }
    }

    /// All that has been noted.
    pub fn take(&self) -> Vec<Decision> {
        self.0.as_ref().map(RefCell::take).unwrap_or_default()
    }
}
