//! `feedback = true` or `feedback = { least = "10%", most = "100%", hysteresis = "5%", step = "20%" }`.

use realserver_agent::settings::key::{KeySpec, key};
use realserver_agent::settings::share;

use super::super::fields::{Field, set};
use super::super::problem::Report;
use crate::health::plan::Feedback;

/// Keys of `feedback`.
pub(in crate::config) const KEYS: &[KeySpec] = &[
    key("least", "the smallest factor").shares(1, 1000).default("`\"10%\"`"),
    key("most", "the largest").shares(1, 10_000).default("`\"100%\"`").note("at least `least`"),
    key("hysteresis", "a change of the factor by less than this is not made")
        .shares(0, 1000)
        .default("`\"5%\"`"),
    key("step", "the largest change at once").shares(1, 10_000).default("`\"20%\"`"),
];

const EXAMPLE: &str = "feedback = true, or feedback = { least = \"10%\", step = \"20%\" }";

/// How weights follow; `None` when they do not, or when nothing of this can be read.
pub(super) fn read(field: &Field<'_>, report: &mut Report<'_>) -> Option<Feedback> {
    let mut feedback = Feedback::default();
    if !field.is_table() {
        if !field.is_boolean() {
            field.table(&[], EXAMPLE, report);
            return None;
        }
        return field.boolean(report)?.then_some(feedback);
    }
    let table = field.table(&[KEYS], EXAMPLE, report)?;
    set(&mut feedback.least, &table, "least", |field| field.share(report));
    set(&mut feedback.most, &table, "most", |field| {
        let most = field.share(report)?;
        if most < feedback.least {
            let least = share::show(feedback.least);
            let what = format!("{} is below least, which is {least}", share::show(most));
            field.wrong(what, "make it larger, or lower least", report);
        }
        Some(most)
    });
    set(&mut feedback.hysteresis, &table, "hysteresis", |field| field.share(report));
    set(&mut feedback.step, &table, "step", |field| field.share(report));
    Some(feedback)
}
