//! Services that go by the names in DNS questions: one name, one server.

use std::collections::HashSet;
use std::net::SocketAddr;

use super::bed::*;
use super::forwarding_methods::in_two;
use crate::control::api::{
    Extras, Forwarding, HashKey, Placement, Protocol, RefusalKind, ServiceSpec,
};
use crate::control::operations::Command;
use crate::dispatch::verdict::{PassReason, Verdict};

const VIP: &str = "192.0.2.10:53";
const CLIENT: &str = "198.51.100.7:4000";
const SERVERS: [&str; 3] = ["10.77.0.11:53", "10.77.0.12:53", "10.77.0.13:53"];

fn spec(protocol: Protocol, scheduler: &str) -> ServiceSpec {
    let placement = Placement { key: Some(HashKey::DnsName), ..Placement::default() };
    let extras = Some(Extras { placement, ..Extras::default() });
    ServiceSpec { extras, ..service(key(protocol, VIP), scheduler) }
}

fn bed(spec: ServiceSpec) -> Bed {
    let bed = Bed::new();
    let service = spec.key;
    bed.apply(Command::AddService { service: spec });
    for address in SERVERS {
        let server = server(address, Forwarding::Direct);
        bed.apply(Command::AddServer { service, server });
    }
    bed
}

fn question(name: &str) -> Vec<u8> {
    let mut data = vec![7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        data.push(label.len() as u8);
        data.extend_from_slice(label.as_bytes());
    }
    data.extend_from_slice(&[0, 0, 1, 0, 1]);
    data
}

fn hop(out: &Out) -> SocketAddr {
    match out.verdict {
        Verdict::Transmit { path, .. } => SocketAddr::new(path.next_hop, 53),
        other => panic!("{other:?}"),
    }
}

/// Where a datagram goes.
fn sent(bed: &mut Bed, client: &str, data: &[u8]) -> SocketAddr {
    hop(&bed.handle(&udp(at(client), at(VIP), data)))
}

#[test]
fn a_name_has_one_server_whoever_asks_and_however_it_is_spelt() {
    for scheduler in Placement::SCHEDULERS {
        let mut bed = bed(spec(Protocol::Udp, scheduler));
        let mut used = HashSet::new();
        for number in 0..60 {
            let name = format!("host{number}.example");
            let first = sent(&mut bed, CLIENT, &question(&name));
            used.insert(first);
            let other = sent(&mut bed, "203.0.113.9:53", &question(&name.to_uppercase()));
            assert_eq!(other, first, "{scheduler}: {name}");
        }
        // All names came from one port of one client: each was scheduled by itself.
        assert_eq!(used.len(), SERVERS.len(), "{scheduler}");
        assert_eq!(bed.table.shared().connections.len(), 0, "{scheduler}");
    }
}

#[test]
fn the_server_is_the_one_that_the_specification_says() {
    // docs/dht.md: owners of host0.example and on, of servers in the order of their addresses.
    let mut bed = Bed::new();
    let spec = spec(Protocol::Udp, "dht");
    let service = spec.key;
    bed.apply(Command::AddService { service: spec });
    for address in ["192.0.2.1:53", "192.0.2.2:53", "192.0.2.3:53"] {
        let server = server(address, Forwarding::Direct);
        bed.apply(Command::AddServer { service, server });
    }
    let owner = |number: usize| {
        let sent = sent(&mut bed, CLIENT, &question(&format!("host{number}.example")));
        match sent.ip() {
            std::net::IpAddr::V4(ip) => char::from(b'0' + ip.octets()[3] - 1),
            other => panic!("{other}"),
        }
    };
    let owners: String = (0..24).map(owner).collect();
    assert_eq!(owners, "102101210222021020121112");
}

#[test]
fn what_is_no_plain_question_goes_by_its_source() {
    let mut bed = bed(spec(Protocol::Udp, "dht"));
    let loops = [&question("a")[..12], &[0xc0, 0x0c, 0, 1, 0, 1]].concat();
    let mut two_questions = question("host1.example");
    two_questions[5] = 2;
    let cut = &question("host2.example")[..20];
    for client in ["198.51.100.7:4000", "198.51.100.8:4000", "198.51.100.9:4000", "203.0.113.1:9"] {
        let plain = sent(&mut bed, client, b"no question at all");
        for data in [&loops[..], &two_questions[..], cut, &[]] {
            assert_eq!(sent(&mut bed, client, data), plain, "{client}: {data:?}");
        }
        // The port is not part of it.
        let other_port = SocketAddr::new(at(client).ip(), 5).to_string();
        assert_eq!(sent(&mut bed, &other_port, &loops), plain);
    }
    let went = |bed: &mut Bed, number: u8| sent(bed, &format!("203.0.113.{number}:9"), &[]);
    let used: HashSet<_> = (0..50).map(|number| went(&mut bed, number)).collect();
    assert_eq!(used.len(), SERVERS.len());
}

#[test]
fn later_fragments_follow_the_first_one_that_has_the_name() {
    let mut bed = bed(spec(Protocol::Udp, "dht"));
    let mut used = HashSet::new();
    for number in 0..20 {
        // Not whole in the first fragment: it goes by its source like any that is no question, and
        // the rest goes the same way.
        let mut data = question(&format!("host{number}.example"));
        data.resize(1200, 0);
        let client = format!("203.0.113.{number}:9");
        let (first, later) = in_two(&udp(at(&client), at(VIP), &data));
        assert_eq!(bed.handle(&later).verdict, Verdict::Pass(PassReason::Fragment));
        let went = hop(&bed.handle(&first));
        assert_eq!(hop(&bed.handle(&later)), went);
        used.insert(went);
    }
    assert_eq!(used.len(), SERVERS.len());
}

#[test]
fn one_packet_scheduling_is_part_of_it_and_tcp_has_no_names() {
    let asked = spec(Protocol::Udp, "dht");
    let bed = bed(asked.clone());
    let runs = |bed: &Bed| bed.table.service_views().remove(0).spec;
    assert!(runs(&bed).one_packet);
    bed.apply(Command::EditService { service: asked.clone() });
    assert!(runs(&bed).one_packet, "and with every edit");
    let plain = ServiceSpec { extras: Some(Extras::default()), ..asked };
    bed.apply(Command::EditService { service: plain });
    assert!(!runs(&bed).one_packet);
    let flagged = ServiceSpec { flags: 0x20, ..service(key(Protocol::Udp, VIP), "dht") };
    bed.apply(Command::EditService { service: flagged });
    assert!(runs(&bed).one_packet, "as ipvsadm says it");
    for refused in [
        spec(Protocol::Tcp, "dht"),
        ServiceSpec { flags: 0x20, ..service(key(Protocol::Tcp, VIP), "dht") },
    ] {
        let refusal = bed.table.change(Command::AddService { service: refused }, bed.now);
        let refusal = refusal.unwrap_err();
        assert_eq!(refusal.error, RefusalKind::Invalid);
        assert!(refusal.message.contains("dns-name"), "{}", refusal.message);
    }
}

#[test]
fn another_key_is_in_effect_as_soon_as_it_is_asked_for() {
    let asked = spec(Protocol::Udp, "dht");
    let mut bed = bed(asked.clone());
    let by_name = |bed: &mut Bed| {
        let names = (0..20).map(|number| question(&format!("host{number}.example")));
        names.map(|data| sent(bed, CLIENT, &data)).collect::<HashSet<_>>().len() > 1
    };
    assert!(by_name(&mut bed));
    let placement = Placement { key: Some(HashKey::Source), ..Placement::default() };
    let extras = Some(Extras { placement, ..Extras::default() });
    bed.apply(Command::EditService {
        service: ServiceSpec { one_packet: true, extras, ..asked.clone() },
    });
    assert!(!by_name(&mut bed));
    // An edit that does not speak of it leaves it.
    let unspoken = ServiceSpec { one_packet: true, extras: None, ..asked.clone() };
    bed.apply(Command::EditService { service: unspoken });
    assert!(!by_name(&mut bed));
    bed.apply(Command::EditService { service: asked });
    assert!(by_name(&mut bed));
}
