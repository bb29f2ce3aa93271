//! What `[nlb]` and services mean to a node.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::parse;
use crate::config::nlb::{
    Affinity, Delivery, Filtering, InitialState, Isolated, Key, Nlb, PortRule, RuleProtocol, Share,
};
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

#[test]
fn services_become_port_rules_with_the_weights_of_their_servers() {
    let rules = right(&format!("mode = \"nlb\"\n{SITE}")).nlb.rules;
    let prefix = |ipv4| Filtering::Multiple(Affinity::Prefix { ipv4, ipv6: 128 });
    let share = |weight, priority| Share { weight, priority };
    let none = share(0, u32::MAX);
    let last = share(1, u32::MAX);
    let expected = [
        (RuleProtocol::Tcp, 80..=80, prefix(24), [share(100, u32::MAX), share(50, u32::MAX)]),
        (RuleProtocol::Udp, 53..=53, Filtering::Single, [share(1, 2), share(1, 1)]),
        (RuleProtocol::Tcp, 1..=79, prefix(32), [none, last]),
        (RuleProtocol::Tcp, 81..=65_535, prefix(32), [none, last]),
    ];
    assert_eq!(rules.len(), expected.len());
    for (rule, (protocol, ports, filtering, shares)) in rules.iter().zip(expected) {
        assert_eq!(rule.vip, Some(ip("192.0.2.10")));
        assert_eq!((rule.protocol, &rule.ports, rule.filtering), (protocol, &ports, filtering));
        assert_eq!(rule.shares, shares, "{ports:?}");
    }
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
    let share = |weight, priority| Share { weight, priority };
    let network = Affinity::Prefix { ipv4: 24, ipv6: 64 };
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
                vip: Some(ip("192.0.2.10")),
                protocol: RuleProtocol::Udp,
                ports: 8000..=8099,
                filtering: Filtering::Multiple(network),
                shares: vec![share(100, 1), share(0, 2)],
            },
            PortRule {
                line: 25,
                vip: None,
                protocol: RuleProtocol::Both,
                ports: 22..=22,
                filtering: Filtering::Single,
                shares: vec![share(50, 2), share(50, 1)],
            },
            PortRule {
                line: 29,
                vip: None,
                protocol: RuleProtocol::Both,
                ports: 23..=23,
                filtering: Filtering::Disabled,
                shares: vec![share(50, 1), share(50, 2)],
            },
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
