//! `dirctl servers`: how the real servers are.

use std::collections::BTreeSet;
use std::net::IpAddr;

use director::control::api::ServiceKey;
use director::control::health::{DirectionView, HealthState, ServerHealth};

use crate::clean::{clean, count, duration};
use crate::columns::{Side, columns};
use crate::paint::Paint;

/// Lines are not longer than this, but for addresses and reasons that leave no choice.
const WIDTH: usize = 100;

const TITLES: [&str; 7] = ["server", "state", "weight", "active", "inactive", "since", "agent"];

/// Whether the servers of `service` are meant by `word`: `192.0.2.10:80/tcp`, its address with or
/// without the port, `fwmark 7` or `7`.
pub fn is_meant(service: &ServiceKey, word: &str) -> bool {
    let name = service.to_string();
    if name == word {
        return true;
    }
    match service {
        ServiceKey::Address { address, .. } => {
            address.to_string() == word || word.parse::<IpAddr>().is_ok_and(|ip| address.ip() == ip)
        }
        ServiceKey::Fwmark { fwmark, .. } => fwmark.to_string() == word,
    }
}

/// Whether every server serves: those that nobody watches are taken for it.
pub fn are_all_up(servers: &[ServerHealth]) -> bool {
    servers.iter().all(|server| matches!(server.state, HealthState::Up | HealthState::Unchecked))
}

/// The servers as a person reads them, service by service.
pub fn text(servers: &[ServerHealth], paint: Paint) -> String {
    if servers.is_empty() {
        return "no servers\n".to_owned();
    }
    let mut seen = BTreeSet::new();
    let services = servers.iter().map(|server| server.service);
    let blocks: Vec<String> = services
        .filter(|service| seen.insert(*service))
        .map(|service| {
            let own: Vec<&ServerHealth> =
                servers.iter().filter(|server| server.service == service).collect();
            block(&service, &own, paint)
        })
        .collect();
    blocks.join("\n")
}

/// One service and its servers.
fn block(service: &ServiceKey, servers: &[&ServerHealth], paint: Paint) -> String {
    let mut rows = vec![TITLES.map(str::to_owned)];
    rows.extend(servers.iter().map(|server| row(server)));
    let mut lines = lay_out(&rows);
    if lines.iter().any(|line| line.chars().count() > WIDTH) {
        // Long addresses: each on a line of its own, and the rest below.
        let addresses: Vec<String> =
            rows.iter_mut().map(|row| std::mem::take(&mut row[0])).collect();
        let rest = lay_out(&rows);
        let below = |(address, line): (&String, &String)| format!("  {address}\n  {line}");
        lines = addresses.iter().zip(&rest).map(below).collect();
        lines[0] = format!("  {}", rest[0]);
    }
    let mut text = paint.heading(&clean(&service.to_string())) + "\n";
    let mut lines = lines.into_iter();
    text.push_str(&(lines.next().unwrap_or_default() + "\n"));
    for (line, server) in lines.zip(servers) {
        let colour = |text: &str| match server.state {
            HealthState::Down => paint.loss(text),
            HealthState::Draining => paint.warning(text),
            HealthState::Up | HealthState::Unchecked => text.to_owned(),
        };
        text.push_str(&(colour(&line) + "\n"));
        for note in notes(server) {
            text.push_str(&(colour(&format!("      {note}")) + "\n"));
        }
    }
    text
}

fn lay_out(rows: &[[String; 7]]) -> Vec<String> {
    use Side::{Left, Right};
    columns([Left, Left, Right, Right, Right, Right, Left], rows)
}

fn row(server: &ServerHealth) -> [String; 7] {
    let (weight, effective) = (server.weight, server.effective_weight);
    [
        server.address.to_string(),
        server.state.name().to_owned(),
        if weight == effective { weight.to_string() } else { format!("{weight} -> {effective}") },
        server.active.to_string(),
        server.inactive.to_string(),
        duration(server.since as f64),
        server.direction.as_ref().map(agent).unwrap_or_default(),
    ]
}

/// `udp 0.3 ms, load 25%`
fn agent(direction: &DirectionView) -> String {
    let mut text = clean(&direction.mode);
    if matches!(direction.mode.as_str(), "udp" | "tcp") {
        text.push_str(&format!(" {:.1} ms", direction.round_trip));
    }
    if let Some(load) = direction.load {
        text.push_str(&format!(", load {}%", (load + 50) / 100));
    }
    text
}

/// What else is to be said of a server: why it is so, and what fails.
fn notes(server: &ServerHealth) -> Vec<String> {
    let mut notes = Vec::new();
    if !server.reason.is_empty() {
        notes.push(clean(&server.reason));
    }
    if server.kept {
        notes.push(
            "gets connections all the same: every server of the service has failed".to_owned(),
        );
    }
    if let Some(direction) = &server.direction {
        if direction.lost > 0.0 {
            notes.push(format!(
                "agent: {:.0}% of the last 100 questions got no answer",
                direction.lost
            ));
        }
        if direction.refused > 0 {
            let answers = count(direction.refused, "answer");
            notes.push(format!(
                "agent: {answers} did not count (another version or key, or nonsense)"
            ));
        }
    }
    for check in &server.checks {
        // Of a server that is up, a check that has begun to fail is news.
        let is_bad = matches!(check.state, HealthState::Down | HealthState::Draining);
        if is_bad && !check.last.is_empty() && !server.reason.contains(&check.last) {
            notes.push(format!("{}: {}", clean(&check.kind), clean(&check.last)));
        }
    }
    notes
}

#[cfg(test)]
mod tests;
