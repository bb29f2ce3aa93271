//! The kernel's routing and neighbour tables, asked about a packet that is only spoken of: nobody is
//! asked for it that the director does not ask for anyway.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use crate::dispatch::Routes;
use crate::dispatch::verdict::Path;
use crate::explain::{Link, Ways};
use crate::network::{Network, Resolver};

/// For how long a packet waits for its next hop's Ethernet address; so long a question does too.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often it looks meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// See the module.
pub(super) struct KernelWays<'a> {
    pub(super) network: &'a ArcSwap<Network>,
    pub(super) resolver: &'a Resolver,
    /// Those that the director serves.
    pub(super) interfaces: &'a [String],
}

impl KernelWays<'_> {
    /// The Ethernet address of a next hop. One of a server is asked for every two seconds, by whom nobody
    /// need be told, and this waits for the answer.
    fn resolve(&self, path: &Path) -> Option<[u8; 6]> {
        let begun = Instant::now();
        loop {
            let found = self.network.load().neighbour(path.interface, path.next_hop);
            let waits = self.resolver.keeps(path.interface, path.next_hop);
            if found.is_some() || !waits || begun.elapsed() > PATIENCE {
                return found;
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Routes for KernelWays<'_> {
    fn path(&mut self, destination: IpAddr) -> Option<Path> {
        self.network.load().path(destination)
    }
}

impl Ways for KernelWays<'_> {
    fn link(&self, path: &Path) -> Link {
        let network = self.network.load();
        let Some(interface) = network.interface(path.interface) else {
            return Link::NoPort { interface: format!("interface {}", path.interface) };
        };
        let name = interface.name.clone();
        let is_served = |name: &str| self.interfaces.iter().any(|known| known == name);
        // A VLAN device is a tag on the port of its parent.
        let parent = interface.vlan.and_then(|(parent, _)| network.interface(parent));
        if !is_served(&name) && !parent.is_some_and(|parent| is_served(&parent.name)) {
            return Link::NoPort { interface: name };
        }
        match self.resolve(path) {
            Some(destination) => {
                Link::Known { interface: name, source: interface.mac, destination }
            }
            None => {
                let is_silent = self.resolver.keeps(path.interface, path.next_hop);
                Link::Unresolved { interface: name, is_silent }
            }
        }
    }
}
