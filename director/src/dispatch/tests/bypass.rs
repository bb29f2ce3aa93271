//! `cache_bypass`: what goes on to its own destination, and for how long.

use std::collections::BTreeMap;

use super::bed::*;
use crate::control::api::{ConnectionView, Forwarding, ServiceKey};
use crate::control::operations::Command;
use crate::dispatch::verdict::{DropReason, Method, Verdict};

const MARK: ServiceKey = ServiceKey::Fwmark { fwmark: 7, ipv6: false };
const CLIENT: &str = "198.51.100.7:4000";
const OTHER: &str = "198.51.100.7:4001";
const ORIGIN: &str = "203.0.113.9:80";
const CACHE: &str = "10.77.0.11:0";

/// A service by mark without servers, and the setting.
fn bed(marks: &[&str]) -> Bed {
    let bed = Bed::new();
    let marks = marks.iter().map(|json| serde_json::from_str(json).unwrap()).collect();
    bed.apply(Command::SetMarks { marks });
    bed.apply(Command::AddService { service: service(MARK, "rr") });
    set(&bed, 1);
    bed
}

fn http() -> Bed {
    bed(&[r#"{"mark":7,"ports":["80"]}"#])
}

fn set(bed: &Bed, value: u32) {
    let settings = BTreeMap::from([("cache_bypass".to_owned(), value)]);
    bed.apply(Command::SetSettings { settings });
}

fn add_cache(bed: &Bed) {
    let server = server(CACHE, Forwarding::Direct);
    bed.apply(Command::AddServer { service: MARK, server });
}

fn bypasses(out: &Out) -> bool {
    match out.verdict {
        Verdict::Transmit { method: Method::Bypass, path, .. } => {
            assert_eq!(path.next_hop, out.destination().ip());
            true
        }
        _ => false,
    }
}

fn is_refused(out: &Out) -> bool {
    out.verdict == Verdict::Answer { reason: DropReason::NoServer }
}

fn connections(bed: &Bed) -> Vec<ConnectionView> {
    let parts = (0..).map_while(|part| bed.table.connection_views(part, bed.now));
    parts.flatten().collect()
}

#[test]
fn without_a_cache_a_packet_goes_on_unchanged_to_where_its_client_sent_it() {
    let mut bed = http();
    let out = bed.tcp(CLIENT, ORIGIN, SYN);
    assert!(bypasses(&out));
    assert_eq!((out.source(), out.destination()), (at(CLIENT), at(ORIGIN)));
    let [view] = &connections(&bed)[..] else { panic!("one connection") };
    assert_eq!((view.server, view.state.as_str()), (at("0.0.0.0:0"), "SYN_RECV"));
    assert!(bypasses(&bed.tcp(CLIENT, ORIGIN, ACK)));
    assert_eq!(connections(&bed)[0].state, "ESTABLISHED");
    // What comes back is routed like anything else.
    assert!(!bed.tcp(ORIGIN, CLIENT, SYN_ACK).is_sent());
}

#[test]
fn without_the_setting_or_the_mark_a_packet_is_refused() {
    let mut bed = http();
    set(&bed, 0);
    assert!(is_refused(&bed.tcp(CLIENT, ORIGIN, SYN)));
    set(&bed, 1);
    let address = key(crate::control::api::Protocol::Tcp, "192.0.2.10:81");
    bed.apply(Command::AddService { service: service(address, "rr") });
    assert!(is_refused(&bed.tcp(CLIENT, "192.0.2.10:81", SYN)));
}

#[test]
fn what_leads_to_no_other_host_is_refused() {
    let mut bed = http();
    bed.routes.own = Some("10.77.0.1".parse().unwrap());
    for to in ["10.77.0.1:80", "224.0.0.5:80", "255.255.255.255:80", "0.1.2.3:80"] {
        assert!(!bed.tcp(CLIENT, to, SYN).is_sent(), "{to}");
    }
    assert!(connections(&bed).is_empty());
    assert!(is_refused(&bed.tcp(OTHER, "10.77.0.1:80", SYN)));
}

#[test]
fn a_connection_bypasses_to_its_end_and_the_next_one_goes_to_the_cache() {
    let mut bed = http();
    let _ = bed.tcp(CLIENT, ORIGIN, SYN);
    add_cache(&bed);
    bed.apply(Command::SetSettings { settings: [("expire_nodest_conn".to_owned(), 1)].into() });
    set(&bed, 0);
    let to = |out: Out| match out.verdict {
        Verdict::Transmit { path, .. } => path.next_hop,
        other => panic!("{other:?}"),
    };
    let cache = at(CACHE).ip();
    assert!(bypasses(&bed.tcp(CLIENT, ORIGIN, SYN)));
    assert_eq!(to(bed.tcp(OTHER, ORIGIN, SYN)), cache);
    for flags in [ACK, RST] {
        assert!(bypasses(&bed.tcp(CLIENT, ORIGIN, flags)));
    }
    assert_eq!(to(bed.tcp(CLIENT, ORIGIN, SYN)), cache, "a port used again is scheduled anew");
}

#[test]
fn it_counts_neither_on_the_service_nor_on_a_server() {
    let mut bed = http();
    for flags in [SYN, ACK] {
        assert!(bypasses(&bed.tcp(CLIENT, ORIGIN, flags)));
    }
    add_cache(&bed);
    let stats = bed.table.service_views()[0].stats;
    assert_eq!((stats.connections, stats.in_packets, stats.in_bytes), (0, 0, 0));
    assert_eq!(bed.counts(), [(0, 0)]);
}

#[test]
fn datagrams_scheduled_one_by_one_leave_nothing_behind() {
    let mut bed = http();
    let mut spec = service(MARK, "rr");
    spec.one_packet = true;
    bed.apply(Command::EditService { service: spec });
    assert!(bypasses(&bed.udp(CLIENT, ORIGIN)));
    assert!(connections(&bed).is_empty());
    add_cache(&bed);
    assert!(!bypasses(&bed.udp(CLIENT, ORIGIN)));
}

#[test]
fn errors_on_the_way_are_told_by_the_router_and_not_by_the_origin() {
    let mut bed = http();
    bed.routes.mtu = 40;
    let out = bed.tcp(CLIENT, ORIGIN, SYN);
    // etherparse sets don't-fragment.
    assert_eq!(out.verdict, Verdict::Answer { reason: DropReason::TooBig });
    let (reply, _) = bed.dispatcher.reply().unwrap();
    let sliced = etherparse::SlicedPacket::from_ethernet(reply).unwrap();
    let Some(etherparse::NetSlice::Ipv4(ip)) = sliced.net else { panic!("{sliced:?}") };
    assert_eq!(ip.header().source_addr(), std::net::Ipv4Addr::new(10, 77, 0, 1));
}

#[test]
fn an_error_of_a_client_reaches_its_origin_server() {
    let mut bed = http();
    let _ = bed.tcp(CLIENT, ORIGIN, SYN);
    let answer = tcp(at(ORIGIN), at(CLIENT), SYN_ACK, b"");
    let mut frame = Vec::new();
    let error = etherparse::icmpv4::DestUnreachableHeader::Port;
    etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([198, 51, 100, 7], [203, 0, 113, 9], 64)
        .icmpv4(etherparse::Icmpv4Type::DestinationUnreachable(error))
        .write(&mut frame, &answer[14..])
        .unwrap();
    let out = bed.handle(&frame);
    let Verdict::Transmit { method: Method::Bypass, path, .. } = out.verdict else {
        panic!("{:?}", out.verdict)
    };
    assert_eq!((path.next_hop, out.frame[22]), (at(ORIGIN).ip(), 63));
}

#[test]
fn connections_of_a_removed_service_go_on_and_stay_steered() {
    let mut bed = http();
    let frame = tcp(at(CLIENT), at(ORIGIN), ACK, b"");
    let is_steered = |bed: &Bed| {
        let mut keys = crate::steer::KeySet::new();
        keys.set_marked(bed.table.marked());
        keys.wants(&frame)
    };
    let _ = bed.tcp(CLIENT, ORIGIN, SYN);
    bed.apply(Command::SetMarks { marks: Vec::new() });
    bed.table.sweep(bed.now);
    assert!(is_steered(&bed), "the rule is gone");
    bed.apply(Command::DeleteService { service: MARK });
    bed.table.sweep(bed.now);
    assert!(is_steered(&bed), "so is the service");
    assert!(bypasses(&bed.tcp(CLIENT, ORIGIN, ACK)));
    bed.wait(std::time::Duration::from_secs(1000));
    bed.table.sweep(bed.now);
    assert!(!is_steered(&bed));
}
