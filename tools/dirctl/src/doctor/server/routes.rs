//! The way that answers take: with NAT by the director, otherwise not, and never against a filter.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use realserver_agent::settings::Forwarding;

use super::{Facts, needs_vip};
use crate::doctor::facts::settings::{command, key};
use crate::doctor::finding::{Check, Finding, names};

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for is_v4 in [true, false] {
        let of_family: Vec<_> = facts
            .entries
            .iter()
            .filter(|entry| match (entry.forwarding, entry.listen) {
                (Forwarding::Nat, _) | (_, None) => entry.address.is_ipv4() == is_v4,
                (_, Some(listen)) => listen.is_ipv4() == is_v4,
            })
            .collect();
        if of_family.iter().any(|entry| entry.forwarding == Forwarding::Nat) {
            findings.push(by_the_director(facts, is_v4));
        } else if of_family.iter().any(|entry| needs_vip(entry.forwarding)) {
            findings.extend(by_itself(facts, is_v4));
        }
    }
    findings.extend(reverse_path(facts));
    findings
}

fn everywhere(is_v4: bool) -> IpAddr {
    if is_v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

fn by_the_director(facts: &Facts, is_v4: bool) -> Finding {
    let (ip, family) = if is_v4 { ("ip", "IPv4") } else { ("ip -6", "IPv6") };
    let directors: Vec<IpAddr> =
        facts.directors.iter().copied().filter(|it| it.is_ipv4() == is_v4).collect();
    let remedy = match directors.first() {
        Some(director) => format!("{ip} route replace default via {director}"),
        None => format!("{ip} route replace default via DIRECTOR"),
    };
    let gateway = facts.network.route(everywhere(is_v4)).and_then(|route| route.gateway);
    match gateway {
        None => {
            let found = format!(
                "there is no default route for {family}, so NAT answers to clients have no way back"
            );
            Finding::fault(Check::ServerRoute, found).remedy(remedy)
        }
        Some(gateway) if directors.contains(&gateway) => {
            Finding::ok(Check::ServerRoute, format!("the default route leads to {gateway}"))
        }
        Some(gateway) if directors.is_empty() => {
            let found = format!(
                "the default route leads to {gateway}, which must be the director; --director \
                 ADDRESS says who is"
            );
            Finding::note(Check::ServerRoute, found).remedy("dirctl doctor --director ADDRESS")
        }
        Some(gateway) => {
            let found = format!(
                "the default route leads to {gateway} and not to the director, {}: clients do not \
                 know NAT answers that come another way",
                names(&directors)
            );
            Finding::fault(Check::ServerRoute, found).remedy(remedy)
        }
    }
}

/// Direct routing and tunnels: the director's kernel drops what comes back to it.
fn by_itself(facts: &Facts, is_v4: bool) -> Option<Finding> {
    let gateway = facts.network.route(everywhere(is_v4))?.gateway?;
    Some(if facts.directors.contains(&gateway) {
        let found =
            format!("the default route leads to the director {gateway}, which drops answers");
        let look = if is_v4 { "ip route show default" } else { "ip -6 route show default" };
        Finding::warning(Check::ServerRoute, found).remedy(look)
    } else {
        Finding::ok(Check::ServerRoute, format!("answers leave by {gateway}"))
    })
}

/// Direct routing: packets come in by the card of the RIP, and answers may leave by another.
fn reverse_path(facts: &Facts) -> Vec<Finding> {
    if !facts.has(|forwarding| forwarding == Forwarding::Direct) {
        return Vec::new();
    }
    let out = facts.network.route(everywhere(true)).map(|route| route.interface);
    let mut findings = Vec::new();
    for card in facts.cards() {
        let strict = facts.settings.larger("ipv4", &card.name, "rp_filter") == Some(1);
        if strict && out != Some(card.index) {
            let name = &card.name;
            let found = format!(
                "rp_filter is strict on {name}, and the way to clients does not leave by it"
            );
            let keys = ["all", name].map(|on| key("ipv4", on, "rp_filter"));
            let loose = command(keys.iter().map(|key| (key.as_str(), "2")));
            findings.push(Finding::warning(Check::ServerReversePath, found).remedy(loose));
        } else {
            let found = format!("rp_filter on {} is in nobody's way", card.name);
            findings.push(Finding::ok(Check::ServerReversePath, found));
        }
    }
    findings
}
