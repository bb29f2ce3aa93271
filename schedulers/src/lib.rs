//! Choice: given a service's servers and a packet's key, pick one.
//!
//! Knows the load of servers and the addresses of a packet. Must not know bytes, connections,
//! clocks or I/O: time comes in as an argument, randomness as a seed.
//!
//! To add a scheduler: write one file with a type that implements [`Scheduler`] and a
//! `pub(crate) const ENTRY: Entry`, and add its name to the one list in `registry.rs`.

#![forbid(unsafe_code)]

mod registry;
mod server;

pub use registry::{Entry, REGISTRY, create, find};
pub use server::{Server, ServerId};

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// What a scheduler may look at in the packet that opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// IP protocol number (6 TCP, 17 UDP, 132 SCTP).
    pub protocol: u8,
    /// The client's address.
    pub source: IpAddr,
    /// The client's port, host order; 0 when the protocol has none.
    pub source_port: u16,
    /// The address the client asked for (the VIP).
    pub destination: IpAddr,
    /// The port the client asked for, host order.
    pub destination_port: u16,
}

/// Scheduler flags, as `ipvsadm -b` sets them (`IP_VS_SVC_F_SCHED1..3`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u32);

impl Flags {
    /// `flag-1`: sh-fallback, mh-fallback.
    pub const FLAG_1: Flags = Flags(0x08);
    /// `flag-2`: sh-port, mh-port.
    pub const FLAG_2: Flags = Flags(0x10);
    /// `flag-3`.
    pub const FLAG_3: Flags = Flags(0x20);

    /// Whether every bit of `other` is set in `self`.
    pub fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What a scheduler is made with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Scheduler flags of the service.
    pub flags: Flags,
    /// Seed for schedulers that draw lots (twos). The same seed gives the same draws.
    pub seed: u64,
}

/// How the server list has just changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The scheduler has just been bound to a service that may already have servers.
    Bound,
    /// A server has been put at the head, index 0.
    Added,
    /// The server that stood at `index` before the change is gone.
    Removed {
        /// Its index in the list as it was.
        index: usize,
        /// Which server it was.
        id: ServerId,
    },
    /// Weight or thresholds of the server at `index` have been set anew.
    Edited {
        /// Its index in the list.
        index: usize,
    },
}

/// A scheduler's refusal to work with a list (mh: more servers than table slots).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyServers {
    /// The most servers this scheduler can hold.
    pub limit: usize,
}

/// Picks a server for each new connection of one service.
///
/// The list is in kernel order: a new server goes to the head (index 0), and schedulers walk from
/// head to tail, so that the newest server is considered first and wins ties.
///
/// One scheduler belongs to one service and is called under that service's lock.
pub trait Scheduler: Send {
    /// Tells of a change; `servers` is the list after it. The default does nothing.
    ///
    /// # Errors
    /// When the scheduler cannot hold the list; the caller then undoes the change and calls again.
    fn changed(&mut self, servers: &[Arc<Server>], change: Change) -> Result<(), TooManyServers> {
        let _ = (servers, change);
        Ok(())
    }

    /// The index in `servers` of the server that shall have the connection, or `None` when no
    /// server may. `now` is monotonic time since an arbitrary start.
    fn choose(&mut self, servers: &[Arc<Server>], key: &Key, now: Duration) -> Option<usize>;
}
