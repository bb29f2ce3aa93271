//! The agent: there when it is asked for, heard, and with the director's key.

use std::net::IpAddr;

use director::health::plan::AgentWatch;

use super::{Facts, needs_vip};
use crate::doctor::director::key_file;
use crate::doctor::facts::agent::Agent;
use crate::doctor::finding::{Check, Finding, quoted};

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let watched = watch(facts).is_some();
    match &facts.agent {
        Agent::Running(status) => {
            let (state, reason) = (&status.state, &status.reason);
            if state == "up" {
                findings.push(Finding::ok(Check::ServerAgent, "it runs, and says up"));
            } else {
                let found = format!("the agent says {state}: {reason}");
                let finding = Finding::warning(Check::ServerAgent, found);
                findings.push(if state == "draining" {
                    finding.remedy("realserver-agent undrain")
                } else {
                    finding.remedy("realserver-agent status")
                });
            }
            findings.extend(refused(facts, &status.answers.refused));
            if status.prepared.restored > 0 {
                let times = status.prepared.restored;
                let found = format!("somebody undoes what the agent makes: {times} times so far");
                let finding = Finding::warning(Check::ServerAgent, found);
                findings.push(finding.remedy("realserver-agent status"));
            }
        }
        Agent::Absent if watched => {
            let found = "no agent runs, and the director asks for one (agent = true): it takes this \
                         server for down";
            let start = "systemctl start switchyard-agent";
            findings.push(Finding::fault(Check::ServerAgent, found).remedy(start));
        }
        Agent::Absent if facts.has(needs_vip) => {
            let found = "no agent runs; nobody keeps the VIPs and settings as they should be";
            let start = "systemctl start switchyard-agent";
            findings.push(Finding::note(Check::ServerAgent, found).remedy(start));
        }
        Agent::Absent => findings.push(Finding::ok(Check::ServerAgent, "none is needed")),
        Agent::Silent(error) => {
            let finding = Finding::note(Check::ServerAgent, error.clone());
            findings.push(finding.remedy("sudo realserver-agent status"));
        }
    }
    findings.extend(facts.key.iter().map(|key| key_file(Check::ServerKey, key, &copy_key(facts))));
    findings.extend(keys_differ(facts));
    if facts.agent != Agent::Absent {
        findings.extend(heard(facts));
    }
    findings
}

/// How directors ask the agents of this host's services, if they do.
pub(crate) fn watch(facts: &Facts) -> Option<&AgentWatch> {
    let config = facts.config.as_ref().ok()?;
    let own = config.services.iter().filter(|service| {
        service.servers.iter().any(|it| facts.role.addresses.contains(&it.address.ip()))
    });
    own.filter_map(|service| service.health.agent.as_ref()).next()
}

/// The file may name one key for directors and another for agents.
fn keys_differ(facts: &Facts) -> Option<Finding> {
    watch(facts)?;
    let own = facts.key.as_ref().map(|key| &key.path);
    let found = match (own, &facts.directors_key) {
        (Some(own), Some(theirs)) if own == theirs => return None,
        (None, None) => return None,
        (Some(own), Some(theirs)) => format!(
            "the agent's key file is {}, the directors' is {}: they must have the same secret",
            own.display(),
            theirs.display()
        ),
        (Some(own), None) => format!(
            "the agent wants signed questions ({}), and the file gives directors no key_file",
            own.display()
        ),
        (None, Some(theirs)) => {
            format!("directors sign ({}), and [agent] has no key_file", theirs.display())
        }
    };
    let is_note = own.is_some() && facts.directors_key.is_some();
    let check = format!("director check {}", quoted(&facts.file));
    Some(
        match is_note {
            true => Finding::note(Check::ServerKey, found),
            false => Finding::fault(Check::ServerKey, found),
        }
        .remedy(check),
    )
}

/// Questions that the agent does not answer: directors have another key, or none.
fn refused(facts: &Facts, refused: &std::collections::BTreeMap<String, u64>) -> Option<Finding> {
    let of = |reason: &str| refused.get(reason).copied().unwrap_or(0);
    let stranger = of("stranger");
    if stranger > 0 {
        let found = format!(
            "{stranger} questions came from outside of [agent] from: is the director's address in it?"
        );
        return Some(Finding::warning(Check::ServerAgent, found).remedy("realserver-agent status"));
    }
    let (unsigned, no_key, forged) = (of("unsigned"), of("no_key"), of("forged"));
    if unsigned + no_key + forged == 0 {
        return None;
    }
    let why = if forged > 0 {
        format!("{forged} were signed with another key")
    } else if unsigned > 0 {
        format!("{unsigned} were not signed, and a key is set here")
    } else {
        format!("{no_key} were signed, and no key is set here")
    };
    let found = format!("the agent refuses questions of directors: {why}");
    Some(
        Finding::fault(Check::ServerKey, found)
            .remedy(copy_key(facts))
            .remedy("systemctl restart switchyard-agent"),
    )
}

/// The secret from where it is right.
fn copy_key(facts: &Facts) -> String {
    let path = facts
        .key
        .as_ref()
        .map_or_else(|| "/etc/switchyard/agent.key".to_owned(), |key| quoted(&key.path));
    let director = match facts.directors.first() {
        Some(IpAddr::V6(director)) => format!("[{director}]"),
        Some(director) => director.to_string(),
        None => "DIRECTOR".to_owned(),
    };
    format!("scp -p root@{director}:{path} {path}")
}

fn heard(facts: &Facts) -> Vec<Finding> {
    let port = facts.agent_port;
    let finding = |(address, outcome): &(IpAddr, Result<(), String>)| match outcome {
        Ok(()) => Finding::ok(Check::ServerAgent, format!("it answers at {address}, port {port}")),
        Err(error) => {
            let found = format!("it does not answer at {address}, port {port}: {error}");
            let look = format!("ss -lunp 'sport = :{port}'");
            Finding::warning(Check::ServerAgent, found).remedy(look)
        }
    };
    facts.probes.iter().map(finding).collect()
}
