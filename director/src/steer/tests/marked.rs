//! Packets that are taken for their firewall mark: by the programs as by their twin.

use std::cell::Cell;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use super::frames::{Header, frame, icmp, ip, ip_with, ports};
use super::property::frames;
use super::*;
use crate::control::api::Protocol;
use crate::fwmark::{MAX_RANGES, MAX_RULES, PortRange, Rule};
use crate::steer::MarkedSet;

/// Lists of rules tried, and packets with each.
const LISTS: u32 = 60;
const PACKETS: usize = 150;

fn rule(json: &str) -> Rule {
    serde_json::from_str(json).unwrap()
}

/// Odd marks have a service over IPv4, those up to 2 one over IPv6.
fn marked(rules: &[Rule]) -> KeySet {
    let mut keys = KeySet::new();
    keys.set_marked(MarkedSet::new(rules.iter(), |mark, ipv6| match ipv6 {
        false => mark % 2 == 1,
        true => mark <= 2,
    }));
    keys
}

/// Rules about the ends that the frames are made of.
fn any_rule() -> impl Strategy<Value = Rule> {
    let v4 = &["192.0.2.10/32", "192.0.2.0/24", "10.0.0.16/28", "198.51.100.0/25", "0.0.0.0/0"][..];
    let v6 = &["2001:db8::10/128", "2001:db8::/64", "2001:db8:1::/48", "2000::/3", "::/0"][..];
    let networks = any::<bool>().prop_flat_map(move |ipv6| {
        let network = move || option::of(select(if ipv6 { v6 } else { v4 }));
        (network(), network())
    });
    let range = || {
        let bounds = select(&[0_u16, 53, 80, 443, 5060, 8080, 40000, u16::MAX][..]);
        (bounds.clone(), bounds).prop_map(|(a, b)| PortRange { first: a.min(b), last: a.max(b) })
    };
    let protocol = option::of(select(&Protocol::ALL[..]));
    let ports = (vec(range(), 0..3), vec(range(), 0..2));
    (1_u32..5, protocol, networks, ports).prop_map(|(mark, protocol, networks, ports)| Rule {
        mark,
        protocol,
        source: networks.0.map(|text| text.parse().unwrap()),
        destination: networks.1.map(|text| text.parse().unwrap()),
        ports: ports.0,
        source_ports: ports.1,
    })
}

#[test]
fn programs_take_marked_packets_as_their_twin_does() {
    let hits = Cell::new(0);
    let config = Config { cases: LISTS, failure_persistence: None, ..Config::default() };
    let rules = vec(any_rule().prop_filter("makes sense", |rule| rule.check().is_ok()), 1..8);
    let outcome =
        TestRunner::new(config).run(&(rules, vec(frames(), PACKETS)), |(rules, frames)| {
            let keys = marked(&rules);
            let Some(programs) = Programs::load(&keys, None) else {
                return Ok(());
            };
            for (_, frame) in &frames {
                let wanted = keys.wants(frame);
                hits.set(hits.get() + u32::from(wanted));
                prop_assert_eq!(programs.steers(frame), wanted, "steering {:02x?}", frame);
                prop_assert_eq!(programs.guards(frame), wanted, "guarding {:02x?}", frame);
            }
            Ok(())
        });
    outcome.unwrap();
    eprintln!("{} of {} packets were taken", hits.get(), LISTS as usize * PACKETS);
    let ran = hits.get() > 0;
    assert!(!ran || hits.get() > LISTS * PACKETS as u32 / 20, "{} taken", hits.get());
}

#[test]
fn exactly_the_packets_whose_last_matching_rule_has_a_service_are_taken() {
    let rules = [
        r#"{"mark":1,"destination":"203.0.113.0/24"}"#,
        r#"{"mark":2,"destination":"203.0.113.0/24","ports":["22"]}"#,
        r#"{"mark":3,"protocol":"udp","ports":["53"],"source":"198.51.100.0/24"}"#,
    ];
    let keys = marked(&rules.map(rule));
    let packet = |from, to, protocol, port| frame(&ip(from, to, protocol, &ports(40000, port)));
    let cases = [
        (true, packet("198.51.100.7", "203.0.113.9", 6, 80)),
        (false, packet("198.51.100.7", "203.0.113.9", 6, 22)),
        (false, packet("198.51.100.7", "203.0.114.9", 6, 80)),
        (false, packet("198.51.100.7", "203.0.113.9", 1, 80)),
        (true, packet("198.51.100.7", "192.0.2.1", 17, 53)),
        (false, packet("198.51.101.7", "192.0.2.1", 17, 53)),
        (false, packet("203.0.113.9", "198.51.100.7", 6, 80)),
        // An error about what went back to the client, and one about what the client was sent.
        (true, frame(&error_about("203.0.113.9", "198.51.100.7", 6))),
        (false, frame(&error_about("198.51.100.7", "203.0.113.9", 6))),
        // A later fragment shows its addresses only.
        (true, frame(&fragment("198.51.100.7", "203.0.113.9"))),
        (false, frame(&fragment("198.51.101.7", "203.0.114.9"))),
    ];
    let programs = Programs::load(&keys, None);
    for (number, (taken, frame)) in cases.iter().enumerate() {
        assert_eq!(keys.wants(frame), *taken, "case {number}");
        if let Some(programs) = &programs {
            assert_eq!(programs.steers(frame), *taken, "steering, case {number}");
            assert_eq!(programs.guards(frame), *taken, "guarding, case {number}");
        }
    }
}

fn error_about(from: &str, to: &str, protocol: u8) -> Vec<u8> {
    let quoted = ip(from, to, protocol, &ports(80, 40000));
    ip("192.0.2.99", from, 1, &icmp(3, &quoted))
}

fn fragment(from: &str, to: &str) -> Vec<u8> {
    let header = Header { fragment: Some((100, false)), ..Header::default() };
    ip_with(&header, from, to, 6, &[0; 8])
}

/// The largest list there can be: every rule compares all that can be compared.
#[test]
fn the_longest_list_of_the_longest_rules_still_loads() {
    let largest = |number: u16| {
        let range =
            |index: u16| PortRange { first: 1000 * index + number, last: 1000 * index + 999 };
        let networks = match number % 2 {
            0 => (format!("10.{number}.0.0/17"), "192.0.2.0/25".to_owned()),
            _ => (format!("2001:db8:{number}::1:0/113"), "2001:db8::8:0/110".to_owned()),
        };
        Rule {
            mark: 1,
            protocol: Some(Protocol::Tcp),
            source: networks.0.parse().ok(),
            destination: networks.1.parse().ok(),
            ports: (1..=MAX_RANGES as u16).map(range).collect(),
            source_ports: (10..10 + MAX_RANGES as u16).map(range).collect(),
        }
    };
    let rules: Vec<Rule> = (0..MAX_RULES as u16).map(largest).collect();
    let keys = marked(&rules);
    let Some(programs) = Programs::load(&keys, None) else { return };
    let first = frame(&ip("10.0.0.1", "192.0.2.1", 6, &ports(12000, 3500)));
    assert!(keys.wants(&first) && programs.steers(&first) && programs.guards(&first));
    let any = rules.iter().map(|rule| Rule { source: None, destination: None, ..rule.clone() });
    let keys = marked(&any.collect::<Vec<_>>());
    assert!(Programs::load(&keys, None).is_some_and(|programs| programs.steers(&first)));
}
