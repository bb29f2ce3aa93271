//! The interfaces: link, how packets are taken, queues, what the card does to packets, and the
//! kernel's settings for what it routes.

use director::control::api::{Forwarding, PortView};
use netio::interface::State;

use super::Facts;
use crate::doctor::facts::cards::Card;
use crate::doctor::facts::settings::{command, key};
use crate::doctor::finding::{Check, Finding, names};

/// The driver of virtual pairs: it has no hardware to do better with.
const VETH: &str = "veth";

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        facts.cards.iter().flat_map(|card| examine_card(facts, card)).collect();
    findings.extend(packet_io(facts));
    if !facts.plan.is_nlb {
        findings.extend(kernel_forwarding(facts));
        findings.extend(reverse_path(facts));
    }
    findings
}

fn examine_card(facts: &Facts, card: &Card) -> Vec<Finding> {
    let name = &card.name;
    let link = match card.state {
        None => {
            let found = format!("there is no interface {name}, which packets are to be taken from");
            return vec![Finding::fault(Check::Link, found).remedy("ip -brief link")];
        }
        Some(State::Down) => Finding::fault(Check::Link, format!("{name} is switched off"))
            .remedy(format!("ip link set dev {name} up")),
        Some(State::NoCarrier) => {
            let found = format!("{name} has no carrier: no cable, or nobody at its other end");
            Finding::fault(Check::Link, found).remedy(format!("ethtool {name}"))
        }
        Some(State::Up) => Finding::ok(Check::Link, format!("{name} is up")),
    };
    let mut findings = vec![link];
    findings.extend(queues(facts, card));
    findings.extend(offloads(facts, card));
    findings
}

fn ports<'a>(facts: &'a Facts, name: &str) -> Vec<&'a PortView> {
    let ports = facts.running.iter().flat_map(|running| &running.now.ports);
    ports.filter(|port| port.interface == name).collect()
}

/// How packets are taken, and why not better.
fn packet_io(facts: &Facts) -> Option<Finding> {
    let status = &facts.running.as_ref()?.now;
    let ways: Vec<&str> = status.ports.iter().map(|port| port.io.as_str()).collect();
    let first = ways.first()?;
    let drivers = facts.cards.iter().map(|card| {
        format!("{}: driver {}", card.name, card.driver.as_deref().unwrap_or("not known"))
    });
    let way = if status.packets.is_empty() { first } else { status.packets.as_str() };
    let found = format!("{way} ({})", drivers.collect::<Vec<_>>().join(", "));
    let is_best = ways.iter().all(|way| *way == "AF_XDP zero-copy");
    let has_only_veth = facts.cards.iter().all(|card| card.driver.as_deref() == Some(VETH));
    let copies = ways.iter().all(|way| *way == "AF_XDP copy");
    Some(if is_best || (has_only_veth && copies) {
        Finding::ok(Check::PacketIo, found)
    } else {
        Finding::note(Check::PacketIo, found)
    })
}

fn queues(facts: &Facts, card: &Card) -> Option<Finding> {
    let (name, queues) = (&card.name, card.queues?.receive);
    let ports = ports(facts, name);
    if ports.is_empty() {
        return None;
    }
    // Where every packet is seen by one socket, queues do not matter.
    let by_queue = ports.iter().all(|port| port.io.starts_with("AF_XDP"));
    let served = ports.len() as u32;
    if by_queue && served < queues {
        let found = format!("{name} has {queues} queues, and the director serves {served} of them");
        return Some(
            Finding::fault(Check::Queues, found)
                .remedy(format!("ethtool -L {name} combined {served}")),
        );
    }
    let workers = ports.iter().map(|port| port.worker).collect::<std::collections::BTreeSet<_>>();
    let cores = facts.machine.cores;
    let found = format!("{name}: queues {queues}, workers {}, cores {cores}", workers.len());
    let is_card = card.driver.as_deref().is_some_and(|driver| driver != VETH);
    Some(if is_card && queues == 1 && cores > 1 {
        let more = format!("ethtool -L {name} combined {}", cores.min(8));
        let restart = "systemctl restart switchyard-director";
        Finding::note(Check::Queues, found + ": one core does all the work")
            .remedy(more)
            .remedy(restart)
    } else {
        Finding::ok(Check::Queues, found)
    })
}

fn offloads(facts: &Facts, card: &Card) -> Option<Finding> {
    let (name, receiving) = (&card.name, card.receiving?);
    if receiving.joins_segments {
        let found = format!("{name} joins received segments (lro)");
        let off = format!("ethtool -K {name} lro off");
        return Some(Finding::warning(Check::Offloads, found).remedy(off));
    }
    let index = facts.network.interface_by_name(name).map(|own| own.index);
    let above = facts.network.interfaces().filter(|it| it.vlan.map(|(below, _)| below) == index);
    let above: Vec<&str> = above.map(|it| it.name.as_str()).collect();
    if receiving.strips_tags && !above.is_empty() && index.is_some() {
        let found = format!(
            "{name} takes VLAN tags off (rxvlan), and {} is on it: XDP takes tagged packets for \
             untagged ones",
            names(&above)
        );
        let off = format!("ethtool -K {name} rxvlan off");
        return Some(Finding::warning(Check::Offloads, found).remedy(off));
    }
    Some(Finding::ok(Check::Offloads, format!("{name} neither joins segments nor hides tags")))
}

/// What the director's kernel does with the packets of NAT servers that are none of the director's.
fn kernel_forwarding(facts: &Facts) -> Vec<Finding> {
    if !facts.plan.has(Forwarding::Nat) {
        return Vec::new();
    }
    let hosts = facts.plan.hosts();
    let nat = hosts.iter().filter(|(_, methods)| methods.contains(&Forwarding::Nat));
    let nat: Vec<_> = nat.map(|(host, _)| *host).collect();
    let mut findings = Vec::new();
    for (family, key) in [(true, "net/ipv4/ip_forward"), (false, "net/ipv6/conf/all/forwarding")] {
        if !nat.iter().any(|host| host.is_ipv4() == family) {
            continue;
        }
        match facts.settings.get(key) {
            Some(0) => {
                let found = format!(
                    "{} = 0: balanced traffic goes all the same, but what else servers send by way \
                     of the director is dropped",
                    key.replace('/', ".")
                );
                findings
                    .push(Finding::note(Check::Forwarding, found).remedy(command([(key, "1")])));
            }
            Some(_) => {
                let found = format!("{} is on", key.replace('/', "."));
                findings.push(Finding::ok(Check::Forwarding, found));
            }
            None => {}
        }
    }
    findings.extend(redirects(facts, &nat));
    findings
}

/// On one segment with clients and servers, a routing kernel tells the servers of a shorter way.
fn redirects(facts: &Facts, nat: &[std::net::IpAddr]) -> Vec<Finding> {
    if facts.settings.get("net/ipv4/ip_forward").unwrap_or(0) == 0 {
        return Vec::new();
    }
    let vips = facts.plan.vips();
    let fronts: Vec<u32> =
        vips.iter().filter_map(|vip| facts.front(*vip)).map(|front| front.index).collect();
    let mut findings = Vec::new();
    for card in &facts.cards {
        let reaches = |host: &&std::net::IpAddr| {
            host.is_ipv4() && facts.way(**host).is_some_and(|(out, _)| out.name == card.name)
        };
        let there: Vec<_> = nat.iter().filter(reaches).collect();
        let Some(own) = facts.network.interface_by_name(&card.name) else { continue };
        if there.is_empty() || !fronts.contains(&own.index) {
            continue;
        }
        let name = &card.name;
        if facts.settings.larger("ipv4", name, "send_redirects") == Some(1) {
            let found = format!(
                "clients and the NAT servers {} are both on {name}, where the kernel sends ICMP \
                 redirects",
                names(&there)
            );
            let keys = ["all", name].map(|on| key("ipv4", on, "send_redirects"));
            let off = command(keys.iter().map(|key| (key.as_str(), "0")));
            findings.push(Finding::warning(Check::Redirects, found).remedy(off));
        } else {
            let found = format!("the kernel sends no ICMP redirects on {name}");
            findings.push(Finding::ok(Check::Redirects, found));
        }
    }
    findings
}

/// Balanced packets pass before the kernel's filter, so it concerns only what goes up to the kernel.
fn reverse_path(facts: &Facts) -> Vec<Finding> {
    let strict = |card: &&Card| facts.settings.larger("ipv4", &card.name, "rp_filter") == Some(1);
    let strict: Vec<&str> =
        facts.cards.iter().filter(strict).map(|card| card.name.as_str()).collect();
    if strict.is_empty() {
        return vec![Finding::ok(Check::ReversePath, "no strict filter where packets are taken")];
    }
    if facts.cards.len() < 2 {
        let found = format!("strict on {}, the only interface", names(&strict));
        return vec![Finding::ok(Check::ReversePath, found)];
    }
    let found = format!(
        "strict on {}: balanced packets are not concerned, but ping and all else for this machine \
         is dropped that comes by another way",
        names(&strict)
    );
    let keys: Vec<String> =
        std::iter::once("all").chain(strict).map(|on| key("ipv4", on, "rp_filter")).collect();
    let loose = command(keys.iter().map(|key| (key.as_str(), "2")));
    vec![Finding::note(Check::ReversePath, found).remedy(loose)]
}
