//! Each method over each family, as a server and a client would see it.

use etherparse::SlicedPacket;

use super::bed::*;
use crate::control::api::{Forwarding, Protocol};
use crate::dispatch::verdict::{Method, PassReason, Verdict};

#[test]
fn nat_rewrites_requests_and_answers_so_that_neither_side_notices() {
    for (client, vip, real) in [
        ("198.51.100.7:4000", "192.0.2.10:80", "10.77.0.11:8080"),
        ("[2001:db8:9::7]:4000", "[2001:db8:1::10]:80", "[fd77::11]:8080"),
    ] {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let mut bed = Bed::with(key(protocol, vip), &[(real, Forwarding::Nat)]);
            let (request, answer) = match protocol {
                Protocol::Tcp => (bed.tcp(client, vip, SYN), bed.tcp(real, client, SYN_ACK)),
                _ => (bed.udp(client, vip), bed.udp(real, client)),
            };
            assert_eq!((request.source(), request.destination()), (at(client), at(real)));
            assert_eq!((answer.source(), answer.destination()), (at(vip), at(client)));
        }
    }
}

#[test]
fn direct_routing_leaves_the_packet_alone_but_for_its_ttl() {
    let (client, vip) = ("198.51.100.7:4000", "192.0.2.10:80");
    let mut bed = Bed::with(key(Protocol::Tcp, vip), &[("10.77.0.11:80", Forwarding::Direct)]);
    let frame = tcp(at(client), at(vip), SYN, b"");
    let out = bed.handle(&frame);
    let Verdict::Transmit { method: Method::Direct, path, .. } = out.verdict else {
        panic!("{:?}", out.verdict)
    };
    assert_eq!(path.next_hop, at("10.77.0.11:80").ip());
    assert_eq!((out.source(), out.destination()), (at(client), at(vip)));
    let changed: Vec<_> = (0..frame.len()).filter(|&i| frame[i] != out.frame[i]).collect();
    // TTL and the IPv4 header checksum.
    assert!(changed.iter().all(|&i| i == 22 || i == 24 || i == 25), "{changed:?}");
    assert_eq!(out.frame[22], 63);
}

#[test]
fn tunnels_carry_both_families_to_servers_of_both_families() {
    for (client, vip) in
        [("198.51.100.7:4000", "192.0.2.10:80"), ("[2001:db8:9::7]:4000", "[2001:db8:1::10]:80")]
    {
        for real in ["10.77.0.11:80", "[fd77::11]:80"] {
            let mut bed = Bed::with(key(Protocol::Tcp, vip), &[(real, Forwarding::Tunnel)]);
            let out = bed.tcp(client, vip, SYN);
            assert!(out.is_sent(), "{:?}", out.verdict);
            let ip = &out.frame[14..];
            let outer_len = if at(real).is_ipv4() { 20 } else { 40 };
            let protocol = if at(real).is_ipv4() { ip[9] } else { ip[6] };
            assert_eq!(protocol, if at(vip).is_ipv4() { 4 } else { 41 });
            let inner = SlicedPacket::from_ip(&ip[outer_len..]).unwrap();
            assert_eq!(ends_of(&inner), (at(client), at(vip)));
        }
    }
}

#[test]
fn gue_and_gre_tunnels_carry_a_packet_that_the_servers_end_takes_out_again() {
    use crate::control::api::{Tunnel, TunnelChecksum};
    use crate::control::operations::Command;
    use forwarding::tunnel;

    let types = [
        Tunnel::Gue { port: 6080, checksum: TunnelChecksum::Nocsum },
        Tunnel::Gue { port: 6080, checksum: TunnelChecksum::Csum },
        Tunnel::Gre { checksum: TunnelChecksum::Nocsum },
        Tunnel::Gre { checksum: TunnelChecksum::Csum },
    ];
    let (client, vip) = ("198.51.100.7:4000", "192.0.2.10:80");
    for real in ["10.77.0.11:80", "[fd77::11]:80"] {
        for kind in types {
            let service = key(Protocol::Tcp, vip);
            let mut bed = Bed::with(service, &[]);
            let mut spec = server(real, Forwarding::Tunnel);
            spec.tunnel = kind;
            bed.apply(Command::AddServer { service, server: spec });
            let mut ports = Vec::new();
            for flags in [SYN, ACK] {
                let mut out = bed.tcp(client, vip, flags);
                assert!(out.is_sent(), "{kind:?}: {:?}", out.verdict);
                let outer = if at(real).is_ipv4() { 20 } else { 40 };
                let inner = match kind {
                    Tunnel::Gue { port, .. } => {
                        let udp = &out.frame[14 + outer..];
                        assert_eq!(udp[2..4], port.to_be_bytes(), "destination port");
                        ports.push([udp[0], udp[1]]);
                        let payload = &mut out.frame[14 + outer + 8..];
                        let range = tunnel::decapsulate_gue(payload).unwrap();
                        payload[range].to_vec()
                    }
                    _ => {
                        let ip = &out.frame[14..];
                        ip[tunnel::decapsulate(ip).unwrap()].to_vec()
                    }
                };
                let inner = SlicedPacket::from_ip(&inner).unwrap();
                assert_eq!(ends_of(&inner), (at(client), at(vip)));
            }
            assert!(ports.windows(2).all(|pair| pair[0] == pair[1]), "one flow, one port");
        }
    }
}

#[test]
fn a_checksum_left_to_hardware_stays_so_through_every_method() {
    let (client, vip) = ("198.51.100.7:4000", "192.0.2.10:80");
    for forwarding in [Forwarding::Nat, Forwarding::Direct, Forwarding::Tunnel] {
        let mut bed = Bed::with(key(Protocol::Tcp, vip), &[("10.77.0.11:80", forwarding)]);
        let mut frame = tcp(at(client), at(vip), SYN, b"0123456789");
        // Only the pseudo-header sum, as a veth peer sends it.
        let mut sum: u32 = 6 + (frame.len() - 34) as u32;
        for pair in frame[26..34].chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], pair[1]]));
        }
        let folded = ((sum & 0xffff) + (sum >> 16)) as u16;
        frame[50..52].copy_from_slice(&folded.to_be_bytes());
        let mut out = bed.handle(&frame);
        let Verdict::Transmit { partial: Some(partial), headers, .. } = out.verdict else {
            panic!("{forwarding:?}: {:?}", out.verdict)
        };
        forwarding::checksum::complete(&mut out.frame, partial, headers.end);
        if forwarding == Forwarding::Tunnel {
            ends_of(&SlicedPacket::from_ip(&out.frame[34..]).unwrap());
        } else {
            ends(&out.frame);
        }
    }
}

#[test]
fn later_fragments_follow_the_first_to_the_same_server() {
    let (client, vip) = ("198.51.100.7:4000", "192.0.2.10:53");
    let servers = [("10.77.0.11:53", Forwarding::Nat), ("10.77.0.12:53", Forwarding::Nat)];
    let mut bed = Bed::with(key(Protocol::Udp, vip), &servers);
    for _ in 0..2 {
        let whole = udp(at(client), at(vip), &[7; 1200]);
        let (first, later) = in_two(&whole);
        let first = bed.handle(&first);
        let later = bed.handle(&later);
        assert!(first.is_sent() && later.is_sent(), "{:?} {:?}", first.verdict, later.verdict);
        assert_eq!(first.frame[30..34], later.frame[30..34], "destination address");
    }
}

/// Cuts an IPv4 datagram after 600 bytes of payload.
pub(super) fn in_two(whole: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let make = |payload: &[u8], offset_and_flags: u16| {
        let mut frame = whole[..34].to_vec();
        frame.extend_from_slice(payload);
        frame[16..18].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
        frame[18..20].copy_from_slice(&77u16.to_be_bytes());
        frame[20..22].copy_from_slice(&offset_and_flags.to_be_bytes());
        frame[24..26].fill(0);
        let sum: u32 = frame[14..34]
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
            .sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        frame[24..26].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        frame
    };
    (make(&whole[34..634], 0x2000), make(&whole[634..], 600 / 8))
}

#[test]
fn what_is_not_for_a_service_is_left_to_the_kernel() {
    let vip = "192.0.2.10:80";
    let mut bed = Bed::with(key(Protocol::Tcp, vip), &[("10.77.0.11:80", Forwarding::Nat)]);
    let other_port = bed.tcp("198.51.100.7:4000", "192.0.2.10:22", SYN).verdict;
    assert_eq!(other_port, Verdict::Pass(PassReason::NoService));
    let no_syn = bed.tcp("198.51.100.7:4000", vip, ACK).verdict;
    assert_eq!(no_syn, Verdict::Pass(PassReason::NoConnection));
    let arp = bed.handle(&[0xff; 60]).verdict;
    assert_eq!(arp, Verdict::Pass(PassReason::NotIp));
}
