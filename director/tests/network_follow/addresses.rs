//! VIPs of the director's own.

use director::network::OwnAddresses;

use crate::lab::{Lab, add_address, down, eventually, follow, in_namespace, ip, up};

#[test]
fn own_addresses_come_and_go_and_those_that_were_there_stay() {
    in_namespace("own addresses", || async {
        let lab = Lab::new().await;
        add_address(&lab.near, lab.index, "10.0.0.50", 32).await;
        let (_follower, network) = follow().await;
        let vips = ["10.0.0.50", "10.0.0.51", "fd00::51", "192.0.2.51"].map(ip);
        let interfaces = ["lo".to_owned(), "near".to_owned()];
        let mut own = OwnAddresses::new().expect("a socket");
        let refused = own.set(&network.load(), &["nosuch".to_owned()], &vips);
        assert!(refused.unwrap_err().to_string().contains("nosuch"));

        let added = own.set(&network.load(), &interfaces, &vips).expect("added");
        let loopback = network.load().interface_by_name("lo").expect("lo").index;
        let expected = [(lab.index, vips[1]), (lab.index, vips[2]), (loopback, vips[3])];
        assert_eq!(added, expected);
        eventually(&network, "all VIPs", |network| vips.iter().all(|vip| network.is_local(*vip)))
            .await;
        // Our own connections do not leave with a VIP.
        assert_eq!(network.load().source_for(ip("10.0.0.2")), Some(ip("10.0.0.1")));
        assert_eq!(network.load().source_for(ip("fd00::2")), Some(ip("fd00::1")));

        // A reload that drops one and keeps the others.
        let again = own.set(&network.load(), &interfaces, &vips[..3]);
        assert_eq!(again.expect("set"), []);
        eventually(&network, "one VIP gone", |network| !network.is_local(vips[3])).await;

        // A director that is killed takes nothing away; the next one knows what is left of it.
        std::mem::forget(own);
        let mut own = OwnAddresses::new().expect("a socket");
        let again = own.set(&network.load(), &interfaces, &vips[..3]);
        assert_eq!(again.expect("set"), []);
        assert_eq!(own.added().len(), 2);

        // That knows also what it does not want, and takes it away.
        std::mem::forget(own);
        let mut own = OwnAddresses::new().expect("a socket");
        let again = own.set(&network.load(), &interfaces, &vips[..2]);
        assert_eq!(again.expect("set"), []);
        assert_eq!(own.added(), [(lab.index, vips[1])]);
        eventually(&network, "what was not wanted gone", |network| !network.is_local(vips[2]))
            .await;

        drop(own);
        eventually(&network, "all gone but what was there", |network| {
            let left: Vec<bool> = vips.iter().map(|vip| network.is_local(*vip)).collect();
            left == [true, false, false, false]
        })
        .await;
    });
}

#[test]
fn an_own_address_that_its_interface_has_lost_is_put_back() {
    in_namespace("own addresses on a link that flaps", || async {
        let lab = Lab::new().await;
        let (_follower, network) = follow().await;
        let vips = ["10.0.0.51", "fd00::51"].map(ip);
        let mut own = OwnAddresses::new().expect("a socket");
        let interfaces = ["near".to_owned()];
        let before = network.load_full();
        assert_eq!(own.set(&before, &interfaces, &vips).expect("added").len(), 2);
        // What is published may not know of them yet: that is no loss.
        assert_eq!(own.set(&before, &interfaces, &vips).expect("set"), []);
        eventually(&network, "both VIPs", |network| vips.iter().all(|vip| network.is_local(*vip)))
            .await;
        // The kernel takes the IPv6 address off for good.
        down(&lab.near, lab.index).await;
        up(&lab.near, lab.index).await;
        eventually(&network, "one VIP lost", |network| {
            network.is_local(vips[0]) && !network.is_local(vips[1])
        })
        .await;
        let added = own.set(&network.load(), &interfaces, &vips).expect("put back");
        assert_eq!(added, [(lab.index, vips[1])], "and is to be announced");
        eventually(&network, "both again", |network| vips.iter().all(|vip| network.is_local(*vip)))
            .await;
        assert_eq!(own.added().len(), 2);
        drop(own);
        eventually(&network, "both gone", |network| !vips.iter().any(|vip| network.is_local(*vip)))
            .await;
    });
}
