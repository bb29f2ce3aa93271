//! Ethernet addresses: found out by the kernel on request, and announced by us.

use std::net::IpAddr;
use std::time::Duration;

use director::network::{Freshness, announcement};
use futures_util::TryStreamExt;
use netlink_packet_route::link::LinkAttribute;
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourState};
use pnet::datalink::{self, Channel};

use crate::lab::{Lab, add_address, eventually, follow, in_namespace, ip};

#[test]
fn the_kernel_resolves_neighbours_on_request_and_keeps_them() {
    in_namespace("resolution", || async {
        let lab = Lab::new().await;
        let (follower, network) = follow().await;
        let resolver = follower.resolver();
        let links = lab.far.link().get().match_index(lab.far_index).execute();
        let link = std::pin::pin!(links).try_next().await;
        let link = link.expect("an answer").expect("a link");
        let mac = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Address(mac) => Some(mac.clone()),
            _ => None,
        });
        for address in [ip("10.0.0.2"), ip("fd00::2")] {
            assert_eq!(network.load().neighbour(lab.index, address), None);
            assert!(resolver.request(lab.index, address));
            eventually(&network, "a neighbour", |network| {
                network.neighbour(lab.index, address).map(Vec::from) == mac
            })
            .await;
        }
        // Nobody has this address: asked for in vain, and never given out.
        let nobody = ip("10.0.0.77");
        assert!(resolver.request(lab.index, nobody));
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(network.load().neighbour(lab.index, nobody), None);
        // A server that comes up later is found without a packet asking for it.
        resolver.keep_resolved([(lab.index, nobody)]);
        add_address(&lab.far, lab.far_index, "10.0.0.77", 24).await;
        eventually(&network, "a server that came up later", |network| {
            network.freshness(lab.index, nobody) == Freshness::Fresh
        })
        .await;
    });
}

/// The Ethernet address that the far end has for one of ours.
async fn known_at_the_far_end(lab: &Lab, address: IpAddr) -> Option<Vec<u8>> {
    let entries = lab.far.neighbours().get().execute();
    let entries: Vec<_> = entries.try_collect().await.expect("the far end's neighbours");
    let wanted = NeighbourAttribute::Destination(NeighbourAddress::from(address));
    let entry = entries.iter().find(|it| it.attributes.contains(&wanted))?;
    entry.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(mac) => Some(mac.clone()),
        _ => None,
    })
}

#[test]
fn hosts_that_knew_a_vip_elsewhere_believe_its_announcement() {
    in_namespace("announcements", || async {
        let lab = Lab::new().await;
        let near = datalink::interfaces()
            .into_iter()
            .find(|interface| interface.name == "near")
            .expect("the near end");
        let Ok(Channel::Ethernet(mut sender, _)) = datalink::channel(&near, Default::default())
        else {
            panic!("a packet socket");
        };
        let (before, after) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        for vip in [ip("10.0.0.60"), ip("fd00::60")] {
            let entry = lab.far.neighbours().add(lab.far_index, vip);
            let entry = entry.state(NeighbourState::Stale).link_layer_address(&before);
            entry.execute().await.expect("an entry");
            assert_eq!(known_at_the_far_end(&lab, vip).await, Some(before.to_vec()));
            // Several times, as announcements are sent: nothing confirms them, and an interface
            // that has just come up loses its first frames.
            for _ in 0..100 {
                let sent = sender.send_to(&announcement(after, vip, None), None);
                sent.expect("a packet socket").expect("sent");
                if known_at_the_far_end(&lab, vip).await == Some(after.to_vec()) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert_eq!(known_at_the_far_end(&lab, vip).await, Some(after.to_vec()), "{vip}");
        }
    });
}
