//! Which way packets go.

use ipnet::IpNet;
use proptest::prelude::*;

use super::{LOCAL, add, hop, interface, ip, network, unicast, way};
use crate::network::{Change, Effect, Hop, Interface, KernelRoute, Network, Route, RouteKind};

#[test]
fn a_block_is_uniform_when_one_router_has_all_of_it() {
    let mut network = network();
    let router = || vec![hop(1, Some("10.0.0.1"))];
    add(&mut network, unicast("0.0.0.0/0", router()));
    add(&mut network, unicast("10.0.0.0/24", vec![hop(1, None)]));
    add(&mut network, unicast("172.16.0.0/16", vec![hop(2, None)]));
    let both = vec![hop(1, Some("10.0.0.1")), hop(1, Some("10.0.0.2"))];
    add(&mut network, unicast("172.17.0.0/16", both));
    let uniform = |network: &Network, text| network.is_uniform(ip(text));
    assert!(uniform(&network, "198.51.100.7"));
    for (mixed, why) in [
        ("10.0.9.9", "a longer prefix in it"),
        ("172.16.0.1", "no router"),
        ("172.17.0.1", "two"),
        ("2001:db8::1", "no way at all"),
    ] {
        assert!(!uniform(&network, mixed), "{why}");
    }
    let host = unicast("198.51.7.1/32", vec![hop(2, None)]);
    add(&mut network, host.clone());
    assert!(!uniform(&network, "198.51.100.7") && uniform(&network, "198.52.0.1"));
    network.apply(Change::RouteGone(host));
    assert!(uniform(&network, "198.51.100.7"), "as before");
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
