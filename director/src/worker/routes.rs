//! The kernel's routing table as a worker asks it: with a memory of recent answers, because
//! packets of one connection ask the same thing again and again.

use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::{ArcSwap, Cache};

use super::blocks::Blocks;
use super::recent::Recent;
use crate::dispatch::Routes;
use crate::dispatch::connections::Binding;
use crate::dispatch::established::{Exit, Exits};
use crate::dispatch::verdict::Path;
use crate::network::{Network, Resolver};

/// Where a frame goes out and what its Ethernet header is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// Index into the worker's ports.
    pub(super) port: usize,
    pub(super) source: [u8; 6],
    pub(super) destination: [u8; 6],
    pub(super) vlan: Option<u16>,
}

/// Why there is no link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoLink {
    /// The interface is none of ours.
    NoPort,
    /// The next hop's MAC address is not known yet; the kernel has been asked.
    Unresolved,
}

/// See the module.
pub(super) struct KernelRoutes {
    network: Cache<Arc<ArcSwap<Network>>, Arc<Network>>,
    current: Arc<Network>,
    changed: bool,
    resolver: Resolver,
    /// Interface of each of the worker's ports.
    interfaces: Vec<u32>,
    paths: Recent<IpAddr, Option<Path>>,
    links: Recent<(u32, IpAddr), Link>,
    /// Ways to servers, by number of the binding.
    to_servers: Vec<Option<Exit>>,
    to_clients: Recent<IpAddr, Exit>,
    blocks: Blocks,
}

impl KernelRoutes {
    pub(super) fn new(
        network: Arc<ArcSwap<Network>>,
        resolver: Resolver,
        interfaces: Vec<u32>,
    ) -> KernelRoutes {
        let mut network = Cache::new(network);
        let current = Arc::clone(network.load());
        KernelRoutes {
            network,
            current,
            changed: false,
            resolver,
            interfaces,
            paths: Recent::new(),
            links: Recent::new(),
            to_servers: Vec::new(),
            to_clients: Recent::new(),
            blocks: Blocks::new(),
        }
    }

    /// Once per breath: takes the newest snapshot.
    pub(super) fn refresh(&mut self) {
        let newest = self.network.load();
        self.changed = !Arc::ptr_eq(newest, &self.current);
        if self.changed {
            self.current = Arc::clone(newest);
            self.paths.clear();
            self.links.clear();
            self.to_clients.clear();
            self.blocks.clear();
            self.to_servers.fill(None);
        }
    }

    /// Makes room for ways to servers of `bindings` bindings, which have changed.
    pub(super) fn forget_servers(&mut self, bindings: usize) {
        self.to_servers.fill(None);
        self.to_servers.resize(bindings.max(self.to_servers.len()), None);
    }

    /// The way to a client whose block has none that is known.
    #[cold]
    fn exit_to_client(&mut self, client: IpAddr) -> Option<Exit> {
        if self.blocks.is_unknown(client) {
            let way = self.current.is_uniform(client).then(|| self.exit(client));
            match way {
                Some(Some(exit)) => {
                    self.blocks.put(client, Some(exit));
                    return Some(exit);
                }
                // The router is still being asked for.
                Some(None) => return None,
                None => self.blocks.put(client, None),
            }
        }
        if let Some(exit) = self.to_clients.get(&client) {
            return Some(exit);
        }
        let exit = self.exit(client)?;
        self.to_clients.put(client, exit);
        Some(exit)
    }

    /// The way to an address, if its next hop is known and its frames need no tag.
    fn exit(&mut self, address: IpAddr) -> Option<Exit> {
        let path = self.path(address)?;
        let link = self.link(&path).ok()?;
        let Path { mtu, source, .. } = path;
        let Link { port, source: from, destination: to, vlan } = link;
        let mut addresses = [0; 12];
        addresses[..6].copy_from_slice(&to);
        addresses[6..].copy_from_slice(&from);
        vlan.is_none().then_some(Exit { mtu, source, port, addresses })
    }

    /// Whether the last `refresh` found something new.
    pub(super) fn have_changed(&self) -> bool {
        self.changed
    }

    /// How frames reach the next hop of `path`.
    pub(super) fn link(&mut self, path: &Path) -> Result<Link, NoLink> {
        let key = (path.interface, path.next_hop);
        if let Some(link) = self.links.get(&key) {
            return Ok(link);
        }
        let interface = self.current.interface(path.interface).ok_or(NoLink::NoPort)?;
        let port_of = |device| self.interfaces.iter().position(|&index| index == device);
        // A VLAN device is a tag on the port of its parent, unless we have a port on itself.
        let (port, vlan) = match (port_of(path.interface), interface.vlan) {
            (Some(port), _) => (port, None),
            (None, Some((parent, tag))) => (port_of(parent).ok_or(NoLink::NoPort)?, Some(tag)),
            (None, None) => return Err(NoLink::NoPort),
        };
        let Some(destination) = self.current.neighbour(path.interface, path.next_hop) else {
            self.resolver.request(path.interface, path.next_hop);
            return Err(NoLink::Unresolved);
        };
        let link = Link { port, source: interface.mac, destination, vlan };
        self.links.put(key, link);
        Ok(link)
    }
}

impl Exits for KernelRoutes {
    #[inline(always)]
    fn to_server(&mut self, binding: &Binding) -> Option<Exit> {
        if let Some(Some(exit)) = self.to_servers.get(binding.id()) {
            return Some(*exit);
        }
        let exit = self.exit(binding.address)?;
        if let Some(known) = self.to_servers.get_mut(binding.id()) {
            *known = Some(exit);
        }
        Some(exit)
    }

    #[inline(always)]
    fn to_client(&mut self, client: IpAddr) -> Option<Exit> {
        self.blocks.get(client).or_else(|| self.exit_to_client(client))
    }
}

impl Routes for KernelRoutes {
    fn path(&mut self, destination: IpAddr) -> Option<Path> {
        if let Some(path) = self.paths.get(&destination) {
            return path;
        }
        let path = self.current.path(destination);
        self.paths.put(destination, path);
        path
    }
}
