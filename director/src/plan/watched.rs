//! How servers are watched, in a line each.

use std::time::Duration;

use super::fields::one;
use crate::control::plan::FieldChange;
use crate::health::plan::{AgentWatch, AllDown, Check, CheckKind, ServiceHealth, Via};

/// What of it differs. A difference that its line does not show is told as such.
pub(super) fn differ(old: &ServiceHealth, new: &ServiceHealth) -> Vec<FieldChange> {
    let texts = [
        ("check", old.checks != new.checks, checks(&old.checks), checks(&new.checks)),
        ("agent", old.agent != new.agent, agent(old), agent(new)),
        ("all_down", old.all_down != new.all_down, all_down(old), all_down(new)),
        ("feedback", old.feedback != new.feedback, feedback(old), feedback(new)),
    ];
    let differing = texts.into_iter().filter(|(_, differs, ..)| *differs);
    differing
        .filter_map(|(field, _, old, new)| {
            let new = if new == old { format!("{new}, with other details") } else { new };
            one(field, old, new)
        })
        .collect()
}

fn checks(checks: &[Check]) -> String {
    checks.iter().map(check).collect::<Vec<_>>().join("; ")
}

/// `http /health every 2s, timeout 1s, rise 2, fall 3`
fn check(check: &Check) -> String {
    let what = match &check.kind {
        CheckKind::Http(http) | CheckKind::Https(http, _) => format!(" {}", http.path),
        CheckKind::Dns(dns) => format!(" {}", dns.name),
        CheckKind::Exec(words) => format!(" {}", words.join(" ")),
        CheckKind::Tcp | CheckKind::Udp(_) | CheckKind::Icmp | CheckKind::AgentCheck(_) => {
            String::new()
        }
    };
    let port = check.port.map(|port| format!(" port {port}")).unwrap_or_default();
    let via = if check.via == Via::Path { ", to the VIP" } else { "" };
    let Check { interval, timeout, rise, fall, .. } = check;
    let (interval, timeout) = (time(*interval), time(*timeout));
    let word = check.kind.word();
    format!("{word}{what}{port} every {interval}, timeout {timeout}, rise {rise}, fall {fall}{via}")
}

fn agent(health: &ServiceHealth) -> String {
    health.agent.as_ref().map_or_else(String::new, |agent| {
        let AgentWatch { port, period, timeout, .. } = agent;
        format!("port {port} every {}, timeout {}", time(*period), time(*timeout))
    })
}

fn all_down(health: &ServiceHealth) -> String {
    match health.all_down {
        AllDown::Keep => "keep",
        AllDown::Drop => "drop",
        AllDown::Fallback => "fallback",
    }
    .to_owned()
}

fn feedback(health: &ServiceHealth) -> String {
    health.feedback.map_or_else(String::new, |it| {
        format!("from {} to {} per mille of the weight", it.least, it.most)
    })
}

fn time(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis()),
    }
}
