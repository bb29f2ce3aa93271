//! Faults about who has the VIP.

use integration::topology::{Kind, VIP_V4, VIP_V6};
use integration::written::{service, top, web};

use super::*;
use crate::bed::{Bed, can_run, lay};

#[test]
fn a_direct_server_that_answers_arp_for_the_vip_is_named_and_quiet_after_the_remedy() {
    if !can_run() {
        return;
    }
    let config = top("copy") + &web(Kind::Direct, "rr", &[1, 1]);
    let bed = Bed::with(Kind::Direct, &config);
    let server = &bed.topology.servers[0];
    server.sysctl("net.ipv4.conf.all.arp_ignore", "0").unwrap();
    let file = servers_file(&bed.topology, 1, &config, "");
    let there = wait_for("server-arp", &["arp_ignore is 0 on eth0"], on_server(server, &file));
    assert_eq!(there["remedy"][0], "sysctl -w net.ipv4.conf.all.arp_ignore=1");

    let look = || examine(&bed.topology.director, bed.director.socket(), &[]);
    let mac = server.mac("eth0").unwrap().to_string();
    let words = ["real server 10.77.0.11 answers ARP for 192.0.2.10 on eth0", &mac];
    let finding = wait_for("vip-elsewhere", &words, look);
    assert_eq!(finding["on"], "10.77.0.11", "{finding:#}");
    paste(server, &finding);
    wait_until_gone("vip-elsewhere", look);
    wait_until_gone("server-arp", on_server(server, &file));
    bed.director.stop().unwrap();
}

#[test]
fn a_server_with_an_ipv6_vip_on_its_card_is_named_and_has_it_on_lo_after_the_remedy() {
    if !can_run() {
        return;
    }
    let config = top("packet") + &service(Kind::Direct, VIP_V6, 80, "rr", "", &[1]);
    let topology = lay(Kind::Direct, &one_server());
    let server = &topology.servers[0];
    server.remove_address("lo", &VIP_V6.to_string()).unwrap();
    server.add_address("eth0", &format!("{VIP_V6}/64")).unwrap();
    let bed = Bed::of(topology, &config);
    let server = &bed.topology.servers[0];
    let file = servers_file(&bed.topology, 1, &config, "");
    let there = wait_for("server-vip", &["2001:db8:1::10 is on eth0"], on_server(server, &file));
    assert_eq!(there["remedy"][0], "ip -6 address del 2001:db8:1::10/64 dev eth0");
    let look = || examine(&bed.topology.director, bed.director.socket(), &[]);
    let words = ["fd77::11 answers neighbour discovery for 2001:db8:1::10 on eth0"];
    let finding = wait_for("vip-elsewhere", &words, look);
    assert_eq!(finding["on"], "fd77::11", "{finding:#}");
    paste(server, &finding);
    wait_until_gone("vip-elsewhere", look);
    wait_until_gone("server-vip", on_server(server, &file));
    bed.director.stop().unwrap();
}

#[test]
fn a_stranger_who_has_the_vip_is_named_by_his_ethernet_address() {
    if !can_run() {
        return;
    }
    let config = top("generic") + &service(Kind::Nat, VIP_V4, 80, "rr", "", &[1]);
    let bed = Bed::of(lay(Kind::Nat, &one_server()), &config);
    let client = &bed.topology.client;
    client.add_address("lo", &VIP_V4.to_string()).unwrap();
    let mac = client.mac("eth0").unwrap().to_string();
    let look = || examine(&bed.topology.director, bed.director.socket(), &[]);
    let finding = wait_for("vip-elsewhere", &["no server of the services", &mac], look);
    assert_eq!(finding["severity"], "fault", "{finding:#}");
    client.remove_address("lo", &VIP_V4.to_string()).unwrap();
    wait_until_gone("vip-elsewhere", look);
    bed.director.stop().unwrap();
}

#[test]
fn a_server_without_the_vip_is_named_on_both_sides_and_has_it_after_the_remedy() {
    if !can_run() {
        return;
    }
    let config = top("copy") + &service(Kind::Direct, VIP_V4, 80, "rr", "", &[1]);
    let topology = lay(Kind::Direct, &one_server());
    topology.servers[0].remove_address("lo", &VIP_V4.to_string()).unwrap();
    let bed = Bed::of(topology, &config);
    knock(&bed.topology.client, VIP_V4, 3);
    let look = || examine(&bed.topology.director, bed.director.socket(), &[]);
    let finding = wait_for("unanswered", &["the server 10.77.0.11:80", "has no VIP"], look);
    assert_eq!(finding["on"], "10.77.0.11", "{finding:#}");

    let server = &bed.topology.servers[0];
    let file = servers_file(&bed.topology, 1, &config, "");
    let words = ["192.0.2.10 is on no interface"];
    let finding = wait_for("server-vip", &words, on_server(server, &file));
    assert_eq!(finding["remedy"][0], "ip address add 192.0.2.10/32 dev lo");
    paste(server, &finding);
    wait_until_gone("server-vip", on_server(server, &file));
    assert_eq!(bed.fetch(VIP_V4, 80, 5).failed(), 0);
    wait_until_gone("unanswered", look);
    bed.director.stop().unwrap();
}
