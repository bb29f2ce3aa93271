use std::net::IpAddr;

use super::*;
use crate::control::api::{ServerSpec, Tunnel, TunnelChecksum};
use crate::network::{
    Address, Change, Freshness, Hop, Interface, KernelRoute, Neighbour, RouteKind,
};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 11];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A director with a segment of both families on interface 2, and VIPs of both on it.
fn network() -> Network {
    let mut network = Network::default();
    network.apply(Change::Interface(Interface {
        index: 2,
        name: "eth0".to_owned(),
        mac: [2, 0, 0, 0, 0, 1],
        mtu: 1500,
        up: true,
        carrier: true,
        vlan: None,
    }));
    for (own, subnet) in [
        ("2001:db8:1::99", "2001:db8:1::99/128"),
        ("192.0.2.10", "192.0.2.10/32"),
        ("2001:db8:1::1", "2001:db8:1::/64"),
        ("10.0.0.1", "10.0.0.0/24"),
    ] {
        network.apply(Change::Address(Address {
            interface: 2,
            address: ip(own),
            subnet: subnet.parse().unwrap(),
            scope: 0,
            secondary: false,
            deprecated: false,
            tentative: false,
            protocol: 0,
        }));
    }
    for (destination, source) in [("10.0.0.0/24", "10.0.0.1"), ("2001:db8:1::/64", "2001:db8:1::1")]
    {
        let route = KernelRoute {
            table: 254,
            destination: destination.parse().unwrap(),
            priority: 0,
            kind: RouteKind::Unicast,
            hops: vec![Hop { interface: 2, gateway: None, weight: 1, dead: false }],
            source: Some(ip(source)),
            mtu: None,
            scope: 253,
        };
        network.apply(Change::Route { route, replaces: false });
    }
    network
}

fn knows(network: &mut Network, address: &str) {
    network.apply(Change::Neighbour(Neighbour {
        interface: 2,
        address: ip(address),
        mac: Some(MAC),
        freshness: Freshness::Stale,
    }));
}

fn passage(vip: &str, server: &str, forwarding: Forwarding, tunnel: Tunnel) -> Passage {
    Passage {
        vip: SocketAddr::new(ip(vip), 80),
        server: ServerSpec {
            address: SocketAddr::new(ip(server), 80),
            forwarding,
            tunnel,
            weight: 1,
            upper_threshold: 0,
            lower_threshold: 0,
        },
    }
}

fn direct(vip: &str, server: &str) -> Passage {
    passage(vip, server, Forwarding::Direct, Tunnel::Ipip)
}

#[test]
fn direct_routing_goes_to_the_servers_ethernet_address_once_it_is_known() {
    let mut network = network();
    let passage = direct("192.0.2.10", "10.0.0.11");
    let missing = Obstacle::NoNeighbour { interface: 2, address: ip("10.0.0.11") };
    assert_eq!(route(&network, &passage), Err(missing));
    knows(&mut network, "10.0.0.11");
    let wrapping = Wrapping::Ethernet { interface: 2, to: MAC };
    let expected = Route { source: ip("10.0.0.1"), mtu: 1500, wrapping };
    assert_eq!(route(&network, &passage), Ok(expected));
}

#[test]
fn without_a_route_the_server_has_failed_and_another_family_is_the_plans_fault() {
    let network = network();
    let nowhere = direct("192.0.2.10", "10.9.0.11");
    let failed = Obstacle::Failed("no route to 10.9.0.11".to_owned());
    assert_eq!(route(&network, &nowhere), Err(failed));
    let crossed = direct("192.0.2.10", "2001:db8:1::11");
    assert!(matches!(route(&network, &crossed), Err(Obstacle::Unable(_))));
}

#[test]
fn a_tunnel_needs_no_neighbour_and_takes_its_room_from_the_packet() {
    let network = network();
    let gue = Tunnel::Gue { port: 6080, checksum: TunnelChecksum::Nocsum };
    let passage = passage("192.0.2.10", "10.0.0.11", Forwarding::Tunnel, gue);
    let found = route(&network, &passage).unwrap();
    assert_eq!((found.source, found.mtu), (ip("10.0.0.1"), 1500 - 20 - 12));
    let Wrapping::Tunnel { source, server, .. } = found.wrapping else { panic!() };
    assert_eq!((source, server), (ip("10.0.0.1"), ip("10.0.0.11")));
}

#[test]
fn through_a_tunnel_of_the_other_family_an_address_that_is_no_vip_asks() {
    let network = network();
    let tunnel = |vip, server| passage(vip, server, Forwarding::Tunnel, Tunnel::Ipip);
    let found = route(&network, &tunnel("2001:db8::10", "10.0.0.11")).unwrap();
    assert_eq!((found.source, found.mtu), (ip("2001:db8:1::1"), 1480));
    let found = route(&network, &tunnel("192.0.2.10", "2001:db8:1::11")).unwrap();
    assert_eq!((found.source, found.mtu), (ip("10.0.0.1"), 1460));
}
