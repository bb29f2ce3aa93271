//! One-packet scheduling: datagrams that belong to nothing but themselves.

use super::bed::*;
use super::forwarding_methods::in_two;
use crate::control::api::{Forwarding, Persistence, Protocol, RefusalKind, ServiceSpec};
use crate::control::operations::Command;
use crate::dispatch::verdict::{PassReason, Verdict};

const CLIENT: &str = "198.51.100.7:4000";
const VIP: &str = "192.0.2.10:53";
const ONE: &str = "10.77.0.11:53";
const TWO: &str = "10.77.0.12:53";

fn spec(persistence: Option<Persistence>) -> ServiceSpec {
    ServiceSpec { one_packet: true, persistence, ..service(key(Protocol::Udp, VIP), "rr") }
}

fn bed(method: Forwarding, persistence: Option<Persistence>) -> Bed {
    let bed = Bed::new();
    let service = key(Protocol::Udp, VIP);
    bed.apply(Command::AddService { service: spec(persistence) });
    for address in [ONE, TWO] {
        bed.apply(Command::AddServer { service, server: server(address, method) });
    }
    bed
}

/// Connections and templates in the table.
fn entries(bed: &Bed) -> usize {
    bed.table.shared().connections.len()
}

#[test]
fn every_datagram_of_one_port_is_scheduled_counted_and_forgotten() {
    let mut bed = bed(Forwarding::Nat, None);
    let went: Vec<_> = (0..4).map(|_| bed.udp(CLIENT, VIP).destination()).collect();
    assert_eq!(went, [at(TWO), at(ONE), at(TWO), at(ONE)]);
    assert_eq!((entries(&bed), bed.counts()), (0, vec![(0, 0), (0, 0)]));
    let stats = bed.table.service_views()[0].stats;
    assert_eq!((stats.connections, stats.in_packets, stats.in_bytes), (4, 4, 4 * 35));
}

#[test]
fn a_servers_answer_belongs_to_nothing_and_is_left_to_the_host() {
    let mut bed = bed(Forwarding::Nat, None);
    let server = bed.udp(CLIENT, VIP).destination().to_string();
    assert_eq!(bed.udp(&server, CLIENT).verdict, Verdict::Pass(PassReason::NoService));
}

#[test]
fn later_fragments_follow_their_own_datagram_and_wait_for_its_first_one() {
    for method in [Forwarding::Nat, Forwarding::Direct, Forwarding::Tunnel] {
        let mut bed = bed(method, None);
        let (first, later) = in_two(&udp(at(CLIENT), at(VIP), &[7; 1200]));
        assert_eq!(bed.handle(&later).verdict, Verdict::Pass(PassReason::Fragment));
        for turn in 0..4 {
            let hop = |out: &Out| match out.verdict {
                Verdict::Transmit { path, .. } => path.next_hop,
                other => panic!("{other:?}"),
            };
            let first = hop(&bed.handle(&first));
            assert_eq!(first, if turn % 2 == 0 { at(TWO) } else { at(ONE) }.ip());
            assert_eq!(hop(&bed.handle(&later)), first, "{method:?}");
        }
        let view = &bed.table.service_views()[0];
        assert_eq!((view.stats.connections, view.stats.in_packets), (4, 8));
        assert_eq!(view.servers[0].stats.in_packets, 4);
    }
}

#[test]
fn a_full_table_refuses_no_datagram_and_a_full_server_gets_the_next_one() {
    let mut bed = bed(Forwarding::Direct, None);
    let service = key(Protocol::Udp, VIP);
    let mut limited = server(ONE, Forwarding::Direct);
    limited.upper_threshold = 1;
    bed.apply(Command::EditServer { service, server: limited });
    for _ in 0..10 {
        assert!(bed.udp(CLIENT, VIP).is_sent());
    }
    let view = &bed.table.service_views()[0];
    assert_eq!(view.servers.iter().map(|s| s.stats.connections).collect::<Vec<_>>(), [5, 5]);
}

#[test]
fn a_persistent_client_stays_with_its_server_and_leaves_only_its_template() {
    let persistence = Persistence { timeout: 300, prefix: 32, engine: None };
    let mut bed = bed(Forwarding::Direct, Some(persistence));
    let hop = |out: Out| match out.verdict {
        Verdict::Transmit { path, .. } => path.next_hop,
        other => panic!("{other:?}"),
    };
    let first = hop(bed.udp(CLIENT, VIP));
    for port in 4001..4006 {
        assert_eq!(hop(bed.udp(&format!("198.51.100.7:{port}"), VIP)), first);
    }
    assert_ne!(hop(bed.udp("198.51.100.8:4000", VIP)), first);
    assert_eq!((entries(&bed), bed.counts()), (2, vec![(0, 0), (0, 0)]));
    bed.wait(std::time::Duration::from_secs(301));
    assert_eq!(entries(&bed), 0, "no connection keeps the template");
}

#[test]
fn an_edit_to_one_packet_scheduling_leaves_connections_as_they_are() {
    let service_key = key(Protocol::Udp, VIP);
    let servers = [(ONE, Forwarding::Nat), (TWO, Forwarding::Nat)];
    let mut bed = Bed::with(service_key, &servers);
    let first = bed.udp(CLIENT, VIP).destination();
    bed.apply(Command::EditService { service: spec(None) });
    for _ in 0..3 {
        assert_eq!(bed.udp(CLIENT, VIP).destination(), first);
        bed.udp("198.51.100.8:1", VIP);
    }
    assert_eq!(entries(&bed), 1);
    bed.apply(Command::EditService { service: service(service_key, "rr") });
    bed.udp("198.51.100.8:1", VIP);
    assert_eq!(entries(&bed), 2);
}

#[test]
fn other_protocols_have_no_datagrams_to_schedule() {
    let bed = Bed::new();
    for protocol in [Protocol::Tcp, Protocol::Sctp] {
        let service = ServiceSpec { key: key(protocol, VIP), ..spec(None) };
        let refusal = bed.table.change(Command::AddService { service }, bed.now).unwrap_err();
        assert_eq!(refusal.error, RefusalKind::Invalid);
        assert!(refusal.message.contains("UDP"), "{}", refusal.message);
    }
    assert!(bed.table.service_views().is_empty());
}
