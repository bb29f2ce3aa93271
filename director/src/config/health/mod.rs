//! `check`, `agent`, `all_down` and `feedback` of a service, and `[health]`.
//!
//! Knows what may be written and what goes with what. What is made of it is in
//! [`crate::health::plan`].

mod agent;
mod agreement;
mod bytes;
mod checks;
mod dns;
mod exec;
mod feedback;
mod http;
mod settings;

use super::fields::Fields;
use super::problem::Report;
use crate::health::plan::{AgentWatch, AllDown, ServiceHealth};
pub(super) use agent::{KEYS as AGENT, of_servers as agent_of_servers};
pub(super) use agreement::check_ports;
pub(super) use checks::{BY_TYPE as CHECK_BY_TYPE, COMMON as CHECK};
pub(super) use feedback::KEYS as FEEDBACK;
pub use settings::HealthSettings;
pub(super) use settings::{KEYS as SETTINGS, read as read_settings};

pub(super) const ALL_DOWN: &[(&str, AllDown)] =
    &[("keep", AllDown::Keep), ("drop", AllDown::Drop), ("fallback", AllDown::Fallback)];

/// Reads what a service says of how its servers are watched; what is wrong is in the report. `agent`:
/// how their agents are asked unless the service says otherwise; `scheduler`: the service's.
pub(super) fn read(
    fields: &Fields<'_>,
    agent: &AgentWatch,
    scheduler: &str,
    report: &mut Report<'_>,
) -> ServiceHealth {
    let checks = match fields.get("check") {
        Some(field) => checks::read(&field, report),
        None => Some(Vec::new()),
    };
    let agent = fields.get("agent").and_then(|field| agent::read(&field, agent, report));
    let feedback = fields.get("feedback").and_then(|field| feedback::read(&field, report));
    let all_down = all_down(fields, report);
    agreement::check(fields, checks.as_deref(), feedback.is_some(), scheduler, report);
    ServiceHealth { checks: checks.unwrap_or_default(), agent, all_down, feedback }
}

/// `all_down`; a fallback server says it too.
fn all_down(fields: &Fields<'_>, report: &mut Report<'_>) -> AllDown {
    let field = fields.get("all_down");
    let word = field.as_ref().and_then(|field| field.word(ALL_DOWN, report));
    match (word, field, fields.get("fallback")) {
        (Some(AllDown::Fallback), Some(field), None) => {
            field.wrong(
                "there is no fallback server",
                "add fallback = \"10.0.0.99:80\", or write \"keep\" or \"drop\"",
                report,
            );
        }
        (Some(AllDown::Keep | AllDown::Drop), Some(_), Some(fallback)) => fallback.wrong(
            "all_down says that nothing goes to a fallback server",
            "set all_down = \"fallback\" or leave it out, or remove fallback",
            report,
        ),
        (None, None, Some(_)) => return AllDown::Fallback,
        _ => {}
    }
    word.unwrap_or_default()
}
