//! The follower against a real kernel: each test in network namespaces of its own, made on a
//! fresh thread and gone with it. Needs root (CAP_SYS_ADMIN to make namespaces).

mod addresses;
mod lab;
mod neighbours;

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use director::network::Network;
use rtnetlink::{Handle, RouteMessageBuilder, RouteNextHopBuilder};

use lab::{Lab, add_address, down, eventually, follow, in_namespace, ip, up};

fn v4(gateway: [u8; 4], destination: [u8; 4], length: u8) -> RouteMessageBuilder<Ipv4Addr> {
    RouteMessageBuilder::<Ipv4Addr>::new()
        .destination_prefix(destination.into(), length)
        .gateway(gateway.into())
}

/// The routers that the first 64 hosts of a prefix are reached through.
fn gateways(network: &Network, host: impl Fn(u8) -> IpAddr) -> HashSet<IpAddr> {
    (0..64).filter_map(|number| network.route(host(number))?.gateway).collect()
}

#[test]
fn what_is_there_at_the_start_and_what_comes_and_goes_is_published() {
    in_namespace("following", || async {
        let lab = Lab::new().await;
        let (_follower, network) = follow().await;
        let first = network.load_full();
        let near = first.interface_by_name("near").expect("the near end");
        assert_eq!((near.index, near.mtu, near.up), (lab.index, 1500, true));
        assert_ne!(near.mac, [0; 6]);
        assert!(first.is_local(ip("10.0.0.1")) && first.is_local(ip("127.0.0.9")));
        assert!(!first.is_local(ip("10.0.0.2")));
        let route = first.route(ip("10.0.0.2")).expect("the subnet's route");
        assert_eq!((route.interface, route.gateway), (lab.index, None));
        assert_eq!(route.source, Some(ip("10.0.0.1")));
        assert_eq!(first.source_for(ip("fd00::2")), Some(ip("fd00::1")));
        assert_eq!(first.route(ip("192.0.2.1")), None);

        add_address(&lab.near, lab.index, "10.5.0.1", 16).await;
        eventually(&network, "a new address with its subnet", |network| {
            network.is_local(ip("10.5.0.1")) && network.route(ip("10.5.9.9")).is_some()
        })
        .await;

        let routes = lab.near.route();
        let default = v4([10, 0, 0, 2], [0, 0, 0, 0], 0).build();
        routes.add(default.clone()).execute().await.expect("a route");
        eventually(&network, "a default route", |network| {
            network.route(ip("192.0.2.1")).is_some_and(|route| {
                route.gateway == Some(ip("10.0.0.2")) && route.source == Some(ip("10.0.0.1"))
            })
        })
        .await;
        routes.del(default).execute().await.expect("deleted");
        eventually(&network, "the default route gone", |network| {
            network.route(ip("192.0.2.1")).is_none()
        })
        .await;

        let hops = [[10, 0, 0, 3], [10, 0, 0, 4]].map(|gateway| {
            let hop = RouteNextHopBuilder::new_ipv4().interface(lab.index);
            hop.via(IpAddr::from(gateway)).expect("a hop").build()
        });
        let multipath = RouteMessageBuilder::<Ipv4Addr>::new()
            .destination_prefix([198, 51, 100, 0].into(), 24)
            .multipath(hops.into())
            .build();
        routes.add(multipath).execute().await.expect("a route");
        eventually(&network, "a multipath route", |network| {
            gateways(network, |host| [198, 51, 100, host].into())
                == [ip("10.0.0.3"), ip("10.0.0.4")].into()
        })
        .await;
    });
}

#[test]
fn ipv6_routes_of_one_prefix_become_one_multipath_route_and_come_apart_again() {
    in_namespace("IPv6 multipath", || async {
        let lab = Lab::new().await;
        let (_follower, network) = follow().await;
        let via = |host: u16| {
            RouteMessageBuilder::<Ipv6Addr>::new()
                .destination_prefix("2001:db8::".parse().unwrap(), 32)
                .gateway(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host))
                .output_interface(lab.index)
                .build()
        };
        let now = |network: &Network| {
            gateways(network, |host| {
                Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host.into()).into()
            })
        };
        let routes = lab.near.route();
        routes.add(via(2)).execute().await.expect("the first");
        let one = HashSet::from([ip("fd00::2")]);
        eventually(&network, "the first way", |network| now(network) == one).await;
        // Without NLM_F_EXCL the kernel makes one multipath route of both.
        append(&lab.near, via(3)).await;
        let both = HashSet::from([ip("fd00::2"), ip("fd00::3")]);
        eventually(&network, "both ways", |network| now(network) == both).await;
        routes.del(via(2)).execute().await.expect("deleted");
        let other = HashSet::from([ip("fd00::3")]);
        eventually(&network, "the second way", |network| now(network) == other).await;
    });
}

/// `ip route append`.
async fn append(handle: &Handle, route: netlink_packet_route::route::RouteMessage) {
    use netlink_packet_core::{
        NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
    };
    let message = netlink_packet_route::RouteNetlinkMessage::NewRoute(route);
    let mut request = NetlinkMessage::from(message);
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND;
    let mut answers = handle.clone().request(request).expect("sent");
    while let Some(answer) = futures_util::StreamExt::next(&mut answers).await {
        assert!(!matches!(answer.payload, NetlinkPayload::Error(_)), "{answer:?}");
    }
}

#[test]
fn routes_that_the_kernel_flushes_silently_when_a_link_goes_down_do_not_stay() {
    in_namespace("a link going down", || async {
        let lab = Lab::new().await;
        let (_follower, network) = follow().await;
        let route = v4([10, 0, 0, 2], [203, 0, 113, 0], 24).build();
        lab.near.route().add(route).execute().await.expect("a route");
        let present = |network: &Network| network.route(ip("203.0.113.1")).is_some();
        eventually(&network, "the route", present).await;
        down(&lab.near, lab.index).await;
        eventually(&network, "the route gone", |network| !present(network)).await;
        // The subnet's route comes back with the link, the other one does not.
        up(&lab.near, lab.index).await;
        eventually(&network, "the subnet again", |network| network.route(ip("10.0.0.2")).is_some())
            .await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!present(&network.load()));
    });
}

#[test]
fn a_burst_of_thousands_of_routes_is_published_whole_and_in_few_pieces() {
    const ROUTES: u32 = 4000;
    in_namespace("a burst", || async {
        let lab = Lab::new().await;
        let (follower, network) = follow().await;
        let destination = |n: u32| Ipv4Addr::from_bits(0x0b00_0000 + (n << 8));
        let present = |network: &Network| {
            let there = |n: &u32| network.route(destination(*n).into()).is_some();
            (0..ROUTES).filter(there).count() as u32
        };
        for n in 0..ROUTES {
            let route = v4([10, 0, 0, 2], destination(n).octets(), 24).build();
            lab.near.route().add(route).execute().await.expect("a route");
        }
        eventually(&network, "all routes", |network| present(network) == ROUTES).await;
        let pieces = *follower.publications().borrow();
        assert!(pieces < u64::from(ROUTES) / 4, "{pieces} publications");
        // The kernel tells nothing of these 4000 deletions.
        down(&lab.near, lab.index).await;
        up(&lab.near, lab.index).await;
        eventually(&network, "all gone", |network| present(network) == 0).await;
    });
}

#[test]
fn what_the_kernel_could_not_tell_a_busy_director_is_read_anew() {
    // More than four megabytes of notifications, the most that the socket holds.
    const ROUTES: u32 = 20_000;
    in_namespace("an overrun", || async {
        let lab = Lab::new().await;
        let (_follower, network) = follow().await;
        let destination = |n: u32| Ipv4Addr::from_bits(0x0b00_0000 + (n << 8));
        // The follower's thread waits here while routes come, so its socket overflows.
        let others = move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.enable_all();
            runtime.build().expect("a runtime").block_on(async {
                let handle = lab::handle();
                for n in 0..ROUTES {
                    let route = v4([10, 0, 0, 2], destination(n).octets(), 24).build();
                    let added = handle.route().add(route).execute().await;
                    added.expect("a route");
                }
            });
        };
        std::thread::spawn(others).join().expect("routes");
        eventually(&network, "all routes", |network| {
            (0..ROUTES).all(|n| network.route(destination(n).into()).is_some())
        })
        .await;
        drop(lab);
    });
}
