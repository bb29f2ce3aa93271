//! How servers are, in numbers. Labels are services, servers and kinds of checks: as many as the
//! configuration has, whatever the network says.

use super::super::health::{DirectionView, HealthState, ServerHealth};
use super::traffic::MOST_SERVERS;
use super::{Page, name_of};

/// The samples of all servers. A server that nobody watches has a state and a weight only.
pub(super) fn servers(page: &mut Page, servers: &[ServerHealth]) {
    let servers = &servers[..servers.len().min(MOST_SERVERS)];
    let names: Vec<(String, String)> = servers
        .iter()
        .map(|server| (name_of(&server.service), server.address.to_string()))
        .collect();
    let each = || {
        let labels = names.iter().map(|(service, address)| {
            [("service", service.as_str()), ("server", address.as_str())]
        });
        labels.zip(servers)
    };
    page.family(
        "switchyard_server_up",
        "gauge",
        "Whether a watched server serves: 1 up, 0 draining or down.",
    );
    for (labels, server) in each().filter(|(_, server)| server.state != HealthState::Unchecked) {
        page.sample(&labels, u8::from(server.state == HealthState::Up));
    }
    page.family("switchyard_server_state", "gauge", "1 for the state that a server is in.");
    for ([service, address], server) in each() {
        for state in HealthState::ALL {
            let labels = [service, address, ("state", state.name())];
            page.sample(&labels, u8::from(server.state == state));
        }
    }
    page.family("switchyard_server_checks_total", "counter", "Checks made, by what came of them.");
    for ([service, address], server) in each() {
        for (kind, made, failed) in by_kind(server) {
            let passed = made.saturating_sub(failed);
            for (result, count) in [("passed", passed), ("failed", failed)] {
                page.sample(&[service, address, ("check", kind), ("result", result)], count);
            }
        }
    }
    type Gauge = fn(&DirectionView) -> Option<f64>;
    let directions: [(&str, &str, Gauge); 3] = [
        (
            "switchyard_direction_round_trip_seconds",
            "Round trip to a server's agent, smoothed.",
            |direction| Some(direction.round_trip / 1000.0),
        ),
        (
            "switchyard_direction_lost_ratio",
            "Share of the last 100 questions to a server's agent without an answer.",
            |direction| Some(direction.lost / 100.0),
        ),
        (
            "switchyard_direction_load_ratio",
            "Load that a server's agent reports, 1 is full.",
            |direction| direction.load.map(|load| f64::from(load) / 10_000.0),
        ),
    ];
    for (name, help, gauge) in directions {
        page.family(name, "gauge", help);
        for (labels, server) in each() {
            if let Some(value) = server.direction.as_ref().and_then(gauge) {
                page.sample(&labels, value);
            }
        }
    }
}

/// Checks made and failed for each kind: a service may have several of one kind, and a sample must
/// not appear twice.
fn by_kind(server: &ServerHealth) -> Vec<(&str, u64, u64)> {
    let mut kinds: Vec<(&str, u64, u64)> = Vec::new();
    for check in &server.checks {
        match kinds.iter_mut().find(|(kind, ..)| *kind == check.kind) {
            Some((_, made, failed)) => {
                *made += check.made;
                *failed += check.failed;
            }
            None => kinds.push((&check.kind, check.made, check.failed)),
        }
    }
    kinds
}
