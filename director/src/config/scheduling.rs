//! Schedulers, their flags by name, and what hashing ones go by.

use realserver_agent::settings::key::{KeySpec, key, names};
use realserver_agent::settings::spelling::{list, nearest};

use super::fields::{Field, Fields, set};
use super::problem::Report;
use crate::control::api::{HashKey, Placement, Protocol};

/// Keys of `scheduler`, in its long form.
pub(super) const KEYS: &[KeySpec] = &[
    key("name", "the scheduler").required().note("as above"),
    key("key", "what decides on the server, see [dht](dht.md#keys)")
        .words(|| names(HASH_KEYS))
        .default("the scheduler's own")
        .note("the last for UDP only; with `dht`, `mh`, `sh`, `dh`"),
    key(
        "sticky",
        "servers of weight 0 keep their part, which their replicas serve; nobody else's keys move",
    )
    .boolean()
    .default("`false`")
    .note("with `dht`"),
    key("variants", "rows of the table")
        .numbers(1, u16::MAX as i64)
        .default("512")
        .note("with `dht`"),
];

/// How the long form is written.
const EXAMPLE: &str = "{ name = \"dht\", key = \"dns-name\" }";

const HASH_KEYS: &[(&str, HashKey)] = &[
    ("source", HashKey::Source),
    ("source-port", HashKey::SourcePort),
    ("destination", HashKey::Destination),
    ("tuple", HashKey::Tuple),
    ("dns-name", HashKey::DnsName),
];

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
    ("dht-sticky", 0x08, Some("dht")),
    ("dht-port", 0x10, Some("dht")),
    ("dht-dns-name", 0x20, Some("dht")),
];

/// The names of all schedulers that can be asked for.
pub(super) fn known() -> Vec<&'static str> {
    // Emptiness is not a constant of the grammar: it is so only while the registry is being filled.
    let linked: Vec<&str> = schedulers::REGISTRY.iter().map(|entry| entry.name).collect();
    if linked.is_empty() { KERNEL_SCHEDULERS.to_vec() } else { linked }
}

/// `scheduler` of a service of `protocol`, when that is known: its name, and what it goes by.
///
/// `scheduler = "wlc"` or `scheduler = { name = "dht", key = "dns-name" }`.
pub(super) fn scheduler(
    fields: &Fields<'_>,
    protocol: Option<Protocol>,
    known: &[&str],
    report: &mut Report<'_>,
) -> (String, Placement) {
    let (default, mut placement) = (DEFAULT.to_owned(), Placement::default());
    let Some(field) = fields.get("scheduler") else {
        return (default, placement);
    };
    if !field.is_table() {
        return (name(&field, known, report).unwrap_or(default), placement);
    }
    let Some(table) = field.table(&[KEYS], EXAMPLE, report) else {
        return (default, placement);
    };
    let Some(name_field) = table.get("name") else {
        table.missing("name", format!("write scheduler = {EXAMPLE}"), report);
        return (default, placement);
    };
    let Some(name) = name(&name_field, known, report) else {
        return (default, placement);
    };
    if let Some(field) = table.get("key") {
        placement.key = hash_key(&field, &name, protocol, report);
    }
    for key in ["sticky", "variants"] {
        if let Some(field) = table.get(key).filter(|_| name != "dht") {
            let remedy = "remove it, or set name = \"dht\"";
            field.wrong(
                format!("this is for scheduler dht, the service's is {name}"),
                remedy,
                report,
            );
        }
    }
    set(&mut placement.sticky, &table, "sticky", |field| field.boolean(report));
    set(&mut placement.variants, &table, "variants", |field| {
        field.number(": rows of the table", report)
    });
    (name, placement)
}

/// The name of a scheduler, though there may be no such one.
fn name(field: &Field<'_>, known: &[&str], report: &mut Report<'_>) -> Option<String> {
    let name = field.text("\"wlc\", or another scheduler's name in quotes", report)?;
    if !known.contains(&name) {
        let remedy = match nearest(name, known) {
            Some(near) => format!("did you mean {near:?}? known are {}", list(known)),
            None => format!("write one of {}", list(known)),
        };
        field.wrong(format!("there is no scheduler {name:?}"), remedy, report);
    }
    Some(name.to_owned())
}

fn hash_key(
    field: &Field<'_>,
    scheduler: &str,
    protocol: Option<Protocol>,
    report: &mut Report<'_>,
) -> Option<HashKey> {
    let key = field.word(HASH_KEYS, report)?;
    if !Placement::SCHEDULERS.contains(&scheduler) {
        field.wrong(
            format!("scheduler {scheduler} does not go by a key"),
            format!("remove it, or set name to one of {}", list(&Placement::SCHEDULERS)),
            report,
        );
    }
    if key == HashKey::DnsName && protocol.is_some_and(|protocol| protocol != Protocol::Udp) {
        field.wrong(
            "only datagrams of UDP are read for the name in a DNS question",
            "listen on /udp, or set key = \"source\"",
            report,
        );
    }
    Some(key)
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
