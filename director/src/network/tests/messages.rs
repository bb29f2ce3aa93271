//! What is made of the kernel's messages, above all of those that only look alike.

use netlink_packet_core::NLM_F_REPLACE;
use netlink_packet_route::link::{
    InfoData, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, VlanProtocol,
};
use netlink_packet_route::neighbour::{
    NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::ip;
use crate::network::messages::change;
use crate::network::{Change, Freshness, Hop, RouteKind};

fn link() -> LinkMessage {
    let mut link = LinkMessage::default();
    link.header.index = 7;
    link.header.flags = LinkFlags::Up | LinkFlags::LowerUp;
    link.attributes = vec![
        LinkAttribute::IfName("eth0.17".to_owned()),
        LinkAttribute::Mtu(1496),
        LinkAttribute::Address(vec![2, 0, 0, 0, 0, 7]),
        LinkAttribute::Link(2),
    ];
    link
}

fn vlan_of(attributes: Vec<InfoVlan>) -> Option<(u32, u16)> {
    let mut link = link();
    let info = vec![LinkInfo::Data(InfoData::Vlan(attributes))];
    link.attributes.push(LinkAttribute::LinkInfo(info));
    match change(&RouteNetlinkMessage::NewLink(link), 0) {
        Some(Change::Interface(interface)) => interface.vlan,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_interface_is_taken_with_its_vlan_and_without_the_bridges_view_of_it() {
    let Some(Change::Interface(seen)) = change(&RouteNetlinkMessage::NewLink(link()), 0) else {
        panic!("an interface");
    };
    assert_eq!((seen.index, seen.name.as_str(), seen.mtu), (7, "eth0.17", 1496));
    assert_eq!(seen.mac, [2, 0, 0, 0, 0, 7]);
    assert!(seen.up && seen.carrier);
    // A veth or tunnel has an interface below it, too, but no VLAN id.
    assert_eq!(seen.vlan, None);
    assert_eq!(vlan_of(vec![InfoVlan::Id(17)]), Some((2, 17)));
    let stacked = InfoVlan::Protocol(VlanProtocol::Ieee8021Ad);
    assert_eq!(vlan_of(vec![stacked, InfoVlan::Id(17)]), None);

    // "The interface has left its bridge", not "the interface is gone".
    let mut port = link();
    port.header.interface_family = AddressFamily::Bridge;
    assert_eq!(change(&RouteNetlinkMessage::DelLink(port.clone()), 0), None);
    assert_eq!(change(&RouteNetlinkMessage::NewLink(port), 0), None);
    let gone = change(&RouteNetlinkMessage::DelLink(link()), 0);
    assert_eq!(gone, Some(Change::InterfaceGone(7)));
}

#[test]
fn only_entries_about_a_neighbour_itself_count() {
    let mut neighbour = NeighbourMessage::default();
    neighbour.header.family = AddressFamily::Inet;
    neighbour.header.ifindex = 7;
    neighbour.attributes = vec![
        NeighbourAttribute::Destination(ip("10.0.0.9").into()),
        NeighbourAttribute::LinkLayerAddress(vec![2, 0, 0, 0, 0, 9]),
    ];
    for (state, freshness) in [
        (NeighbourState::Reachable, Freshness::Fresh),
        (NeighbourState::Delay, Freshness::Fresh),
        (NeighbourState::Probe, Freshness::Fresh),
        (NeighbourState::Permanent, Freshness::Fresh),
        (NeighbourState::Noarp, Freshness::Fresh),
        (NeighbourState::Stale, Freshness::Stale),
        (NeighbourState::Failed, Freshness::Unknown),
        (NeighbourState::Incomplete, Freshness::Unknown),
        (NeighbourState::None, Freshness::Unknown),
    ] {
        neighbour.header.state = state;
        match change(&RouteNetlinkMessage::NewNeighbour(neighbour.clone()), 0) {
            Some(Change::Neighbour(seen)) => assert_eq!(seen.freshness, freshness),
            other => panic!("{other:?}"),
        }
    }
    let gone = change(&RouteNetlinkMessage::DelNeighbour(neighbour.clone()), 0);
    assert_eq!(gone, Some(Change::NeighbourGone(7, ip("10.0.0.9"))));
    neighbour.header.flags = NeighbourFlags::Proxy;
    assert_eq!(change(&RouteNetlinkMessage::NewNeighbour(neighbour.clone()), 0), None);
    // A bridge's forwarding entry: an Ethernet address without an IP address.
    neighbour.header.flags = NeighbourFlags::Own;
    neighbour.attributes.remove(0);
    assert_eq!(change(&RouteNetlinkMessage::NewNeighbour(neighbour), 0), None);
}

#[test]
fn a_route_is_taken_whole_and_those_for_special_packets_are_not() {
    let mut route = RouteMessage::default();
    route.header = RouteHeader {
        address_family: AddressFamily::Inet,
        destination_prefix_length: 24,
        table: 252,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    route.attributes = vec![
        RouteAttribute::Table(1000),
        RouteAttribute::Destination(ip("10.1.2.0").into()),
        RouteAttribute::Gateway(ip("10.0.0.1").into()),
        RouteAttribute::PrefSource(ip("10.0.0.5").into()),
        RouteAttribute::Oif(7),
        RouteAttribute::Priority(100),
        RouteAttribute::Metrics(vec![RouteMetric::Mtu(1400)]),
    ];
    let told =
        |route: &RouteMessage, flags| change(&RouteNetlinkMessage::NewRoute(route.clone()), flags);
    let Some(Change::Route { route: seen, replaces }) = told(&route, NLM_F_REPLACE) else {
        panic!("a route");
    };
    assert!(replaces);
    assert_eq!((seen.table, seen.priority, seen.mtu), (1000, 100, Some(1400)));
    assert_eq!(seen.destination, "10.1.2.0/24".parse().unwrap());
    assert_eq!((seen.kind, seen.source), (RouteKind::Unicast, Some(ip("10.0.0.5"))));
    let hop = Hop { interface: 7, gateway: Some(ip("10.0.0.1")), weight: 1, dead: false };
    assert_eq!(seen.hops, [hop]);

    let special: [fn(&mut RouteHeader); 4] = [
        |header| header.tos = 8,
        |header| header.source_prefix_length = 24,
        |header| header.flags = RouteFlags::Cloned,
        |header| header.address_family = AddressFamily::Mpls,
    ];
    for change_header in special {
        let mut route = route.clone();
        change_header(&mut route.header);
        assert_eq!(told(&route, 0), None, "{:?}", route.header);
    }
}
