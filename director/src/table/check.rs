//! What is wrong with a service or a server that somebody asks for. A refusal changes nothing.

use std::net::IpAddr;

use super::extras;
use crate::control::api::{
    Forwarding, Persistence, Protocol, Refusal, RefusalKind, ServerSpec, ServiceKey, ServiceSpec,
    Timeouts, Tunnel, TunnelChecksum,
};
use crate::dispatch::sip;

pub(super) fn refuse(error: RefusalKind, message: impl Into<String>) -> Refusal {
    Refusal { error, message: message.into() }
}

/// The name of a scheduler.
pub(super) fn scheduler(name: &str) -> Result<(), Refusal> {
    schedulers::find(name).map(drop).ok_or_else(|| no_such_scheduler(name))
}

pub(super) fn no_such_scheduler(name: &str) -> Refusal {
    let names: Vec<_> = schedulers::REGISTRY.iter().map(|entry| entry.name).collect();
    let message = format!("there is no scheduler '{name}'; there are: {}", names.join(" "));
    refuse(RefusalKind::NoSuchScheduler, message)
}

/// Timeouts that somebody sets.
pub(super) fn timeouts(wanted: &Timeouts) -> Result<(), Refusal> {
    let longest = [wanted.tcp, wanted.tcp_fin, wanted.udp].into_iter().max();
    if longest > Some(2_678_400) {
        return Err(refuse(RefusalKind::Invalid, "a timeout is at most 2678400 s"));
    }
    Ok(())
}

/// A service by itself.
pub(super) fn service(spec: &ServiceSpec) -> Result<(), Refusal> {
    match spec.key {
        ServiceKey::Fwmark { fwmark: 0, .. } => {
            return Err(refuse(RefusalKind::Invalid, "a firewall mark is 1 or more"));
        }
        ServiceKey::Fwmark { .. } => {}
        ServiceKey::Address { address, .. } => {
            let ip = address.ip();
            if ip.is_multicast() || ip.is_unspecified() {
                return Err(refuse(
                    RefusalKind::Invalid,
                    format!("{ip} cannot be a virtual address: it is not unicast"),
                ));
            }
            if address.port() == 0 && spec.persistence.is_none() {
                return Err(refuse(
                    RefusalKind::Invalid,
                    "a service for every port (port 0) must be persistent",
                ));
            }
        }
    }
    if let ServiceKey::Address { protocol, .. } = spec.key
        && spec.one_packet
        && protocol != Protocol::Udp
    {
        return Err(refuse(RefusalKind::Invalid, "one-packet scheduling is for UDP services only"));
    }
    if let Some(wanted) = &spec.extras {
        extras::check(&spec.key, wanted)?;
    }
    names(spec)?;
    match &spec.persistence {
        Some(wanted) => persistence(wanted, spec.key.is_ipv6()),
        None => Ok(()),
    }
}

/// Whether it could go by names, if it is to. A mark may stand for packets of every protocol; those
/// that are not of UDP have none.
pub(super) fn names(spec: &ServiceSpec) -> Result<(), Refusal> {
    match spec.key {
        ServiceKey::Address { protocol, .. }
            if protocol != Protocol::Udp && spec.goes_by_name() =>
        {
            Err(refuse(RefusalKind::Invalid, "the key dns-name is for UDP services only"))
        }
        _ => Ok(()),
    }
}

fn persistence(wanted: &Persistence, is_ipv6: bool) -> Result<(), Refusal> {
    if let Some(engine) = wanted.engine.as_ref().filter(|engine| *engine != sip::NAME) {
        return Err(refuse(
            RefusalKind::NoSuchScheduler,
            format!("there is no persistence engine '{engine}'"),
        ));
    }
    if !(1..=2_678_400).contains(&wanted.timeout) {
        return Err(refuse(
            RefusalKind::Invalid,
            format!("persistence timeout {} s is not within 1..=2678400", wanted.timeout),
        ));
    }
    let (shortest, longest) = if is_ipv6 { (1, 128) } else { (0, 32) };
    if !(shortest..=longest).contains(&wanted.prefix) {
        return Err(refuse(
            RefusalKind::Invalid,
            format!("persistence prefix {} is not within {shortest}..={longest}", wanted.prefix),
        ));
    }
    Ok(())
}

/// The address of a new server: one that a packet can be sent to. A link-local address is none, for
/// it does not say on which link.
pub(super) fn server_address(ip: IpAddr) -> Result<(), Refusal> {
    let reachable = match ip {
        IpAddr::V4(ip) => !ip.is_broadcast(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local() && ip.to_ipv4_mapped().is_none(),
    };
    if reachable && !ip.is_multicast() && !ip.is_unspecified() {
        return Ok(());
    }
    let message = format!("{ip} cannot be a server's address: it is not unicast");
    Err(refuse(RefusalKind::Invalid, message))
}

/// A server of the service `key`, but for its address.
pub(super) fn server(key: &ServiceKey, spec: &ServerSpec) -> Result<(), Refusal> {
    let ip = spec.address.ip();
    if ip.is_ipv6() != key.is_ipv6() && spec.forwarding != Forwarding::Tunnel {
        return Err(refuse(
            RefusalKind::Invalid,
            "a server of the other address family can be reached by tunnel only",
        ));
    }
    if spec.weight < 0 {
        return Err(refuse(RefusalKind::Range, "a weight is 0 or more"));
    }
    if spec.lower_threshold > spec.upper_threshold {
        return Err(refuse(RefusalKind::Range, "the lower threshold is above the upper one"));
    }
    if let (Forwarding::Tunnel, Tunnel::Gre { checksum: TunnelChecksum::Remcsum }) =
        (spec.forwarding, spec.tunnel)
    {
        return Err(refuse(RefusalKind::Invalid, "a GRE tunnel has no remote checksum offload"));
    }
    if let (Forwarding::Tunnel, Tunnel::Gue { port: 0, .. }) = (spec.forwarding, spec.tunnel) {
        return Err(refuse(RefusalKind::Invalid, "a GUE tunnel needs the server's UDP port"));
    }
    Ok(())
}
