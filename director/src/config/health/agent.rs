//! `agent = true` or `agent = { port = 6086, period = "1s", timeout = "5s" }`.

use std::net::SocketAddr;
use std::time::Duration;

use super::super::duration;
use super::super::fields::{Field, Fields, set};
use super::super::problem::Report;
use super::http::absolute;
use crate::health::plan::AgentWatch;

/// Keys of `agent`.
pub(in crate::config) const KEYS: &[&str] =
    &["port", "period", "timeout", "rise", "confirm_tcp", "key_file"];

const EXAMPLE: &str = "agent = true, or agent = { period = \"1s\", timeout = \"5s\" }";

/// How agents are to be asked by what the table `[agent]` tells them, which lies in the same file. What
/// is wrong in it is noted.
pub(in crate::config) fn of_servers(
    root: &Fields<'_>,
    text: &str,
    report: &mut Report<'_>,
) -> AgentWatch {
    let mut watch = AgentWatch::default();
    if root.get("agent").is_none() {
        return watch;
    }
    match realserver_agent::settings::parse_agent(text) {
        Ok(agent) => {
            watch.port = agent.listen.first().map_or(watch.port, SocketAddr::port);
            watch.key_file = agent.key_file;
        }
        Err(faults) => {
            for fault in faults {
                report.add(&fault.span, fault.key, fault.what, fault.remedy);
            }
        }
    }
    watch
}

/// How the agent is asked; `None` when it is not, or when nothing of this can be read.
pub(super) fn read(
    field: &Field<'_>,
    default: &AgentWatch,
    report: &mut Report<'_>,
) -> Option<AgentWatch> {
    let mut agent = default.clone();
    if !field.is_table() {
        if !field.is_boolean() {
            field.table(&[], EXAMPLE, report);
            return None;
        }
        return field.boolean(report)?.then_some(agent);
    }
    let table = field.table(KEYS, EXAMPLE, report)?;
    set(&mut agent.port, &table, "port", |field| {
        let port = field.integer(1..=65_535, ", where the agent listens", report)?;
        u16::try_from(port).ok()
    });
    let minute = Duration::from_secs(60);
    set(&mut agent.period, &table, "period", |field| {
        field.time(Duration::from_millis(20)..=minute, report)
    });
    // With a long period the default must not take one lost probe for a lost server.
    let least = agent.period * 2;
    agent.timeout = agent.timeout.max(least);
    set(&mut agent.timeout, &table, "timeout", |field| {
        let timeout = field.time(Duration::from_millis(40)..=minute * 10, report)?;
        if timeout < least {
            field.wrong(
                format!("{} is too short: one lost probe would do", duration::show_fine(timeout)),
                format!(
                    "give at least twice the period, {}, better five times",
                    duration::show_fine(least)
                ),
                report,
            );
        }
        Some(timeout)
    });
    set(&mut agent.rise, &table, "rise", |field| {
        let rise = field.integer(1..=100, " answers in a row", report)?;
        u32::try_from(rise).ok()
    });
    set(&mut agent.confirm_tcp, &table, "confirm_tcp", |field| field.boolean(report));
    set(&mut agent.key_file, &table, "key_file", |field| {
        Some(Some(absolute(&field, "key_file = \"/etc/switchyard/agent.key\"", report)?))
    });
    Some(agent)
}
