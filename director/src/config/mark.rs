//! `[[mark]]`.

use realserver_agent::settings::key::{KeySpec, key, names};

use super::fields::{Field, Fields};
use super::problem::Report;
use crate::control::api::Protocol;
use crate::fwmark::{BadPrefix, BadRule, MAX_RANGES, MAX_RULES, PortRange, Prefix, Rule};

/// Keys of a rule.
pub(super) const KEYS: &[KeySpec] = &[
    key("mark", "the mark that packets get").numbers(1, u32::MAX as i64).required(),
    key("protocol", "of this protocol; any of the three")
        .words(|| names(PROTOCOLS))
        .default("`\"any\"`"),
    key("source", "where the packet comes from")
        .default("anywhere")
        .note("`\"198.51.100.0/24\"`, `\"2001:db8::/32\"`, an address"),
    key("destination", "where it goes").default("anywhere").note("as `source`"),
    key("ports", "its destination port is one of these")
        .numbers(0, 65_535)
        .of("array of numbers and texts")
        .default("any")
        .note("ranges as `\"8000-8099\"`, at most 15"),
    key("source_ports", "its source port is one of these")
        .numbers(0, 65_535)
        .of("array of numbers and texts")
        .default("any")
        .note("as `ports`"),
];

const PROTOCOLS: &[(&str, Option<Protocol>)] = &[
    ("tcp", Some(Protocol::Tcp)),
    ("udp", Some(Protocol::Udp)),
    ("sctp", Some(Protocol::Sctp)),
    ("any", None),
];

const NETWORK: &str = "\"203.0.113.0/24\", \"2001:db8::/32\", or a single address";

const PORTS: &str = "[80, 443, \"8000-8099\"]";

/// All rules in the order of the file; those with a problem are left out (the report has it).
pub(super) fn read_all(root: &Fields<'_>, report: &mut Report<'_>) -> Vec<Rule> {
    let Some(field) = root.get("mark") else {
        return Vec::new();
    };
    let example = "[[mark]] on a line of its own, then the rule's keys";
    let items = field.items(example, report).unwrap_or_default();
    if let Some(extra) = items.get(MAX_RULES) {
        extra.wrong(
            format!("there are {} rules, and room for {MAX_RULES}", items.len()),
            "put ports and networks of one mark into fewer rules",
            report,
        );
    }
    let mut rules = Vec::new();
    for item in items {
        if let Some(fields) = item.table(&[KEYS], example, report)
            && let Some(rule) = read(&fields, report)
        {
            check(&fields, &item, &rule, report);
            rules.push(rule);
        }
    }
    rules
}

fn read(fields: &Fields<'_>, report: &mut Report<'_>) -> Option<Rule> {
    let mark = match fields.get("mark") {
        Some(field) => field.number("", report),
        None => {
            fields.missing("mark", "add mark = 1, the fwmark of a service", report);
            None
        }
    };
    let protocol = match fields.get("protocol") {
        Some(field) => field.word(PROTOCOLS, report),
        None => Some(None),
    };
    let source = network(fields, "source", report);
    let destination = network(fields, "destination", report);
    let ports = ports(fields, "ports", report);
    let source_ports = self::ports(fields, "source_ports", report);
    Some(Rule {
        mark: mark?,
        protocol: protocol?,
        source: source?,
        destination: destination?,
        ports: ports?,
        source_ports: source_ports?,
    })
}

/// What is wrong with the rule as a whole.
fn check(fields: &Fields<'_>, item: &Field<'_>, rule: &Rule, report: &mut Report<'_>) {
    let Err(bad) = rule.check() else { return };
    let (field, remedy) = match bad {
        BadRule::MixedFamilies => ("source", "write two rules, one for each family".to_owned()),
        BadRule::TooManyRanges => {
            let ports = if rule.ports.len() > MAX_RANGES { "ports" } else { "source_ports" };
            (ports, "write a second rule with the same mark".to_owned())
        }
        BadRule::NoMark => ("mark", "give a number from 1 to 4294967295".to_owned()),
        BadRule::Everything => {
            let remedy = format!("add destination = {NETWORK}, or ports = {PORTS}");
            ("mark", remedy)
        }
    };
    fields.get(field).as_ref().unwrap_or(item).wrong(bad.to_string(), remedy, report);
}

/// `Some(None)` is any network; `None` is a problem.
fn network(fields: &Fields<'_>, key: &str, report: &mut Report<'_>) -> Option<Option<Prefix>> {
    let Some(field) = fields.get(key) else {
        return Some(None);
    };
    let text = field.text(NETWORK, report)?;
    let bad = match text.parse::<Prefix>() {
        Ok(prefix) => return Some(Some(prefix)),
        Err(bad) => bad,
    };
    let remedy = match &bad {
        BadPrefix::NotANetwork(_) => format!("write {NETWORK}"),
        BadPrefix::TooLong { longest, .. } => format!("give a length from 0 to {longest}"),
        BadPrefix::HostBits { address, network } => {
            format!("write \"{network}\" for the network, or \"{address}\" for the address alone")
        }
        BadPrefix::Mapped(_) => "write it as an IPv4 network".to_owned(),
    };
    field.wrong(bad.to_string(), remedy, report);
    None
}

fn ports(fields: &Fields<'_>, key: &str, report: &mut Report<'_>) -> Option<Vec<PortRange>> {
    let Some(field) = fields.get(key) else {
        return Some(Vec::new());
    };
    let items = field.items(PORTS, report)?;
    if items.is_empty() {
        field.wrong("names no port", "leave it out for every port, or name one", report);
        return None;
    }
    // All are looked at before the first that is wrong counts.
    let ports: Vec<_> = items.iter().map(|item| port(item, report)).collect();
    ports.into_iter().collect()
}

fn port(item: &Field<'_>, report: &mut Report<'_>) -> Option<PortRange> {
    if item.is_text() {
        let text = item.text(PORTS, report)?;
        let range = text.parse::<PortRange>();
        if let Err(bad) = &range {
            item.wrong(bad.to_string(), format!("write ports as in {PORTS}"), report);
        }
        return range.ok();
    }
    item.number("; ranges stand in quotes, \"8000-8099\"", report).map(PortRange::one)
}
