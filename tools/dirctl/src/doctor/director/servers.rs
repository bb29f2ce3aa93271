//! What the director says of its servers: down and why, draining, agents with another key.

use std::collections::BTreeMap;
use std::net::IpAddr;

use director::control::health::{HealthState, ServerHealth};

use super::Facts;
use crate::doctor::facts::file::Guarded;
use crate::doctor::finding::{Check, Finding, names, quoted};

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = facts.keys.iter().map(examine_key).collect();
    let Some(running) = &facts.running else { return findings };
    let mut with_other_key: BTreeMap<IpAddr, &ServerHealth> = BTreeMap::new();
    let mut up = Vec::new();
    // What fails for one reason is told once: a switch that is gone takes many along.
    let mut down: BTreeMap<_, Vec<&ServerHealth>> = BTreeMap::new();
    for server in &running.servers {
        let host = server.address.ip();
        let refused = server.direction.as_ref().is_some_and(|it| it.refused > 0 && it.lost > 50.0);
        if refused {
            with_other_key.insert(host, server);
        }
        match server.state {
            HealthState::Down => {
                down.entry((server.service, server.reason.as_str())).or_default().push(server);
            }
            HealthState::Draining => {
                let found = format!("{} of {} is draining", server.address, server.service);
                findings.push(Finding::note(Check::ServerDown, found).remedy("dirctl servers"));
            }
            HealthState::Up | HealthState::Unchecked => up.push(server.address),
        }
    }
    findings.extend(down.values().map(|servers| have_failed(servers)));
    for host in with_other_key.keys() {
        findings.push(other_key(facts, *host, running.refusals.get(host)));
    }
    if !up.is_empty() {
        findings.push(Finding::ok(Check::ServerDown, format!("none of {} has failed", names(&up))));
    }
    findings
}

fn examine_key(key: &Guarded) -> Finding {
    let make = format!("(umask 077 && openssl rand -hex 32 > {})", quoted(&key.path));
    key_file(Check::AgentKey, key, &make)
}

/// For both sides; `make` is how one comes by a key where there is none.
pub(crate) fn key_file(check: Check, key: &Guarded, make: &str) -> Finding {
    let shown = key.path.display();
    match (&key.mode, &key.fault) {
        _ if key.denied => {
            let found = format!("you may not read the key file {shown}");
            Finding::note(check, found).remedy("sudo dirctl doctor")
        }
        (Err(_), _) => Finding::fault(check, format!("there is no key file {shown}")).remedy(make),
        (_, Some(fault)) => Finding::fault(check, fault.clone()).remedy(make),
        (Ok(mode), None) if mode & 0o007 != 0 => {
            let found = format!("everybody may read the key file {shown} (mode {mode:04o})");
            Finding::warning(check, found).remedy(format!("chmod 600 {}", quoted(&key.path)))
        }
        (Ok(_), None) => Finding::ok(check, format!("the key file {shown} is good")),
    }
}

/// Servers of one service that are down for one reason; the remedy is that of the first.
fn have_failed(servers: &[&ServerHealth]) -> Finding {
    let server = servers[0];
    let host = server.address.ip();
    let reason = if server.reason.is_empty() { "no reason is given" } else { &server.reason };
    let is = if servers.len() == 1 { "is" } else { "are" };
    let all: Vec<_> = servers.iter().map(|server| server.address).collect();
    let found = format!("{} of {} {is} down: {reason}", names(&all), server.service);
    let finding = Finding::fault(Check::ServerDown, found);
    let is_agent = server.direction.as_ref().is_some_and(|direction| direction.mode == "lost");
    if is_agent {
        return finding.remedy("systemctl restart switchyard-agent").on(host);
    }
    let failing = server.checks.iter().find(|check| check.state == HealthState::Down);
    match failing.map(|check| check.kind.as_str()) {
        Some("http") => finding.remedy(format!("curl -v http://{}/", server.address)),
        Some("https") => finding.remedy(format!("curl -kv https://{}/", server.address)),
        Some("icmp") => finding.remedy(format!("ping -c 3 {host}")),
        _ => {
            let port = server.address.port();
            finding.remedy(format!("ss -lntup 'sport = :{port}'")).on(host)
        }
    }
}

fn other_key(facts: &Facts, host: IpAddr, reason: Option<&String>) -> Finding {
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    let found = format!("the answers of the agent on {host} do not count{reason}");
    let finding = Finding::fault(Check::AgentKey, found);
    let key = facts.file.as_ref().and_then(|file| file.config.as_ref().ok()).and_then(|config| {
        let service = config.services.iter().find(|service| {
            service.servers.iter().any(|server| server.address.ip() == host)
                && service.health.agent.as_ref().is_some_and(|agent| agent.key_file.is_some())
        });
        service?.health.agent.as_ref()?.key_file.clone()
    });
    match key {
        Some(path) => {
            let path = quoted(&path);
            let to = if host.is_ipv6() { format!("[{host}]") } else { host.to_string() };
            finding
                .remedy(format!("scp -p {path} root@{to}:{path}"))
                .remedy(format!("ssh root@{host} systemctl restart switchyard-agent"))
        }
        None => finding.remedy("realserver-agent status").on(host),
    }
}
