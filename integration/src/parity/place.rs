//! Who is who: addresses and MAC addresses of everybody in a comparison.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::lab::Mac;
use crate::topology::server_addresses;

/// The port on which the servers of GUE scenarios would take tunnel packets.
pub(super) const GUE_PORT: u16 = 6080;

/// How many servers there are.
pub(super) const SERVERS: usize = 12;

/// The director's own addresses, on both sides.
pub(super) const DIRECTOR: [&str; 4] =
    ["192.0.2.1/24", "2001:db8:1::1/64", "10.77.0.1/24", "fd77::1/64"];

/// The clients' router, by which every client's packets come and go.
pub(super) const GATEWAY: [&str; 2] = ["192.0.2.254", "2001:db8:1::254"];

/// A router behind the clients' and the servers', which has something to say about packets.
pub(super) const ROUTERS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0x100, 0, 0, 0, 0, 1)),
];

/// Networks full of virtual addresses, for what is decided by destination.
pub(super) const VIP_NETWORKS: [&str; 2] = ["203.0.113.0/24", "2001:db8:5::/64"];

/// Packets whose mark has this bit are the director's whoever they are addressed to, as those of a
/// transparent cache are. Ours needs no such rule.
pub(super) const TRANSPARENT: u32 = 1024;

/// The MAC address of all clients: their router's.
pub(super) const CLIENTS: Mac = Mac([2, 0, 0, 0, 0, 0xc1]);

/// The server that the sentinel service has.
pub(super) const SENTINEL_SERVER: usize = 80;

/// The sentinel service, which tells when everything sent before has been dealt with.
pub(super) const SENTINEL: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 10)), 9);

/// Who asks it.
pub(super) const SENTINEL_CLIENT: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 254)), 9);

/// The MAC address of server `number`.
pub(super) fn server_mac(number: usize) -> Mac {
    Mac([2, 0, 0, 0, 1, number as u8])
}

/// Every neighbour that a director has.
pub(super) fn neighbours() -> Vec<(IpAddr, Mac)> {
    let mut all: Vec<(IpAddr, Mac)> = Vec::new();
    for gateway in GATEWAY {
        all.extend(gateway.parse().ok().map(|address: IpAddr| (address, CLIENTS)));
    }
    for number in (1..=SERVERS).chain([SENTINEL_SERVER]) {
        all.extend(server_addresses(number).map(|address| (address, server_mac(number))));
    }
    all
}

/// Who is behind a MAC address.
pub(super) fn who(mac: [u8; 6]) -> Option<Who> {
    match mac {
        _ if mac == CLIENTS.0 => Some(Who::Client),
        [2, 0, 0, 0, 1, number] => Some(Who::Server(number.into())),
        _ => None,
    }
}

/// Somebody of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    /// A client.
    Client,
    /// A server, by number.
    Server(usize),
}

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Who::Client => write!(f, "client"),
            Who::Server(number) => write!(f, "server{number}"),
        }
    }
}
