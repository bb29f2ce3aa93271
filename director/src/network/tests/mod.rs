//! What a [`Network`] answers, without a kernel.

mod hosts;
mod messages;
mod ways;

use std::net::IpAddr;

use super::{Address, Change, Effect, Hop, Interface, KernelRoute, Network, RouteKind};
use ipnet::IpNet;

const LOCAL: u32 = 255;
const MAIN: u32 = 254;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn interface(index: u32) -> Interface {
    Interface {
        index,
        name: format!("eth{index}"),
        mac: [2, 0, 0, 0, 0, index as u8],
        mtu: 1500,
        up: true,
        carrier: true,
        vlan: None,
    }
}

/// Two interfaces that are up and one that is not.
fn network() -> Network {
    let mut network = Network::default();
    for index in 1..=3 {
        let up = index != 3;
        let interface = Interface { up, ..interface(index) };
        assert_eq!(network.apply(Change::Interface(interface)), Effect::Visible);
    }
    network
}

fn hop(interface: u32, gateway: Option<&str>) -> Hop {
    Hop { interface, gateway: gateway.map(ip), weight: 1, dead: false }
}

fn unicast(destination: &str, hops: Vec<Hop>) -> KernelRoute {
    KernelRoute {
        table: MAIN,
        destination: destination.parse().expect("a prefix"),
        priority: 0,
        kind: RouteKind::Unicast,
        hops,
        source: None,
        mtu: None,
        scope: 0,
    }
}

fn add(network: &mut Network, route: KernelRoute) -> Effect {
    network.apply(Change::Route { route, replaces: false })
}

fn address(interface: u32, address: &str, length: u8) -> Address {
    let address = ip(address);
    Address {
        interface,
        address,
        subnet: IpNet::new(address, length).expect("a length").trunc(),
        scope: 0,
        secondary: false,
        deprecated: false,
        tentative: false,
        protocol: 0,
    }
}

fn way(network: &Network, destination: &str) -> Option<(u32, Option<IpAddr>)> {
    let route = network.route(ip(destination))?;
    Some((route.interface, route.gateway))
}
