//! What the kernel says of its network, one fact at a time, free of netlink's words.
//!
//! A [`Network`](super::Network) is built from these alone, so that tests, `explain` and `replay`
//! can make one without a kernel.

use std::net::IpAddr;

use ipnet::IpNet;

/// One thing that has become so or has ceased to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An interface is there, or is different from before.
    Interface(Interface),
    /// The interface of this index is gone.
    InterfaceGone(u32),
    /// An address is on an interface.
    Address(Address),
    /// This address has been taken off its interface.
    AddressGone(Address),
    /// A route is in a table.
    Route {
        /// The route.
        route: KernelRoute,
        /// Whether it stands in for the one with its destination and priority.
        replaces: bool,
    },
    /// This route has been taken out of its table.
    RouteGone(KernelRoute),
    /// A neighbour is known, in whatever state.
    Neighbour(Neighbour),
    /// This neighbour (interface, address) is no longer in the kernel's table.
    NeighbourGone(u32, IpAddr),
}

/// What a change did to a [`Network`](super::Network).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that any query would answer differently.
    Invisible,
    /// Queries may answer differently now.
    Visible,
    /// The kernel may have done more than it said, or it cannot be told what: the tables must be
    /// read anew to be sure.
    Doubtful,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The kernel's number for it, from 1.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Ethernet address; zero where there is none (loopback, tunnels).
    pub mac: [u8; 6],
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// Whether it is switched on (`IFF_UP`).
    pub up: bool,
    /// Whether the link below it works (`IFF_LOWER_UP`).
    pub carrier: bool,
    /// An 802.1Q interface: index of the interface below it, and VLAN id.
    pub vlan: Option<(u32, u16)>,
}

/// An address on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Index of the interface.
    pub interface: u32,
    /// The address itself.
    pub address: IpAddr,
    /// Its subnet as the kernel counts it: the peer's on a point-to-point link.
    pub subnet: IpNet,
    /// How far it is valid, as in `ip address`: 0 global, 253 link, 254 host.
    pub scope: u8,
    /// IPv4: in a subnet that has an older address. IPv6: temporary.
    pub secondary: bool,
    /// Not to be chosen for new connections.
    pub deprecated: bool,
    /// Duplicate address detection has not (yet) found it to be ours.
    pub tentative: bool,
    /// Who set it (`IFA_PROTO`); 0 when nobody said.
    pub protocol: u8,
}

/// A route as the kernel's tables hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRoute {
    /// Table: 255 local, 254 main, 253 default; others are not looked at.
    pub table: u32,
    /// Where to.
    pub destination: IpNet,
    /// Lower is preferred (`metric` in `ip route`).
    pub priority: u32,
    /// What happens to packets.
    pub kind: RouteKind,
    /// The ways to go, for [`RouteKind::Unicast`].
    pub hops: Vec<Hop>,
    /// Preferred source address.
    pub source: Option<IpAddr>,
    /// MTU of the route, when it has one of its own.
    pub mtu: Option<u32>,
    /// How far away its destinations are, as in `ip route`: 0 universe, 253 link, 254 host.
    pub scope: u8,
}

/// What a route does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteKind {
    /// Sends on.
    Unicast,
    /// To this machine.
    Local,
    /// To all of a segment or group, or away: blackhole, unreachable, prohibit, broadcast, multicast.
    NoUnicast,
    /// Ends the look-up in this table and goes on with the next one.
    Throw,
}

/// One way of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Index of the interface to send on.
    pub interface: u32,
    /// The router, when there is one; it may be IPv6 for an IPv4 route.
    pub gateway: Option<IpAddr>,
    /// Share of this hop among those of the route, from 1.
    pub weight: u16,
    /// The kernel says that it cannot be used.
    pub dead: bool,
}

/// An entry of the neighbour table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Index of the interface.
    pub interface: u32,
    /// Its address.
    pub address: IpAddr,
    /// Its Ethernet address, when it is known.
    pub mac: Option<[u8; 6]>,
    /// How sure the kernel is of it.
    pub freshness: Freshness,
}

/// How sure the kernel is of a neighbour's Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Freshness {
    /// Not known: INCOMPLETE, FAILED, NONE. The Ethernet address must not be used.
    Unknown,
    /// Once known, not confirmed lately: STALE. It may be used.
    Stale,
    /// Known, or being confirmed: REACHABLE, DELAY, PROBE, PERMANENT, NOARP.
    Fresh,
}
