//! Netlink's words to ours. Pure: a message goes in, a [`Change`] comes out, or nothing when the
//! message is about something that is not followed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use netlink_packet_core::NLM_F_REPLACE;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, VlanProtocol,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteMetric, RouteNextHopFlags,
    RouteType, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::change::{
    Address, Change, Freshness, Hop, Interface, KernelRoute, Neighbour, RouteKind,
};

/// What a message with these header flags says.
pub(super) fn change(message: &RouteNetlinkMessage, flags: u16) -> Option<Change> {
    match message {
        RouteNetlinkMessage::NewLink(link) => interface(link).map(Change::Interface),
        RouteNetlinkMessage::DelLink(link) if is_whole(link) => {
            Some(Change::InterfaceGone(link.header.index))
        }
        RouteNetlinkMessage::NewAddress(message) => address(message).map(Change::Address),
        RouteNetlinkMessage::DelAddress(message) => address(message).map(Change::AddressGone),
        RouteNetlinkMessage::NewRoute(message) => route(message)
            .map(|route| Change::Route { route, replaces: flags & NLM_F_REPLACE != 0 }),
        RouteNetlinkMessage::DelRoute(message) => route(message).map(Change::RouteGone),
        RouteNetlinkMessage::NewNeighbour(message) => neighbour(message).map(Change::Neighbour),
        RouteNetlinkMessage::DelNeighbour(message) => neighbour(message)
            .map(|neighbour| Change::NeighbourGone(neighbour.interface, neighbour.address)),
        _ => None,
    }
}

/// Whether a link message is about the interface and not about its membership in a bridge.
fn is_whole(link: &LinkMessage) -> bool {
    link.header.interface_family == AddressFamily::Unspec
}

fn interface(link: &LinkMessage) -> Option<Interface> {
    if !is_whole(link) {
        return None;
    }
    let mut interface = Interface {
        index: link.header.index,
        name: String::new(),
        mac: [0; 6],
        mtu: 0,
        up: link.header.flags.contains(LinkFlags::Up),
        carrier: link.header.flags.contains(LinkFlags::LowerUp),
        vlan: None,
    };
    let (mut below, mut vlan) = (None, None);
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => interface.name.clone_from(name),
            LinkAttribute::Mtu(mtu) => interface.mtu = *mtu,
            LinkAttribute::Address(mac) => {
                interface.mac = mac.as_slice().try_into().unwrap_or_default();
            }
            LinkAttribute::Link(index) => below = Some(*index),
            LinkAttribute::LinkInfo(infos) => vlan = infos.iter().find_map(vlan_id),
            _ => {}
        }
    }
    interface.vlan = below.zip(vlan);
    // Messages of wireless drivers come without a name and say nothing that is followed here.
    (!interface.name.is_empty()).then_some(interface)
}

fn vlan_id(info: &LinkInfo) -> Option<u16> {
    let LinkInfo::Data(InfoData::Vlan(attributes)) = info else {
        return None;
    };
    let foreign = |attribute: &InfoVlan| matches!(attribute, InfoVlan::Protocol(protocol) if *protocol != VlanProtocol::Ieee8021Q);
    if attributes.iter().any(foreign) {
        return None;
    }
    attributes.iter().find_map(|attribute| match attribute {
        InfoVlan::Id(id) => Some(*id),
        _ => None,
    })
}

fn address(message: &AddressMessage) -> Option<Address> {
    let (mut local, mut peer, mut flags, mut protocol) = (None, None, None, 0);
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(address) => local = Some(*address),
            AddressAttribute::Address(address) => peer = Some(*address),
            AddressAttribute::Flags(all) => flags = Some(*all),
            AddressAttribute::Protocol(by) => protocol = u8::from(*by),
            _ => {}
        }
    }
    let flags =
        flags.unwrap_or(AddressFlags::from_bits_retain(u32::from(message.header.flags.bits())));
    let address = local.or(peer)?;
    let subnet = IpNet::new(peer.unwrap_or(address), message.header.prefix_len).ok()?;
    Some(Address {
        interface: message.header.index,
        address,
        subnet: subnet.trunc(),
        scope: message.header.scope.into(),
        secondary: flags.contains(AddressFlags::Secondary),
        deprecated: flags.contains(AddressFlags::Deprecated),
        tentative: flags.intersects(AddressFlags::Tentative | AddressFlags::Dadfailed)
            && !flags.contains(AddressFlags::Optimistic),
        protocol,
    })
}

fn route(message: &RouteMessage) -> Option<KernelRoute> {
    let header = &message.header;
    // Routes for a type of service answer only packets that bear it; source routes need a rule;
    // cloned ones are what the kernel learned of path MTUs.
    if header.tos != 0
        || header.source_prefix_length != 0
        || header.flags.contains(RouteFlags::Cloned)
    {
        return None;
    }
    let any: IpAddr = match header.address_family {
        AddressFamily::Inet => Ipv4Addr::UNSPECIFIED.into(),
        AddressFamily::Inet6 => Ipv6Addr::UNSPECIFIED.into(),
        _ => return None,
    };
    let mut destination = any;
    let mut route = KernelRoute {
        table: u32::from(header.table),
        destination: any.into(),
        priority: 0,
        kind: kind(header.kind),
        hops: Vec::new(),
        source: None,
        mtu: None,
        scope: header.scope.into(),
    };
    let dead = RouteFlags::Dead.bits();
    let mut single =
        Hop { interface: 0, gateway: None, weight: 1, dead: header.flags.bits() & dead != 0 };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Table(table) => route.table = *table,
            RouteAttribute::Destination(address) => destination = ip(address)?,
            RouteAttribute::Priority(priority) => route.priority = *priority,
            RouteAttribute::PrefSource(address) => route.source = ip(address),
            RouteAttribute::Oif(interface) => single.interface = *interface,
            RouteAttribute::Gateway(address) => single.gateway = ip(address),
            RouteAttribute::Via(via) => single.gateway = via_address(via),
            RouteAttribute::Metrics(metrics) => {
                route.mtu = metrics.iter().find_map(|metric| match metric {
                    RouteMetric::Mtu(mtu) if *mtu != 0 => Some(*mtu),
                    _ => None,
                });
            }
            RouteAttribute::MultiPath(hops) => {
                route.hops = hops
                    .iter()
                    .map(|hop| {
                        let mut one = Hop {
                            interface: hop.interface_index,
                            gateway: None,
                            weight: u16::from(hop.hops) + 1,
                            dead: hop.flags.contains(RouteNextHopFlags::Dead),
                        };
                        for attribute in &hop.attributes {
                            match attribute {
                                RouteAttribute::Gateway(address) => one.gateway = ip(address),
                                RouteAttribute::Via(via) => one.gateway = via_address(via),
                                _ => {}
                            }
                        }
                        one
                    })
                    .collect();
            }
            _ => {}
        }
    }
    if route.hops.is_empty() && single.interface != 0 {
        route.hops.push(single);
    }
    let length = header.destination_prefix_length;
    route.destination = IpNet::new(destination, length).ok()?.trunc();
    Some(route)
}

fn kind(kind: RouteType) -> RouteKind {
    match kind {
        RouteType::Unicast => RouteKind::Unicast,
        RouteType::Local | RouteType::Anycast => RouteKind::Local,
        RouteType::Throw => RouteKind::Throw,
        _ => RouteKind::NoUnicast,
    }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(v4) => Some((*v4).into()),
        RouteAddress::Inet6(v6) => Some((*v6).into()),
        _ => None,
    }
}

fn via_address(via: &RouteVia) -> Option<IpAddr> {
    match via {
        RouteVia::Inet(v4) => Some((*v4).into()),
        RouteVia::Inet6(v6) => Some((*v6).into()),
        _ => None,
    }
}

fn neighbour(message: &NeighbourMessage) -> Option<Neighbour> {
    // Proxy entries are what this machine answers for others; bridge entries have no IP address.
    if message.header.flags.contains(NeighbourFlags::Proxy) {
        return None;
    }
    let (mut address, mut mac) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(v4)) => {
                address = Some(IpAddr::from(*v4));
            }
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(v6)) => {
                address = Some(IpAddr::from(*v6));
            }
            NeighbourAttribute::LinkLayerAddress(bytes) => mac = bytes.as_slice().try_into().ok(),
            _ => {}
        }
    }
    Some(Neighbour {
        interface: message.header.ifindex,
        address: address?,
        mac,
        freshness: match message.header.state {
            NeighbourState::Stale => Freshness::Stale,
            NeighbourState::Reachable
            | NeighbourState::Delay
            | NeighbourState::Probe
            | NeighbourState::Permanent
            | NeighbourState::Noarp => Freshness::Fresh,
            _ => Freshness::Unknown,
        },
    })
}
