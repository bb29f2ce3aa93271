//! A node of a cluster without a dispatcher, and the cluster as it sees it.

use super::super::nlb::views::{NlbView, ParamsView, QueryView};
use super::super::nlb::{NlbCommand, NlbRequest};
use super::super::operations::Operations;
use super::page::Page;

/// What the node says of itself; nothing of one that is a dispatcher.
pub(super) fn cluster(page: &mut Page, operations: &dyn Operations) {
    let ask = |command| {
        let reply = operations.nlb(NlbRequest { command, hosts: None }).ok()?;
        let answer = reply.answers.into_iter().next()?;
        Some((answer.state, *answer.view?))
    };
    if let Some((state, NlbView::Query(query))) = ask(NlbCommand::Query) {
        membership(page, &state, &query);
    }
    if let Some((_, NlbView::Params(params))) = ask(NlbCommand::Params) {
        rules(page, &params);
        refused(page, &params);
    }
}

fn membership(page: &mut Page, state: &str, query: &QueryView) {
    let help = "Hosts that this one takes for members of the cluster, itself included.";
    page.single("switchyard_nlb_members", "gauge", help, query.members.len());
    let help = "1 while this host is a member of a cluster that has converged, 0 else.";
    let is_converged = state.starts_with("converged");
    page.single("switchyard_nlb_converged", "gauge", help, u8::from(is_converged));
    let help = "1 while this host serves nothing because it does not fit the others.";
    page.single("switchyard_nlb_quarantined", "gauge", help, u8::from(query.quarantine.is_some()));
    let help = "Times this host has begun to converge.";
    page.single("switchyard_nlb_convergences_total", "counter", help, query.convergences);
    let help = "Flows that this host holds.";
    page.single("switchyard_nlb_flows", "gauge", help, query.flows);
    page.family("switchyard_nlb_host_up", "gauge", "1 for a host that is heard, 0 else.");
    for host in &query.hosts {
        let (id, state) = (host.host.to_string(), host.state.as_str());
        let labels = [("host", id.as_str()), ("name", host.name.as_str()), ("state", state)];
        page.sample(&labels, u8::from(host.heard));
    }
    let help = "Seconds since a host's last heartbeat.";
    page.family("switchyard_nlb_host_silent_seconds", "gauge", help);
    for host in &query.hosts {
        page.sample(&[("host", &host.host.to_string())], host.silent);
    }
}

fn rules(page: &mut Page, params: &ParamsView) {
    let help = "Buckets of 4096 that this host serves, by port rule.";
    page.family("switchyard_nlb_rule_buckets", "gauge", help);
    for rule in &params.rules {
        page.sample(&[("rule", &rule.rule)], rule.buckets);
    }
    let help = "Flows that this host holds, by port rule; rules with a common map share them.";
    page.family("switchyard_nlb_rule_flows", "gauge", help);
    for rule in &params.rules {
        page.sample(&[("rule", &rule.rule)], rule.flows);
    }
}

fn refused(page: &mut Page, params: &ParamsView) {
    for (name, help, counts) in [
        ("heartbeats", "Heartbeats that were not believed.", &params.refused_heartbeats),
        ("commands", "Remote commands that were not taken.", &params.refused_commands),
    ] {
        page.family(&format!("switchyard_nlb_refused_{name}_total"), "counter", help);
        for count in counts {
            page.sample(&[("reason", &count.reason)], count.packets);
        }
    }
}
