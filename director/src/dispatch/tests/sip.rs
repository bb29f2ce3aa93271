//! The persistence engine `sip`: what keeps datagrams together is their Call-ID.

use super::bed::*;
use crate::control::api::{ConnectionView, Forwarding, Persistence, Protocol};
use crate::control::operations::Command;
use crate::dispatch::verdict::{DropReason, Verdict};

const VIP: &str = "192.0.2.10:5060";
const ONE: &str = "10.77.0.11:5060";
const TWO: &str = "10.77.0.12:5060";

fn calls() -> Bed {
    let bed = Bed::new();
    let key = key(Protocol::Udp, VIP);
    let mut spec = service(key, "rr");
    spec.persistence =
        Some(Persistence { timeout: 300, prefix: 24, engine: Some("sip".to_owned()) });
    bed.apply(Command::AddService { service: spec });
    for address in [ONE, TWO] {
        bed.apply(Command::AddServer { service: key, server: server(address, Forwarding::Nat) });
    }
    bed
}

fn say(bed: &mut Bed, from: &str, to: &str, call: &str) -> Out {
    let message = format!("OPTIONS sip:bob@example.com SIP/2.0\r\nCall-ID: {call}\r\n\r\n");
    bed.handle(&udp(at(from), at(to), message.as_bytes()))
}

fn templates(bed: &Bed) -> Vec<ConnectionView> {
    let parts = (0..).map_while(|part| bed.table.connection_views(part, bed.now));
    parts.flatten().filter(|view| view.engine.is_some()).collect()
}

#[test]
fn a_call_stays_with_its_server_for_all_clients_that_are_one() {
    let mut bed = calls();
    let first = say(&mut bed, "198.51.100.7:4000", VIP, "a@one").destination();
    let other = say(&mut bed, "198.51.100.7:4001", VIP, "b@one").destination();
    assert_ne!(first, other, "another call of the same client");
    assert_eq!(say(&mut bed, "198.51.100.200:4000", VIP, "a@one").destination(), first);
    let mut listed: Vec<_> = templates(&bed)
        .into_iter()
        .map(|view| (view.client.to_string(), view.engine.unwrap().data))
        .collect();
    listed.sort();
    let expected = [("198.51.100.0:0", "a@one"), ("198.51.100.0:0", "b@one")];
    assert_eq!(listed, expected.map(|(client, call)| (client.to_owned(), call.to_owned())));
}

#[test]
fn a_datagram_without_call_id_opens_nothing() {
    let mut bed = calls();
    let verdict = bed.udp("198.51.100.7:4000", VIP).verdict;
    assert_eq!(verdict, Verdict::Drop(DropReason::NoCallId));
    let long = "x".repeat(256);
    let verdict = say(&mut bed, "198.51.100.7:4000", VIP, &long).verdict;
    assert_eq!(verdict, Verdict::Drop(DropReason::NoCallId));
    assert!(bed.table.shared().connections.is_empty());
}

#[test]
fn a_server_that_calls_a_client_speaks_as_the_virtual_address_and_is_answered() {
    let mut bed = calls();
    let client = "198.51.100.7:4000";
    assert_eq!(say(&mut bed, ONE, client, "out@one").source(), at(VIP));
    assert_eq!(bed.udp(client, VIP).destination(), at(ONE));
    // The call is the server's from now on.
    for port in 4001..4004 {
        let client = format!("198.51.100.7:{port}");
        assert_eq!(say(&mut bed, &client, VIP, "out@one").destination(), at(ONE));
    }
    // What is no SIP is the host's to route.
    assert!(!bed.udp(TWO, "198.51.100.8:4000").is_sent());
}

#[test]
fn templates_of_calls_end_and_count_as_connections() {
    let mut bed = calls();
    let _ = say(&mut bed, "198.51.100.7:4000", VIP, "a@one");
    assert_eq!(bed.table.shared().connections.len(), 2);
    bed.wait(std::time::Duration::from_secs(700));
    assert!(bed.table.shared().connections.is_empty());
}
