//! Port rules: one from each service, and those of `[[nlb.rule]]` for what has no service.
//!
//! | in a service | in a rule |
//! |---|---|
//! | `listen` | scope, protocol and port; port 0 is what no other service of the VIP takes |
//! | no `persistence` | affinity none |
//! | `persistence` | affinity by that prefix of the client's address |
//! | `scheduler = "fo"` | a single host: the highest weight, then the first of the file |
//! | a server's `weight` | that host's share, 0 to 100 |

use std::net::IpAddr;
use std::ops::RangeInclusive;

use ::nlb::host::{HostId, MAX_HOSTS};
use ::nlb::rules::{Affinity, MAX_WEIGHT, Mode, Protocol as RuleProtocol, Rule, Rules, Scope};

use realserver_agent::settings::key::{KeySpec, key, names};

use super::super::DeclaredService;
use super::super::fields::{Field, Fields};
use super::super::problem::Report;
use super::address;
use crate::control::api::{Protocol, ServiceKey, ServiceSpec};

/// Keys of a rule.
pub(in super::super) const KEYS: &[KeySpec] = &[
    key("vip", "for this virtual address; a rule for one comes before a rule for all")
        .default("all")
        .note("an address"),
    key("protocol", "the protocols it is for").words(|| names(PROTOCOLS)).default("`\"both\"`"),
    key("ports", "no port may have two rules of one `vip`")
        .numbers(0, 65_535)
        .of("number or text")
        .required()
        .note("`\"8000-8099\"`"),
    key("filter", "all hosts share; one host takes all; none takes any")
        .words(|| names(FILTERS))
        .default("`\"multiple\"`"),
    key("affinity", "what stays together: a connection, an address, a network (/24, /64)")
        .words(|| names(AFFINITIES))
        .default("`\"single\"`")
        .note("with `multiple` only"),
    key("weights", "shares, with `multiple` only")
        .numbers(0, MAX_WEIGHT as i64)
        .of("array of numbers")
        .default("50 each")
        .note("one for each host"),
    key("priorities", "with `single` only: the lowest of the hosts that live takes all")
        .numbers(1, MAX_HOSTS as i64)
        .of("array of numbers")
        .default("the ids")
        .note("one for each host"),
];

/// The scheduler that gives everything to one server, as long as it can.
const SINGLE: &str = "fo";

/// A port rule and where it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRule {
    /// The line of its service or of its own table.
    pub line: usize,
    /// The rule.
    pub rule: Rule,
}

const PROTOCOLS: &[(&str, RuleProtocol)] =
    &[("tcp", RuleProtocol::Tcp), ("udp", RuleProtocol::Udp), ("both", RuleProtocol::Both)];

/// The three words of `filter`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Filter {
    Multiple,
    Single,
    Disabled,
}

const FILTERS: &[(&str, Filter)] =
    &[("multiple", Filter::Multiple), ("single", Filter::Single), ("disabled", Filter::Disabled)];

const AFFINITIES: &[(&str, Affinity)] =
    &[("none", Affinity::None), ("single", Affinity::SINGLE), ("network", Affinity::NETWORK)];

/// The weight of hosts where a rule does not say: as in the original.
const DEFAULT_WEIGHT: u8 = 50;

const PORTS: &str = "ports = 80, or ports = \"8000-8099\"";

/// The rules of `[[nlb.rule]]`.
pub(super) fn read(
    field: Option<&Field<'_>>,
    hosts: &[Vec<IpAddr>],
    report: &mut Report<'_>,
) -> Vec<PortRule> {
    let Some(field) = field else { return Vec::new() };
    let example = "[[nlb.rule]] on a line of its own, then the rule's keys";
    let mut rules = Vec::new();
    for item in field.items(example, report).unwrap_or_default() {
        if let Some(fields) = item.table(&[KEYS], example, report) {
            let line = report.line(item.offset());
            rules.extend(one(&fields, line, hosts, report));
        }
    }
    rules
}

fn one(
    fields: &Fields<'_>,
    line: usize,
    hosts: &[Vec<IpAddr>],
    report: &mut Report<'_>,
) -> Option<PortRule> {
    let scope = match fields.get("vip") {
        Some(field) => address(&field, report).map(Scope::Vip),
        None => Some(Scope::All),
    };
    let protocol = match fields.get("protocol") {
        Some(field) => field.word(PROTOCOLS, report),
        None => Some(RuleProtocol::Both),
    };
    let ports = match fields.get("ports") {
        Some(ports) => range(&ports, report),
        None => {
            fields.missing("ports", format!("add {PORTS}"), report);
            None
        }
    };
    let mode = mode(fields, hosts, report);
    let (first_port, last_port) = ports?.into_inner();
    let rule = Rule { scope: scope?, protocol: protocol?, first_port, last_port, mode: mode? };
    Some(PortRule { line, rule })
}

fn range(field: &Field<'_>, report: &mut Report<'_>) -> Option<RangeInclusive<u16>> {
    if !field.is_text() {
        let port = field.number("; ranges stand in quotes, \"8000-8099\"", report)?;
        return Some(port..=port);
    }
    let text = field.text(PORTS, report)?;
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    match (from.trim().parse::<u16>(), to.trim().parse::<u16>()) {
        (Ok(from), Ok(to)) if from <= to => Some(from..=to),
        _ => {
            let what = format!("{text:?} is not a range of ports");
            field.wrong(what, format!("write {PORTS}"), report);
            None
        }
    }
}

/// Who takes what the rule covers. A key that goes with another `filter` is a mistake.
fn mode(fields: &Fields<'_>, hosts: &[Vec<IpAddr>], report: &mut Report<'_>) -> Option<Mode> {
    let filter = match fields.get("filter") {
        Some(field) => field.word(FILTERS, report)?,
        None => Filter::Multiple,
    };
    for (key, wanted, word) in [
        ("affinity", Filter::Multiple, "multiple"),
        ("weights", Filter::Multiple, "multiple"),
        ("priorities", Filter::Single, "single"),
    ] {
        if filter != wanted
            && let Some(field) = fields.get(key)
        {
            let what = format!("goes with filter = {word:?} only");
            field.wrong(what, format!("remove it, or set filter = {word:?}"), report);
        }
    }
    match filter {
        Filter::Multiple => {
            let affinity = match fields.get("affinity") {
                Some(field) => field.word(AFFINITIES, report),
                None => Some(Affinity::SINGLE),
            };
            let weights = numbers(fields, "weights", hosts, report)?;
            let weights = weights.unwrap_or_else(|| vec![DEFAULT_WEIGHT; hosts.len()]);
            Some(Mode::Multiple { affinity: affinity?, weights: members(&weights) })
        }
        Filter::Single => {
            let priorities = numbers(fields, "priorities", hosts, report)?;
            let priorities = priorities.unwrap_or_else(|| (1..).take(hosts.len()).collect());
            Some(Mode::Single { priorities: members(&priorities) })
        }
        Filter::Disabled => Some(Mode::Disabled),
    }
}

/// A number for each host, or `Some(None)` without the key.
fn numbers(
    fields: &Fields<'_>,
    key: &str,
    hosts: &[Vec<IpAddr>],
    report: &mut Report<'_>,
) -> Option<Option<Vec<u8>>> {
    let Some(field) = fields.get(key) else { return Some(None) };
    let items = field.items(&format!("{key} = [50, 50], a number for each host"), report)?;
    if items.len() != hosts.len() {
        let what = format!("{} numbers for {} hosts", items.len(), hosts.len());
        field.wrong(what, "write one for each host, in the order of their ids", report);
        return None;
    }
    // All are looked at before the first that is wrong counts.
    let numbers: Vec<Option<u8>> = items.iter().map(|item| item.number("", report)).collect();
    numbers.into_iter().collect::<Option<_>>().map(Some)
}

/// The numbers of the hosts from 1 on.
fn members(numbers: &[u8]) -> Vec<(HostId, u8)> {
    HostId::all().zip(numbers.iter().copied()).collect()
}

/// The rules that follow from the services, which are all right. Tells what cannot be filtered.
pub(super) fn of_services(
    root: &Fields<'_>,
    services: &[DeclaredService],
    hosts: &[Vec<IpAddr>],
    report: &mut Report<'_>,
) -> Vec<PortRule> {
    let items = root.get("service").and_then(|field| field.items("", report)).unwrap_or_default();
    let mut rules = Vec::new();
    for (item, declared) in items.iter().zip(services) {
        let line = report.line(item.offset());
        let Some((vip, protocol, port)) = filterable(item, &declared.service, report) else {
            continue;
        };
        if let Some(place) = hosts.iter().position(|host| host.contains(&vip)) {
            let what = format!("{vip} is the address of host {}", place + 1);
            let remedy = "listen on an address that all hosts share and none has for itself";
            item.key("listen").as_ref().unwrap_or(item).wrong(what, remedy, report);
        }
        let shares = shares(item, declared, hosts, report);
        let mode = match declared.service.scheduler.as_str() {
            SINGLE => Mode::Single { priorities: rank(shares) },
            _ => Mode::Multiple {
                affinity: affinity(&declared.service),
                weights: shares.iter().map(|&(host, weight)| (host, weight as u8)).collect(),
            },
        };
        let ranges = match port {
            0 => others(services, vip, declared.service.key),
            port => vec![(port, port)],
        };
        for (first_port, last_port) in ranges {
            let (scope, mode) = (Scope::Vip(vip), mode.clone());
            let rule = Rule { scope, protocol, first_port, last_port, mode };
            rules.push(PortRule { line, rule });
        }
    }
    rules
}

/// VIP, protocol and port of a service that a filter knows how to share.
fn filterable(
    item: &Field<'_>,
    service: &ServiceSpec,
    report: &mut Report<'_>,
) -> Option<(IpAddr, RuleProtocol, u16)> {
    let (what, remedy) = match service.key {
        ServiceKey::Address { protocol: Protocol::Tcp, address } => {
            return Some((address.ip(), RuleProtocol::Tcp, address.port()));
        }
        ServiceKey::Address { protocol: Protocol::Udp, address } => {
            return Some((address.ip(), RuleProtocol::Udp, address.port()));
        }
        ServiceKey::Address { protocol: Protocol::Sctp, .. } => (
            "SCTP is not shared by port rules",
            "listen on /tcp or /udp, or set mode = \"dispatcher\"",
        ),
        ServiceKey::Fwmark { .. } => (
            "a firewall mark is not seen by the filter",
            "use listen, or [[nlb.rule]] with a range of ports, or set mode = \"dispatcher\"",
        ),
    };
    let named = item.key("listen").or_else(|| item.key("fwmark"));
    named.as_ref().unwrap_or(item).wrong(what, remedy, report);
    None
}

fn affinity(service: &ServiceSpec) -> Affinity {
    match &service.persistence {
        None => Affinity::None,
        Some(persistence) if service.key.is_ipv6() => {
            Affinity::Prefix { ipv4: 32, ipv6: persistence.prefix }
        }
        Some(persistence) => Affinity::Prefix { ipv4: persistence.prefix, ipv6: 128 },
    }
}

/// The hosts that are servers of the service, and their weights. A port that somebody would have to
/// change is told.
fn shares(
    item: &Field<'_>,
    declared: &DeclaredService,
    hosts: &[Vec<IpAddr>],
    report: &mut Report<'_>,
) -> Vec<(HostId, i32)> {
    let ServiceKey::Address { address, .. } = declared.service.key else { return Vec::new() };
    let servers = item.key("server").and_then(|field| field.items("", report)).unwrap_or_default();
    let mut shares: Vec<(HostId, i32)> = Vec::new();
    for (server, field) in declared.servers.iter().zip(&servers) {
        let ip = server.address.ip();
        let wrong = |key: &str, what: String, remedy: &str, report: &mut Report<'_>| {
            field.key(key).as_ref().unwrap_or(field).wrong(what, remedy, report);
        };
        if server.address.port() != address.port() {
            let what = format!(
                "port {} differs from the service's {}, and in mode nlb nobody changes ports",
                server.address.port(),
                address.port()
            );
            let remedy = "have the server listen on the service's port and leave the port out, or set mode = \"dispatcher\"";
            wrong("address", what, remedy, report);
        }
        if server.weight > i32::from(MAX_WEIGHT) && declared.service.scheduler != SINGLE {
            let what = format!("{} is above {MAX_WEIGHT}", server.weight);
            wrong("weight", what, "in mode nlb weights are from 0 to 100", report);
        }
        let place = hosts.iter().position(|host| host.contains(&ip));
        match place.and_then(|place| HostId::all().nth(place)) {
            Some(host) if shares.iter().any(|&(other, _)| other == host) => {
                let what = format!("{ip} is host {host}, a server of this service already");
                wrong("address", what, "name each host once", report);
            }
            Some(host) => shares.push((host, server.weight)),
            None => {
                wrong("address", format!("{ip} is not among nlb.hosts"), "add it there", report);
            }
        }
    }
    shares.sort_unstable_by_key(|&(host, _)| host);
    shares
}

/// Handling priorities: the highest weight first, then the lower id. Weight 0 has no part.
fn rank(mut shares: Vec<(HostId, i32)>) -> Vec<(HostId, u8)> {
    shares.retain(|&(_, weight)| weight > 0);
    shares.sort_by_key(|&(host, weight)| (std::cmp::Reverse(weight), host));
    let mut ranked: Vec<(HostId, u8)> = shares.into_iter().map(|(host, _)| host).zip(1..).collect();
    ranked.sort_unstable();
    ranked
}

/// The ranges of ports of `vip` that no other service of the same protocol takes.
fn others(services: &[DeclaredService], vip: IpAddr, key: ServiceKey) -> Vec<(u16, u16)> {
    let ServiceKey::Address { protocol: wanted, .. } = key else { return Vec::new() };
    let mut taken: Vec<u16> = services
        .iter()
        .filter_map(|declared| match declared.service.key {
            ServiceKey::Address { protocol, address }
                if protocol == wanted && address.ip() == vip && address.port() != 0 =>
            {
                Some(address.port())
            }
            _ => None,
        })
        .collect();
    taken.sort_unstable();
    let mut ranges = Vec::new();
    let mut next = 1u32;
    for port in taken.into_iter().map(u32::from).chain([65_536]) {
        if next < port {
            ranges.push((next as u16, (port - 1) as u16));
        }
        next = port + 1;
    }
    ranges
}

/// What is wrong with all of them together.
pub(super) fn check(rules: &[PortRule], report: &mut Report<'_>) {
    let refused = Rules::new(rules.iter().map(|rule| rule.rule.clone()).collect()).err();
    let Some(refused) = refused else { return };
    match refused.rules()[..] {
        [first, second] => {
            let (first, second) = (&rules[first], &rules[second]);
            report.add_line(
                second.line,
                "nlb.rule",
                format!("{} overlaps {} of line {}", second.rule, first.rule, first.line),
                "give every port of an address to one service or rule",
            );
        }
        [rule] => {
            let what = "no host takes part";
            let remedy = "give the service a server, or a server a weight above 0";
            report.add_line(rules[rule].line, "nlb.rule", what, remedy);
        }
        _ => report.add_line(1, "nlb.rule", refused.to_string(), "join some of them"),
    }
}
