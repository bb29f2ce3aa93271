//! The cluster as this host sees it, and how it came to that.

use std::time::Duration;

use ::nlb::heartbeat::Phase;
use ::nlb::host::{HostId, HostSet};
use ::nlb::membership::{Member, State};

use super::Scene;
use crate::control::VERSION;
use crate::control::nlb::views::{ConvergenceView, DrainView, HistoryView, HostView, QueryView};
use crate::node::host::Host;

/// The cluster now.
pub(super) fn query(host: &Host, scene: &Scene<'_>) -> QueryView {
    let membership = &host.membership;
    let status = membership.status();
    let since = |at: Duration| scene.now.saturating_sub(at).as_secs_f64();
    let last = membership.history().last();
    let flows = own_flows(host);
    let member = !matches!(status.state, State::Stopped | State::Suspended);
    // One that is silent and not in the file any more is nobody's loss.
    let named = scene.about.hosts();
    let is_named = |host: HostId| named.get(host.index()).is_some_and(|it| !it.is_empty());
    let others = membership.others().filter(|other| other.heard || is_named(other.host));
    let mut hosts: Vec<HostView> = others.map(|other| other_host(host, &other, scene)).collect();
    hosts.push(HostView {
        host: scene.about.host.get(),
        name: scene.about.name.clone(),
        state: status.state.to_string(),
        heard: true,
        silent: 0.0,
        addresses: scene.about.addresses.clone(),
        flows,
        same_configuration: true,
    });
    hosts.sort_by_key(|host| host.host);
    QueryView {
        version: VERSION.to_owned(),
        cluster: host.policy().primary.to_string(),
        members: ids(status.view.hosts),
        default_host: status.view.hosts.first().filter(|_| member).map(HostId::get),
        epoch: status.epoch,
        convergences: membership.convergences(),
        last_began: last.map(|last| since(last.began)),
        last_ended: last.and_then(|last| last.ended).map(since),
        flows,
        drain: status.drain.map(|drain| DrainView {
            since: since(drain.since),
            left: drain.deadline.map(|at| at.saturating_sub(scene.now).as_secs_f64()),
            // Flows are counted once a second, so that some may have begun before the drain unseen.
            flows_at_start: drain.flows_at_start.max(drain.flows_left),
            flows_left: drain.flows_left,
        }),
        quarantine: status.quarantine.map(|misfit| misfit.to_string()),
        one_way: ids(status.one_way),
        misfits: ids(status.misfits),
        plan_waits_for: status.plan_waits_for.map(ids),
        hosts,
        warnings: warnings(host, scene),
    }
}

/// Flows that this host holds in all slots.
pub(in crate::node) fn own_flows(host: &Host) -> u64 {
    let slots = host.rules().slots();
    slots.map(|slot| u64::from(host.membership.slot_flows(slot).0)).sum()
}

fn other_host(host: &Host, other: &Member<'_>, scene: &Scene<'_>) -> HostView {
    let phase = match other.phase {
        _ if other.draining => "draining",
        Phase::Converging => "converging",
        Phase::Converged if other.view.hosts.first() == Some(other.host) => "converged as DEFAULT",
        Phase::Converged => "converged",
        Phase::Quarantined => "quarantined",
        Phase::Goodbye => "stopped",
    };
    HostView {
        host: other.host.get(),
        name: other.name.to_owned(),
        state: if other.heard || other.phase == Phase::Goodbye { phase } else { "unreachable" }
            .to_owned(),
        heard: other.heard,
        silent: scene.now.saturating_sub(other.heard_at).as_secs_f64(),
        addresses: other.addresses.to_vec(),
        flows: other.flows,
        same_configuration: other.digest == host.membership.digest(),
    }
}

/// What the operator should know, one line each.
pub(in crate::node) fn warnings(host: &Host, scene: &Scene<'_>) -> Vec<String> {
    let status = host.membership.status();
    let mut warnings = scene.about.warnings();
    if let Some(misfit) = &status.quarantine {
        warnings.push(format!("this host serves nothing: {misfit}"));
    }
    match status.state {
        State::Disconnected => {
            warnings.push("this host serves nothing: its link is down".to_owned());
        }
        State::Stopped | State::Suspended => {
            warnings.push(format!("this host serves nothing: it is {}", status.state));
        }
        _ => {}
    }
    if !status.one_way.is_empty() {
        let hosts = those(status.one_way);
        warnings.push(format!("heartbeats pass in one direction only to or from {hosts}"));
    }
    if !status.misfits.is_empty() {
        let misfits = those(status.misfits);
        warnings.push(format!("left out because it does not fit: {misfits}"));
    }
    if let Some(hosts) = status.plan_waits_for.filter(|hosts| !hosts.is_empty()) {
        warnings.push(format!("the new configuration waits until it is on {} too", those(hosts)));
    }
    if status.left_out_since.is_some() {
        warnings.push("the others go on without this host".to_owned());
    }
    let refused = host.membership.refusals();
    for reason in [::nlb::heartbeat::Refusal::Seal, ::nlb::heartbeat::Refusal::DuplicateId] {
        if refused.get(reason) > 0 {
            warnings.push(format!("{} times: {}", refused.get(reason), reason.explanation()));
        }
    }
    warnings
}

/// Past convergences.
pub(super) fn history(host: &Host, scene: &Scene<'_>) -> HistoryView {
    let convergences = host.membership.history().map(|past| ConvergenceView {
        began: scene.now.saturating_sub(past.began).as_secs_f64(),
        took: past.ended.map(|ended| ended.saturating_sub(past.began).as_secs_f64()),
        from: ids(past.from),
        to: ids(past.to),
        cause: past.cause.label().to_owned(),
        host: past.cause.peer().map(HostId::get),
    });
    HistoryView { convergences: convergences.collect() }
}

/// `host 3`, `hosts 2, 3`
pub(in crate::node) fn those(hosts: HostSet) -> String {
    format!("host{} {hosts}", if hosts.len() == 1 { "" } else { "s" })
}

fn ids(hosts: HostSet) -> Vec<u8> {
    hosts.iter().map(HostId::get).collect()
}
