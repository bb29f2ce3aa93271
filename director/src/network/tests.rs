//! What a [`Network`] answers, without a kernel.

use std::net::IpAddr;

use ipnet::IpNet;
use proptest::prelude::*;

use super::{
    Address, Change, Effect, Freshness, Hop, Interface, KernelRoute, Neighbour, Network, Route,
    RouteKind,
};

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

#[test]
fn the_longest_prefix_leads_and_forbidden_destinations_lead_nowhere() {
    let mut network = network();
    add(&mut network, unicast("0.0.0.0/0", vec![hop(1, Some("10.0.0.1"))]));
    add(&mut network, unicast("10.0.0.0/24", vec![hop(1, None)]));
    add(&mut network, unicast("10.0.0.128/25", vec![hop(2, None)]));
    for (kind, destination) in
        [(RouteKind::NoUnicast, "10.9.0.0/16"), (RouteKind::Throw, "10.8.0.0/16")]
    {
        let hops = Vec::new();
        add(&mut network, KernelRoute { kind, ..unicast(destination, hops) });
    }
    assert_eq!(way(&network, "192.0.2.1"), Some((1, Some(ip("10.0.0.1")))));
    assert_eq!(way(&network, "10.0.0.7"), Some((1, None)));
    assert_eq!(way(&network, "10.0.0.200"), Some((2, None)));
    assert_eq!(way(&network, "10.9.1.1"), None);
    assert_eq!(way(&network, "10.8.1.1"), None);
    assert_eq!(way(&network, "2001:db8::1"), None);
}

#[test]
fn the_lowest_metric_leads_until_its_interface_goes_down() {
    let mut network = network();
    for (interface, priority) in [(1, 300), (2, 100), (3, 50)] {
        let route = unicast("10.0.0.0/8", vec![hop(interface, None)]);
        add(&mut network, KernelRoute { priority, ..route });
    }
    assert_eq!(way(&network, "10.1.1.1"), Some((2, None)));
    let down = Interface { up: false, ..interface(2) };
    assert_eq!(network.apply(Change::Interface(down)), Effect::Doubtful);
    assert_eq!(way(&network, "10.1.1.1"), Some((1, None)));
}

#[test]
fn a_dead_way_falls_back_to_a_shorter_prefix() {
    let mut network = network();
    add(&mut network, unicast("10.0.0.0/8", vec![hop(1, None)]));
    let dead = Hop { dead: true, ..hop(2, None) };
    add(&mut network, unicast("10.1.0.0/16", vec![dead]));
    assert_eq!(way(&network, "10.1.1.1"), Some((1, None)));
}

#[test]
fn local_addresses_are_known_as_such_and_have_no_way_out() {
    let mut network = network();
    add(&mut network, unicast("0.0.0.0/0", vec![hop(1, None)]));
    let local = KernelRoute {
        table: LOCAL,
        kind: RouteKind::Local,
        ..unicast("127.0.0.0/8", vec![hop(1, None)])
    };
    add(&mut network, local);
    network.apply(Change::Address(address(2, "192.0.2.10", 32)));
    network.apply(Change::Address(address(3, "192.0.2.11", 32)));
    assert!(network.is_local(ip("127.3.2.1")));
    assert_eq!(network.route(ip("127.3.2.1")), None);
    assert!(network.is_local(ip("192.0.2.10")));
    assert!(!network.is_local(ip("192.0.2.11")), "its interface is down");
    assert!(!network.is_local(ip("192.0.2.12")));
    assert_eq!(network.source_for(ip("192.0.2.10")), Some(ip("192.0.2.10")));
    network.apply(Change::AddressGone(address(2, "192.0.2.10", 32)));
    assert!(!network.is_local(ip("192.0.2.10")));
}

#[test]
fn ipv4_takes_the_longer_prefix_of_local_and_main_and_ipv6_asks_local_first() {
    let mut network = network();
    for (local, main) in [("10.0.0.0/8", "10.1.0.0/16"), ("fd00::/8", "fd00:1::/32")] {
        let route = unicast(local, Vec::new());
        let (table, kind) = (LOCAL, RouteKind::Local);
        add(&mut network, KernelRoute { table, kind, ..route });
        add(&mut network, unicast(main, vec![hop(2, None)]));
    }
    assert!(network.is_local(ip("10.2.0.1")));
    assert_eq!(way(&network, "10.1.0.1"), Some((2, None)));
    assert!(network.is_local(ip("fd00:1::1")));
}

#[test]
fn multipath_spreads_by_weight_and_keeps_a_destination_on_its_way() {
    let mut network = network();
    let heavy = Hop { weight: 3, ..hop(1, Some("10.0.0.1")) };
    let down = hop(3, Some("10.0.0.3"));
    let hops = vec![heavy, hop(2, Some("10.0.0.2")), down];
    add(&mut network, unicast("0.0.0.0/0", hops));
    let ways: Vec<Route> = (0..4000)
        .map(|n| network.route(std::net::Ipv4Addr::from_bits(n).into()).expect("a way"))
        .collect();
    let heavy = ways.iter().filter(|route| route.interface == 1).count();
    assert!((2800..3200).contains(&heavy), "{heavy} of 4000 on a way of weight 3 to 1");
    assert!(ways.iter().all(|route| route.interface != 3));
    assert_eq!(network.route(ip("0.0.0.7")), Some(ways[7]));
}

#[test]
fn the_mtu_is_the_routes_own_or_the_interfaces() {
    let mut network = network();
    add(&mut network, unicast("10.0.0.0/8", vec![hop(1, None)]));
    let route = unicast("10.1.0.0/16", vec![hop(1, None)]);
    add(&mut network, KernelRoute { mtu: Some(1400), ..route });
    assert_eq!(network.route(ip("10.2.0.1")).unwrap().mtu, 1500);
    assert_eq!(network.route(ip("10.1.0.1")).unwrap().mtu, 1400);
}

#[test]
fn packets_of_our_own_leave_with_the_address_the_kernel_would_take() {
    let mut network = network();
    network.apply(Change::Address(address(1, "192.0.2.10", 32)));
    network.apply(Change::Address(address(1, "10.0.0.5", 24)));
    let secondary = Address { secondary: true, ..address(1, "10.1.0.6", 16) };
    network.apply(Change::Address(secondary));
    network.apply(Change::Address(address(2, "10.7.0.5", 24)));
    let link = |destination| KernelRoute { scope: 253, ..unicast(destination, vec![hop(1, None)]) };
    add(&mut network, link("10.0.0.0/24"));
    add(&mut network, link("10.1.0.0/16"));
    add(&mut network, unicast("10.2.0.0/16", vec![hop(1, Some("10.0.0.1"))]));
    let route = unicast("10.3.0.0/16", vec![hop(1, None)]);
    add(&mut network, KernelRoute { source: Some(ip("192.0.2.10")), ..route });
    // In the subnet; a secondary one never; by the router's subnet; as the route says.
    assert_eq!(network.source_for(ip("10.0.0.9")), Some(ip("10.0.0.5")));
    assert_eq!(network.source_for(ip("10.1.0.9")), Some(ip("192.0.2.10")));
    assert_eq!(network.source_for(ip("10.2.0.9")), Some(ip("10.0.0.5")));
    assert_eq!(network.source_for(ip("10.3.0.9")), Some(ip("192.0.2.10")));
    assert_eq!(network.source_for(ip("10.4.0.9")), None);
}

#[test]
fn ipv6_sources_follow_scope_preference_and_prefix() {
    let mut network = network();
    let deprecated = Address { deprecated: true, ..address(1, "2001:db8:1::99", 128) };
    let link_local = Address { scope: 253, ..address(1, "fe80::1", 64) };
    let tentative = Address { tentative: true, ..address(1, "2001:db8:1::2", 64) };
    for known in [
        deprecated,
        link_local,
        tentative,
        address(1, "2001:db8:1::1", 64),
        address(1, "2001:db8:2::1", 64),
        address(2, "2001:db8:3::1", 64),
    ] {
        network.apply(Change::Address(known));
    }
    add(&mut network, unicast("::/0", vec![hop(1, Some("fe80::9"))]));
    add(&mut network, unicast("fe80::/64", vec![hop(1, None)]));
    assert_eq!(network.source_for(ip("2001:db8:1::7")), Some(ip("2001:db8:1::1")));
    assert_eq!(network.source_for(ip("2001:db8:2::7")), Some(ip("2001:db8:2::1")));
    assert_eq!(network.source_for(ip("2001:db8:3::7")), Some(ip("2001:db8:2::1")));
    assert_eq!(network.source_for(ip("fe80::7")), Some(ip("fe80::1")));
}

#[test]
fn only_usable_neighbours_have_an_ethernet_address_and_only_that_is_news() {
    let mut network = network();
    let neighbour = Neighbour {
        interface: 1,
        address: ip("10.0.0.7"),
        mac: Some([2, 0, 0, 0, 0, 7]),
        freshness: Freshness::Unknown,
    };
    let mut tell = |freshness, mac| {
        let effect = network.apply(Change::Neighbour(Neighbour { freshness, mac, ..neighbour }));
        (effect, network.neighbour(1, ip("10.0.0.7")))
    };
    let (first, second) = (neighbour.mac, Some([2, 0, 0, 0, 0, 8]));
    assert_eq!(tell(Freshness::Unknown, None), (Effect::Invisible, None));
    assert_eq!(tell(Freshness::Fresh, first), (Effect::Visible, first));
    assert_eq!(tell(Freshness::Stale, first), (Effect::Invisible, first));
    assert_eq!(tell(Freshness::Fresh, second), (Effect::Visible, second));
    assert_eq!(tell(Freshness::Unknown, second), (Effect::Visible, None));
    assert_eq!(tell(Freshness::Fresh, second), (Effect::Visible, second));
    assert_eq!(network.neighbour(2, ip("10.0.0.7")), None);
    let gone = Change::NeighbourGone(1, ip("10.0.0.7"));
    assert_eq!(network.apply(gone.clone()), Effect::Visible);
    assert_eq!(network.apply(gone), Effect::Invisible);
}

#[test]
fn what_the_kernel_cannot_tell_in_one_message_is_doubted() {
    let mut network = network();
    let first = unicast("10.0.0.0/8", vec![hop(1, Some("10.0.0.1"))]);
    let second = unicast("10.0.0.0/8", vec![hop(1, Some("10.0.0.2"))]);
    assert_eq!(add(&mut network, first.clone()), Effect::Visible);
    // Told twice, as after the first reading.
    assert_eq!(add(&mut network, first.clone()), Effect::Invisible);
    // `ip route replace`.
    let replace = |route| Change::Route { route, replaces: true };
    assert_eq!(network.apply(replace(second.clone())), Effect::Visible);
    assert_eq!(way(&network, "10.1.1.1"), Some((1, Some(ip("10.0.0.2")))));
    // `ip route append`, and deleting what is not there as it is told.
    assert_eq!(add(&mut network, first.clone()), Effect::Doubtful);
    assert_eq!(network.apply(replace(second.clone())), Effect::Invisible);
    let third = unicast("10.0.0.0/8", vec![hop(2, None)]);
    assert_eq!(network.apply(Change::RouteGone(third.clone())), Effect::Doubtful);
    assert_eq!(network.apply(Change::RouteGone(first)), Effect::Visible);
    assert_eq!(network.apply(Change::RouteGone(second)), Effect::Visible);
    assert_eq!(network.apply(Change::RouteGone(third)), Effect::Invisible);
    assert_eq!(way(&network, "10.1.1.1"), None);
}

#[test]
fn a_removed_interface_takes_its_addresses_and_neighbours_along() {
    let mut network = network();
    network.apply(Change::Address(address(1, "10.0.0.5", 24)));
    network.apply(Change::Neighbour(Neighbour {
        interface: 1,
        address: ip("10.0.0.7"),
        mac: Some([2; 6]),
        freshness: Freshness::Fresh,
    }));
    assert_eq!(network.apply(Change::InterfaceGone(1)), Effect::Doubtful);
    assert_eq!(network.addresses().count(), 0);
    assert_eq!(network.neighbour(1, ip("10.0.0.7")), None);
    assert_eq!(network.interface_by_name("eth1"), None);
    assert_eq!(network.apply(Change::InterfaceGone(1)), Effect::Invisible);
}

#[test]
fn a_published_network_does_not_change_when_the_working_copy_does() {
    let mut network = network();
    add(&mut network, unicast("10.0.0.0/8", vec![hop(1, None)]));
    let published = network.clone();
    let gone = unicast("10.0.0.0/8", vec![hop(1, None)]);
    network.apply(Change::RouteGone(gone));
    network.apply(Change::InterfaceGone(2));
    assert_eq!(way(&published, "10.1.1.1"), Some((1, None)));
    assert!(published.interface(2).is_some());
    assert_eq!(way(&network, "10.1.1.1"), None);
}

fn prefix() -> impl Strategy<Value = IpNet> {
    let v4 = (0u32..64, 0u8..=32).prop_map(|(bits, length)| {
        IpNet::new(std::net::Ipv4Addr::from_bits(bits << 26 | bits).into(), length)
    });
    let v6 = (0u128..64, 0u8..=128).prop_map(|(bits, length)| {
        IpNet::new(std::net::Ipv6Addr::from_bits(bits << 122 | bits).into(), length)
    });
    prop_oneof![v4, v6].prop_map(|net| net.expect("a length").trunc())
}

proptest! {
    #[test]
    fn routes_lead_where_a_scan_of_all_of_them_leads(
        routes in prop::collection::vec((prefix(), 0u32..3, 1u32..=3, any::<bool>()), 0..40),
        destinations in prop::collection::vec(prefix(), 1..20),
    ) {
        let mut network = network();
        let mut plain: Vec<KernelRoute> = Vec::new();
        for (destination, priority, interface, forbidden) in routes {
            let kind = if forbidden { RouteKind::NoUnicast } else { RouteKind::Unicast };
            let hops = vec![hop(interface, None)];
            let route = KernelRoute { priority, kind, ..unicast("::/0", hops) };
            let route = KernelRoute { destination, ..route };
            let place = |known: &KernelRoute| {
                (known.destination, known.priority) == (destination, priority)
            };
            plain.retain(|known| !place(known));
            plain.push(route.clone());
            network.apply(Change::Route { route, replaces: true });
        }
        for destination in destinations.iter().map(IpNet::addr) {
            let expected = plain
                .iter()
                .filter(|route| route.destination.contains(&destination))
                .filter(|route| route.kind == RouteKind::NoUnicast || route.hops[0].interface != 3)
                .max_by_key(|route| {
                    (route.destination.prefix_len(), std::cmp::Reverse(route.priority))
                })
                .filter(|route| route.kind == RouteKind::Unicast)
                .map(|route| route.hops[0].interface);
            prop_assert_eq!(network.route(destination).map(|route| route.interface), expected);
        }
    }
}
