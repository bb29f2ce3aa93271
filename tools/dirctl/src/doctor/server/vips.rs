//! The VIPs on `lo`, alone, and for one address each.

use std::net::IpAddr;

use director::network::Address;

use super::Facts;
use crate::doctor::finding::{Check, Finding};

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        facts.role.vips.iter().flat_map(|vip| examine_vip(facts, *vip)).collect();
    if facts.role.unnamed > 0 {
        let found = format!(
            "{} services are named by a mark: which VIPs they have is not in the file",
            facts.role.unnamed
        );
        findings.push(Finding::note(Check::ServerVip, found).remedy("ip address show dev lo"));
    }
    findings
}

fn examine_vip(facts: &Facts, vip: IpAddr) -> Vec<Finding> {
    let own: Vec<&Address> = facts.network.addresses().filter(|it| it.address == vip).collect();
    let on_lo = |address: &&&Address| {
        facts.network.interface(address.interface).is_some_and(|it| it.name == "lo")
    };
    let add = add(vip);
    let Some(right) = own.iter().find(on_lo) else {
        if own.is_empty() {
            let found = format!("{vip} is on no interface, so this host throws its packets away");
            return vec![Finding::fault(Check::ServerVip, found).remedy(add)];
        }
        let mut findings = on_cards(facts, vip, &own);
        if let Some(last) = findings.last_mut() {
            last.remedy.push(add);
        }
        return findings;
    };
    let mut findings = on_cards(facts, vip, &own);
    let whole = if vip.is_ipv4() { 32 } else { 128 };
    let length = right.subnet.prefix_len();
    if length == whole {
        findings.push(Finding::ok(Check::ServerVip, format!("{vip} is on lo")));
    } else {
        let found = format!(
            "{vip}/{length} is on lo: the whole network counts as this host, clients in it are not \
             answered"
        );
        let del = format!("{} address del {vip}/{length} dev lo", super::super::director::ip(vip));
        findings.push(Finding::fault(Check::ServerVip, found).remedy(del).remedy(add));
    }
    findings
}

/// The VIP where the segment can ask for it.
fn on_cards(facts: &Facts, vip: IpAddr, own: &[&Address]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for address in own {
        let Some(interface) = facts.network.interface(address.interface) else { continue };
        let name = &interface.name;
        if name == "lo" || interface.mac == [0; 6] {
            continue;
        }
        let length = address.subnet.prefix_len();
        let found =
            format!("{vip} is on {name}, so this host answers for it and takes the clients");
        let del =
            format!("{} address del {vip}/{length} dev {name}", super::super::director::ip(vip));
        findings.push(Finding::fault(Check::ServerVip, found).remedy(del));
    }
    findings
}

fn add(vip: IpAddr) -> String {
    match vip {
        IpAddr::V4(_) => format!("ip address add {vip}/32 dev lo"),
        IpAddr::V6(_) => format!("ip -6 address add {vip}/128 dev lo nodad"),
    }
}
