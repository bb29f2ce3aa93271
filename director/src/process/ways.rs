//! The kernel's routing and neighbour tables, asked about a packet that is only spoken of: nothing is
//! resolved for it.

use std::net::IpAddr;

use crate::dispatch::Routes;
use crate::dispatch::verdict::Path;
use crate::explain::{Link, Ways};
use crate::network::Network;

/// See the module.
pub(super) struct KernelWays<'a> {
    pub(super) network: &'a Network,
    /// Those that the director serves.
    pub(super) interfaces: &'a [String],
}

impl Routes for KernelWays<'_> {
    fn path(&mut self, destination: IpAddr) -> Option<Path> {
        self.network.path(destination)
    }
}

impl Ways for KernelWays<'_> {
    fn link(&self, path: &Path) -> Link {
        let Some(interface) = self.network.interface(path.interface) else {
            return Link::NoPort { interface: format!("interface {}", path.interface) };
        };
        let name = interface.name.clone();
        let is_served = |name: &str| self.interfaces.iter().any(|known| known == name);
        // A VLAN device is a tag on the port of its parent.
        let parent = interface.vlan.and_then(|(parent, _)| self.network.interface(parent));
        if !is_served(&name) && !parent.is_some_and(|parent| is_served(&parent.name)) {
            return Link::NoPort { interface: name };
        }
        match self.network.neighbour(path.interface, path.next_hop) {
            Some(destination) => {
                Link::Known { interface: name, source: interface.mac, destination }
            }
            None => {
                let is_silent = self.network.is_silent(path.interface, path.next_hop);
                Link::Unresolved { interface: name, is_silent }
            }
        }
    }
}
