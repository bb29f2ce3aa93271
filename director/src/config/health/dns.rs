//! Keys of a check by DNS.

use realserver_agent::settings::key::{KeySpec, key};

use super::super::fields::{Field, Fields, set};
use super::super::problem::Report;
use crate::health::plan::Dns;

/// Types of record by their words (the registry of RFC 6895); others by number.
const RECORDS: &[(&str, u16)] = &[
    ("A", 1),
    ("NS", 2),
    ("CNAME", 5),
    ("SOA", 6),
    ("PTR", 12),
    ("MX", 15),
    ("TXT", 16),
    ("AAAA", 28),
    ("SRV", 33),
    ("NAPTR", 35),
    ("DS", 43),
    ("DNSKEY", 48),
    ("SVCB", 64),
    ("HTTPS", 65),
    ("CAA", 257),
];

/// Keys that only this check has.
pub(super) const KEYS: &[KeySpec] = &[
    key("name", "what is asked for").default("`\".\"`").note("a domain name"),
    key("record", "the type of record")
        .numbers(1, 65_535)
        .of("text or number")
        .default("`\"SOA\"`")
        .note("or `\"A\"`, `\"AAAA\"`, `\"MX\"`, ..."),
];

/// Reads the question. What is wrong keeps its default.
pub(super) fn read(table: &Fields<'_>, report: &mut Report<'_>) -> Dns {
    let mut dns = Dns::default();
    set(&mut dns.name, table, "name", |field| {
        let name = field.text("name = \"example.org\"", report)?;
        if !is_name(name) {
            let what = format!("{name:?} is not a name that can be asked for");
            let remedy = "write \"example.org\", or \".\" for the root: labels of 1 to 63 ASCII characters, 253 in all";
            field.wrong(what, remedy, report);
        }
        Some(name.to_owned())
    });
    set(&mut dns.record, table, "record", |field| record(&field, report));
    dns
}

/// RFC 1035 section 2.3.4.
fn is_name(name: &str) -> bool {
    let bare = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len()) && label.bytes().all(|byte| byte.is_ascii_graphic())
    };
    name == "." || (bare.len() <= 253 && bare.split('.').all(is_label))
}

fn record(field: &Field<'_>, report: &mut Report<'_>) -> Option<u16> {
    if !field.is_text() {
        return field.number(", the number of a type of record", report);
    }
    let word = field.text("record = \"SOA\"", report)?;
    let found = RECORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
    if found.is_none() {
        let known: Vec<&str> = RECORDS.iter().map(|(known, _)| *known).collect();
        let remedy = format!("write one of {}, or the number of another", known.join(", "));
        field.wrong(format!("{word:?} is not a type of record known here"), remedy, report);
    }
    found.map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn names_have_labels_that_fit_a_question() {
        let long = "x".repeat(63);
        let longest = format!("{long}.{long}.{long}.{}", "x".repeat(61));
        for name in [".", "org", "example.org", "example.org.", "_sip._udp.example.org", &longest] {
            assert!(is_name(name), "{name}");
        }
        for name in
            ["", "..", ".org", "a..b", "a b", "é", &format!("x{long}"), &format!("x{longest}")]
        {
            assert!(!is_name(name), "{name}");
        }
    }
}
