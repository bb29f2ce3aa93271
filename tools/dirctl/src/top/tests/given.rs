//! What a director and a node have said.

use std::collections::HashMap;
use std::time::Duration;

use director::control::api::{
    Forwarding, PortView, Protocol, ServerSpec, ServerView, ServiceKey, ServiceSpec, ServiceView,
    Stats, Status, Tunnel, VerdictCount,
};
use director::control::health::{HealthState, HealthSummary};
use director::control::nlb::views::{HostView, RuleView, SlotView};

use super::super::snapshot::{Node, Snapshot};

pub(super) fn stats(connections: u64) -> Stats {
    Stats {
        connections,
        in_packets: connections * 10,
        out_packets: connections * 20,
        in_bytes: connections * 1000,
        out_bytes: connections * 100_000,
        cps: 7,
        ..Stats::default()
    }
}

pub(super) fn server(last: u8, weight: i32, effective_weight: i32, connections: u64) -> ServerView {
    ServerView {
        spec: ServerSpec {
            address: ([10, 0, 0, last], 80).into(),
            forwarding: Forwarding::Nat,
            tunnel: Tunnel::default(),
            weight,
            upper_threshold: 0,
            lower_threshold: 0,
        },
        effective_weight,
        local: false,
        active: 12,
        inactive: 345,
        persistent: 0,
        picks: 0,
        stats: stats(connections),
    }
}

pub(super) fn key(number: usize) -> ServiceKey {
    let [high, low] = u16::try_from(number).unwrap().to_be_bytes();
    ServiceKey::Address { protocol: Protocol::Tcp, address: ([192, 0, high, low], 80).into() }
}

pub(super) fn service(number: usize, connections: u64, servers: Vec<ServerView>) -> ServiceView {
    ServiceView {
        spec: ServiceSpec {
            key: key(number),
            scheduler: "rr".to_owned(),
            flags: 0,
            persistence: None,
            one_packet: false,
            extras: None,
        },
        declared: true,
        stats: stats(connections),
        servers,
        fallback: None,
    }
}

pub(super) fn fate(verdict: &str, reason: &str, packets: u64) -> VerdictCount {
    let [verdict, reason] = [verdict, reason].map(str::to_owned);
    VerdictCount { verdict, reason, meaning: "what it means".to_owned(), packets }
}

pub(super) fn status(seconds: u64) -> Status {
    Status {
        version: "0.1.0".to_owned(),
        pid: 4711,
        uptime: 60.0 + seconds as f64,
        mode: "dispatcher".to_owned(),
        config: None,
        applied: None,
        table_size: 4096,
        connections: 3456,
        max_connections: 0,
        services: 1,
        ports: vec![PortView {
            interface: "eth0".to_owned(),
            queue: 0,
            worker: 0,
            io: "AF_XDP copy".to_owned(),
            received: seconds * 5000,
            transmitted: seconds * 4000,
            receive_dropped: 17,
            transmit_dropped: 0,
            receiving: 0,
            transmitting: 0,
            socket: None,
        }],
        workers: vec![],
        verdicts: vec![
            fate("forwarded", "sent_nat", 123_000),
            fate("dropped", "no_route", 10 + seconds * 30),
            fate("dropped", "ttl_exceeded", 99_999),
        ],
        packets: String::new(),
        overflow: vec![],
        health: None,
        warnings: vec![],
    }
}

pub(super) fn answer(seconds: u64, services: Vec<ServiceView>) -> Snapshot {
    let at = Duration::from_secs(seconds);
    Snapshot { at, status: status(seconds), services, health: HashMap::new(), node: None }
}

/// Two services, as they are after so many seconds: 20 and 5 connections per second.
pub(super) fn two(seconds: u64) -> Snapshot {
    let servers = vec![server(11, 100, 100, seconds * 15), server(12, 100, 60, seconds * 5)];
    let mut answer = answer(
        seconds,
        vec![
            service(1, seconds * 5, vec![server(11, 1, 1, seconds * 5)]),
            service(2, seconds * 20, servers),
        ],
    );
    answer.health.insert((key(2), ([10, 0, 0, 11], 80).into()), HealthState::Down);
    answer.health.insert((key(2), ([10, 0, 0, 12], 80).into()), HealthState::Up);
    answer.status.health = Some(HealthSummary { up: 1, down: 1, draining: 0, unchecked: 1 });
    answer
}

pub(super) fn node(hosts: u8) -> Node {
    let mut node =
        Node { host: 1, name: "a".to_owned(), state: "converged".to_owned(), ..Node::default() };
    node.display.query.cluster = "192.0.2.10".to_owned();
    node.display.query.hosts = (1..=hosts)
        .map(|host| HostView {
            host,
            name: format!("node{host}"),
            state: "converged".to_owned(),
            heard: host != 2,
            silent: 0.4,
            flows: 21,
            ..HostView::default()
        })
        .collect();
    node.display.params.rules = vec![RuleView {
        rule: "tcp 80 of 192.0.2.10".to_owned(),
        state: "enabled".to_owned(),
        number: 50,
        slots: vec![1],
        buckets: 1365,
        opened: 4000,
        ..RuleView::default()
    }];
    // Slot 0 is of what no rule covers.
    let slot = |slot, now: &[(u8, usize)]| SlotView {
        slot,
        now: now.iter().copied().collect(),
        ..SlotView::default()
    };
    node.map.slots = vec![slot(0, &[(3, 4096)]), slot(1, &[(1, 1365), (3, 2731)])];
    node
}
