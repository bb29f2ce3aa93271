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

use super::super::DeclaredService;
use super::super::fields::{Field, Fields};
use super::super::problem::Report;
use super::address;
use crate::control::api::{Protocol, ServiceKey, ServiceSpec};

/// Keys of a rule.
pub(in super::super) const KEYS: &[&str] =
    &["vip", "protocol", "ports", "filter", "affinity", "prefix", "weights", "priorities"];

/// Largest share of a host, as in the original.
const LARGEST_WEIGHT: i64 = 100;

/// Which packets of a port a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// Both.
    Both,
}

/// Which packets go to the same host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// Those of one connection.
    None,
    /// Those of clients whose addresses agree in so many leading bits.
    Prefix {
        /// 1 to 32.
        ipv4: u8,
        /// 1 to 128.
        ipv6: u8,
    },
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filtering {
    /// All hosts share, by weight.
    Multiple(Affinity),
    /// One host takes all: the one that lives and comes first.
    Single,
    /// Nobody takes any.
    Disabled,
}

/// What a host has of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// 0 to 100; 0 = no part. Of a [`Filtering::Single`] rule 1 or 0.
    pub weight: u32,
    /// Of a [`Filtering::Single`] rule: the lowest of those that live takes all.
    pub priority: u32,
}

/// A port rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRule {
    /// Where it stands in the file, for error texts.
    pub line: usize,
    /// `None` is every VIP that has no rule of its own for the port.
    pub vip: Option<IpAddr>,
    /// See there.
    pub protocol: RuleProtocol,
    /// Ports.
    pub ports: RangeInclusive<u16>,
    /// See there.
    pub filtering: Filtering,
    /// By host, in the order of their ids.
    pub shares: Vec<Share>,
}

const PROTOCOLS: &[(&str, RuleProtocol)] =
    &[("tcp", RuleProtocol::Tcp), ("udp", RuleProtocol::Udp), ("both", RuleProtocol::Both)];

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
        if let Some(fields) = item.table(KEYS, example, report) {
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
    let vip = match fields.get("vip") {
        Some(field) => Some(address(&field, report)?),
        None => None,
    };
    let protocol = match fields.get("protocol") {
        Some(field) => field.word(PROTOCOLS, report)?,
        None => RuleProtocol::Both,
    };
    let Some(ports) = fields.get("ports") else {
        fields.missing("ports", format!("add {PORTS}"), report);
        return None;
    };
    let ports = range(&ports, report)?;
    let filtering = filtering(fields, report)?;
    let weights = numbers(fields, "weights", 0..=LARGEST_WEIGHT, hosts, report)?;
    let priorities = numbers(fields, "priorities", 1..=32, hosts, report)?;
    let shares = (0..hosts.len())
        .map(|host| Share {
            weight: weights.as_ref().map_or(50, |weights| weights[host]),
            priority: priorities.as_ref().map_or(host as u32 + 1, |them| them[host]),
        })
        .collect();
    Some(PortRule { line, vip, protocol, ports, filtering, shares })
}

fn range(field: &Field<'_>, report: &mut Report<'_>) -> Option<RangeInclusive<u16>> {
    if !field.is_text() {
        let port = field.integer(0..=65_535, "; ranges stand in quotes, \"8000-8099\"", report)?;
        let port = u16::try_from(port).ok()?;
        return Some(port..=port);
    }
    let text = field.text(PORTS, report)?;
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    match (from.trim().parse::<u16>(), to.trim().parse::<u16>()) {
        (Ok(from), Ok(to)) if from <= to => Some(from..=to),
        _ => {
            field.wrong(
                format!("{text:?} is not a range of ports"),
                format!("write {PORTS}"),
                report,
            );
            None
        }
    }
}

fn filtering(fields: &Fields<'_>, report: &mut Report<'_>) -> Option<Filtering> {
    const FILTERS: &[(&str, u8)] = &[("multiple", 0), ("single", 1), ("disabled", 2)];
    let filter = match fields.get("filter") {
        Some(field) => field.word(FILTERS, report)?,
        None => 0,
    };
    let affinity = fields.get("affinity");
    if let Some(affinity) = affinity.as_ref().filter(|_| filter != 0) {
        let remedy = "remove affinity, or set filter = \"multiple\"";
        affinity.wrong("only clients of a shared port are told apart", remedy, report);
    }
    match filter {
        1 => return Some(Filtering::Single),
        2 => return Some(Filtering::Disabled),
        _ => {}
    }
    const SINGLE: Affinity = Affinity::Prefix { ipv4: 32, ipv6: 128 };
    const NETWORK: Affinity = Affinity::Prefix { ipv4: 24, ipv6: 64 };
    let words = &[("none", Affinity::None), ("single", SINGLE), ("network", NETWORK)];
    let affinity = match affinity {
        Some(field) => field.word(words, report)?,
        None => SINGLE,
    };
    Some(Filtering::Multiple(affinity))
}

/// A number for each host, or `Some(None)` without the key.
fn numbers(
    fields: &Fields<'_>,
    key: &str,
    range: RangeInclusive<i64>,
    hosts: &[Vec<IpAddr>],
    report: &mut Report<'_>,
) -> Option<Option<Vec<u32>>> {
    let Some(field) = fields.get(key) else { return Some(None) };
    let items = field.items(&format!("{key} = [50, 50], a number for each host"), report)?;
    if items.len() != hosts.len() {
        let what = format!("{} numbers for {} hosts", items.len(), hosts.len());
        field.wrong(what, "write one for each host, in the order of their ids", report);
        return None;
    }
    let numbers: Vec<Option<i64>> =
        items.iter().map(|item| item.integer(range.clone(), "", report)).collect();
    numbers.into_iter().map(|number| u32::try_from(number?).ok()).collect::<Option<_>>().map(Some)
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
        let shares = shares(item, declared, hosts, report);
        let filtering = match declared.service.scheduler.as_str() {
            "fo" => Filtering::Single,
            _ => Filtering::Multiple(affinity(&declared.service)),
        };
        let ranges = match port {
            0 => others(services, vip, declared.service.key),
            port => vec![port..=port],
        };
        for ports in ranges {
            let shares = shares.clone();
            rules.push(PortRule { line, vip: Some(vip), protocol, ports, filtering, shares });
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

/// What each host has of a service. A port that somebody would have to change is told.
fn shares(
    item: &Field<'_>,
    declared: &DeclaredService,
    hosts: &[Vec<IpAddr>],
    report: &mut Report<'_>,
) -> Vec<Share> {
    let ServiceKey::Address { address, .. } = declared.service.key else { return Vec::new() };
    let servers = item.key("server").and_then(|field| field.items("", report)).unwrap_or_default();
    let mut shares = vec![Share { weight: 0, priority: u32::MAX }; hosts.len()];
    let single = declared.service.scheduler == "fo";
    for (server, field) in declared.servers.iter().zip(&servers) {
        if server.address.port() != address.port() {
            let what = format!(
                "port {} differs from the service's {}, and in mode nlb nobody changes ports",
                server.address.port(),
                address.port()
            );
            let field = field.key("address");
            let remedy = "have the server listen on the service's port and leave the port out, or set mode = \"dispatcher\"";
            field.as_ref().unwrap_or(item).wrong(what, remedy, report);
        }
        if i64::from(server.weight) > LARGEST_WEIGHT && !single {
            let field = field.key("weight");
            let what = format!("{} is above {LARGEST_WEIGHT}", server.weight);
            let remedy = "in mode nlb weights are from 0 to 100";
            field.as_ref().unwrap_or(item).wrong(what, remedy, report);
        }
        let ip = server.address.ip();
        let Some(host) = hosts.iter().position(|host| host.contains(&ip)) else {
            let field = field.key("address");
            let what = format!("{ip} is not among nlb.hosts");
            field.as_ref().unwrap_or(item).wrong(what, "add it there", report);
            continue;
        };
        shares[host].weight = server.weight.unsigned_abs();
    }
    if single {
        rank(&mut shares);
    }
    shares
}

/// Handling priorities: the highest weight first, then the lower id; weight 0 has no part.
fn rank(shares: &mut [Share]) {
    let mut order: Vec<usize> = (0..shares.len()).filter(|&host| shares[host].weight > 0).collect();
    order.sort_by_key(|&host| (std::cmp::Reverse(shares[host].weight), host));
    for (place, host) in order.into_iter().enumerate() {
        shares[host] = Share { weight: 1, priority: place as u32 + 1 };
    }
}

/// The ports of `vip` that no other service of the same protocol takes.
fn others(services: &[DeclaredService], vip: IpAddr, key: ServiceKey) -> Vec<RangeInclusive<u16>> {
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
            ranges.push(next as u16..=(port - 1) as u16);
        }
        next = port + 1;
    }
    ranges
}

/// Two rules of the same scope may not cover the same port.
pub(super) fn refuse_overlaps(rules: &[PortRule], report: &mut Report<'_>) {
    for (place, rule) in rules.iter().enumerate() {
        let clash = rules[..place].iter().find(|other| {
            other.vip == rule.vip
                && (other.protocol == rule.protocol
                    || other.protocol == RuleProtocol::Both
                    || rule.protocol == RuleProtocol::Both)
                && other.ports.start() <= rule.ports.end()
                && rule.ports.start() <= other.ports.end()
        });
        if let Some(other) = clash {
            report.add_line(
                rule.line,
                "nlb.rule",
                format!("its ports are those of the rule of line {} too", other.line),
                format!(
                    "change lines {} and {} so that each port has one rule",
                    other.line, rule.line
                ),
            );
        }
    }
}
