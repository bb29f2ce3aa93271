//! Choice: given a service's servers and a packet's key, pick one.
//!
//! Knows the load of servers and the addresses of a packet. Must not know bytes, connections,
//! clocks or I/O: time comes in as an argument, randomness as a seed.
//!
//! Start at [`Scheduler`], the contract, and [`REGISTRY`], all who keep it. Each scheduler is one file
//! in `registry/`; what several of them share is in `weight` (loads as fractions of weight),
//! `address` (hashing of addresses), `slots` (hash tables), `locality` and `replicas` (memory of
//! destinations) and `remembered` (a server from one call to the next). `lightest` is the choice of
//! the least loaded, plain (`least`) or with a load bias (`bias`, `biased`), over lists of any length
//! (`watched`, `board`). [`placement`] is the table of dht, for whoever wants to know where a key belongs.
//!
//! To add a scheduler: write one file in `registry/` with a type that implements [`Scheduler`] and a
//! `pub(crate) const ENTRY: Entry`, and add its name to the one list in `registry.rs`.

#![forbid(unsafe_code)]

mod address;
mod bias;
mod biased;
mod board;
#[cfg(test)]
mod fork_tests;
mod least;
mod lightest;
mod locality;
pub mod placement;
mod preparation;
mod registry;
mod remembered;
mod replicas;
mod server;
mod slots;
#[cfg(test)]
mod testing;
mod watched;
mod weight;

pub use bias::Bias;
pub use preparation::{Preparation, Prepared};
pub use registry::{Entry, REGISTRY, create, find, most_servers};
pub use server::{Server, ServerId};

use placement::{HashBy, Member, PlacementOptions};
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
    /// The hash of the name in a DNS question, as [`placement::NameHasher`] makes it; `None` when it
    /// is no such packet, or when nobody has asked for it.
    pub name: Option<u64>,
}

/// Scheduler flags, as `ipvsadm -b` sets them (`IP_VS_SVC_F_SCHED1..3`).
///
/// ```
/// use schedulers::Flags;
///
/// let both = Flags(Flags::FLAG_1.0 | Flags::FLAG_2.0);
/// assert!(both.contains(Flags::FLAG_2) && !both.contains(Flags::FLAG_3));
/// ```
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

/// What a scheduler is made with. To change it, make a new scheduler and bind it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Scheduler flags of the service.
    pub flags: Flags,
    /// Seed for schedulers that draw lots (twos) or keep tables keyed by what clients choose (lblc,
    /// lblcr). The same seed gives the same choices; one that clients cannot guess keeps them from
    /// crowding the tables.
    pub seed: u64,
    /// How much a connection in progress counts; for lc, wlc, sed, nq, lblc, lblcr and load.
    pub bias: Bias,
    /// For how long a new connection is in progress; zero: as long as it is not established. Goes on in
    /// sixteenths, each a millisecond at least, while choices are made.
    pub bias_window: Duration,
    /// What sh, mh, dh and dht go by.
    pub key: HashBy,
    /// The table of dht.
    pub placement: PlacementOptions,
}

/// How long lblc and lblcr remember, for those that do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expirations {
    /// After how long without use lblc forgets an address.
    pub lblc: Duration,
    /// After how long without use lblcr forgets an address, and without change its set of servers
    /// shrinks.
    pub lblcr: Duration,
}

impl Default for Expirations {
    /// A day, as the kernel's `lblc_expiration` and `lblcr_expiration`.
    fn default() -> Expirations {
        let day = Duration::from_secs(24 * 60 * 60);
        Expirations { lblc: day, lblcr: day }
    }
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
    /// The server at `index` is the same one, of the same id, and its counts have begun anew: another
    /// [`Server`] stands for it.
    Replaced {
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
/// One scheduler belongs to one service and is called under that service's lock. Counters and
/// overload flags of the servers may change at any time all the same.
///
/// # Example
///
/// A scheduler of one's own: the server with the most idle weight. It needs no [`REGISTRY`] entry to
/// be used; with one, `ipvsadm -s` finds it.
///
/// ```
/// use schedulers::{Key, Scheduler, Server, ServerId};
/// use std::{sync::Arc, time::Duration};
///
/// struct MostRoom;
///
/// impl Scheduler for MostRoom {
///     fn choose(&mut self, servers: &[Arc<Server>], _: &Key, _: Duration) -> Option<usize> {
///         let room = |index: &usize| {
///             i64::from(servers[*index].weight()) - i64::from(servers[*index].active())
///         };
///         // From tail to head, since `max_by_key` keeps the last of equals.
///         (0..servers.len()).rev().filter(|&index| servers[index].is_eligible()).max_by_key(room)
///     }
///
///     fn fork(&self, _: &[Arc<Server>], _: &Key) -> Box<dyn Scheduler> {
///         Box::new(MostRoom)
///     }
///
///     fn figure(&self, _: usize, server: &Server) -> String {
///         format!("{} active of weight {}", server.active(), server.weight())
///     }
/// }
///
/// let server = |id, weight| {
///     Arc::new(Server::new(ServerId(id), "10.0.0.1".parse().unwrap(), 80, weight))
/// };
/// let servers = [server(2, 10), server(1, 10), server(0, 0)];
/// let key = Key {
///     protocol: 17,
///     source: "2001:db8::7".parse().unwrap(),
///     source_port: 5353,
///     destination: "2001:db8::53".parse().unwrap(),
///     destination_port: 53,
///     name: None,
/// };
/// assert_eq!(MostRoom.choose(&servers, &key, Duration::ZERO), Some(0));
/// servers[0].connection_opened();
/// servers[0].connection_moved(true);
/// assert_eq!(MostRoom.choose(&servers, &key, Duration::ZERO), Some(1));
/// ```
pub trait Scheduler: Send {
    /// Tells of a change; `servers` is the list after it. The default does nothing.
    ///
    /// # Errors
    /// When the scheduler cannot hold the list; the caller then undoes the change and calls again.
    /// Until then choices are made as before the change.
    fn changed(&mut self, servers: &[Arc<Server>], change: Change) -> Result<(), TooManyServers> {
        let _ = (servers, change);
        Ok(())
    }

    /// Tells of a change to come: work that is better done before it, and not under the service's
    /// lock, on which new connections wait. `members` are the servers as they will be after the
    /// change, in list order. The default is that there is nothing to do.
    ///
    /// Without it [`Scheduler::changed`] does the work, and is right all the same. With it a change is
    /// made so:
    ///
    /// ```
    /// # use schedulers::{Change, Options, Server, ServerId, create, placement::Member};
    /// # use std::sync::{Arc, Mutex};
    /// # let address = "10.0.0.1".parse().unwrap();
    /// # let servers = [Arc::new(Server::new(ServerId(1), address, 80, 1))];
    /// # let mut scheduler = create("dht", &Options::default()).unwrap();
    /// # scheduler.changed(&servers, Change::Bound).unwrap();
    /// # let scheduler = Mutex::new(scheduler);
    /// let to_be = [Member::of(&servers[0]).weighing(5)];
    /// let plan = scheduler.lock().unwrap().plan(&to_be);
    /// let prepared = plan.map(|plan| plan.run()); // takes its time, without the lock
    /// {
    ///     let mut scheduler = scheduler.lock().unwrap();
    ///     prepared.iter().for_each(|prepared| scheduler.offer(prepared));
    ///     servers[0].set_weight(5);
    ///     scheduler.changed(&servers, Change::Edited { index: 0 }).unwrap();
    /// }
    /// drop(prepared); // and with it, without the lock, what has been replaced
    /// ```
    fn plan(&self, members: &[Member]) -> Option<Preparation> {
        let _ = members;
        None
    }

    /// Offers what has been prepared to the next [`Scheduler::changed`], which takes it if it fits the
    /// list by then. Keep it until the lock is given back: what the change replaces goes with it.
    fn offer(&mut self, prepared: &Prepared) {
        let _ = prepared;
    }

    /// Tells how long to remember, from now on: what is remembered already is judged by it too. The
    /// default does nothing.
    fn set_expirations(&mut self, expirations: &Expirations) {
        let _ = expirations;
    }

    /// The index in `servers` of the server that shall have the connection, or `None` when no
    /// server may. `now` is monotonic time since an arbitrary start.
    fn choose(&mut self, servers: &[Arc<Server>], key: &Key, now: Duration) -> Option<usize>;

    /// Another scheduler in the same state, for choices by this key: what it is asked once, this one
    /// would have answered, and nobody else learns of it. `servers` are forks ([`Server::fork`]) of the
    /// list, in its order.
    ///
    /// ```
    /// # use schedulers::{Change, Key, Options, Server, ServerId, create};
    /// # use std::{sync::Arc, time::Duration};
    /// # let address = "10.0.0.1".parse().unwrap();
    /// # let server = |id| Arc::new(Server::new(ServerId(id), address, 80, 1));
    /// # let servers = [server(1), server(2)];
    /// # let (now, port) = (Duration::ZERO, 80);
    /// # let key = Key { protocol: 6, source: address, source_port: 1, destination: address, destination_port: port, name: None };
    /// let mut scheduler = create("rr", &Options::default()).unwrap();
    /// scheduler.changed(&servers, Change::Bound).unwrap();
    /// let forks = servers.each_ref().map(|server| Arc::new(server.fork()));
    /// let foreseen = scheduler.fork(&forks, &key).choose(&forks, &key, now);
    /// assert_eq!(foreseen, scheduler.choose(&servers, &key, now));
    /// ```
    fn fork(&self, servers: &[Arc<Server>], key: &Key) -> Box<dyn Scheduler>;

    /// What the server at `index` comes to in a comparison, in a few words: `3*256+7 over weight 2`.
    fn figure(&self, index: usize, server: &Server) -> String;

    /// Where the search for a server begins, in a few words: `after 10.0.0.1:80`, `slot 17 of 256, of
    /// 10.0.0.2:80`. Empty when all servers are compared. By default it is.
    fn bearings(&self, servers: &[Arc<Server>], key: &Key) -> String {
        let _ = (servers, key);
        String::new()
    }
}
