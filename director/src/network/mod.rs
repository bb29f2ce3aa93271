//! Interfaces, addresses, routes and neighbours as the kernel knows them, followed over netlink.
//!
//! [`Network`] is one moment of all that, immutable once published: workers load it once per breath
//! and ask it for the way to a server and the Ethernet address at the end of it. [`Follower`] keeps
//! publishing new ones; [`Resolver`] asks the kernel to find out an Ethernet address;
//! [`OwnAddresses`] puts VIPs on an interface and takes them away; [`announcement`] builds the
//! frame that tells a segment where a VIP lives now.
//!
//! Nothing here knows of services or packets, and nothing here decides what is a route or a
//! neighbour: ARP, ND and routing protocols stay in the kernel and its daemons.

mod addresses;
mod announce;
mod answer;
mod change;
mod dump;
mod error;
mod follower;
mod frames;
mod messages;
mod neighbours;
mod own_addresses;
mod prefix_map;
mod question;
mod resolver;
mod routes;
mod snapshot;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

pub use announce::announcement;
pub use answer::{answer, cluster_announcement};
pub use change::{
    Address, Change, Effect, Freshness, Hop, Interface, KernelRoute, Neighbour, RouteKind,
};
pub use error::NetworkError;
pub use follower::Follower;
pub use own_addresses::OwnAddresses;
pub use question::{ethertype, owner, question};
pub use resolver::Resolver;
pub use snapshot::Snapshot;

use crate::dispatch::verdict::Path;
use addresses::Addresses;
use neighbours::Neighbours;
use routes::{Found, RouteTables};

/// The way to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Index of the interface to send on.
    pub interface: u32,
    /// The router to send to; `None` = the destination is on the segment itself.
    pub gateway: Option<IpAddr>,
    /// The address that packets of our own leave with.
    pub source: Option<IpAddr>,
    /// Largest IP packet on this way, bytes.
    pub mtu: u32,
}

impl Route {
    /// Whose Ethernet address a packet to `destination` goes to.
    pub fn next_hop(&self, destination: IpAddr) -> IpAddr {
        self.gateway.unwrap_or(destination)
    }
}

/// The network at one moment. Clones are cheap: the tables are shared until one is changed.
///
/// ```
/// use director::network::{Change, Hop, Interface, KernelRoute, Network, RouteKind};
///
/// let mut network = Network::default();
/// network.apply(Change::Interface(Interface {
///     index: 2,
///     name: "eth0".to_owned(),
///     mac: [2, 0, 0, 0, 0, 1],
///     mtu: 1500,
///     up: true,
///     carrier: true,
///     vlan: None,
/// }));
/// let route = KernelRoute {
///     table: 254,
///     destination: "0.0.0.0/0".parse()?,
///     priority: 0,
///     kind: RouteKind::Unicast,
///     hops: vec![Hop { interface: 2, gateway: Some([10, 0, 0, 1].into()), weight: 1, dead: false }],
///     source: None,
///     mtu: None,
///     scope: 0,
/// };
/// network.apply(Change::Route { route, replaces: false });
///
/// let route = network.route([192, 0, 2, 1].into()).expect("a default route");
/// assert_eq!((route.interface, route.mtu), (2, 1500));
/// assert_eq!(route.next_hop([192, 0, 2, 1].into()), std::net::Ipv4Addr::new(10, 0, 0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Network {
    interfaces: Arc<BTreeMap<u32, Interface>>,
    addresses: Arc<Addresses>,
    routes: Arc<RouteTables>,
    neighbours: Arc<Neighbours>,
}

impl Network {
    /// The interface of this index.
    pub fn interface(&self, index: u32) -> Option<&Interface> {
        self.interfaces.get(&index)
    }

    /// The interface of this name.
    pub fn interface_by_name(&self, name: &str) -> Option<&Interface> {
        self.interfaces().find(|interface| interface.name == name)
    }

    /// All interfaces by index.
    pub fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.interfaces.values()
    }

    /// All addresses in the kernel's order.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.addresses.iter()
    }

    /// The way to `destination` by the kernel's tables local, main and default. `None` when there
    /// is none, when it is forbidden (blackhole, unreachable, prohibit), and when the destination
    /// is this machine: ask [`Network::is_local`] first. A multipath route always gives the same
    /// way for the same destination.
    pub fn route(&self, destination: IpAddr) -> Option<Route> {
        let Found::Way(route, hop) = self.find(destination) else {
            return None;
        };
        let interface = self.interface(hop.interface)?;
        let next = hop.gateway.unwrap_or(destination);
        let source = route
            .source
            .or_else(|| self.addresses.source(hop.interface, destination, next, route.scope));
        Some(Route {
            interface: hop.interface,
            gateway: hop.gateway,
            source,
            mtu: route.mtu.unwrap_or(interface.mtu),
        })
    }

    /// The same as the pipeline has it: the next hop is the destination itself when that is on the
    /// link.
    pub fn path(&self, destination: IpAddr) -> Option<Path> {
        self.route(destination).map(|route| Path {
            interface: route.interface,
            next_hop: route.gateway.unwrap_or(destination),
            source: route.source.or_else(|| self.source_for(destination)),
            mtu: route.mtu,
        })
    }

    /// Whether all addresses of the block around `destination`, the first 16 bits of IPv4 or 48 of
    /// IPv6, go to one and the same gateway.
    pub fn is_uniform(&self, destination: IpAddr) -> bool {
        self.routes.is_uniform(destination)
            && matches!(self.find(destination), Found::Way(route, hop)
                if route.hops.len() == 1 && hop.gateway.is_some())
    }

    /// Whether packets to `address` are for this machine: it is on one of the interfaces that are
    /// up, or a local route says so.
    pub fn is_local(&self, address: IpAddr) -> bool {
        let is_up = |index: &u32| self.interface(*index).is_some_and(|it| it.up);
        let on_interface = self.addresses.interfaces_of(address).iter().any(is_up);
        on_interface || self.find(address) == Found::Local
    }

    /// The address that a packet of our own to `destination` leaves with.
    pub fn source_for(&self, destination: IpAddr) -> Option<IpAddr> {
        if self.is_local(destination) {
            return Some(destination);
        }
        self.route(destination)?.source
    }

    /// The Ethernet address of a neighbour, when the kernel knows it (REACHABLE, STALE, DELAY, PROBE,
    /// PERMANENT, NOARP). When it does not, ask the [`Resolver`].
    pub fn neighbour(&self, interface: u32, address: IpAddr) -> Option<[u8; 6]> {
        self.neighbours.mac(interface, address)
    }

    /// How sure the kernel is of a neighbour.
    pub fn freshness(&self, interface: u32, address: IpAddr) -> Freshness {
        self.neighbours.freshness(interface, address)
    }

    /// All neighbours in the kernel's table, in no order.
    pub fn neighbours(&self) -> impl Iterator<Item = Neighbour> {
        self.neighbours.iter()
    }

    /// Makes a change. What other clones share is copied first, table by table and once: a burst of
    /// changes between two publications costs one copy of each table it touches.
    pub fn apply(&mut self, change: Change) -> Effect {
        match change {
            Change::Interface(interface) => self.set_interface(interface),
            Change::InterfaceGone(index) => self.forget_interface(index),
            Change::Address(address) => Arc::make_mut(&mut self.addresses).add(address),
            Change::AddressGone(address) => Arc::make_mut(&mut self.addresses).remove(&address),
            Change::Route { route, replaces } => {
                Arc::make_mut(&mut self.routes).add(route, replaces)
            }
            Change::RouteGone(route) => Arc::make_mut(&mut self.routes).remove(&route),
            Change::Neighbour(neighbour) => Arc::make_mut(&mut self.neighbours).add(neighbour),
            Change::NeighbourGone(interface, address) => {
                Arc::make_mut(&mut self.neighbours).remove(interface, address)
            }
        }
    }

    /// Makes a change out of a dump: routes come in the kernel's order and are all meant.
    pub(super) fn load(&mut self, change: Change) {
        match change {
            Change::Route { route, .. } => Arc::make_mut(&mut self.routes).append(route),
            change => {
                self.apply(change);
            }
        }
    }

    /// How large the tables are, for one line of log.
    pub(super) fn size(&self) -> String {
        format!(
            "{} interfaces, {} addresses, {} prefixes, {} neighbours",
            self.interfaces.len(),
            self.addresses.iter().count(),
            self.routes.len(),
            self.neighbours.len()
        )
    }

    fn find(&self, destination: IpAddr) -> Found<'_> {
        self.routes.find(destination, |hop| {
            !hop.dead && self.interface(hop.interface).is_some_and(|it| it.up)
        })
    }

    /// The kernel flushes routes of an interface that goes down without a word of it.
    fn set_interface(&mut self, interface: Interface) -> Effect {
        let interfaces = Arc::make_mut(&mut self.interfaces);
        let index = interface.index;
        match interfaces.insert(index, interface) {
            Some(before) if before == interfaces[&index] => Effect::Invisible,
            Some(before) if before.up && !interfaces[&index].up => Effect::Doubtful,
            _ => Effect::Visible,
        }
    }

    fn forget_interface(&mut self, index: u32) -> Effect {
        if Arc::make_mut(&mut self.interfaces).remove(&index).is_none() {
            return Effect::Invisible;
        }
        Arc::make_mut(&mut self.addresses).forget(index);
        Arc::make_mut(&mut self.neighbours).forget(index);
        Effect::Doubtful
    }
}
