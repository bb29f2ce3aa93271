//! Schedulers and their flags by name.

use super::fields::{Field, Fields};
use super::problem::Report;
use super::spelling::{list, nearest};

/// The schedulers of Linux 6.x, which the file may name even when none is linked in.
pub const KERNEL_SCHEDULERS: &[&str] = &[
    "rr", "wrr", "lc", "wlc", "lblc", "lblcr", "dh", "sh", "sed", "nq", "fo", "ovf", "mh", "twos",
];

/// What `ipvsadm` takes when no scheduler is named.
const DEFAULT: &str = "wlc";

/// `ipvsadm -b`: name, bit, and the scheduler that the name is an alias for.
const FLAGS: &[(&str, u32, Option<&str>)] = &[
    ("flag-1", 0x08, None),
    ("flag-2", 0x10, None),
    ("flag-3", 0x20, None),
    ("sh-fallback", 0x08, Some("sh")),
    ("sh-port", 0x10, Some("sh")),
    ("mh-fallback", 0x08, Some("mh")),
    ("mh-port", 0x10, Some("mh")),
];

/// The names of all schedulers that can be asked for.
pub(super) fn known() -> Vec<&'static str> {
    // Emptiness is not a constant of the grammar: it is so only while the registry is being filled.
    let linked: Vec<&str> = schedulers::REGISTRY.iter().map(|entry| entry.name).collect();
    if linked.is_empty() { KERNEL_SCHEDULERS.to_vec() } else { linked }
}

/// `scheduler` of a service.
pub(super) fn scheduler(fields: &Fields<'_>, known: &[&str], report: &mut Report<'_>) -> String {
    let Some(field) = fields.get("scheduler") else {
        return DEFAULT.to_owned();
    };
    let Some(name) = field.text("\"wlc\", or another scheduler's name in quotes", report) else {
        return DEFAULT.to_owned();
    };
    if !known.contains(&name) {
        let remedy = match nearest(name, known) {
            Some(near) => format!("did you mean {near:?}? known are {}", list(known)),
            None => format!("write one of {}", list(known)),
        };
        field.wrong(format!("there is no scheduler {name:?}"), remedy, report);
    }
    name.to_owned()
}

/// `scheduler_flags` of a service whose scheduler is `scheduler`.
pub(super) fn flags(fields: &Fields<'_>, scheduler: &str, report: &mut Report<'_>) -> u32 {
    let Some(field) = fields.get("scheduler_flags") else {
        return 0;
    };
    let items = field.items("[\"flag-1\"], an array of flags", report);
    items
        .unwrap_or_default()
        .iter()
        .filter_map(|item| flag(item, scheduler, report))
        .fold(0, |all, flag| all | flag)
}

fn flag(item: &Field<'_>, scheduler: &str, report: &mut Report<'_>) -> Option<u32> {
    let words: Vec<(&str, (u32, Option<&str>))> =
        FLAGS.iter().map(|(name, bit, of)| (*name, (*bit, *of))).collect();
    let (bit, of) = item.word(&words, report)?;
    match of {
        Some(of) if of != scheduler => {
            let plain = FLAGS
                .iter()
                .find(|(_, other, of)| *other == bit && of.is_none())
                .map_or("", |(name, _, _)| name);
            item.wrong(
                format!("this is a flag of scheduler {of}, the service's is {scheduler}"),
                format!("set scheduler = {of:?}, or write {plain:?} if the bare flag is meant"),
                report,
            );
            None
        }
        _ => Some(bit),
    }
}
