//! `check`: a word, a table, or an array of these.

use std::time::Duration;

use realserver_agent::settings::key::{KeySpec, key, milliseconds, names, seconds};
use realserver_agent::settings::{duration, share};

use super::super::fields::{Field, Fields, set};
use super::super::problem::Report;
use super::{bytes, dns, exec, http};
use crate::health::plan::{AgentCheck, Check, CheckKind, Dns, Http, Tls, Udp, Via};

/// Most checks of one service.
const MOST: usize = 16;

/// What is sent or expected as an answer fits a packet on every path.
const LONGEST_DATAGRAM: usize = 1200;

/// Keys of every check.
pub(in crate::config) const COMMON: &[KeySpec] = &[
    key("type", "what is done, see below").words(|| names(KINDS)).required(),
    key(
        "port",
        "where. Required for `agent-check`, and where a server has no port (`fwmark`, port 0)",
    )
    .numbers(1, 65_535)
    .default("the server's")
    .note("not for `icmp`"),
    key("interval", "from one check to the next")
        .times(milliseconds(100), HOUR)
        .default("`\"2s\"`"),
    key(
        "jitter",
        "how much the interval varies at random, so that a thousand checks do not fall together",
    )
    .shares(0, 500)
    .default("`\"10%\"`")
    .note("whole"),
    key("timeout", "how long an answer may take")
        .times(milliseconds(10), HOUR)
        .default("`\"1s\"`, or the interval if that is less")
        .note("at most the interval"),
    key("rise", "passes in a row after which a failed server is up again")
        .numbers(1, 100)
        .default("2"),
    key("fall", "failures in a row after which it is down").numbers(1, 100).default("3"),
    key(
        "via",
        "to the server's own address, or to the virtual address along the way that clients' packets take: through its tunnel, or by its MAC address. `\"path\"` finds a server that lacks the virtual address and a tunnel that does not work; with `nat` it is the same as `\"server\"`. Not for `exec` and `agent-check`",
    )
    .words(|| names(VIA))
    .default("`\"server\"`"),
];

const UDP: &[KeySpec] = &[
    key(
        "send",
        "what is sent. `\\xNN` is a byte, `\\n`, `\\r`, `\\t`, `\\\\` are themselves: write it in single quotes, `'PING\\x0d\\x0a'`. Or `\"hex:50494e47\"`",
    )
    .default("nothing: an empty datagram")
    .note("at most 1200 bytes"),
    key("expect", "how an answer must begin").note("as `send`"),
];

const AGENT: &[KeySpec] =
    &[key("send", "what is sent before the answer is read (HAProxy's `agent-send`)")
        .default("nothing")
        .note("at most 1200 bytes")];

const EXECUTED: &[KeySpec] = &[key("command", "the command and its arguments")
    .of("array of texts")
    .required()
    .note("1 to 64 words, the first an absolute path")];

/// The other keys in the order of the reference, and the types that have them; [`Kind::keys`] says the
/// same for each type.
pub(in crate::config) const BY_TYPE: &[(&str, &[KeySpec])] = &[
    ("http, https", http::KEYS),
    ("https", http::TLS),
    ("dns", dns::KEYS),
    ("udp", UDP),
    ("agent-check", AGENT),
    ("exec", EXECUTED),
];

const HOUR: Duration = seconds(3600);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tcp,
    Http,
    Https,
    Dns,
    Udp,
    Icmp,
    Exec,
    AgentCheck,
}

const KINDS: &[(&str, Kind)] = &[
    ("tcp", Kind::Tcp),
    ("http", Kind::Http),
    ("https", Kind::Https),
    ("dns", Kind::Dns),
    ("udp", Kind::Udp),
    ("icmp", Kind::Icmp),
    ("exec", Kind::Exec),
    ("agent-check", Kind::AgentCheck),
];

const VIA: &[(&str, Via)] = &[("server", Via::Server), ("path", Via::Path)];

const EXAMPLE: &str = "\"tcp\", { type = \"http\", path = \"/\" }, or an array of these";
const EXEC: &str = "check = { type = \"exec\", command = [\"/usr/local/bin/check\"] }";
const AGENT_CHECK: &str = "check = { type = \"agent-check\", port = 5555 }";

impl Kind {
    /// The keys that it has.
    fn keys(self) -> &'static [&'static [KeySpec]] {
        match self {
            Kind::Tcp | Kind::Icmp => &[COMMON],
            Kind::Http => &[COMMON, http::KEYS],
            Kind::Https => &[COMMON, http::KEYS, http::TLS],
            Kind::Dns => &[COMMON, dns::KEYS],
            Kind::Udp => &[COMMON, UDP],
            Kind::Exec => &[COMMON, EXECUTED],
            Kind::AgentCheck => &[COMMON, AGENT],
        }
    }

    /// What it is when nothing more is said; `Err` tells what has to be said.
    fn bare(self) -> Result<CheckKind, (&'static str, &'static str)> {
        Ok(match self {
            Kind::Tcp => CheckKind::Tcp,
            Kind::Icmp => CheckKind::Icmp,
            Kind::Http => CheckKind::Http(Http::default()),
            Kind::Https => CheckKind::Https(Http::default(), Tls::default()),
            Kind::Dns => CheckKind::Dns(Dns::default()),
            Kind::Udp => CheckKind::Udp(Udp::default()),
            Kind::Exec => return Err(("names no command", EXEC)),
            Kind::AgentCheck => return Err(("names no port", AGENT_CHECK)),
        })
    }
}

/// All checks of a service; `None` when something is wrong.
pub(super) fn read(field: &Field<'_>, report: &mut Report<'_>) -> Option<Vec<Check>> {
    if !field.is_array() {
        return Some(vec![one(field, report)?]);
    }
    let items = field.items(EXAMPLE, report)?;
    if items.is_empty() {
        field.wrong("names no check", "leave it out for none, or write check = \"tcp\"", report);
    }
    if let Some(extra) = items.get(MOST) {
        extra.wrong(
            format!("there are {} checks, and room for {MOST}", items.len()),
            "let an exec check do several things at once",
            report,
        );
    }
    // All are looked at before the first that is wrong counts.
    let checks: Vec<_> = items.iter().map(|item| one(item, report)).collect();
    checks.into_iter().collect()
}

fn one(field: &Field<'_>, report: &mut Report<'_>) -> Option<Check> {
    if field.is_text() {
        let kind = match field.word(KINDS, report)?.bare() {
            Ok(kind) => kind,
            Err((what, remedy)) => {
                field.wrong(what, format!("write {remedy}"), report);
                return None;
            }
        };
        return Some(Check { kind, ..Check::default() });
    }
    if !field.is_table() {
        field.table(&[], EXAMPLE, report);
        return None;
    }
    let Some(word) = field.key("type") else {
        let remedy = format!("add type = \"tcp\", or another of {}", words());
        field.wrong("says not of what type it is", remedy, report);
        return None;
    };
    let kind = word.word(KINDS, report)?;
    let table = field.table(kind.keys(), EXAMPLE, report)?;
    let common = common(&table, kind, report);
    let kind = own(&table, kind, report)?;
    Some(Check { kind, ..common })
}

/// What all kinds have. What is wrong keeps its default.
fn common(table: &Fields<'_>, kind: Kind, report: &mut Report<'_>) -> Check {
    let mut check = Check::default();
    set(&mut check.port, table, "port", |field| {
        if kind == Kind::Icmp {
            field.wrong("ICMP has no ports", "remove it, or set type = \"tcp\"", report);
            return None;
        }
        field.number(", a port on the server", report).map(Some)
    });
    set(&mut check.interval, table, "interval", |field| field.time(report));
    check.timeout = check.timeout.min(check.interval);
    set(&mut check.timeout, table, "timeout", |field| {
        let timeout = field.time(report)?;
        if timeout > check.interval {
            field.wrong(
                format!(
                    "{} is longer than the interval, {}",
                    duration::show(timeout),
                    duration::show(check.interval)
                ),
                "give a timeout of at most the interval, or a longer interval",
                report,
            );
        }
        Some(timeout)
    });
    for (key, count) in [("rise", &mut check.rise), ("fall", &mut check.fall)] {
        set(count, table, key, |field| field.number(" checks in a row", report));
    }
    set(&mut check.jitter, table, "jitter", |field| {
        let permille = field.share(report)?;
        if permille % 10 != 0 {
            let what = format!("{} is no whole number of percent", share::show(permille));
            field.wrong(what, "write \"10%\"", report);
        }
        u8::try_from(permille / 10).ok()
    });
    set(&mut check.via, table, "via", |field| {
        let via = field.word(VIA, report)?;
        if via == Via::Path && matches!(kind, Kind::Icmp | Kind::Exec | Kind::AgentCheck) {
            field.wrong(
                "this check is not made to the virtual address",
                "remove it, or add a check of type tcp or http with via = \"path\"",
                report,
            );
        }
        Some(via)
    });
    check
}

/// What only this kind has.
fn own(table: &Fields<'_>, kind: Kind, report: &mut Report<'_>) -> Option<CheckKind> {
    Some(match kind {
        Kind::Tcp => CheckKind::Tcp,
        Kind::Icmp => CheckKind::Icmp,
        Kind::Http => CheckKind::Http(http::read(table, report)),
        Kind::Https => CheckKind::Https(http::read(table, report), http::tls(table, report)),
        Kind::Dns => CheckKind::Dns(dns::read(table, report)),
        Kind::Udp => {
            let mut udp = Udp::default();
            set(&mut udp.send, table, "send", |field| datagram(&field, report));
            set(&mut udp.expect, table, "expect", |field| Some(Some(datagram(&field, report)?)));
            CheckKind::Udp(udp)
        }
        Kind::Exec => CheckKind::Exec(exec::command(table, report)?),
        Kind::AgentCheck => {
            if table.get("port").is_none() {
                table.missing("port", format!("add the agent's, as in {AGENT_CHECK}"), report);
            }
            let send = table.get("send").and_then(|field| {
                let text = field.text("what the agent is sent, \"web1\\n\"", report)?;
                let fits = text.len() <= LONGEST_DATAGRAM;
                if !fits {
                    field.wrong(
                        "is too long",
                        format!("give at most {LONGEST_DATAGRAM} bytes"),
                        report,
                    );
                }
                Some(text.to_owned())
            });
            CheckKind::AgentCheck(AgentCheck { send })
        }
    })
}

fn datagram(field: &Field<'_>, report: &mut Report<'_>) -> Option<Vec<u8>> {
    let text = field.text(bytes::GRAMMAR, report)?;
    let bytes = match bytes::parse(text) {
        Ok(bytes) => bytes,
        Err(what) => {
            field.wrong(what, format!("write {}", bytes::GRAMMAR), report);
            return None;
        }
    };
    if bytes.len() > LONGEST_DATAGRAM {
        field.wrong(
            format!("{} bytes are too many", bytes.len()),
            format!("give at most {LONGEST_DATAGRAM}, which every path carries"),
            report,
        );
        return None;
    }
    Some(bytes)
}

fn words() -> String {
    let words: Vec<&str> = KINDS.iter().map(|(word, _)| *word).collect();
    words.join(", ")
}
