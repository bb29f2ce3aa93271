//! What of a service's health goes with what else.

use super::super::fields::Fields;
use super::super::problem::Report;
use crate::control::api::ServerSpec;
use crate::health::plan::{Check, CheckKind};

/// Schedulers that look at a weight only to see whether it is 0.
const WEIGHTLESS: &[&str] = &["rr", "lc", "dh", "load"];

/// Checks what needs somebody that watches the servers. `checks` is `None` when they are wrong
/// themselves.
pub(super) fn check(
    fields: &Fields<'_>,
    checks: Option<&[Check]>,
    has_feedback: bool,
    scheduler: &str,
    report: &mut Report<'_>,
) {
    let agent = fields.get("agent");
    let has_agent = agent.is_some_and(|field| !field.is_false());
    let watched = has_agent || fields.get("check").is_some();
    for key in ["all_down", "fallback"] {
        if !watched && let Some(field) = fields.get(key) {
            field.wrong(
                "nothing watches the servers, so none of them ever fails",
                "add check = \"tcp\", or agent = true where realserver-agent runs",
                report,
            );
        }
    }
    if has_feedback
        && WEIGHTLESS.contains(&scheduler)
        && let Some(field) = fields.get("feedback")
    {
        field.wrong(
            format!("scheduler {scheduler} does not go by weights, so none would follow"),
            "set scheduler to wlc, wrr or another that does, or remove feedback",
            report,
        );
    }
    let tells_more =
        |check: &Check| matches!(check.kind, CheckKind::Exec(_) | CheckKind::AgentCheck(_));
    if has_feedback
        && !has_agent
        && let Some(checks) = checks
        && !checks.iter().any(tells_more)
        && let Some(field) = fields.get("feedback")
    {
        field.wrong(
            "nothing tells how loaded the servers are",
            "add agent = true, or a check of type agent-check or exec, or remove feedback",
            report,
        );
    }
}

/// Checks that every check has a port to go to, for services that are for any port.
pub(in crate::config) fn check_ports(
    fields: &Fields<'_>,
    checks: &[Check],
    servers: &[ServerSpec],
    report: &mut Report<'_>,
) {
    let needs_port = |check: &Check| {
        !matches!(check.kind, CheckKind::Icmp | CheckKind::Exec(_)) && check.port.is_none()
    };
    if servers.iter().all(|server| server.address.port() != 0) {
        return;
    }
    if let Some(check) = checks.iter().find(|check| needs_port(check))
        && let Some(field) = fields.get("check")
    {
        let kind = check.kind.word();
        field.wrong(
            "the service is for any port, and the check does not say which one to try",
            format!(
                "write check = {{ type = \"{kind}\", port = 80 }}, or give every server a port"
            ),
            report,
        );
    }
}
