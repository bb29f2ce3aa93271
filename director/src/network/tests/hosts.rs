//! Which addresses are ours, which of them packets leave with, and who has which Ethernet address.

use super::{LOCAL, add, address, hop, ip, network, unicast, way};
use crate::network::{Address, Change, Effect, Freshness, KernelRoute, Neighbour, RouteKind};

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
