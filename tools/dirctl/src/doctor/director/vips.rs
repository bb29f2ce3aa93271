//! The VIPs: on the director, once, and ready.

use std::net::IpAddr;

use director::network::Address;

use super::{Facts, host_prefix, ip};
use crate::doctor::finding::{Check, Finding, names};

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    facts.plan.vips().into_iter().flat_map(|vip| examine_vip(facts, vip)).collect()
}

fn examine_vip(facts: &Facts, vip: IpAddr) -> Vec<Finding> {
    let found: Vec<&Address> = facts.network.addresses().filter(|it| it.address == vip).collect();
    if found.is_empty() {
        return vec![missing(facts, vip)];
    }
    let name = |address: &Address| {
        let interface = facts.network.interface(address.interface);
        interface.map_or_else(|| address.interface.to_string(), |it| it.name.clone())
    };
    let on: Vec<String> = found.iter().map(|address| name(address)).collect();
    let mut findings = Vec::new();
    if let Some(tentative) = found.iter().find(|address| address.tentative) {
        let name = name(tentative);
        let what = format!("{vip} on {name} is tentative: another host may have it, or soon will");
        let prefix = host_prefix(vip);
        findings.push(
            Finding::fault(Check::Vip, what)
                .remedy(format!("ip -6 address del {prefix} dev {name}"))
                .remedy(format!("ip -6 address add {prefix} dev {name} nodad")),
        );
    } else {
        findings.push(Finding::ok(Check::Vip, format!("{vip} is on {}", names(&on))));
    }
    // One on lo beside one on a card is a matter of taste: it is the card's that is answered for.
    let cards: Vec<&String> = on.iter().filter(|name| *name != "lo").collect();
    if let [_, others @ ..] = cards.as_slice()
        && !others.is_empty()
    {
        let keep = facts.front(vip).map(|front| front.name.clone());
        let surplus: Vec<&&Address> = found
            .iter()
            .filter(|address| {
                let name = name(address);
                name != "lo" && Some(&name) != keep.as_ref()
            })
            .collect();
        let mut finding =
            Finding::warning(Check::VipTwice, format!("{vip} is on {} at once", names(&cards)));
        for address in surplus {
            let (length, name) = (address.subnet.prefix_len(), name(address));
            finding = finding.remedy(format!("{} address del {vip}/{length} dev {name}", ip(vip)));
        }
        findings.push(finding);
    }
    findings
}

fn missing(facts: &Facts, vip: IpAddr) -> Finding {
    let front = facts.front(vip).map_or("eth0", |front| front.name.as_str());
    let nodad = if vip.is_ipv6() { " nodad" } else { "" };
    let add = format!("{} address add {} dev {front}{nodad}", ip(vip), host_prefix(vip));
    if facts.plan.own_addresses == Some(true) && facts.running.is_some() {
        let found = format!("{vip} is on no interface, though own_addresses = true");
        return Finding::fault(Check::Vip, found).remedy(add);
    }
    if facts.plan.own_addresses == Some(true) {
        return Finding::ok(Check::Vip, format!("the director will put {vip} on {front}"));
    }
    // Somebody else has it now: the other director of a pair. `segment` names him.
    let is_elsewhere = facts.claims.iter().flatten().any(|claim| claim.address == vip);
    let is_attached = facts.network.addresses().any(|it| it.subnet.contains(&vip));
    if is_elsewhere {
        Finding::note(Check::Vip, format!("{vip} is not here, but on another host of the segment"))
    } else if is_attached {
        let found = format!("{vip} is on no interface, so nobody answers for it on {front}");
        Finding::warning(Check::Vip, found).remedy(add)
    } else {
        let found = format!(
            "{vip} is on no interface and in none of their networks: a router must send it here"
        );
        Finding::note(Check::Vip, found).remedy(add)
    }
}
