//! A small service to try schedulers on: a server list, one scheduler, a clock.

use crate::{Change, Flags, Key, Options, Scheduler, Server, ServerId, TooManyServers, create};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

/// A server with the id, and an address and port that follow from it.
pub(crate) fn server(id: u64, weight: i32) -> Arc<Server> {
    let address = Ipv4Addr::from_bits(0x0A00_0000 + id as u32);
    Arc::new(Server::new(ServerId(id), address.into(), 80, weight))
}

/// Servers in list order, ids 0, 1, 2 ...
pub(crate) fn servers(weights: &[i32]) -> Vec<Arc<Server>> {
    let weights = weights.iter().enumerate();
    weights.map(|(id, &weight)| server(id as u64, weight)).collect()
}

/// A TCP key from a client.
pub(crate) fn client(address: &str, port: u16) -> Key {
    Key {
        protocol: 6,
        source: address.parse().unwrap(),
        source_port: port,
        destination: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 10)),
        destination_port: 80,
        name: None,
    }
}

/// A TCP key to a destination.
pub(crate) fn destination(address: &str) -> Key {
    Key { destination: address.parse().unwrap(), ..client("198.51.100.7", 5000) }
}

/// Gives a server so many active and inactive connections on top of those it has.
pub(crate) fn load(server: &Server, active: u32, inactive: u32) {
    for _ in 0..active {
        server.connection_opened();
        server.connection_moved(true);
    }
    for _ in 0..inactive {
        server.connection_opened();
    }
}

/// Overloads a server by an upper threshold that its load has reached.
pub(crate) fn overload(server: &Server) {
    server.set_thresholds(1, 0);
    server.connection_opened();
    assert!(server.is_overloaded());
}

/// A service under test. Servers are named by id.
pub(crate) struct Service {
    pub(crate) servers: Vec<Arc<Server>>,
    pub(crate) scheduler: Box<dyn Scheduler>,
    pub(crate) now: Duration,
}

impl Service {
    /// A service with servers of these weights in list order, ids 0, 1, 2 ...
    pub(crate) fn new(scheduler: &str, weights: &[i32]) -> Service {
        Service::with_flags(scheduler, weights, Flags(0))
    }

    pub(crate) fn with_flags(scheduler: &str, weights: &[i32], flags: Flags) -> Service {
        Service::with_options(scheduler, weights, &Options { flags, seed: 7, ..Options::default() })
    }

    pub(crate) fn with_options(scheduler: &str, weights: &[i32], options: &Options) -> Service {
        let mut service = Service {
            servers: servers(weights),
            scheduler: create(scheduler, options).expect("no such scheduler"),
            now: Duration::from_secs(1000),
        };
        let bound = service.scheduler.changed(&service.servers, Change::Bound);
        bound.expect("too many servers");
        service
    }

    /// The server with the id.
    pub(crate) fn server(&self, id: u64) -> &Server {
        &self.servers[self.index(id)]
    }

    fn index(&self, id: u64) -> usize {
        let found = self.servers.iter().position(|s| s.id() == ServerId(id));
        found.expect("no server of this id")
    }

    /// Adds a server at the head, as the kernel does.
    pub(crate) fn add(&mut self, id: u64, weight: i32) -> Result<(), TooManyServers> {
        self.servers.insert(0, server(id, weight));
        self.scheduler.changed(&self.servers, Change::Added)
    }

    pub(crate) fn remove(&mut self, id: u64) {
        let index = self.index(id);
        self.servers.remove(index);
        let change = Change::Removed { index, id: ServerId(id) };
        self.scheduler.changed(&self.servers, change).unwrap();
    }

    pub(crate) fn set_weight(&mut self, id: u64, weight: i32) {
        let index = self.index(id);
        self.servers[index].set_weight(weight);
        let change = Change::Edited { index };
        self.scheduler.changed(&self.servers, change).unwrap();
    }

    /// The id of the server chosen for a key.
    pub(crate) fn choose(&mut self, key: &Key) -> Option<u64> {
        let index = self.scheduler.choose(&self.servers, key, self.now)?;
        Some(self.servers[index].id().0)
    }

    /// The id of the server chosen for just any client.
    pub(crate) fn next(&mut self) -> Option<u64> {
        self.choose(&client("198.51.100.7", 5000))
    }

    /// The ids of the next `count` choices; panics when there is none.
    pub(crate) fn run(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.next().expect("no server")).collect()
    }

    /// Chooses and lets the connection stay, active.
    pub(crate) fn connect(&mut self) -> Option<u64> {
        let id = self.next()?;
        load(self.server(id), 1, 0);
        Some(id)
    }
}
