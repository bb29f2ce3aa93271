//! `[health]`: what is the same for all services.

use std::path::{Path, PathBuf};

use realserver_agent::settings::key::{KeySpec, key};

use super::super::fields::Fields;
use super::super::problem::Report;
use super::http::absolute;

/// Keys of `[health]`.
pub(in crate::config) const KEYS: &[KeySpec] = &[key(
    "memory",
    "the file in which it is kept how servers are, so that a restart of the director does not take a dead server for one that is up; `false`: it is not kept",
)
.of("text or `false`")
.default("`health.json` beside the control socket")
.note("absolute path")];

/// File of the memory where the file says nothing, beside the control socket.
const MEMORY: &str = "health.json";

/// `[health]` with its defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthSettings {
    /// `memory`: where it is kept how servers are, so that a restart does not forget it; `None` =
    /// nowhere.
    pub memory: Option<PathBuf>,
}

/// Reads the table, for a director whose control socket is `control`.
pub(in crate::config) fn read(
    root: &Fields<'_>,
    control: &Path,
    report: &mut Report<'_>,
) -> HealthSettings {
    let default = HealthSettings { memory: Some(control.with_file_name(MEMORY)) };
    let example = "[health] on a line of its own, then memory = false";
    let Some(table) = root.get("health").and_then(|field| field.table(&[KEYS], example, report))
    else {
        return default;
    };
    let Some(field) = table.get("memory") else { return default };
    if field.is_boolean() {
        return if field.is_false() { HealthSettings { memory: None } } else { default };
    }
    let path = absolute(&field, "memory = \"/var/lib/switchyard/health.json\", or false", report);
    HealthSettings { memory: path }
}
