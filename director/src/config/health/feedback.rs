//! `feedback = true` or `feedback = { least = "10%", most = "100%", hysteresis = "5%", step = "20%" }`.

use super::super::fields::{Field, set};
use super::super::percent;
use super::super::problem::Report;
use crate::health::plan::Feedback;

/// Keys of `feedback`.
pub(in crate::config) const KEYS: &[&str] = &["least", "most", "hysteresis", "step"];

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
    let table = field.table(KEYS, EXAMPLE, report)?;
    set(&mut feedback.least, &table, "least", |field| percent::read(&field, 1..=1000, report));
    set(&mut feedback.most, &table, "most", |field| {
        let most = percent::read(&field, 1..=10_000, report)?;
        if most < feedback.least {
            let least = percent::show(feedback.least);
            let what = format!("{} is below least, which is {least}", percent::show(most));
            field.wrong(what, "make it larger, or lower least", report);
        }
        Some(most)
    });
    set(&mut feedback.hysteresis, &table, "hysteresis", |field| {
        percent::read(&field, 0..=1000, report)
    });
    set(&mut feedback.step, &table, "step", |field| percent::read(&field, 1..=10_000, report));
    Some(feedback)
}
