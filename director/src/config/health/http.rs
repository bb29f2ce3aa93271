//! Keys of a check by HTTP and HTTPS.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use realserver_agent::settings::key::{KeySpec, key};

use super::super::fields::{Field, Fields, set};
use super::super::problem::Report;
use crate::health::plan::{Http, Tls};

type Statuses = Vec<RangeInclusive<u16>>;

const STATUSES: &str = "200, \"200-399\", or an array of these";

/// Longest path, name and piece of the body, bytes.
const LONGEST: usize = 2048;

/// Keys that HTTP and HTTPS have.
pub(super) const KEYS: &[KeySpec] = &[
    key("path", "path and query")
        .default("`\"/\"`")
        .note("begins with `/`, at most 2048 characters"),
    key("host", "the header `Host`").default("the server's address").note("a name"),
    key("expect", "statuses that pass")
        .numbers(100, 599)
        .of("number, text, or array of these")
        .default("`\"200-399\"`")
        .note("as in `[200, \"204-299\"]`"),
    key("soft", "statuses that mean: no new connections, those that are there may stay")
        .numbers(100, 599)
        .of("number, text, or array of these")
        .default("`503`")
        .note("none that passes; `[]` for none"),
    key("contains", "what must be in the first 64 KiB of the answer's body")
        .note("1 to 2048 bytes"),
];

/// Keys that only HTTPS has.
pub(super) const TLS: &[KeySpec] = &[
    key("name", "whom TLS asks for (SNI), and whose certificate it must be")
        .default("`host`")
        .note("a name"),
    key("authority", "PEM file of the certificates that the server's must be signed by")
        .default("any certificate passes")
        .note("absolute path"),
];

/// Reads the request and what is expected. What is wrong keeps its default.
pub(super) fn read(table: &Fields<'_>, report: &mut Report<'_>) -> Http {
    let mut http = Http::default();
    set(&mut http.path, table, "path", |field| {
        let path = field.text("path = \"/health\"", report)?;
        let fits = path.starts_with('/')
            && path.len() <= LONGEST
            && path.bytes().all(|byte| byte.is_ascii_graphic());
        if !fits {
            field.wrong(
                format!("{path:?} cannot be asked for"),
                format!("begin with /, without blanks, at most {LONGEST} ASCII characters; others as %NN"),
                report,
            );
        }
        Some(path.to_owned())
    });
    set(&mut http.host, table, "host", |field| {
        Some(Some(name(&field, "host = \"www.example.org\"", report)?))
    });
    set(&mut http.contains, table, "contains", |field| {
        let text = field.text("contains = \"ready\"", report)?;
        if text.is_empty() || text.len() > LONGEST {
            let what = format!("{} bytes are no piece of an answer", text.len());
            field.wrong(what, format!("give 1 to {LONGEST}, or leave it out"), report);
        }
        Some(Some(text.to_owned()))
    });
    let expect = table.get("expect");
    let expected = expect.as_ref().and_then(|field| {
        let statuses = statuses(field, report)?;
        if statuses.is_empty() {
            field.wrong("no status passes", format!("write {STATUSES}"), report);
        }
        Some(statuses)
    });
    let soft = table.get("soft");
    let told = soft.as_ref().and_then(|field| statuses(field, report));
    http.expect = expected.unwrap_or(http.expect);
    match (told, soft) {
        (Some(told), Some(field)) => {
            if let Some(status) = common(&told, &http.expect) {
                field.wrong(
                    format!("status {status} passes already"),
                    "let expect and soft have no status in common",
                    report,
                );
            }
            http.soft = told;
        }
        // What the file expects passes, also if it is 503.
        _ if common(&http.soft, &http.expect).is_some() => http.soft = Vec::new(),
        _ => {}
    }
    http
}

/// Reads how TLS is spoken.
pub(super) fn tls(table: &Fields<'_>, report: &mut Report<'_>) -> Tls {
    let example = "name = \"www.example.org\"";
    let name = table.get("name").and_then(|field| name(&field, example, report));
    let authority = table
        .get("authority")
        .and_then(|field| absolute(&field, "authority = \"/etc/switchyard/servers.pem\"", report));
    Tls { name, authority }
}

/// An absolute path.
pub(super) fn absolute(
    field: &Field<'_>,
    example: &str,
    report: &mut Report<'_>,
) -> Option<PathBuf> {
    let path = field.text(example, report)?;
    if !path.starts_with('/') || path.contains('\0') || path.len() > 4095 {
        field.wrong(
            format!("{path:?} is not an absolute path"),
            format!("write {example}"),
            report,
        );
        return None;
    }
    Some(PathBuf::from(path))
}

/// What stands in a header or certificate as a name.
fn name(field: &Field<'_>, example: &str, report: &mut Report<'_>) -> Option<String> {
    let text = field.text(example, report)?;
    let fits = (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !fits {
        let what = format!("{text:?} cannot be a name");
        field.wrong(what, format!("write {example}, other letters as xn--"), report);
        return None;
    }
    Some(text.to_owned())
}

fn statuses(field: &Field<'_>, report: &mut Report<'_>) -> Option<Statuses> {
    if !field.is_array() {
        return Some(vec![status(field, report)?]);
    }
    let items = field.items(STATUSES, report)?;
    let statuses: Vec<_> = items.iter().map(|item| status(item, report)).collect();
    statuses.into_iter().collect()
}

/// One status, or a range of them.
fn status(field: &Field<'_>, report: &mut Report<'_>) -> Option<RangeInclusive<u16>> {
    if !field.is_text() {
        let number = field.number(", a status; ranges in quotes", report)?;
        return Some(number..=number);
    }
    let text = field.text(STATUSES, report)?;
    let number = |text: &str| {
        let is_status = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|number| is_status && (100..=599).contains(number))
    };
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (number(low.trim()), number(high.trim())) {
        (Some(low), Some(high)) if low <= high => Some(low..=high),
        _ => {
            let what = format!("{text:?} is no status and no range of statuses");
            field.wrong(what, format!("write {STATUSES}; they go from 100 to 599"), report);
            None
        }
    }
}

/// A status that is in both.
fn common(one: &Statuses, other: &Statuses) -> Option<u16> {
    let shared = |(a, b): (&RangeInclusive<u16>, &RangeInclusive<u16>)| {
        let low = *a.start().max(b.start());
        (low <= *a.end().min(b.end())).then_some(low)
    };
    one.iter().flat_map(|a| other.iter().map(move |b| (a, b))).find_map(shared)
}
