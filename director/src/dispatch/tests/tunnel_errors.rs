//! What a client hears of trouble inside the tunnel that its packets go through.

use etherparse::{Icmpv4Slice, Icmpv6Slice, NetSlice, PacketBuilder, SlicedPacket, TransportSlice};

use super::bed::*;
use crate::control::api::{Forwarding, Protocol};
use crate::dispatch::verdict::{DropReason, PassReason, Verdict};

const CLIENTS: [&str; 2] = ["198.51.100.7:4000", "[2001:db8:2::7]:4000"];
const VIPS: [&str; 2] = ["192.0.2.10:80", "[2001:db8:1::10]:80"];
const SERVERS: [&str; 2] = ["10.77.0.11:80", "[fd77::11]:80"];

/// A director that has just put a client's packet into a tunnel, and that tunnel packet.
fn tunnelled(client: &str, vip: &str, server: &str) -> (Bed, Vec<u8>) {
    let mut bed = Bed::with(key(Protocol::Tcp, vip), &[(server, Forwarding::Tunnel)]);
    // etherparse sets "don't fragment".
    let out = bed.tcp(client, vip, SYN);
    assert!(out.is_sent());
    (bed, out.frame)
}

/// A router's ICMP error to the director about a packet of its own.
fn error(about: &[u8], (kind, code): (u8, u8), rest: u32) -> Vec<u8> {
    let mut frame = Vec::new();
    let link = PacketBuilder::ethernet2([2; 6], [4; 6]);
    let (rest, quote) = (rest.to_be_bytes(), &about[14..]);
    if about[14] >> 4 == 4 {
        let ip = link.ipv4([10, 77, 0, 254], [10, 77, 0, 1], 60);
        ip.icmpv4_raw(kind, code, rest).write(&mut frame, quote).unwrap();
    } else {
        let [router, own] = ["fd77::fe", "fd77::1"]
            .map(|address| address.parse::<std::net::Ipv6Addr>().unwrap().octets());
        link.ipv6(router, own, 60).icmpv6_raw(kind, code, rest).write(&mut frame, quote).unwrap();
    }
    frame
}

/// Source, destination, type, code, number and quote of what the client is told.
type Told = (String, String, u8, u8, u32, Vec<u8>);

fn told(bed: &Bed) -> Told {
    let frame = bed.dispatcher.reply().unwrap().0;
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let (source, destination) = match sliced.net.unwrap() {
        NetSlice::Ipv4(ip) => {
            (ip.header().source_addr().to_string(), ip.header().destination_addr().to_string())
        }
        NetSlice::Ipv6(ip) => {
            (ip.header().source_addr().to_string(), ip.header().destination_addr().to_string())
        }
        NetSlice::Arp(_) => panic!("ARP"),
    };
    let number = |bytes: [u8; 4]| u32::from_be_bytes(bytes);
    let v4 = |icmp: Icmpv4Slice<'_>| {
        (icmp.type_u8(), icmp.code_u8(), number(icmp.bytes5to8()), icmp.payload().to_vec())
    };
    let v6 = |icmp: Icmpv6Slice<'_>| {
        (icmp.type_u8(), icmp.code_u8(), number(icmp.bytes5to8()), icmp.payload().to_vec())
    };
    let (kind, code, rest, quote) = match sliced.transport.unwrap() {
        TransportSlice::Icmpv4(icmp) => v4(icmp),
        TransportSlice::Icmpv6(icmp) => v6(icmp),
        other => panic!("{other:?}"),
    };
    (source, destination, kind, code, rest, quote)
}

#[test]
fn a_router_in_the_tunnel_that_wants_smaller_packets_is_heard_by_the_client() {
    for (client, vip) in CLIENTS.iter().zip(VIPS) {
        for server in SERVERS {
            let (mut bed, outer) = tunnelled(client, vip, server);
            let (kind, overhead) = if at(server).is_ipv4() { ((3, 4), 20) } else { ((2, 0), 40) };
            let out = bed.handle(&error(&outer, kind, 1400));
            assert_eq!(out.verdict, Verdict::Answer { reason: DropReason::TunnelError });
            let kind = if at(client).is_ipv4() { (3, 4) } else { (2, 0) };
            let inner = outer[14 + overhead as usize..].to_vec();
            let from = at(vip).ip().to_string();
            let to = at(client).ip().to_string();
            assert_eq!(told(&bed), (from, to, kind.0, kind.1, 1400 - overhead, inner));
        }
    }
}

#[test]
fn a_server_whose_tunnel_end_is_gone_is_unreachable_for_the_client() {
    // Protocol unreachable, host unreachable, time exceeded: as they are between equal families.
    for kind in [(3, 2), (3, 1), (11, 0)] {
        let (mut bed, outer) = tunnelled(CLIENTS[0], VIPS[0], SERVERS[0]);
        let out = bed.handle(&error(&outer, kind, 0));
        assert_eq!(out.verdict, Verdict::Answer { reason: DropReason::TunnelError });
        let (_, _, heard, code, _, _) = told(&bed);
        assert_eq!((heard, code), kind);
    }
    let (mut bed, outer) = tunnelled(CLIENTS[1], VIPS[1], SERVERS[0]);
    bed.handle(&error(&outer, (3, 2), 0));
    let (_, _, heard, code, _, _) = told(&bed);
    assert_eq!((heard, code), (1, 3), "address unreachable");
}

#[test]
fn who_lets_routers_fragment_needs_not_hear_of_it() {
    let mut bed = Bed::with(key(Protocol::Tcp, VIPS[0]), &[(SERVERS[0], Forwarding::Tunnel)]);
    let mut frame = tcp(at(CLIENTS[0]), at(VIPS[0]), SYN, b"");
    // Without "don't fragment" the header checksum grows by 0x4000.
    frame[20] = 0;
    let sum = u32::from(u16::from_be_bytes([frame[24], frame[25]])) + 0x4000;
    frame[24..26].copy_from_slice(&(((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    let outer = bed.handle(&frame).frame;
    let out = bed.handle(&error(&outer, (3, 4), 1400));
    assert_eq!(out.verdict, Verdict::Drop(DropReason::TunnelError));
}

#[test]
fn an_error_about_somebody_elses_tunnel_is_the_kernels() {
    let (mut bed, mut outer) = tunnelled(CLIENTS[0], VIPS[0], SERVERS[0]);
    let ours = error(&outer, (3, 4), 1400);
    // Another server than the connection's: forged, or long forgotten.
    outer[33] = 12;
    let out = bed.handle(&error(&outer, (3, 4), 1400));
    assert_eq!(out.verdict, Verdict::Pass(PassReason::Icmp));
    // An MTU that cannot be is nothing to tell a client.
    outer[33] = 11;
    let out = bed.handle(&error(&outer, (3, 4), 60));
    assert_eq!(out.verdict, Verdict::Drop(DropReason::TunnelError));
    // As little as RFC 792 asks for: 8 bytes of what was in the tunnel.
    let short = error(&outer[..14 + 28], (3, 4), 1400);
    assert_eq!(bed.handle(&short).verdict, Verdict::Pass(PassReason::Icmp));
    assert_eq!(bed.handle(&ours).verdict, Verdict::Answer { reason: DropReason::TunnelError });
}
