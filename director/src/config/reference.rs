//! The reference of the configuration file: all its tables, as the parser goes by them.
//!
//! The tables of `docs/configuration.md` and the manual page `switchyard.toml(5)` are written from here.

use realserver_agent::settings as agent;
use realserver_agent::settings::key::KeySpec;

use super::{health, kernel_settings, mark, nlb, scheduling, server, service, settings};

/// A table of the file.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its path: `service.persistence`; empty for the top of the file. One with `, by type` has the keys
    /// that depend on the `type` that stands in the table.
    pub path: &'static str,
    /// Its keys, and the types that have them; no type is all of them.
    pub keys: &'static [(&'static str, &'static [KeySpec])],
}

const fn table(path: &'static str, keys: &'static [(&'static str, &'static [KeySpec])]) -> Table {
    Table { path, keys }
}

/// All tables, in the order of the page.
pub const TABLES: &[Table] = &[
    table("", &[("", settings::KEYS)]),
    table("timeouts", &[("", settings::TIMEOUTS)]),
    table("settings", &[("", kernel_settings::KEYS)]),
    table("service", &[("", service::KEYS)]),
    table("service.scheduler", &[("", scheduling::KEYS)]),
    table("service.persistence", &[("", service::PERSISTENCE)]),
    table("service.check", &[("", health::CHECK)]),
    table("service.check, by type", health::CHECK_BY_TYPE),
    table("service.agent", &[("", health::AGENT)]),
    table("service.fallback", &[("", server::FALLBACK)]),
    table("service.feedback", &[("", health::FEEDBACK)]),
    table("health", &[("", health::SETTINGS)]),
    table("agent", &[("", agent::KEYS)]),
    table("agent.load", &[("", agent::LOAD)]),
    table("agent.full", &[("", agent::FULL)]),
    table("agent.check", agent::CHECK),
    table("mark", &[("", mark::KEYS)]),
    table("service.server", &[("", server::KEYS)]),
    table("service.server.tunnel", &[("", server::TUNNEL)]),
    table("nlb", &[("", nlb::KEYS)]),
    table("nlb.rule", &[("", nlb::RULE)]),
];

/// Where a key belongs that stands where it is not known, in words; `None` when it belongs nowhere, or to
/// too many tables for one of them to be meant.
pub(super) fn home(key: &str) -> Option<String> {
    let has_it = |table: &&Table| table.rows().any(|(_, spec)| spec.name == key);
    let homes: Vec<&Table> = TABLES.iter().filter(has_it).collect();
    let [table] = homes[..] else { return None };
    let of: Vec<&str> =
        table.rows().filter(|(_, spec)| spec.name == key).map(|(of, _)| of).collect();
    Some(match (table.path, of.join(", ")) {
        ("", _) => {
            "it belongs to the top of the file, before the first line in [brackets]".to_owned()
        }
        (path, of) if of.is_empty() => format!("it belongs to the table {path}"),
        (_, of) => format!("it is for type {of}"),
    })
}

impl Table {
    /// Every key with the types that have it.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, &'static KeySpec)> {
        self.keys.iter().flat_map(|(of, keys)| keys.iter().map(move |key| (*of, key)))
    }

    /// The table in Markdown, with a column `of` where some keys are not for every type.
    pub fn markdown(&self) -> String {
        let by_type = self.keys.iter().any(|(of, _)| !of.is_empty());
        let (head, line) = if by_type { (" of |", "---|") } else { ("", "") };
        let mut text = format!(
            "| key |{head} type | default | values | what it does |\n|---|{line}---|---|---|---|\n"
        );
        for (of, key) in self.rows() {
            let of = match (by_type, of) {
                (false, _) => String::new(),
                (true, "") => " all |".to_owned(),
                (true, of) => format!(" {of} |"),
            };
            let KeySpec { name, kind, default, does, .. } = key;
            text += &format!("| `{name}` |{of} {kind} | {default} | {} | {does} |\n", key.values());
        }
        text.replace("|  |", "| |")
    }
}
