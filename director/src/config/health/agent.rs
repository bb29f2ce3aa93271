//! `agent = true` or `agent = { port = 6086, period = "1s", timeout = "5s" }`.

use std::net::SocketAddr;

use realserver_agent::settings::duration;
use realserver_agent::settings::key::{KeySpec, key, milliseconds, seconds};

use super::super::fields::{Field, Fields, set};
use super::super::problem::Report;
use super::http::absolute;
use crate::health::plan::AgentWatch;

/// Keys of `agent`.
pub(in crate::config) const KEYS: &[KeySpec] = &[
    key("port", "where the agent listens, UDP and TCP")
        .numbers(1, 65_535)
        .default("that of `listen` in [`[agent]`](#agent), else 6086"),
    key("period", "from one question to the next")
        .times(milliseconds(20), seconds(60))
        .default("`\"1s\"`"),
    key(
        "timeout",
        "without any answer for so long the server is down, also when only its agent has ended",
    )
    .times(milliseconds(40), seconds(600))
    .default("`\"5s\"`, or twice the period if that is more")
    .note("at least twice the period"),
    key("rise", "answers in a row after which it is back").numbers(1, 100).default("2"),
    key(
        "confirm_tcp",
        "before a server is taken for down whose answers over UDP have stopped, it is asked over TCP once: a firewall may have begun to drop UDP. `false` saves that second",
    )
    .boolean()
    .default("`true`"),
    key("key_file", "file with the secret that answers are signed with")
        .default("that of [`[agent]`](#agent)")
        .note("absolute path"),
];

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
    let table = field.table(&[KEYS], EXAMPLE, report)?;
    set(&mut agent.port, &table, "port", |field| field.number(", where the agent listens", report));
    set(&mut agent.period, &table, "period", |field| field.time(report));
    // With a long period the default must not take one lost probe for a lost server.
    let least = agent.period * 2;
    agent.timeout = agent.timeout.max(least);
    set(&mut agent.timeout, &table, "timeout", |field| {
        let timeout = field.time(report)?;
        if timeout < least {
            field.wrong(
                format!("{} is too short: one lost probe would do", duration::show(timeout)),
                format!(
                    "give at least twice the period, {}, better five times",
                    duration::show(least)
                ),
                report,
            );
        }
        Some(timeout)
    });
    set(&mut agent.rise, &table, "rise", |field| field.number(" answers in a row", report));
    set(&mut agent.confirm_tcp, &table, "confirm_tcp", |field| field.boolean(report));
    set(&mut agent.key_file, &table, "key_file", |field| {
        Some(Some(absolute(&field, "key_file = \"/etc/switchyard/agent.key\"", report)?))
    });
    Some(agent)
}
