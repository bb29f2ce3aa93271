//! How frames reach every host (unicast, multicast, igmp), one family alone, and what is left on a
//! host when its node has ended.

use std::net::IpAddr;
use std::time::Duration;

use integration::cluster::{VIP_V4, VIP_V6, crash};
use integration::lab::Mac;

use crate::bed::{Bed, FAMILIES, Site};
use crate::can_run;
use crate::load::{failed, requests, tally};
use crate::witness::Witness;

/// The VIPs' Ethernet addresses by the table of the original: 02-BF or 03-BF and the primary address,
/// 01-00-5E-7F and its last two bytes.
const MACS: [(&str, &str); 3] = [
    ("unicast", "02:bf:0a:4e:00:0a"),
    ("multicast", "03:bf:0a:4e:00:0a"),
    ("igmp", "01:00:5e:7f:00:0a"),
];

fn serves_by(delivery: usize) {
    let (word, mac) = MACS[delivery];
    let nlb = ["delivery = \"unicast\"", "delivery = \"multicast\"", "delivery = \"igmp\""];
    let bed = Bed::serving("delivery", Site { nlb: nlb[delivery], ..Site::new(3) }).unwrap();
    let mac: Mac = mac.parse().unwrap();
    let client = &bed.cluster.client;
    client.forget_neighbours("eth0").unwrap();
    for (family, (name, vip)) in FAMILIES.into_iter().enumerate() {
        // A Linux client takes a multicast MAC from ARP; where a router refuses it, it is written.
        let made = requests(client, family, 30).unwrap();
        let learned = client.known_mac("eth0", vip).unwrap();
        println!("\n{word}, {name}: learned {learned:?}, {:?}", tally(&made));
        if learned.is_none() {
            client.neighbour("eth0", vip, mac).unwrap();
        } else {
            assert_eq!(learned, Some(mac), "{word}, {name}");
        }
        let witness = Witness::start(&bed.cluster).unwrap();
        let made = requests(client, family, 300).unwrap();
        assert!(failed(&made).is_empty(), "{word}, {name}: {:?}", tally(&made));
        assert_eq!(tally(&made).len(), 3, "{word}, {name}: {:?}", tally(&made));
        let account = witness.finish().unwrap();
        assert_eq!(account.answered_twice(), Vec::<String>::new());
        assert_eq!(account.resets().len(), 0);
    }
    if word == "igmp" {
        let groups = bed.ip(1, &["maddress", "show", "dev", "eth0"]).unwrap();
        assert!(groups.contains("239.255.0.10"), "the group is not joined:\n{groups}");
    }
}

#[test]
fn frames_come_by_unicast_flooding() {
    if can_run() {
        serves_by(0);
    }
}

#[test]
fn frames_come_by_multicast() {
    if can_run() {
        serves_by(1);
    }
}

#[test]
fn frames_come_by_igmp_multicast() {
    if can_run() {
        serves_by(2);
    }
}

#[test]
fn a_cluster_of_ipv6_alone_serves() {
    if !can_run() {
        return;
    }
    let bed = Bed::serving("ipv6", Site { families: &[1], ..Site::new(3) }).unwrap();
    let witness = Witness::start(&bed.cluster).unwrap();
    let made = requests(&bed.cluster.client, 1, 300).unwrap();
    assert!(failed(&made).is_empty(), "{:?}", tally(&made));
    assert_eq!(tally(&made).len(), 3, "{:?}", tally(&made));
    assert_eq!(witness.finish().unwrap().answered_twice(), Vec::<String>::new());
}

/// What a node changes on its host.
fn state(bed: &Bed, number: usize) -> (Vec<IpAddr>, [String; 2], String) {
    let host = &bed.cluster.hosts[number - 1];
    let addresses = bed.ip(number, &["-o", "address", "show", "dev", "lo"]).unwrap();
    let vips = [VIP_V4, VIP_V6];
    let there = vips.into_iter().filter(|vip| addresses.contains(&format!(" {vip}/"))).collect();
    let keys = ["net.ipv4.conf.all.arp_ignore", "net.ipv4.conf.all.arp_announce"];
    let link = bed.ip(number, &["-o", "link", "show", "dev", "eth0"]).unwrap();
    let xdp = link.split_whitespace().find(|word| word.starts_with("prog/xdp") || *word == "xdp");
    (there, keys.map(|key| host.read_sysctl(key).unwrap()), xdp.unwrap_or("no filter").to_owned())
}

#[test]
fn a_node_leaves_its_host_as_it_found_it_also_when_it_was_killed_before() {
    if !can_run() {
        return;
    }
    let site = Site { families: &[0, 1], ..Site::new(2) };
    let mut bed = Bed::build("leftovers", site).unwrap();
    let before = state(&bed, 1);
    assert_eq!(before.0, Vec::<IpAddr>::new());
    let all = [1, 2];
    bed.start(&all).unwrap();
    bed.wait_converged(&all, &all).unwrap();
    assert_eq!(state(&bed, 1).0, [VIP_V4, VIP_V6]);
    bed.stop(1).unwrap();
    assert_eq!(state(&bed, 1), before, "after SIGTERM");

    bed.start(&[1]).unwrap();
    bed.wait_converged(&all, &all).unwrap();
    crash(bed.node(1).unwrap()).unwrap();
    bed.node(1).unwrap().process().wait(Duration::from_secs(3)).unwrap();
    bed.start(&[1]).unwrap();
    bed.wait_converged(&all, &all).unwrap();
    bed.stop(1).unwrap();
    assert_eq!(state(&bed, 1), before, "after SIGKILL, a second start and SIGTERM");
}
