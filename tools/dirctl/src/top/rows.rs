//! Which services and servers are shown, in which order.

use std::cmp::Ordering;

use director::control::api::{ServerView, ServiceView};
use director::control::health::HealthState;

use super::rates::{Id, Rates};
use super::snapshot::Snapshot;
use super::state::{Column, Top};

/// A line of the table.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// The service.
    pub service: &'a ServiceView,
    /// The server; nothing on the line of the service itself.
    pub server: Option<&'a ServerView>,
    /// Its state in a word.
    pub state: &'static str,
    /// Weight in effect, and the configured one; of a service the sums.
    pub weights: [i64; 2],
    /// Active and inactive connections.
    pub connections: [u64; 2],
    /// What it does.
    pub rates: Rates,
    /// Of a service: whether its servers follow.
    pub expanded: bool,
}

impl Row<'_> {
    /// What it is, whatever line it stands on.
    pub fn id(&self) -> Id {
        (self.service.spec.key, self.server.map(|server| server.spec.address))
    }

    /// As it is shown.
    pub fn name(&self) -> String {
        match self.server {
            Some(server) => server.spec.address.to_string(),
            None => self.service.spec.key.to_string(),
        }
    }
}

/// All lines.
pub(super) fn rows<'a>(top: &Top, snapshot: &'a Snapshot) -> Vec<Row<'a>> {
    let wanted = top.filter.to_lowercase();
    let has = |row: &Row<'_>| {
        wanted.is_empty() || row.name().to_lowercase().contains(&wanted) || row.state == wanted
    };
    let mut groups = Vec::new();
    for service in &snapshot.services {
        let mut servers: Vec<Row<'_>> = service
            .servers
            .iter()
            .map(|server| server_row(top, snapshot, service, server))
            .collect();
        let mut head = service_row(top, service, &servers);
        if let Some(server) = &service.fallback {
            let row = server_row(top, snapshot, service, server);
            servers.push(Row { state: "sorry", ..row });
        }
        let is_meant = has(&head);
        if !is_meant {
            servers.retain(&has);
            if servers.is_empty() {
                continue;
            }
        }
        // A server that was searched for is shown.
        head.expanded |= !is_meant;
        if !head.expanded {
            servers.clear();
        }
        servers.sort_by(|one, other| order(top, one, other));
        groups.push((head, servers));
    }
    groups.sort_by(|(one, _), (other, _)| order(top, one, other));
    groups.into_iter().flat_map(|(head, servers)| std::iter::once(head).chain(servers)).collect()
}

fn server_row<'a>(
    top: &Top,
    snapshot: &Snapshot,
    service: &'a ServiceView,
    server: &'a ServerView,
) -> Row<'a> {
    let id = (service.spec.key, server.spec.address);
    let state = snapshot.health.get(&id).copied().unwrap_or_default();
    Row {
        service,
        server: Some(server),
        state: match state {
            HealthState::Unchecked if server.spec.weight == 0 => "quiet",
            HealthState::Unchecked => "-",
            HealthState::Up => "up",
            HealthState::Draining => "drain",
            HealthState::Down => "down",
        },
        weights: [server.effective_weight.into(), server.spec.weight.into()],
        connections: [server.active.into(), server.inactive.into()],
        rates: top.meter.of(&(id.0, Some(id.1))),
        expanded: false,
    }
}

/// A service is as its servers are: down when none of those that are watched is up.
fn service_row<'a>(top: &Top, service: &'a ServiceView, servers: &[Row<'a>]) -> Row<'a> {
    let count = |state| servers.iter().filter(|row| row.state == state).count();
    let (down, drain) = (count("down"), count("drain"));
    let sum = |of: fn(&Row<'_>) -> i64| servers.iter().map(of).sum::<i64>();
    let connections = [0, 1].map(|place| servers.iter().map(|row| row.connections[place]).sum());
    let weights = [sum(|row| row.weights[0]), sum(|row| row.weights[1])];
    Row {
        service,
        server: None,
        state: match servers.len() {
            0 => "empty",
            all if down == all => "down",
            all if down + drain == all => "drain",
            _ if down > 0 => "part",
            _ if count("up") > 0 => "up",
            _ if weights[0] == 0 => "quiet",
            _ => "-",
        },
        weights,
        connections,
        rates: top.meter.of(&(service.spec.key, None)),
        expanded: top.is_expanded(&service.spec.key),
    }
}

/// The worst first.
fn gravity(state: &str) -> u8 {
    match state {
        "down" => 0,
        "empty" => 1,
        "part" => 2,
        "drain" => 3,
        "quiet" => 4,
        "sorry" => 5,
        "-" => 6,
        _ => 7,
    }
}

/// Numbers: the largest first. Equals stay as the director lists them.
fn order(top: &Top, one: &Row<'_>, other: &Row<'_>) -> Ordering {
    let by = |of: fn(&Rates) -> f64| of(&other.rates).total_cmp(&of(&one.rates));
    let order = match top.column {
        // The sort is stable, so the reverse of this would be no order at all.
        Column::Order => return Ordering::Equal,
        Column::Name => one.id().cmp(&other.id()),
        Column::State => gravity(one.state).cmp(&gravity(other.state)),
        Column::Weight => other.weights.cmp(&one.weights),
        Column::Active => other.connections[0].cmp(&one.connections[0]),
        Column::Inactive => other.connections[1].cmp(&one.connections[1]),
        Column::Cps => by(|rates| rates.connections),
        Column::InPps => by(|rates| rates.in_packets),
        Column::OutPps => by(|rates| rates.out_packets),
        Column::InBps => by(|rates| rates.in_bits),
        Column::OutBps => by(|rates| rates.out_bits),
    };
    if top.reverse { order.reverse() } else { order }
}
