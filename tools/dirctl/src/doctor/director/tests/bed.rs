//! Literal facts: two arms, one service, one server.

use std::path::PathBuf;

use director::control::api::{PortView, Status, VerdictCount};
use director::control::health::{HealthState, ServerHealth};
use director::network::{Address, Change, Freshness, Hop, KernelRoute, Neighbour, RouteKind};
use netio::ethtool::Receiving;
use netio::interface::{Queues, State};

use super::super::*;
use crate::doctor::finding::{Check, Severity};

/// Two interfaces, a service, a server.
pub(super) const FILE: &str = r#"
    interfaces = ["eth0", "eth1"]
    [[service]]
    listen = "192.0.2.10:80/tcp"
    forwarding = "METHOD"
    MORE
    [[service.server]]
    address = "10.0.0.11:80"
"#;

pub(super) fn interface(index: u32, name: &str, mtu: u32) -> Change {
    let (mac, name) = ([2, 0, 0, 0, 0, index as u8], name.to_owned());
    Change::Interface(Interface { index, name, mac, mtu, up: true, carrier: true, vlan: None })
}

pub(super) fn address(interface: u32, prefix: &str) -> Change {
    let (address, _) = prefix.split_once('/').unwrap();
    Change::Address(Address {
        interface,
        address: address.parse().unwrap(),
        subnet: prefix.parse().unwrap(),
        scope: 0,
        secondary: false,
        deprecated: false,
        tentative: false,
        protocol: 0,
    })
}

pub(super) fn route(destination: &str, interface: u32) -> Change {
    let route = KernelRoute {
        table: 254,
        destination: destination.parse().unwrap(),
        priority: 0,
        kind: RouteKind::Unicast,
        hops: vec![Hop { interface, gateway: None, weight: 1, dead: false }],
        source: None,
        mtu: None,
        scope: 253,
    };
    Change::Route { route, replaces: false }
}

pub(super) fn neighbour(last: u8, freshness: Freshness) -> Change {
    let known = freshness != Freshness::Unknown;
    let mac = known.then_some([2, 0, 0, 0, 1, last]);
    Change::Neighbour(Neighbour { interface: 3, address: [10, 0, 0, last].into(), mac, freshness })
}

pub(super) fn card(name: &str) -> Card {
    Card {
        name: name.to_owned(),
        state: Some(State::Up),
        driver: Some("ice".to_owned()),
        queues: Some(Queues { receive: 1, transmit: 1 }),
        receiving: Some(Receiving::default()),
    }
}

/// Two arms, one server, all well, no director yet.
pub(super) fn facts(method: &str, more: &str) -> Facts {
    let text = FILE.replace("METHOD", method).replace("MORE", more);
    let config = director::config::parse(&text, "test.toml").unwrap();
    let mut network = Network::default();
    for change in [
        interface(2, "eth0", 1500),
        interface(3, "eth1", 1500),
        address(2, "192.0.2.10/24"),
        address(3, "10.0.0.1/24"),
        route("192.0.2.0/24", 2),
        route("10.0.0.0/24", 3),
        neighbour(11, Freshness::Fresh),
    ] {
        network.apply(change);
    }
    let settings = ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"];
    let settings = settings.map(|key| (key.to_owned(), 1)).into();
    Facts {
        machine: Machine {
            kernel: "6.18.5".to_owned(),
            capabilities: Some(u64::MAX),
            clock: Some(true),
            ..Machine::default()
        },
        astray_later: None,
        plan: Plan::of(None, Some(&config)),
        file: Some(ConfigFile {
            path: PathBuf::from("/test.toml"),
            text: None,
            config: Ok(config),
        }),
        running: None,
        control: Guarded {
            path: PathBuf::from("/sock"),
            mode: Ok(0o660),
            fault: None,
            denied: false,
        },
        keys: Vec::new(),
        cards: vec![card("eth0"), card("eth1")],
        network,
        foreign_rules: 0,
        settings: Settings(settings),
        claims: Ok(Vec::new()),
    }
}

pub(super) fn status(verdicts: &[(&str, u64)]) -> Status {
    let count = |(reason, packets): &(&str, u64)| VerdictCount {
        verdict: "dropped".to_owned(),
        reason: (*reason).to_owned(),
        meaning: String::new(),
        packets: *packets,
    };
    Status {
        version: "0.1.0".to_owned(),
        pid: 7,
        uptime: 1.0,
        mode: "dispatcher".to_owned(),
        config: None,
        applied: None,
        table_size: 4096,
        connections: 0,
        max_connections: 1000,
        services: 1,
        ports: ["eth0", "eth1"].map(port).into(),
        workers: Vec::new(),
        packets: String::new(),
        verdicts: verdicts.iter().map(count).collect(),
        overflow: Vec::new(),
        health: None,
        warnings: Vec::new(),
    }
}

pub(super) fn port(interface: &str) -> PortView {
    PortView {
        interface: interface.to_owned(),
        queue: 0,
        worker: 0,
        io: "AF_XDP zero-copy".to_owned(),
        received: 0,
        transmitted: 0,
        receive_dropped: 0,
        transmit_dropped: 0,
        receiving: 0,
        transmitting: 0,
        socket: None,
    }
}

pub(super) fn health(state: HealthState, reason: &str) -> ServerHealth {
    ServerHealth {
        service: "192.0.2.10:80".parse().map(tcp).unwrap(),
        address: "10.0.0.11:80".parse().unwrap(),
        weight: 1,
        effective_weight: 1,
        state,
        since: 1,
        reason: reason.to_owned(),
        kept: false,
        active: 0,
        inactive: 0,
        checks: Vec::new(),
        direction: None,
    }
}

pub(super) fn tcp(address: SocketAddr) -> ServiceKey {
    ServiceKey::Address { protocol: director::control::api::Protocol::Tcp, address }
}

/// As [`facts`], with a director that runs what the file says. The server has got and given so many
/// packets.
pub(super) fn running(method: &str, packets: (u64, u64)) -> Facts {
    let mut facts = facts(method, "");
    let running = Running {
        before: status(&[]),
        now: status(&[]),
        services: Vec::new(),
        servers: vec![health(HealthState::Up, "")],
        plan: None,
        half_open: Default::default(),
        stuck: Default::default(),
        refusals: Default::default(),
    };
    facts.plan.services[0].servers[0].packets = Some(packets);
    facts.running = Some(running);
    facts
}

/// The findings of a check that somebody has to act on.
#[track_caller]
pub(super) fn of(facts: &Facts, check: Check) -> Vec<Finding> {
    let mut findings = facts.examine();
    assert!(findings.iter().any(|it| it.check == check), "{check:?} was not looked at");
    findings.retain(|it| it.check == check && it.severity < Severity::Ok);
    findings
}

/// The only one, which says all of these words.
#[track_caller]
pub(super) fn only(facts: &Facts, check: Check, words: &[&str]) -> Finding {
    let findings = of(facts, check);
    let [finding] = findings.as_slice() else { panic!("{findings:#?}") };
    for word in words {
        assert!(finding.found.contains(word), "{word:?} is not said: {finding:#?}");
    }
    finding.clone()
}
