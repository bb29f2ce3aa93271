//! Services that are named by a firewall mark.

use super::bed::*;
use crate::control::api::{Forwarding, Persistence, ServiceKey};
use crate::control::operations::Command;
use crate::fwmark::Rule;
use crate::table::Interest;

const ONE: &str = "10.77.0.11:0";
const TWO: &str = "10.77.0.12:0";

fn mark(fwmark: u32) -> ServiceKey {
    ServiceKey::Fwmark { fwmark, ipv6: false }
}

fn rules(bed: &Bed, rules: &[&str]) {
    let marks: Vec<Rule> = rules.iter().map(|json| serde_json::from_str(json).unwrap()).collect();
    bed.apply(Command::SetMarks { marks });
}

fn marked(persistence: Option<Persistence>, servers: &[&str]) -> Bed {
    let bed = Bed::new();
    rules(
        &bed,
        &[r#"{"mark":7,"protocol":"tcp","destination":"203.0.113.0/24","ports":["80","443"]}"#],
    );
    let mut spec = service(mark(7), "rr");
    spec.persistence = persistence;
    bed.apply(Command::AddService { service: spec });
    for address in servers {
        bed.apply(Command::AddServer {
            service: mark(7),
            server: server(address, Forwarding::Nat),
        });
    }
    bed
}

fn persistent(servers: &[&str]) -> Bed {
    marked(Some(Persistence { timeout: 300, prefix: 32, engine: None }), servers)
}

#[test]
fn a_marked_packet_goes_to_a_server_of_its_mark_and_the_answer_comes_from_the_address_asked() {
    let mut bed = marked(None, &[ONE]);
    let client = "198.51.100.7:4000";
    assert_eq!(bed.tcp(client, "203.0.113.9:443", SYN).destination(), at("10.77.0.11:443"));
    assert_eq!(bed.tcp("10.77.0.11:443", client, SYN_ACK).source(), at("203.0.113.9:443"));
    let other = bed.tcp("198.51.100.7:4001", "203.0.113.77:80", SYN);
    assert_eq!(other.destination(), at("10.77.0.11:80"));
    assert!(!bed.tcp(client, "203.0.113.9:22", SYN).is_sent());
    assert!(!bed.udp(client, "203.0.113.9:443").is_sent());
}

#[test]
fn a_servers_own_port_counts_unless_the_service_is_persistent() {
    let own = "10.77.0.11:8080";
    let mut bed = marked(None, &[own]);
    assert_eq!(bed.tcp("198.51.100.7:4000", "203.0.113.9:80", SYN).destination(), at(own));
    let mut bed = persistent(&[own]);
    let kept = bed.tcp("198.51.100.7:4000", "203.0.113.9:80", SYN).destination();
    assert_eq!(kept, at("10.77.0.11:80"));
}

#[test]
fn a_persistent_mark_keeps_a_client_whatever_port_and_address_it_asks_for() {
    let mut bed = persistent(&[ONE, TWO]);
    let first = bed.tcp("198.51.100.7:4000", "203.0.113.9:80", SYN).destination();
    for (port, to) in [(4001, "203.0.113.9:443"), (4002, "203.0.113.10:80")] {
        let client = format!("198.51.100.7:{port}");
        assert_eq!(bed.tcp(&client, to, SYN).destination().ip(), first.ip());
    }
    let other = bed.tcp("198.51.100.8:4000", "203.0.113.9:80", SYN).destination();
    assert_ne!(other.ip(), first.ip());
    let parts = (0..).map_while(|part| bed.table.connection_views(part, bed.now));
    let template = parts.flatten().find(|view| view.client == at("198.51.100.7:0")).unwrap();
    assert_eq!((template.protocol, template.virtual_address), (None, at("0.0.0.7:0")));
}

#[test]
fn a_mark_without_a_service_is_as_good_as_none() {
    let address = key(crate::control::api::Protocol::Tcp, "203.0.113.9:80");
    let mut bed = Bed::with(address, &[("10.77.0.13:80", Forwarding::Nat)]);
    rules(&bed, &[r#"{"mark":9,"destination":"203.0.113.0/24"}"#]);
    let to = |bed: &mut Bed, client: &str| bed.tcp(client, "203.0.113.9:80", SYN).destination();
    assert_eq!(to(&mut bed, "198.51.100.7:4000"), at("10.77.0.13:80"));
    // With one it comes before the address.
    bed.apply(Command::AddService { service: service(mark(9), "rr") });
    bed.apply(Command::AddServer { service: mark(9), server: server(ONE, Forwarding::Nat) });
    assert_eq!(to(&mut bed, "198.51.100.7:4001"), at("10.77.0.11:80"));
    assert_eq!(to(&mut bed, "198.51.100.7:4000"), at("10.77.0.13:80"), "connections stay");
}

#[test]
fn connections_outlive_the_rule_that_marked_them_and_stay_steered() {
    let mut bed = marked(None, &[ONE]);
    let client = "198.51.100.7:4000";
    let frame = tcp(at(client), at("203.0.113.9:80"), ACK, b"");
    let steered = |bed: &Bed| {
        let mut keys = crate::steer::KeySet::new();
        keys.set_marked(bed.table.marked());
        keys.wants(&frame)
    };
    let answers = Interest::NatServer(6, at(ONE));
    let _ = bed.establish(client, "203.0.113.9:80");
    rules(&bed, &[r#"{"mark":8,"destination":"203.0.113.0/24"}"#]);
    assert!(bed.tcp(client, "203.0.113.9:80", ACK).is_sent());
    assert!(!bed.tcp("198.51.100.7:4001", "203.0.113.9:80", SYN).is_sent());
    bed.table.sweep(bed.now);
    assert!(steered(&bed) && bed.table.interests().contains(&answers));
    bed.wait(std::time::Duration::from_secs(1000));
    bed.table.sweep(bed.now);
    assert!(!steered(&bed) && !bed.table.interests().contains(&answers));
}

#[test]
fn rules_that_make_no_sense_are_refused_and_change_nothing() {
    let bed = marked(None, &[ONE]);
    let before = bed.table.marks();
    let everything: Rule = serde_json::from_str(r#"{"mark":1,"protocol":"tcp"}"#).unwrap();
    let refuse = |marks| bed.table.change(Command::SetMarks { marks }, bed.now).unwrap_err();
    let message = refuse(vec![before[0].clone(), everything]).message;
    assert!(message.starts_with("rule 2 for marks: "), "{message}");
    assert!(refuse(vec![before[0].clone(); 129]).message.contains("128"));
    assert_eq!(bed.table.marks(), before);
}
