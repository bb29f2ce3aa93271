//! Tunnels: somebody unpacks, the reverse path filter lets the inner packets in, the MTU has room.

use std::path::Path;

use director::config::DeclaredService;
use director::control::api::{Forwarding, MssClamp, Protocol, ServiceKey};
use director::dispatch::transmitter::encapsulation;
use realserver_agent::kind::Kind;

use super::Facts;
use crate::doctor::DEFAULT_CONFIG;
use crate::doctor::facts::agent::Agent;
use crate::doctor::facts::settings::{command, key};
use crate::doctor::finding::{Check, Finding, names, quoted};

/// The kernel's types of interfaces that unpack: `ARPHRD_TUNNEL`, `_TUNNEL6`, `_SIT`.
const IPIP_TYPES: [u32; 3] = [768, 769, 776];
/// `ARPHRD_IPGRE`, `_IP6GRE`.
const GRE_TYPES: [u32; 2] = [778, 823];
/// `ARPHRD_NONE`: TUN devices, the agent's among them.
const NONE: u32 = 65534;

/// What clients send without anybody's doing.
const ETHERNET: u32 = 1500;

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    if facts.role.tunnels.is_empty() {
        return Vec::new();
    }
    let mut findings: Vec<Finding> =
        facts.role.tunnels.iter().map(|kind| unpacked(facts, *kind)).collect();
    findings.extend(reverse_path(facts));
    findings.extend(mtu(facts));
    findings
}

fn unpacked(facts: &Facts, kind: Kind) -> Finding {
    if let Agent::Running(status) = &facts.agent
        && status.tunnel.kinds.iter().any(|known| *known == kind.to_string())
    {
        let by = if status.tunnel.by_kernel { "the kernel" } else { "the agent" };
        return Finding::ok(Check::ServerTunnel, format!("{kind} is unpacked by {by}"));
    }
    let wanted: &[u32] = match kind {
        Kind::Ipip => &IPIP_TYPES,
        Kind::Gre { .. } => &GRE_TYPES,
        // The kernel's fou ports are sockets of its own, which nobody lists.
        Kind::Gue { .. } => &[],
    };
    let device = facts
        .network
        .interfaces()
        .find(|interface| facts.types.get(&interface.name).is_some_and(|own| wanted.contains(own)));
    let run = if facts.file == Path::new(DEFAULT_CONFIG) {
        "systemctl start switchyard-agent".to_owned()
    } else {
        format!("realserver-agent run --config {}", quoted(&facts.file))
    };
    match device {
        Some(device) if device.up => {
            Finding::ok(Check::ServerTunnel, format!("{kind} is unpacked by {}", device.name))
        }
        Some(device) => {
            let found = format!("{} would unpack {kind}, but is switched off", device.name);
            let up = format!("ip link set dev {} up", device.name);
            Finding::fault(Check::ServerTunnel, found).remedy(up)
        }
        None if has_tun(facts) => {
            let found = format!(
                "no agent of this file unpacks {kind}; a TUN device is there, of an agent without a \
                 file or of another program"
            );
            Finding::note(Check::ServerTunnel, found).remedy(run)
        }
        None => {
            let found = format!("nothing unpacks {kind}: no agent runs, and no device does it");
            Finding::fault(Check::ServerTunnel, found).remedy(run)
        }
    }
}

fn has_tun(facts: &Facts) -> bool {
    let mut up = facts.network.interfaces().filter(|interface| interface.up);
    up.any(|interface| facts.types.get(&interface.name) == Some(&NONE))
}

/// The inner packet's sender is reached by the card and not by the tunnel's device.
fn reverse_path(facts: &Facts) -> Vec<Finding> {
    let devices = facts.network.interfaces().filter(|interface| {
        let own = facts.types.get(&interface.name);
        interface.up
            && own.is_some_and(|own| {
                *own == NONE || IPIP_TYPES.contains(own) || GRE_TYPES.contains(own)
            })
    });
    let mut findings = Vec::new();
    for device in devices {
        let name = &device.name;
        match facts.settings.larger("ipv4", name, "rp_filter") {
            Some(1) => {
                let found =
                    format!("rp_filter is strict on {name}: what comes out of it is dropped");
                let keys = ["all", name].map(|on| key("ipv4", on, "rp_filter"));
                let off = command(keys.iter().map(|key| (key.as_str(), "0")));
                findings.push(Finding::fault(Check::ServerReversePath, found).remedy(off));
            }
            Some(_) => {
                let found = format!("rp_filter lets in what comes out of {name}");
                findings.push(Finding::ok(Check::ServerReversePath, found));
            }
            None => {}
        }
    }
    findings
}

/// The outer packet must fit the card; what is clamped does.
fn mtu(facts: &Facts) -> Vec<Finding> {
    let is_small = |service: &DeclaredService| {
        let is_udp =
            matches!(service.service.key, ServiceKey::Address { protocol: Protocol::Udp, .. });
        let clamp = service.service.extras.unwrap_or_default().mss_clamp;
        !is_udp && clamp != MssClamp::ByRoute(false)
    };
    let services = facts.config.iter().flat_map(|config| &config.services);
    let servers = services.filter(|service| !is_small(service)).flat_map(|it| &it.servers);
    let own = servers.filter(|server| {
        server.forwarding.asked() == Forwarding::Tunnel
            && facts.role.addresses.contains(&server.address.ip())
    });
    let overheads =
        own.map(|server| encapsulation(server.tunnel).overhead(server.address.ip(), false));
    let overhead = overheads.max().and_then(|bytes| u32::try_from(bytes).ok());
    let cards = facts.cards();
    let Some(overhead) = overhead else {
        let found = "the tunnels' services clamp their segments";
        return vec![Finding::ok(Check::ServerMtu, found)];
    };
    let needed = ETHERNET + overhead;
    let small: Vec<_> = cards.iter().filter(|card| card.mtu < needed).collect();
    if small.is_empty() {
        let found = format!("there is room for {ETHERNET} + {overhead} bytes");
        return vec![Finding::ok(Check::ServerMtu, found)];
    }
    let names_of: Vec<String> =
        small.iter().map(|card| format!("{} (MTU {})", card.name, card.mtu)).collect();
    let found = format!(
        "a packet of {ETHERNET} bytes needs {needed} in the tunnel, and {} takes less; or write \
         mss_clamp = true at the service",
        names(&names_of)
    );
    let mut finding = Finding::warning(Check::ServerMtu, found);
    for card in small {
        finding = finding.remedy(format!("ip link set dev {} mtu {needed}", card.name));
    }
    vec![finding]
}
