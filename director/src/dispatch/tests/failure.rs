//! What a client hears when something is in the way.

use etherparse::{IcmpEchoHeader, PacketBuilder};

use super::bed::*;
use crate::control::api::{Forwarding, Protocol};
use crate::control::operations::Command;
use crate::dispatch::verdict::{DropReason, PassReason, Verdict};

const CLIENT: &str = "198.51.100.7:4000";
const VIP: &str = "192.0.2.10:80";
const REAL: &str = "10.77.0.11:80";

fn icmp_type_and_code(bed: &Bed) -> (u8, u8) {
    let reply = bed.dispatcher.reply().unwrap().0;
    assert_eq!(reply[23], 1, "ICMP");
    (reply[34], reply[35])
}

#[test]
fn a_service_without_servers_answers_port_unreachable() {
    let mut bed = Bed::with(key(Protocol::Tcp, VIP), &[]);
    let out = bed.tcp(CLIENT, VIP, SYN);
    assert!(matches!(out.verdict, Verdict::Answer { reason: DropReason::NoServer, .. }));
    assert_eq!(icmp_type_and_code(&bed), (3, 3));
}

/// The frame with TTL 1 instead of 64: the header checksum grows by 63 << 8.
fn at_the_end(mut frame: Vec<u8>) -> Vec<u8> {
    frame[22] = 1;
    let sum = u32::from(u16::from_be_bytes([frame[24], frame[25]])) + (63 << 8);
    frame[24..26].copy_from_slice(&((((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes()));
    frame
}

/// Packets and bytes to the client, as the service counts them.
fn outgoing(bed: &Bed) -> (u64, u64) {
    let stats = bed.table.service_views()[0].stats;
    (stats.out_packets, stats.out_bytes)
}

#[test]
fn an_answer_that_a_router_would_drop_neither_counts_nor_moves_its_connection() {
    let mut bed = Bed::with(key(Protocol::Tcp, VIP), &[(REAL, Forwarding::Nat)]);
    bed.establish(CLIENT, VIP);
    let before = outgoing(&bed);
    let out = bed.handle(&at_the_end(tcp(at(REAL), at(CLIENT), RST, b"")));
    assert!(matches!(out.verdict, Verdict::Answer { reason: DropReason::TtlExceeded, .. }));
    assert_eq!(outgoing(&bed), before);
    assert_eq!(bed.counts(), [(1, 0)], "the reset has not got through");
}

#[test]
fn our_own_error_counts_as_an_answer_unless_the_method_is_nat() {
    for (method, expected) in
        [(Forwarding::Direct, (1, 68)), (Forwarding::Tunnel, (1, 68)), (Forwarding::Nat, (0, 0))]
    {
        let mut bed = Bed::with(key(Protocol::Tcp, VIP), &[(REAL, method)]);
        bed.handle(&at_the_end(tcp(at(CLIENT), at(VIP), SYN, b"")));
        // IP, ICMP, and the quoted IP and TCP headers.
        assert_eq!(outgoing(&bed), expected, "{method:?}");
    }
}

#[test]
fn a_packet_at_the_end_of_its_ttl_is_answered_time_exceeded() {
    let mut bed = Bed::with(key(Protocol::Tcp, VIP), &[(REAL, Forwarding::Nat)]);
    let out = bed.handle(&at_the_end(tcp(at(CLIENT), at(VIP), SYN, b"")));
    assert!(matches!(out.verdict, Verdict::Answer { reason: DropReason::TtlExceeded, .. }));
    assert_eq!(icmp_type_and_code(&bed), (11, 0));
}

#[test]
fn a_packet_too_big_for_the_tunnel_is_answered_with_the_mtu_that_fits() {
    let mut bed = Bed::with(key(Protocol::Tcp, VIP), &[(REAL, Forwarding::Tunnel)]);
    assert!(bed.tcp(CLIENT, VIP, SYN).is_sent());
    let out = bed.handle(&tcp(at(CLIENT), at(VIP), ACK, &[0; 1460]));
    assert!(matches!(out.verdict, Verdict::Answer { reason: DropReason::TooBig, .. }));
    assert_eq!(icmp_type_and_code(&bed), (3, 4));
    let reply = bed.dispatcher.reply().unwrap().0;
    assert_eq!(u16::from_be_bytes([reply[40], reply[41]]), 1480);
}

#[test]
fn a_flood_of_errors_is_not_answered_with_a_flood() {
    let mut bed = Bed::with(key(Protocol::Tcp, VIP), &[]);
    let answers = (0..1000u16)
        .filter(|number| {
            let client = format!("198.51.{}.{}:4000", number >> 8, number & 0xff);
            matches!(bed.tcp(&client, VIP, SYN).verdict, Verdict::Answer { .. })
        })
        .count();
    assert_eq!(answers, 50);
}

#[test]
fn connections_of_a_removed_server_wait_and_are_revived_with_it() {
    let service = key(Protocol::Tcp, VIP);
    let mut bed = Bed::with(service, &[(REAL, Forwarding::Nat)]);
    bed.establish(CLIENT, VIP);
    assert_eq!(bed.counts(), [(1, 0)]);
    bed.apply(Command::DeleteServer { service, server: at(REAL) });
    let out = bed.tcp(CLIENT, VIP, ACK);
    assert_eq!(out.verdict, Verdict::Drop(DropReason::ServerRemoved));
    // What the server still says is delivered.
    assert!(bed.tcp(REAL, CLIENT, ACK).is_sent());
    bed.apply(Command::AddServer { service, server: server(REAL, Forwarding::Nat) });
    assert_eq!(bed.counts(), [(1, 0)], "it comes back with its connections");
    assert!(bed.tcp(CLIENT, VIP, ACK).is_sent());
}

#[test]
fn icmp_about_an_answer_reaches_the_server_in_its_own_terms() {
    let mut bed = Bed::with(key(Protocol::Tcp, VIP), &[(REAL, Forwarding::Nat)]);
    bed.establish(CLIENT, VIP);
    // A router on the client's side: the server's packet, as the client would have seen it, is
    // too big.
    let frame = too_big(CLIENT, VIP);
    let out = bed.handle(&frame);
    assert!(out.is_sent(), "{:?}", out.verdict);
    assert_eq!(out.frame[26..30], [203, 0, 113, 1], "the router still speaks");
    assert_eq!(out.frame[30..34], [10, 77, 0, 11], "to the server");
    let inner = &out.frame[42..];
    assert_eq!(inner[12..16], [10, 77, 0, 11], "about the server's own packet");
    assert_eq!(u16::from_be_bytes([inner[20], inner[21]]), 80);
    let sum: u32 = out.frame[34..]
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    assert_eq!((folded & 0xffff) + (folded >> 16), 0xffff, "ICMP checksum");
}

#[test]
fn an_icmpv6_error_from_a_nat_server_reaches_the_client_in_its_own_terms() {
    const CLIENT_V6: &str = "[2001:db8::7]:40000";
    const VIP_V6: &str = "[2001:db8:1::10]:80";
    const REAL_V6: &str = "[fd77::11]:8080";
    let mut bed = Bed::with(key(Protocol::Tcp, VIP_V6), &[(REAL_V6, Forwarding::Nat)]);
    bed.establish(CLIENT_V6, VIP_V6);
    let address = |endpoint: &str| match at(endpoint) {
        std::net::SocketAddr::V6(v6) => v6.ip().octets(),
        std::net::SocketAddr::V4(_) => unreachable!(),
    };
    let quoted = tcp(at(CLIENT_V6), at(REAL_V6), ACK, &[0; 100]);
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv6(address(REAL_V6), address(CLIENT_V6), 60)
        .icmpv6_raw(1, 4, [0; 4])
        .write(&mut frame, &quoted[14..])
        .unwrap();
    let out = bed.handle(&frame);
    assert!(out.is_sent(), "{:?}", out.verdict);
    assert_eq!(out.frame[22..38], address(VIP_V6), "the service speaks");
    assert_eq!(out.frame[38..54], address(CLIENT_V6));
    let inner = &out.frame[62..];
    assert_eq!(inner[24..40], address(VIP_V6), "about the client's own packet");
    assert_eq!(u16::from_be_bytes([inner[42], inner[43]]), 80);
    let message = &out.frame[54..];
    let (from, to) = (at(VIP_V6).ip(), at(CLIENT_V6).ip());
    let pseudo = forwarding::checksum::pseudo_header(from, to, 58, message.len() as u32);
    assert_eq!(pseudo.bytes(message).checksum(), 0, "ICMPv6 checksum");
}

#[test]
fn pings_are_left_to_the_kernel() {
    let mut bed = Bed::with(key(Protocol::Tcp, VIP), &[(REAL, Forwarding::Nat)]);
    let mut frame = Vec::new();
    let echo = etherparse::Icmpv4Type::EchoRequest(IcmpEchoHeader { id: 1, seq: 1 });
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([198, 51, 100, 7], [192, 0, 2, 10], 64)
        .icmpv4(echo)
        .write(&mut frame, b"ping")
        .unwrap();
    assert_eq!(bed.handle(&frame).verdict, Verdict::Pass(PassReason::Icmp));
}

#[test]
fn a_table_full_of_connections_in_use_refuses_new_ones_by_nat() {
    let mut bed = Bed::with(key(Protocol::Udp, VIP), &[(REAL, Forwarding::Nat)]);
    let client = |n: u32| format!("198.51.{}.{}:4000", n >> 8, n & 0xff);
    for n in 0..10_000 {
        assert!(bed.udp(&client(n), VIP).is_sent());
    }
    assert_eq!(bed.udp(&client(10_000), VIP).verdict, Verdict::Drop(DropReason::TableFull));
    assert!(bed.udp(&client(0), VIP).is_sent());
    // Idle ones go, the oldest first or nearly so.
    bed.wait(std::time::Duration::from_secs(61));
    assert!(bed.udp(&client(0), VIP).is_sent());
    assert!(bed.udp(&client(10_000), VIP).is_sent());
    assert_eq!(bed.table.shared().connections.len(), 10_000);
    let overflow = bed.table.shared().overflow.rows();
    assert_eq!(overflow.map(|(_, _, count)| count), [1, 0]);
}

#[test]
fn a_full_table_gives_up_what_is_closing_and_what_has_hardly_begun() {
    let mut bed = Bed::with(key(Protocol::Tcp, VIP), &[(REAL, Forwarding::Direct)]);
    let client = |n: u32| format!("198.51.{}.{}:4000", n >> 8, n & 0xff);
    for n in 0..10_000 {
        bed.tcp(&client(n), VIP, SYN);
        if n % 20 != 0 {
            bed.tcp(&client(n), VIP, ACK);
        }
    }
    for n in 10_000..10_050 {
        assert!(bed.tcp(&client(n), VIP, SYN).is_sent());
        bed.tcp(&client(n), VIP, ACK);
    }
    let evicted = bed.table.shared().overflow.rows()[0].2;
    assert_eq!(bed.table.shared().connections.len(), 10_000);
    let views = (0..).map_while(|part| bed.table.connection_views(part, bed.now)).flatten();
    let established = views.filter(|view| view.state == "ESTABLISHED").count() as u64;
    assert!(evicted >= 40, "{evicted}");
    assert_eq!(established, 9_500 + evicted, "none of those in use has gone");
}

#[test]
fn without_room_flows_keep_to_one_server_by_hash() {
    let servers = [("10.0.0.1:80", Forwarding::Direct), ("10.0.0.2:80", Forwarding::Direct)];
    let mut bed = Bed::with(key(Protocol::Tcp, VIP), &servers);
    let client = |n: u32| format!("198.51.{}.{}:4000", n >> 8, n & 0xff);
    for n in 0..10_000 {
        bed.tcp(&client(n), VIP, SYN);
        bed.tcp(&client(n), VIP, ACK);
    }
    let hop = |out: Out| match out.verdict {
        Verdict::Transmit { path, .. } => path.next_hop,
        other => panic!("{other:?}"),
    };
    let mut hops = std::collections::HashSet::new();
    for n in 10_000..10_040 {
        let first = hop(bed.tcp(&client(n), VIP, SYN));
        assert_eq!(hop(bed.tcp(&client(n), VIP, ACK)), first);
        hops.insert(first);
    }
    assert_eq!(hops.len(), 2, "both servers have some");
    assert_eq!(bed.table.shared().overflow.rows().map(|row| row.2), [0, 80]);
    // What would open nothing is not ours once there is room, but for a while.
    bed.wait(std::time::Duration::from_secs(901));
    let out = bed.tcp(&client(10_000), VIP, ACK).verdict;
    assert_eq!(out, Verdict::Pass(PassReason::NoConnection));
}
