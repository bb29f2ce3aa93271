//! Templates: one client, one server.

use std::time::Duration;

use super::bed::*;
use crate::control::api::{Forwarding, Persistence, Protocol, ServiceKey};
use crate::control::operations::Command;

const VIP: &str = "192.0.2.10:80";
const ONE: &str = "10.77.0.11:80";
const TWO: &str = "10.77.0.12:80";

fn persistent(key: ServiceKey, prefix: u8) -> Bed {
    let bed = Bed::new();
    let mut spec = service(key, "rr");
    spec.persistence = Some(Persistence { timeout: 300, prefix, engine: None });
    bed.apply(Command::AddService { service: spec });
    for address in [ONE, TWO] {
        bed.apply(Command::AddServer { service: key, server: server(address, Forwarding::Nat) });
    }
    bed
}

#[test]
fn a_clients_connections_all_go_to_one_server_and_another_clients_to_the_next() {
    let mut bed = persistent(key(Protocol::Tcp, VIP), 32);
    let first = bed.tcp("198.51.100.7:4000", VIP, SYN).destination();
    for port in 4001..4010 {
        let client = format!("198.51.100.7:{port}");
        assert_eq!(bed.tcp(&client, VIP, SYN).destination(), first);
    }
    assert_ne!(bed.tcp("198.51.100.8:4000", VIP, SYN).destination(), first);
}

#[test]
fn a_prefix_makes_a_network_one_client() {
    let mut bed = persistent(key(Protocol::Tcp, VIP), 24);
    let first = bed.tcp("198.51.100.7:4000", VIP, SYN).destination();
    assert_eq!(bed.tcp("198.51.100.200:4000", VIP, SYN).destination(), first);
    assert_ne!(bed.tcp("198.51.101.7:4000", VIP, SYN).destination(), first);
}

#[test]
fn a_template_holds_for_a_quiesced_server_but_not_for_a_removed_one() {
    let service = key(Protocol::Tcp, VIP);
    let mut bed = persistent(service, 32);
    let first = bed.tcp("198.51.100.7:4000", VIP, SYN).destination();
    let mut quiesced = server(&first.to_string(), Forwarding::Nat);
    quiesced.weight = 0;
    bed.apply(Command::EditServer { service, server: quiesced });
    assert_eq!(bed.tcp("198.51.100.7:4001", VIP, SYN).destination(), first);
    bed.apply(Command::DeleteServer { service, server: first });
    assert_ne!(bed.tcp("198.51.100.7:4002", VIP, SYN).destination(), first);
}

#[test]
fn a_template_outlives_its_time_while_its_connections_live() {
    let mut bed = persistent(key(Protocol::Tcp, VIP), 32);
    let first = bed.establish("198.51.100.7:4000", VIP);
    bed.wait(Duration::from_secs(600));
    assert_eq!(bed.tcp("198.51.100.7:4001", VIP, SYN).destination(), first);
    let persistent: Vec<_> =
        bed.table.service_views()[0].servers.iter().map(|server| server.persistent).collect();
    assert_eq!(persistent.iter().sum::<u32>(), 1);
    // The established one ends at 900 s, the half-open one long before; the template follows.
    bed.wait(Duration::from_secs(1000));
    assert!(bed.table.shared().connections.is_empty());
}

#[test]
fn a_template_that_has_waited_for_its_connections_lives_a_minute_at_a_time_from_then_on() {
    let mut bed = persistent(key(Protocol::Tcp, VIP), 32);
    let expires = |bed: &Bed| {
        let parts = (0..).map_while(|part| bed.table.connection_views(part, bed.now));
        parts.flatten().find(|view| view.client.port() == 0).unwrap().expires
    };
    bed.establish("198.51.100.7:4000", VIP);
    assert_eq!(expires(&bed), 300);
    bed.wait(Duration::from_secs(310));
    let _ = bed.tcp("198.51.100.7:4001", VIP, SYN);
    assert_eq!(expires(&bed), 60);
}

#[test]
fn a_template_is_assured_by_an_established_connection_or_an_answer_over_udp() {
    let states = |bed: &Bed| {
        let parts = (0..).map_while(|part| bed.table.connection_views(part, bed.now));
        parts.flatten().find(|view| view.client.port() == 0).unwrap().state
    };
    let mut bed = persistent(key(Protocol::Tcp, VIP), 32);
    let server = bed.tcp("198.51.100.7:4000", VIP, SYN).destination().to_string();
    let _ = bed.tcp(&server, "198.51.100.7:4000", SYN_ACK);
    assert_eq!(states(&bed), "NONE");
    let _ = bed.tcp("198.51.100.7:4000", VIP, ACK);
    assert_eq!(states(&bed), "ASSURED");
    let mut bed = persistent(key(Protocol::Udp, VIP), 32);
    let server = bed.udp("198.51.100.7:4000", VIP).destination().to_string();
    assert_eq!(states(&bed), "NONE");
    let _ = bed.udp(&server, "198.51.100.7:4000");
    assert_eq!(states(&bed), "ASSURED");
}

#[test]
fn a_service_for_every_port_keeps_the_port_the_client_asked_for() {
    let any = key(Protocol::Tcp, "192.0.2.10:0");
    let bed = Bed::new();
    let mut spec = service(any, "rr");
    spec.persistence = Some(Persistence { timeout: 300, prefix: 32, engine: None });
    bed.apply(Command::AddService { service: spec });
    let anywhere = server("10.77.0.11:0", Forwarding::Nat);
    bed.apply(Command::AddServer { service: any, server: anywhere });
    let mut bed = bed;
    assert_eq!(bed.tcp("198.51.100.7:4000", "192.0.2.10:80", SYN).destination(), at(ONE));
    let tls = bed.tcp("198.51.100.7:4001", "192.0.2.10:443", SYN);
    assert_eq!(tls.destination(), at("10.77.0.11:443"));
    let answer = bed.tcp("10.77.0.11:443", "198.51.100.7:4001", SYN_ACK);
    assert_eq!(answer.source(), at("192.0.2.10:443"));
}

#[test]
fn a_survey_counts_every_connection_once_by_its_state_and_templates_apart() {
    let mut bed = persistent(key(Protocol::Tcp, VIP), 32);
    for port in 4000..4100 {
        bed.tcp(&format!("198.51.100.7:{port}"), VIP, SYN);
    }
    for port in 4000..4030 {
        let client = format!("198.51.100.7:{port}");
        bed.tcp(&client, VIP, ACK);
    }
    let counts: Vec<(String, String, u64)> = bed
        .table
        .connection_states()
        .into_iter()
        .map(|count| (count.protocol, count.state, count.connections))
        .collect();
    let row = |protocol: &str, state: &str, count| (protocol.to_owned(), state.to_owned(), count);
    let wanted =
        [row("tcp", "ESTABLISHED", 30), row("tcp", "SYN_RECV", 70), row("template", "", 1)];
    assert_eq!(counts, wanted);
    assert_eq!(bed.table.shared().connections.len(), 101);
    let servers = &bed.table.service_views()[0].servers;
    let sum = |of: fn(&crate::control::api::ServerView) -> u64| servers.iter().map(of).sum::<u64>();
    assert_eq!((sum(|it| it.picks), sum(|it| it.stats.connections)), (1, 100));
}
