//! Whether every server can be reached: route, interface, neighbour.

use std::collections::BTreeMap;
use std::net::IpAddr;

use director::network::Freshness;

use super::{Facts, host_prefix, ip};
use crate::doctor::finding::{Check, Finding, names, quoted};

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if facts.foreign_rules > 0 {
        let rules = facts.foreign_rules;
        let found = format!("{rules} policy routing rules (ip rule) are not followed");
        findings.push(Finding::note(Check::PolicyRules, found).remedy("ip rule; ip -6 rule"));
    }
    let hosts: Vec<IpAddr> = facts.plan.hosts().into_iter().map(|(host, _)| host).collect();
    let hosts: Vec<IpAddr> =
        hosts.into_iter().filter(|host| !facts.network.is_local(*host)).collect();
    let mut good = Vec::new();
    // By next hop: a router that is gone is one fault, however many servers are behind it.
    let mut silent: BTreeMap<(String, IpAddr), Vec<IpAddr>> = BTreeMap::new();
    for host in hosts {
        let Some((out, route)) = facts.way(host) else {
            findings.push(no_route(facts, host));
            continue;
        };
        if !facts.plan.interfaces.contains(&out.name) {
            findings.push(wrong_interface(facts, host, &out.name));
            continue;
        }
        let hop = route.next_hop(host);
        if is_silent(facts, host) {
            silent.entry((out.name.clone(), hop)).or_default().push(host);
        } else {
            good.push(host);
        }
    }
    findings.extend(silent.iter().map(|((interface, hop), hosts)| quiet(interface, *hop, hosts)));
    if !good.is_empty() {
        let found = format!("there is a way to {}", names(&good));
        findings.push(Finding::ok(Check::Route, found));
    }
    findings
}

/// Whether the next hop on the way to a host has been asked for, and has not answered.
pub(super) fn is_silent(facts: &Facts, host: IpAddr) -> bool {
    facts.way(host).is_some_and(|(out, route)| {
        let hop = route.next_hop(host);
        let mut known = facts.network.neighbours();
        known.any(|it| (it.interface, it.address) == (out.index, hop))
            && facts.network.freshness(out.index, hop) == Freshness::Unknown
    })
}

fn no_route(facts: &Facts, host: IpAddr) -> Finding {
    let found = format!("the kernel has no route to the server {host}");
    let out = facts.plan.interfaces.last().map_or("eth0", String::as_str);
    let add = format!("{} route add {} dev {out}", ip(host), host_prefix(host));
    Finding::fault(Check::Route, found).remedy(add)
}

fn wrong_interface(facts: &Facts, host: IpAddr, out: &str) -> Finding {
    let found =
        format!("the route to the server {host} leaves by {out}, which is not in interfaces");
    let finding = Finding::fault(Check::Route, found);
    let Some(file) = &facts.file else {
        return finding.remedy(format!("ip route get {host}"));
    };
    let mut all = facts.plan.interfaces.clone();
    all.push(out.to_owned());
    let list: Vec<String> = all.iter().map(|name| format!("\"{name}\"")).collect();
    let list = list.join(", ");
    finding
        .remedy(format!(
            "sed -i 's/^interfaces *=.*/interfaces = [{list}]/' {}",
            quoted(&file.path)
        ))
        .remedy("systemctl restart switchyard-director")
}

fn quiet(interface: &str, hop: IpAddr, hosts: &[IpAddr]) -> Finding {
    let found = if hosts == [hop] {
        format!("the server {hop} does not answer on {interface}: its Ethernet address is unknown")
    } else {
        format!("the gateway {hop} on {interface}, the way to {}, does not answer", names(hosts))
    };
    let again = format!("{} neighbour flush {hop} dev {interface}; ping -c 1 {hop}", ip(hop));
    Finding::fault(Check::Neighbour, found).remedy(again)
}
