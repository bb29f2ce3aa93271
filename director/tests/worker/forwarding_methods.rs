//! A packet comes in at one port and goes out at the other, with the headers that its next hop and
//! its receiver expect.

use director::control::api::{Forwarding, Protocol};
use etherparse::{NetSlice, SlicedPacket};

use crate::bed::{Bed, CLIENT, CLIENT6, VIP, VIP6, at};
use crate::frames::{ACK, SYN, SYN_ACK, Seen, seen, tcp, udp};
use crate::network::{BACK, FRONT, TAG, ip, mac_of, own_mac};

const REAL: &str = "10.77.0.11:8080";
const REAL6: &str = "[fd77::11]:8080";

#[test]
fn a_nat_request_leaves_by_the_servers_port_and_its_reply_by_the_clients() {
    for (client, vip, real, gateway) in
        [(CLIENT, VIP, REAL, "192.0.2.254"), (CLIENT6, VIP6, REAL6, "2001:db8:1::fe")]
    {
        let mut bed = Bed::new(1);
        bed.serve(Protocol::Tcp, vip, &[real], Forwarding::Nat);
        let (client, vip, real) = (at(client), at(vip), at(real));
        let out = bed.request(0, &tcp(client, vip, SYN));
        assert_eq!(out.len(), 1);
        let macs = [mac_of(real.ip()), own_mac(BACK)];
        assert_eq!(
            seen(&out[0].bytes),
            Seen { macs, vlan: None, source: client, destination: real }
        );
        let back = bed.reply(0, &tcp(real, client, SYN_ACK));
        assert_eq!(back.len(), 1);
        let macs = [mac_of(ip(gateway)), own_mac(FRONT)];
        assert_eq!(
            seen(&back[0].bytes),
            Seen { macs, vlan: None, source: vip, destination: client }
        );
        assert_eq!((bed.count(0, "sent_nat"), bed.count(0, "sent_nat_reply")), (1, 1));
    }
}

#[test]
fn a_reply_on_another_workers_port_is_translated_back() {
    let mut bed = Bed::new(2);
    bed.serve(Protocol::Tcp, VIP, &[REAL], Forwarding::Nat);
    assert_eq!(bed.request(0, &tcp(at(CLIENT), at(VIP), SYN)).len(), 1);
    let back = bed.reply(1, &tcp(at(REAL), at(CLIENT), SYN_ACK));
    assert_eq!(seen(&back[0].bytes).source, at(VIP));
    assert_eq!(bed.request(1, &tcp(at(CLIENT), at(VIP), ACK)).len(), 1);
    assert_eq!((bed.count(0, "sent_nat"), bed.count(0, "sent_nat_reply")), (1, 0));
    assert_eq!((bed.count(1, "sent_nat"), bed.count(1, "sent_nat_reply")), (1, 1));
    let server = &bed.table.service_views()[0].servers[0];
    assert_eq!((server.active, server.stats.in_packets, server.stats.out_packets), (1, 2, 1));
}

#[test]
fn a_connection_whose_last_packet_was_long_ago_is_gone_whichever_worker_it_came_by() {
    let mut bed = Bed::new(2);
    bed.serve(Protocol::Udp, VIP, &[REAL], Forwarding::Nat);
    for port in 1001..1200 {
        let client = format!("198.51.100.7:{port}");
        bed.request(port % 2, &udp(at(&client), at(VIP)));
    }
    assert_eq!(bed.table.shared().connections.len(), 199);
    bed.wait(std::time::Duration::from_secs(302));
    assert_eq!(bed.table.shared().connections.len(), 0);
    assert_eq!(bed.table.service_views()[0].servers[0].inactive, 0);
}

#[test]
fn direct_routing_changes_ethernet_addresses_and_ttl_only() {
    for (client, vip, real) in [(CLIENT, VIP, "10.77.0.12:80"), (CLIENT6, VIP6, "[fd77::12]:80")] {
        let mut bed = Bed::new(1);
        bed.serve(Protocol::Udp, vip, &[real], Forwarding::Direct);
        let out = bed.request(0, &udp(at(client), at(vip)));
        let macs = [mac_of(at(real).ip()), own_mac(BACK)];
        let expected = Seen { macs, vlan: None, source: at(client), destination: at(vip) };
        assert_eq!(seen(&out[0].bytes), expected);
        assert_eq!(forwarding::parse(&out[0].bytes).unwrap().ttl, 63);
        assert_eq!(bed.count(0, "sent_direct"), 1);
    }
}

#[test]
fn a_tunnel_carries_any_family_in_any_from_the_directors_address() {
    for (client, vip, real, own) in [
        (CLIENT, VIP, "10.77.0.13:80", "10.77.0.1"),
        (CLIENT6, VIP6, "[fd77::13]:80", "fd77::1"),
        (CLIENT, VIP, "[fd77::13]:80", "fd77::1"),
        (CLIENT6, VIP6, "10.77.0.13:80", "10.77.0.1"),
    ] {
        let mut bed = Bed::new(1);
        bed.serve(Protocol::Tcp, vip, &[real], Forwarding::Tunnel);
        let frame = tcp(at(client), at(vip), SYN);
        let out = bed.request(0, &frame);
        let outer = forwarding::parse(&out[0].bytes).unwrap();
        assert_eq!((outer.source, outer.destination), (ip(own), at(real).ip()));
        assert_eq!(out[0].bytes[..6], mac_of(at(real).ip()));
        let inner = forwarding::tunnel::decapsulate(&out[0].bytes[14..]).unwrap();
        let mut carried = frame[..14].to_vec();
        carried.extend_from_slice(&out[0].bytes[14..][inner]);
        let carried = seen(&carried);
        assert_eq!((carried.source, carried.destination), (at(client), at(vip)));
        assert_eq!(bed.count(0, "sent_tunnel"), 1);
    }
}

#[test]
fn a_route_by_a_vlan_device_leaves_by_its_parents_port_with_the_tag() {
    let mut bed = Bed::new(1);
    bed.serve(Protocol::Tcp, VIP, &["10.78.0.11:80"], Forwarding::Nat);
    let out = bed.request(0, &tcp(at(CLIENT), at(VIP), SYN));
    let packet = seen(&out[0].bytes);
    assert_eq!((packet.vlan, packet.destination), (Some(TAG), at("10.78.0.11:80")));
    // And the tag of what comes back does not leave by the untagged port.
    let mut reply = tcp(at("10.78.0.11:80"), at(CLIENT), SYN_ACK);
    reply.splice(12..12, [0x81, 0, 0, TAG as u8]);
    let back = bed.reply(0, &reply);
    let packet = seen(&back[0].bytes);
    assert_eq!((packet.vlan, packet.source), (None, at(VIP)));
}

#[test]
fn a_packet_without_a_server_is_answered_with_port_unreachable() {
    for (client, vip) in [(CLIENT, VIP), (CLIENT6, VIP6)] {
        let mut bed = Bed::new(1);
        bed.serve(Protocol::Udp, vip, &[], Forwarding::Nat);
        assert!(bed.request(0, &udp(at(client), at(vip))).is_empty());
        let answer = bed.hands[0].front.collect().expect("an answer by the port it came from");
        let sliced = SlicedPacket::from_ethernet(&answer.bytes).unwrap();
        let to = match sliced.net.unwrap() {
            NetSlice::Ipv4(ip) => std::net::IpAddr::V4(ip.header().destination_addr()),
            NetSlice::Ipv6(ip) => std::net::IpAddr::V6(ip.header().destination_addr()),
            NetSlice::Arp(_) => panic!("ARP"),
        };
        assert_eq!(to, at(client).ip());
        assert_eq!(answer.bytes[6..12], own_mac(FRONT));
        assert_eq!((bed.count(0, "no_server"), bed.count(0, "icmp_sent")), (1, 1));
    }
}
