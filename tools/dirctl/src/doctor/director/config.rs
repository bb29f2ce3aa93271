//! The director itself, its file and its control socket: do they agree?

use std::path::Path;

use director::config::Config;
use director::control::api::{ServerSpec, ServiceView};

use super::Facts;
use crate::clean::clean;
use crate::doctor::facts::file::{ConfigFile, Guarded};
use crate::doctor::finding::{Check, Finding, names, quoted};
use crate::plan::summary;

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![director(facts)];
    if let Some(file) = &facts.file {
        findings.extend(examine_file(facts, file));
    }
    if let Some(running) = &facts.running {
        findings.push(socket(&facts.control));
        for warning in &running.now.warnings {
            let finding = Finding::warning(Check::DirectorWarning, warning.clone());
            let is_restart = warning.contains("restart the director");
            findings.push(if is_restart {
                finding.remedy("systemctl restart switchyard-director")
            } else {
                finding.remedy("dirctl status")
            });
        }
    }
    findings
}

fn director(facts: &Facts) -> Finding {
    if let Some(running) = &facts.running {
        let now = &running.now;
        let found =
            format!("version {} runs as process {}, in {} mode", now.version, now.pid, now.mode);
        return Finding::ok(Check::Director, found);
    }
    let vips = names(&facts.plan.vips());
    let socket = facts.control.path.display();
    let found = match vips.as_str() {
        "" => format!("no director answers at {socket}"),
        vips => format!("no director answers at {socket}: nobody serves {vips}"),
    };
    Finding::fault(Check::Director, found).remedy("systemctl start switchyard-director")
}

fn examine_file(facts: &Facts, file: &ConfigFile) -> Vec<Finding> {
    let shown = file.path.display();
    let config = match &file.config {
        Ok(config) => config,
        Err(error) => {
            // The first problem; the command shows all of them.
            let first = error.lines().next().unwrap_or_default();
            let found = format!("a director would refuse {shown}: {first}");
            let check = format!("director check {}", quoted(&file.path));
            return vec![Finding::fault(Check::File, found).remedy(check)];
        }
    };
    let Some(running) = facts.running.as_ref().filter(|_| !facts.plan.is_nlb) else {
        return vec![Finding::ok(Check::File, format!("{shown} is good"))];
    };
    // What is on trial is told by a warning of the director's own.
    if running.now.warnings.iter().any(|warning| warning.contains("waits to be confirmed")) {
        return Vec::new();
    }
    let is_own = running.now.config.as_ref().is_none_or(|own| Path::new(own) == file.path);
    let look = format!("dirctl plan {}", quoted(&file.path));
    let planned = running.plan.as_ref().filter(|plan| !plan.is_empty()).map(summary);
    let differing = differing(config, &running.services);
    let extra = running.services.iter().filter(|service| !service.declared);
    let extra: Vec<String> = extra.map(|service| service.spec.key.to_string()).collect();
    let mut findings = Vec::new();
    if let Some(applied) = &running.now.applied {
        let applied = clean(applied);
        let found = format!(
            "{applied} was applied and not saved: a restart or a reload goes back to {shown}"
        );
        findings.push(Finding::warning(Check::File, found).remedy(look));
    } else if let Some(changes) = planned.as_ref().filter(|_| !is_own) {
        let found = format!("the director does not follow {shown}, which would change: {changes}");
        findings.push(Finding::note(Check::File, found).remedy(look));
    } else if let Some(changes) = planned {
        let found =
            format!("{shown} has not been reloaded, and a reload would change: {changes} ({look})");
        let reload = format!("kill -HUP {}", running.now.pid);
        findings.push(Finding::warning(Check::File, found).remedy(reload));
    } else if differing.is_empty() {
        findings.push(Finding::ok(Check::File, format!("{shown} says what runs")));
    } else {
        let found = format!(
            "what runs has been changed since, and a restart goes back to {shown}: {}",
            names(&differing)
        );
        findings.push(Finding::note(Check::File, found).remedy("ipvsadm -S -n"));
    }
    if !extra.is_empty() {
        let found = format!("{} would be gone after a restart: not in {shown}", names(&extra));
        findings.push(Finding::note(Check::File, found).remedy("ipvsadm -S -n"));
    }
    findings
}

/// In which services and servers the two differ; not in weights, which an operator may have set for the
/// time being.
fn differing(config: &Config, running: &[ServiceView]) -> Vec<String> {
    let mut differing = Vec::new();
    for declared in &config.services {
        let key = declared.service.key;
        let Some(service) = running.iter().find(|service| service.spec.key == key) else {
            differing.push(format!("{key} does not run"));
            continue;
        };
        let alike = |one: &ServerSpec, other: &ServerSpec| {
            (one.address, one.forwarding.asked(), one.tunnel)
                == (other.address, other.forwarding.asked(), other.tunnel)
        };
        for server in &declared.servers {
            if !service.servers.iter().any(|view| alike(server, &view.spec)) {
                let (address, method) = (server.address, server.forwarding.name());
                differing.push(format!("{key} does not have {address} by {method}"));
            }
        }
        for view in &service.servers {
            if !declared.servers.iter().any(|server| alike(server, &view.spec)) {
                let (address, method) = (view.spec.address, view.spec.forwarding.name());
                differing.push(format!("{key} has {address} by {method}"));
            }
        }
        if service.spec.scheduler != declared.service.scheduler {
            differing.push(format!("{key} is scheduled by {}", service.spec.scheduler));
        }
    }
    for service in running.iter().filter(|service| service.declared) {
        if config.services.iter().all(|declared| declared.service.key != service.spec.key) {
            differing.push(format!("{} runs", service.spec.key));
        }
    }
    differing
}

fn socket(control: &Guarded) -> Finding {
    let shown = control.path.display();
    match &control.mode {
        Ok(mode) if mode & 0o002 != 0 => {
            let found = format!("everybody may write to {shown} (mode {mode:04o})");
            Finding::fault(Check::ControlSocket, found)
                .remedy(format!("chmod 660 {}", quoted(&control.path)))
        }
        Ok(mode) => Finding::ok(Check::ControlSocket, format!("{shown} has mode {mode:04o}")),
        Err(error) => Finding::note(Check::ControlSocket, format!("{shown}: {error}")),
    }
}
