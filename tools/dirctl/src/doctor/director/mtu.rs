//! The MTU budget of every server: what clients send, and what a tunnel adds, against what the way to
//! the server takes.

use std::collections::BTreeMap;
use std::net::IpAddr;

use director::control::api::{Forwarding, MssClamp, Protocol, ServiceKey};
use director::dispatch::transmitter::encapsulation;
use director::network::{Interface, Route};

use super::{Facts, Server, Service, host_prefix, ip};
use crate::doctor::finding::{Check, Finding, names};

/// Clients on the segment of the servers: a larger MTU there is for the tunnel's sake.
const ETHERNET: u32 = 1500;

/// One way too small for some servers of one service.
#[derive(Debug)]
struct Shortage {
    service: ServiceKey,
    overhead: u32,
    client: u32,
    mtu: u32,
    remedies: Vec<String>,
    servers: Vec<IpAddr>,
}

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let mut shortages: Vec<Shortage> = Vec::new();
    // Overhead, by server, of those whose budget holds.
    let mut good: BTreeMap<(u32, u32, u32), Vec<IpAddr>> = BTreeMap::new();
    for service in &facts.plan.services {
        for server in &service.servers {
            let host = server.address.ip();
            let Some((out, route)) = facts.way(host) else { continue };
            let client = client_mtu(facts, service, out);
            let overhead = overhead(server);
            if client + overhead <= route.mtu || is_clamped(service, overhead, route.mtu) {
                let hosts = good.entry((client, overhead, route.mtu)).or_default();
                if !hosts.contains(&host) {
                    hosts.push(host);
                }
                continue;
            }
            let same = shortages.iter_mut().find(|it| {
                (it.service, it.overhead, it.client, it.mtu)
                    == (service.key, overhead, client, route.mtu)
            });
            let remedy = remedy(host, out, &route, client + overhead);
            match same {
                Some(shortage) => {
                    if !shortage.remedies.contains(&remedy) {
                        shortage.remedies.push(remedy);
                    }
                    shortage.servers.push(host);
                }
                None => shortages.push(Shortage {
                    service: service.key,
                    overhead,
                    client,
                    mtu: route.mtu,
                    remedies: vec![remedy],
                    servers: vec![host],
                }),
            }
        }
    }
    let mut findings: Vec<Finding> = shortages.iter().map(Shortage::finding).collect();
    for ((client, overhead, mtu), hosts) in good {
        let found = format!("{}: {client} + {overhead} bytes, MTU {mtu}", names(&hosts));
        findings.push(Finding::ok(Check::Mtu, found));
    }
    findings
}

impl Shortage {
    fn finding(&self) -> Finding {
        let Shortage { service, overhead, client, mtu, remedies, servers } = self;
        let fits = mtu.saturating_sub(*overhead);
        let what = if *overhead == 0 {
            format!("MTU {mtu} on the way, and clients send {client}")
        } else {
            format!(
                "MTU {mtu} - {overhead} for the tunnel leaves {fits}, and clients send {client}"
            )
        };
        let clamp = match service {
            ServiceKey::Address { protocol: Protocol::Udp, .. } => "",
            _ => "; or write mss_clamp = true at the service",
        };
        let found = format!("{service} to {}: {what}{clamp}", names(servers));
        let mut finding = Finding::warning(Check::Mtu, found);
        finding.remedy.clone_from(remedies);
        finding
    }
}

/// The largest packet that clients of a service may send.
fn client_mtu(facts: &Facts, service: &Service, out: &Interface) -> u32 {
    let front = match service.key.vip() {
        Some(vip) => facts.front(vip),
        None => facts.plan.interfaces.first().and_then(|it| facts.network.interface_by_name(it)),
    };
    match front {
        Some(front) if front.index == out.index => front.mtu.min(ETHERNET),
        Some(front) => front.mtu,
        None => ETHERNET,
    }
}

/// What is put around a packet, bytes.
fn overhead(server: &Server) -> u32 {
    match server.forwarding.asked() {
        Forwarding::Tunnel => encapsulation(server.tunnel)
            .overhead(server.address.ip(), false)
            .try_into()
            .unwrap_or(u32::MAX),
        _ => 0,
    }
}

/// Whether TCP's segments are kept small enough; there is nothing like it for datagrams.
fn is_clamped(service: &Service, overhead: u32, mtu: u32) -> bool {
    if matches!(service.key, ServiceKey::Address { protocol: Protocol::Udp, .. }) {
        return false;
    }
    let headers = if service.key.is_ipv6() { 60 } else { 40 };
    match service.extras.mss_clamp {
        MssClamp::ByRoute(clamped) => clamped,
        MssClamp::Bytes(bytes) => u32::from(bytes) + headers + overhead <= mtu,
    }
}

fn remedy(host: IpAddr, out: &Interface, route: &Route, needed: u32) -> String {
    let name = &out.name;
    if route.mtu < out.mtu && out.mtu >= needed {
        let via = route.gateway.map(|gateway| format!(" via {gateway}")).unwrap_or_default();
        return format!(
            "{} route replace {}{via} dev {name} mtu {needed}",
            ip(host),
            host_prefix(host)
        );
    }
    format!("ip link set dev {name} mtu {needed}")
}
