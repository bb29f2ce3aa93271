//! Quiet about the VIPs: ARP, and redirects that lead answers past a NAT director.

use realserver_agent::host::QUIET;
use realserver_agent::settings::Forwarding;

use super::Facts;
use crate::doctor::facts::settings::{command, key};
use crate::doctor::finding::{Check, Finding, names};

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if facts.role.vips.iter().any(std::net::IpAddr::is_ipv4) {
        findings.push(arp(facts));
    }
    findings.extend(redirects(facts));
    findings
}

/// The agent's own settings; larger values are as quiet or quieter, as far as they exist.
fn arp(facts: &Facts) -> Finding {
    let mut loud: Vec<String> = Vec::new();
    let mut missing = Vec::new();
    for (path, wanted) in QUIET {
        let name = path.rsplit('/').next().unwrap_or(path);
        let enough: i64 = wanted.parse().unwrap_or(1);
        // On every interface that the segment can ask, not only on that with the RIP.
        let asked = facts.network.interfaces().filter(|it| it.up && it.mac != [0; 6]);
        let low: Vec<String> = asked
            .filter_map(|interface| {
                let value = facts.settings.larger("ipv4", &interface.name, name)?;
                (value < enough).then(|| format!("{name} is {value} on {}", interface.name))
            })
            .collect();
        if !low.is_empty() {
            missing.push((path, wanted));
            loud.extend(low);
        }
    }
    if loud.is_empty() {
        return Finding::ok(Check::ServerArp, "it keeps quiet about IPv4 addresses on lo");
    }
    let found = format!("{}: the segment hears of the VIPs on lo", names(&loud));
    Finding::fault(Check::ServerArp, found).remedy(command(missing))
}

/// With NAT, and only where the kernel would believe them.
fn redirects(facts: &Facts) -> Vec<Finding> {
    if !facts.has(|forwarding| forwarding == Forwarding::Nat) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for family in ["ipv4", "ipv6"] {
        let is_v4 = family == "ipv4";
        if !facts.role.addresses.iter().any(|address| address.is_ipv4() == is_v4) {
            continue;
        }
        let believes = |name: &str| match is_v4 {
            true => facts.settings.larger(family, name, "accept_redirects") == Some(1),
            false => facts.settings.of(family, name, "accept_redirects") == Some(1),
        };
        let cards = facts.cards();
        let cards = cards.iter().filter(|card| believes(&card.name));
        let cards: Vec<&str> = cards.map(|card| card.name.as_str()).collect();
        if cards.is_empty() {
            let found = format!("it believes no redirects ({family})");
            findings.push(Finding::ok(Check::ServerRedirects, found));
            continue;
        }
        let found = format!(
            "{family} accept_redirects is 1 on {}: it matters where clients are on the same segment",
            names(&cards)
        );
        let on = std::iter::once("all").chain(cards.iter().copied());
        let keys: Vec<String> = on.map(|on| key(family, on, "accept_redirects")).collect();
        let off = command(keys.iter().map(|key| (key.as_str(), "0")));
        findings.push(Finding::note(Check::ServerRedirects, found).remedy(off));
    }
    findings
}
