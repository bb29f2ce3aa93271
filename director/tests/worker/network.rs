//! A network made by hand, as the kernel would describe it: two interfaces with a gateway each
//! side of the director, a VLAN on the inner one, and one interface that is not the director's.
//!
//! ```text
//!   clients -- gateway 192.0.2.254 --- eth0 (2) director eth1 (3) --- servers 10.77.0.11 ...
//!              2001:db8:1::fe                            |            fd77::11 ...
//!                                                        +- eth1.100 (4) --- server 10.78.0.11
//!                                             eth9 (9): 10.79.0.0/24, none of the director's
//! ```

use std::net::IpAddr;

use director::network::{
    Address, Change, Freshness, Hop, Interface, KernelRoute, Neighbour, Network, RouteKind,
};

/// The interface towards the clients.
pub(crate) const FRONT: u32 = 2;
/// The interface towards the servers.
pub(crate) const BACK: u32 = 3;
/// A VLAN device on [`BACK`].
pub(crate) const VLAN: u32 = 4;
/// Its tag.
pub(crate) const TAG: u16 = 100;
/// An interface that no worker has a port of.
const FOREIGN: u32 = 9;

/// The Ethernet address of the interface `index`.
pub(crate) fn own_mac(index: u32) -> [u8; 6] {
    [2, 0, 0, 0, 0, index as u8]
}

/// The Ethernet address of the neighbour `address`.
pub(crate) fn mac_of(address: IpAddr) -> [u8; 6] {
    let last = match address {
        IpAddr::V4(v4) => v4.octets()[3],
        IpAddr::V6(v6) => v6.octets()[15],
    };
    [2, 0, 0, 0, if address.is_ipv4() { 4 } else { 6 }, last]
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Says that the kernel knows a neighbour now.
pub(crate) fn neighbour(interface: u32, address: &str) -> Change {
    let address = ip(address);
    let mac = Some(mac_of(address));
    Change::Neighbour(Neighbour { interface, address, mac, freshness: Freshness::Fresh })
}

/// The network above. All neighbours are known but the servers 10.77.0.99 and fd77::99.
pub(crate) fn network() -> Network {
    let mut network = Network::default();
    for (index, name, vlan) in [
        (FRONT, "eth0", None),
        (BACK, "eth1", None),
        (VLAN, "eth1.100", Some((BACK, TAG))),
        (FOREIGN, "eth9", None),
    ] {
        network.apply(Change::Interface(Interface {
            index,
            name: name.to_owned(),
            mac: own_mac(index),
            mtu: 1500,
            up: true,
            carrier: true,
            vlan,
        }));
    }
    for (interface, own, subnet) in [
        (FRONT, "192.0.2.1", "192.0.2.0/24"),
        (FRONT, "2001:db8:1::1", "2001:db8:1::/64"),
        (BACK, "10.77.0.1", "10.77.0.0/24"),
        (BACK, "fd77::1", "fd77::/64"),
        (VLAN, "10.78.0.1", "10.78.0.0/24"),
        (FOREIGN, "10.79.0.1", "10.79.0.0/24"),
    ] {
        network.apply(address(interface, own, subnet));
        network.apply(route(subnet, interface, None));
    }
    network.apply(route("0.0.0.0/0", FRONT, Some("192.0.2.254")));
    network.apply(route("2000::/3", FRONT, Some("2001:db8:1::fe")));
    for address in ["192.0.2.254", "2001:db8:1::fe"] {
        network.apply(neighbour(FRONT, address));
    }
    for address in ["10.77.0.11", "10.77.0.12", "10.77.0.13", "fd77::11", "fd77::12", "fd77::13"] {
        network.apply(neighbour(BACK, address));
    }
    network.apply(neighbour(VLAN, "10.78.0.11"));
    network
}

fn address(interface: u32, own: &str, subnet: &str) -> Change {
    Change::Address(Address {
        interface,
        address: ip(own),
        subnet: subnet.parse().expect("a subnet"),
        scope: 0,
        secondary: false,
        deprecated: false,
        tentative: false,
        protocol: 0,
    })
}

fn route(destination: &str, interface: u32, gateway: Option<&str>) -> Change {
    let hop = Hop { interface, gateway: gateway.map(ip), weight: 1, dead: false };
    let route = KernelRoute {
        table: 254,
        destination: destination.parse().expect("a prefix"),
        priority: 0,
        kind: RouteKind::Unicast,
        hops: vec![hop],
        source: None,
        mtu: None,
        scope: 0,
    };
    Change::Route { route, replaces: false }
}
