//! Who else answers for the VIPs: a real server that should not, or a stranger.

use std::net::IpAddr;

use realserver_agent::host::QUIET;

use super::Facts;
use crate::doctor::facts::segment::{Claim, MOST, link_local, show};
use crate::doctor::facts::settings::command;
use crate::doctor::finding::{Check, Finding, names};

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let vips = facts.plan.vips();
    match &facts.claims {
        _ if vips.is_empty() => Vec::new(),
        Err(reason) => {
            let found = format!("nobody could be asked who has the VIPs: {reason}");
            vec![Finding::note(Check::VipElsewhere, found).remedy("sudo dirctl doctor")]
        }
        Ok(claims) => {
            let mut findings: Vec<Finding> =
                claims.iter().map(|claim| examine_claim(facts, claim)).collect();
            let (asked, unasked): (Vec<&IpAddr>, Vec<&IpAddr>) =
                vips.iter().take(MOST).partition(|vip| vip.is_ipv4() || can_solicit(facts));
            let unasked = unasked.into_iter().chain(vips.iter().skip(MOST)).collect::<Vec<_>>();
            if !unasked.is_empty() {
                let found = format!(
                    "who has {} was not asked: there is no link-local address to ask from, or too \
                     many VIPs",
                    names(&unasked)
                );
                findings.push(Finding::note(Check::VipElsewhere, found).remedy("ip -6 address"));
            }
            let quiet: Vec<&&IpAddr> = asked
                .iter()
                .filter(|vip| claims.iter().all(|claim| claim.address != ***vip))
                .collect();
            if !quiet.is_empty() {
                let found = format!("nobody else answers for {}", names(&quiet));
                findings.push(Finding::ok(Check::VipElsewhere, found));
            }
            findings
        }
    }
}

fn can_solicit(facts: &Facts) -> bool {
    facts.plan.interfaces.iter().all(|name| {
        let interface = facts.network.interface_by_name(name);
        interface.is_some_and(|it| link_local(&facts.network, it.index).is_some())
    })
}

fn examine_claim(facts: &Facts, claim: &Claim) -> Finding {
    let Claim { address: vip, interface, mac } = claim;
    let (asked, mac_text) = (if vip.is_ipv4() { "ARP" } else { "neighbour discovery" }, show(*mac));
    let answers = format!("answers {asked} for {vip} on {interface} with {mac_text}");
    if let Some(server) = server_of(facts, *mac) {
        let found = format!("the real server {server} {answers}");
        let finding = Finding::fault(Check::VipElsewhere, found).on(server);
        return if vip.is_ipv4() {
            finding.remedy(command(QUIET))
        } else {
            // Nobody is told of an IPv6 address on `lo`, so it must be on a card; which is not known here.
            let del = "while read -r _ dev _ own _; do ip -6 address del $own dev $dev; done";
            finding
                .remedy(format!("ip -6 -o address show to {vip} | {del}"))
                .remedy(format!("ip -6 address add {vip}/128 dev lo nodad"))
        };
    }
    let found = format!("a host that is no server of the services {answers}");
    let look = format!("ip neighbour show | grep -i {mac_text}");
    let is_here = facts.network.addresses().any(|it| it.address == *vip);
    if is_here || facts.plan.own_addresses == Some(true) {
        Finding::fault(Check::VipElsewhere, found).remedy(look)
    } else {
        let found = format!("{found}: the other director, if this one is the reserve");
        Finding::note(Check::VipElsewhere, found).remedy(look)
    }
}

/// The real server with this Ethernet address, if the neighbour table knows it.
fn server_of(facts: &Facts, mac: [u8; 6]) -> Option<IpAddr> {
    let hosts = facts.plan.hosts();
    let mut known: Vec<IpAddr> = facts
        .network
        .neighbours()
        .filter(|neighbour| neighbour.mac == Some(mac))
        .map(|neighbour| neighbour.address)
        .filter(|address| hosts.iter().any(|(host, _)| host == address))
        .collect();
    known.sort();
    known.first().copied()
}
