//! What a service does beyond the kernel's, where it says so: timeouts of its own, templates that
//! leave a quiesced server, and what a SYN may announce.

use std::time::Duration;

use etherparse::{PacketBuilder, SlicedPacket, TcpOptionElement, TransportSlice};

use super::bed::*;
use crate::control::api::{
    Extras, Forwarding, MssClamp, OwnTimeouts, Persistence, Protocol, ServiceKey, ServiceSpec,
};
use crate::control::operations::Command;

const CLIENT: &str = "198.51.100.7:4000";
const VIP: &str = "192.0.2.10:80";
const ONE: &str = "10.77.0.11:80";
const TWO: &str = "10.77.0.12:80";

fn ask(bed: &Bed, key: ServiceKey, extras: Extras) {
    let service = ServiceSpec { extras: Some(extras), ..service(key, "rr") };
    bed.apply(Command::EditService { service });
}

fn expires(bed: &Bed) -> Vec<u32> {
    (0..)
        .map_while(|part| bed.table.connection_views(part, bed.now))
        .flatten()
        .map(|view| view.expires)
        .collect()
}

#[test]
fn a_service_has_timeouts_of_its_own_and_its_neighbour_has_not() {
    let (tcp, udp) = (key(Protocol::Tcp, VIP), key(Protocol::Udp, VIP));
    let mut bed = Bed::with(tcp, &[(ONE, Forwarding::Direct)]);
    bed.apply(Command::AddService { service: service(udp, "rr") });
    bed.apply(Command::AddServer { service: udp, server: server(ONE, Forwarding::Direct) });
    let timeouts = OwnTimeouts { tcp: 7200, tcp_fin: 5, udp: 0 };
    ask(&bed, tcp, Extras { timeouts, ..Extras::default() });
    bed.tcp(CLIENT, VIP, SYN);
    assert_eq!(expires(&bed), [60], "the others are the director's");
    bed.tcp(CLIENT, VIP, ACK);
    assert_eq!(expires(&bed), [7200]);
    bed.wait(Duration::from_secs(7199));
    assert_eq!(expires(&bed), [1]);
    bed.tcp(CLIENT, VIP, ACK);
    bed.tcp(CLIENT, VIP, FIN_ACK);
    assert_eq!(expires(&bed), [5]);
    bed.wait(Duration::from_secs(6));
    assert!(expires(&bed).is_empty());
    bed.udp(CLIENT, VIP);
    assert_eq!(expires(&bed), [300]);
}

#[test]
fn a_timeout_that_is_edited_holds_from_the_next_packet_on() {
    let key = key(Protocol::Udp, VIP);
    let mut bed = Bed::with(key, &[(ONE, Forwarding::Direct)]);
    bed.udp(CLIENT, VIP);
    let timeouts = OwnTimeouts { udp: 10, ..OwnTimeouts::default() };
    ask(&bed, key, Extras { timeouts, ..Extras::default() });
    assert_eq!(expires(&bed), [300]);
    bed.udp(CLIENT, VIP);
    assert_eq!(expires(&bed), [10]);
    bed.wait(Duration::from_secs(11));
    assert!(expires(&bed).is_empty());
}

#[test]
fn an_edit_by_the_kernels_tool_leaves_what_it_does_not_know() {
    let key = key(Protocol::Udp, VIP);
    let bed = Bed::with(key, &[]);
    let extras = Extras { leave_quiesced: true, ..Extras::default() };
    ask(&bed, key, extras);
    bed.apply(Command::EditService { service: service(key, "wlc") });
    let spec = &bed.table.service_views()[0].spec;
    assert_eq!((spec.scheduler.as_str(), spec.extras), ("wlc", Some(extras)));
}

#[test]
fn a_client_leaves_a_quiesced_server_with_its_next_connection_and_stays_away() {
    let key = key(Protocol::Tcp, VIP);
    let mut bed = Bed::with(key, &[(ONE, Forwarding::Nat), (TWO, Forwarding::Nat)]);
    let persistence = Some(Persistence { timeout: 300, prefix: 32, engine: None });
    let extras = Some(Extras { leave_quiesced: true, ..Extras::default() });
    let spec = ServiceSpec { persistence, extras, ..service(key, "rr") };
    bed.apply(Command::EditService { service: spec });
    let first = bed.establish(CLIENT, VIP);
    let weigh = |bed: &Bed, weight| {
        let server = crate::control::api::ServerSpec {
            weight,
            ..server(&first.to_string(), Forwarding::Nat)
        };
        bed.apply(Command::EditServer { service: key, server });
    };
    weigh(&bed, 0);
    assert_eq!(bed.tcp(CLIENT, VIP, ACK).destination(), first, "what it has it keeps");
    let second = bed.tcp("198.51.100.7:4001", VIP, SYN).destination();
    assert_ne!(second, first);
    weigh(&bed, 1);
    assert_eq!(bed.tcp("198.51.100.7:4002", VIP, SYN).destination(), second, "a new tie");
}

/// A SYN that announces `mss`.
fn syn(source: &str, destination: &str, mss: u16, ack: bool) -> Vec<u8> {
    let (source, destination) = (at(source), at(destination));
    let link = PacketBuilder::ethernet2([2; 6], [4; 6]);
    let ip = match (source.ip(), destination.ip()) {
        (std::net::IpAddr::V4(from), std::net::IpAddr::V4(to)) => {
            link.ipv4(from.octets(), to.octets(), 64)
        }
        (std::net::IpAddr::V6(from), std::net::IpAddr::V6(to)) => {
            link.ipv6(from.octets(), to.octets(), 64)
        }
        _ => panic!("mixed families"),
    };
    let mut tcp = ip.tcp(source.port(), destination.port(), 1000, 64_000).syn();
    if ack {
        tcp = tcp.ack(77);
    }
    let options = [
        TcpOptionElement::MaximumSegmentSize(mss),
        TcpOptionElement::SelectiveAcknowledgementPermitted,
    ];
    let mut frame = Vec::new();
    tcp.options(&options).unwrap().write(&mut frame, b"").unwrap();
    frame
}

/// What a packet announces; its checksums are verified.
fn announced(ip: &[u8]) -> u16 {
    let sliced = SlicedPacket::from_ip(ip).unwrap();
    ends_of(&sliced);
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("not TCP") };
    let mss = tcp.options_iterator().find_map(|option| match option {
        Ok(TcpOptionElement::MaximumSegmentSize(mss)) => Some(mss),
        _ => None,
    });
    mss.unwrap()
}

#[test]
fn a_syn_announces_no_more_than_the_tunnel_carries() {
    // MTU 1500, less the outer header, the inner one and TCP's.
    for (client, vip, real, expected) in [
        (CLIENT, VIP, ONE, 1440),
        (CLIENT, VIP, "[fd77::11]:80", 1420),
        ("[2001:db8:9::7]:4000", "[2001:db8:1::10]:80", ONE, 1420),
        ("[2001:db8:9::7]:4000", "[2001:db8:1::10]:80", "[fd77::11]:80", 1400),
    ] {
        let key = key(Protocol::Tcp, vip);
        let outer = if at(real).is_ipv4() { 20 } else { 40 };
        for (clamp, sent, expected) in [
            (MssClamp::ByRoute(true), 1460, expected),
            (MssClamp::ByRoute(true), 1000, 1000),
            (MssClamp::Bytes(1300), 1460, 1300),
            (MssClamp::ByRoute(false), 1460, 1460),
        ] {
            let mut bed = Bed::with(key, &[(real, Forwarding::Tunnel)]);
            ask(&bed, key, Extras { mss_clamp: clamp, ..Extras::default() });
            let out = bed.handle(&syn(client, vip, sent, false));
            assert!(out.is_sent());
            let mss = announced(&out.frame[14 + outer..]);
            assert_eq!(mss, expected, "{clamp:?} of {sent}, {vip} to {real}");
        }
    }
}

#[test]
fn with_nat_both_sides_hear_the_number() {
    let key = key(Protocol::Tcp, VIP);
    let mut bed = Bed::with(key, &[(ONE, Forwarding::Nat)]);
    ask(&bed, key, Extras { mss_clamp: MssClamp::Bytes(1200), ..Extras::default() });
    let request = bed.handle(&syn(CLIENT, VIP, 1460, false));
    assert_eq!((announced(&request.frame[14..]), request.destination()), (1200, at(ONE)));
    let answer = bed.handle(&syn(ONE, CLIENT, 1460, true));
    assert_eq!((announced(&answer.frame[14..]), answer.source()), (1200, at(VIP)));
}
