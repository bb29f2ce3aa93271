//! What `[nlb]` and services mean to a node.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::parse;
use ::nlb::delivery::Delivery;
use ::nlb::host::HostId;
use ::nlb::rules::{Affinity, Mode as Taken, Protocol, Rule, Scope};

use crate::config::nlb::{InitialState, Isolated, Key, Nlb, PortRule};
use crate::config::{Config, Mode};

fn right(text: &str) -> Config {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

const SITE: &str = r#"
interfaces = ["eth0"]
[nlb]
key = "a key of sixteen bytes, or more"
[[service]]
listen = "192.0.2.10:80/tcp"
persistence = { timeout = "5m", prefix = 24 }
forwarding = "direct"
    [[service.server]]
    address = "10.0.0.11"
    weight = 100
    [[service.server]]
    address = "10.0.0.12"
    weight = 50
[[service]]
listen = "192.0.2.10:53/udp"
scheduler = "fo"
forwarding = "direct"
    [[service.server]]
    address = "10.0.0.11"
    weight = 1
    [[service.server]]
    address = "10.0.0.12"
    weight = 7
[[service]]
listen = "192.0.2.10:0/tcp"
persistence = "1m"
forwarding = "direct"
    [[service.server]]
    address = "10.0.0.12"
"#;

#[test]
fn one_word_makes_a_dispatchers_file_a_nodes() {
    let dispatcher = right(&format!("mode = \"dispatcher\"\n{SITE}"));
    let node = right(&format!("mode = \"nlb\"\n{SITE}"));
    assert_eq!((dispatcher.mode, node.mode), (Mode::Dispatcher, Mode::Nlb));
    assert_eq!(dispatcher.services, node.services);
    assert_eq!(dispatcher.nlb.hosts, node.nlb.hosts);
    assert_eq!(node.nlb.primary, Some(ip("192.0.2.10")));
    assert_eq!(node.nlb.hosts, [[ip("10.0.0.11")], [ip("10.0.0.12")]]);
}

/// Hosts by id with a number each.
fn members(numbers: &[(u8, u8)]) -> Vec<(HostId, u8)> {
    numbers.iter().map(|&(id, number)| (HostId::new(id).unwrap(), number)).collect()
}

#[test]
fn services_become_port_rules_with_the_weights_of_their_servers() {
    let rules = right(&format!("mode = \"nlb\"\n{SITE}")).nlb.rules;
    let shared = |ipv4, weights| Taken::Multiple {
        affinity: Affinity::Prefix { ipv4, ipv6: 128 },
        weights: members(weights),
    };
    let expected = [
        (Protocol::Tcp, 80, 80, shared(24, &[(1, 100), (2, 50)])),
        (Protocol::Udp, 53, 53, Taken::Single { priorities: members(&[(1, 2), (2, 1)]) }),
        (Protocol::Tcp, 1, 79, shared(32, &[(2, 1)])),
        (Protocol::Tcp, 81, 65_535, shared(32, &[(2, 1)])),
    ];
    let expected = expected.map(|(protocol, first_port, last_port, mode)| Rule {
        scope: Scope::Vip(ip("192.0.2.10")),
        protocol,
        first_port,
        last_port,
        mode,
    });
    let rules: Vec<Rule> = rules.into_iter().map(|rule| rule.rule).collect();
    assert_eq!(rules, expected);
}

/// A rule of all addresses and both protocols.
fn everywhere(line: usize, port: u16, mode: Taken) -> PortRule {
    let (first_port, last_port) = (port, port);
    let rule = Rule { scope: Scope::All, protocol: Protocol::Both, first_port, last_port, mode };
    PortRule { line, rule }
}

#[test]
fn every_key_of_a_node_reaches_the_configuration() {
    let config = right(
        r#"
        mode = "nlb"
        interfaces = ["eth0"]
        [nlb]
        key_file = "/etc/switchyard/cluster.key"
        primary = "192.0.2.10"
        hosts = [["10.0.0.11", "2001:db8::11"], "10.0.0.12"]
        delivery = "igmp"
        period = "100ms"
        tolerance = 7
        isolated = "stop"
        initial_state = "suspended"
        handover_timeout = "10m"
        drain_timeout = "1h"
        udp_pin = "30s"
        track = true
        echo = "all"
        remote_control = false
        [[nlb.rule]]
        vip = "192.0.2.10"
        protocol = "udp"
        ports = "8000-8099"
        affinity = "network"
        weights = [100, 0]
        [[nlb.rule]]
        ports = 22
        filter = "single"
        priorities = [2, 1]
        [[nlb.rule]]
        ports = 23
        filter = "disabled"
        "#,
    );
    let expected = Nlb {
        key: Some(Key::File(PathBuf::from("/etc/switchyard/cluster.key"))),
        primary: Some(ip("192.0.2.10")),
        delivery: Delivery::Igmp,
        period: Duration::from_millis(100),
        tolerance: 7,
        isolated: Isolated::Stop,
        initial_state: InitialState::Suspended,
        handover_timeout: Duration::from_secs(600),
        drain_timeout: Duration::from_secs(3600),
        udp_pin: Duration::from_secs(30),
        track: true,
        echo_by_all: true,
        remote_control: false,
        hosts: vec![vec![ip("10.0.0.11"), ip("2001:db8::11")], vec![ip("10.0.0.12")]],
        rules: vec![
            PortRule {
                line: 19,
                rule: Rule {
                    scope: Scope::Vip(ip("192.0.2.10")),
                    protocol: Protocol::Udp,
                    first_port: 8000,
                    last_port: 8099,
                    mode: Taken::Multiple {
                        affinity: Affinity::NETWORK,
                        weights: members(&[(1, 100), (2, 0)]),
                    },
                },
            },
            everywhere(25, 22, Taken::Single { priorities: members(&[(1, 2), (2, 1)]) }),
            everywhere(29, 23, Taken::Disabled),
        ],
    };
    assert_eq!(config.nlb, expected);
}

#[test]
fn a_file_for_nodes_only_need_not_say_how_to_forward() {
    let text = SITE.replace("forwarding = \"direct\"\n", "");
    right(&format!("mode = \"nlb\"\n{text}"));
    let error = parse(&format!("mode = \"dispatcher\"\n{text}")).unwrap_err();
    assert!(error.to_string().contains("forwarding: missing"), "{error}");
}

#[test]
fn the_key_is_not_shown_by_what_prints_the_configuration() {
    let config = right(SITE);
    assert!(config.nlb.key.is_some());
    assert!(!format!("{config:?}").contains("sixteen"));
}
