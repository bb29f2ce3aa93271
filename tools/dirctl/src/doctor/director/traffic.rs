//! What passes: servers that get packets and never answer, answers that go astray, drops that grow.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use director::control::api::{Forwarding, Protocol, ServiceKey, VerdictCount};
use director::control::health::HealthState;
use director::dispatch::verdict::DropReason;

use super::reach::is_silent;
use super::{Facts, Server, Service, ip};
use crate::doctor::facts::running::Running;
use crate::doctor::finding::{Check, Finding, Severity, names, quoted};

/// So many packets without an answer are no chance.
const MUTE: u64 = 3;

/// Drops that are somebody else's doing, or as they were asked for.
const HARMLESS: &[DropReason] = &[
    DropReason::Truncated,
    DropReason::BadHeader,
    DropReason::BadChecksum,
    DropReason::FragmentOverlap,
    DropReason::FragmentDuplicate,
    DropReason::BadFragment,
    DropReason::FragmentScattered,
    DropReason::NoChunk,
    DropReason::ServerGone,
    DropReason::ServerRemoved,
    DropReason::ServerLost,
    DropReason::DropPacket,
    DropReason::NoCallId,
    DropReason::TtlExceeded,
    DropReason::IcmpUnknown,
    DropReason::IcmpChecksum,
    DropReason::TunnelError,
    DropReason::FtpHeld,
    DropReason::FtpChecksum,
];

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let Some(running) = &facts.running else { return Vec::new() };
    let mut findings = unanswered(facts, running);
    let is_unheard = findings.iter().any(|finding| finding.check == Check::Unanswered);
    findings.extend(astray(facts, is_unheard));
    findings.extend(table(facts, running));
    findings.extend(drops(running));
    findings.extend(rings(facts, running));
    findings
}

/// Servers that get packets and give none, by how they are reached.
fn unanswered(facts: &Facts, running: &Running) -> Vec<Finding> {
    let mut mute: BTreeMap<(IpAddr, bool), Vec<SocketAddr>> = BTreeMap::new();
    let mut good = Vec::new();
    for service in &facts.plan.services {
        for server in &service.servers {
            let is_nat = server.forwarding.asked() == Forwarding::Nat;
            if !is_mute(service, server, running) {
                if is_nat && server.packets.is_some_and(|(_, out)| out > 0) {
                    good.push(server.address);
                }
                continue;
            }
            // What does not live cannot answer; that is said elsewhere.
            let is_dead = is_silent(facts, server.address.ip())
                || running.servers.iter().any(|health| {
                    health.address == server.address && health.state == HealthState::Down
                });
            if !is_dead {
                let servers = mute.entry((server.address.ip(), is_nat)).or_default();
                if !servers.contains(&server.address) {
                    servers.push(server.address);
                }
            }
        }
    }
    let mut findings: Vec<Finding> = mute
        .into_iter()
        .map(|((host, is_nat), servers)| match is_nat {
            true => no_return(facts, host, &servers),
            false => never_heard(host, &servers),
        })
        .collect();
    if !good.is_empty() {
        let found = format!("answers of {} come back by way of the director", names(&good));
        findings.push(Finding::ok(Check::ReturnPath, found));
    }
    findings
}

/// Whether a server has had enough chances to answer, and has never done so.
fn is_mute(service: &Service, server: &Server, running: &Running) -> bool {
    let half_open = running.half_open.get(&server.address).copied().unwrap_or(0);
    let Some((to, from)) = server.packets else { return false };
    let is_udp = matches!(service.key, ServiceKey::Address { protocol: Protocol::Udp, .. });
    match server.forwarding.asked() {
        // Some services by UDP answer nothing ever.
        Forwarding::Nat => from == 0 && !is_udp && (half_open > 0 || to >= MUTE),
        _ => half_open > 0 && to >= MUTE,
    }
}

fn no_return(facts: &Facts, host: IpAddr, servers: &[SocketAddr]) -> Finding {
    let found = format!(
        "the NAT server {} gets packets, and none has ever come back: it has no route to the \
         clients by way of this director",
        names(servers)
    );
    let finding = Finding::fault(Check::ReturnPath, found);
    match facts.network.source_for(host) {
        Some(own) => {
            finding.remedy(format!("{} route replace default via {own}", ip(host))).on(host)
        }
        None => finding.remedy("dirctl doctor --side server").on(host),
    }
}

fn never_heard(host: IpAddr, servers: &[SocketAddr]) -> Finding {
    let found = format!(
        "the server {} gets connections, and no client has gone on with one: it has no VIP, nobody \
         listens there, nothing unpacks the tunnel, or its answers are lost",
        names(servers)
    );
    Finding::fault(Check::Unanswered, found).remedy("dirctl doctor --side server").on(host)
}

/// Answers of direct and tunnel servers end in the director's kernel. It drops other packets as well, so
/// the number alone is no proof.
fn astray(facts: &Facts, is_unheard: bool) -> Option<Finding> {
    let by_themselves = [Forwarding::Direct, Forwarding::Tunnel];
    let hosts = facts.plan.hosts();
    let concerned: Vec<IpAddr> = hosts
        .into_iter()
        .filter(|(_, methods)| methods.iter().any(|method| by_themselves.contains(method)))
        .map(|(host, _)| host)
        .collect();
    let grown = facts.astray_later?.checked_sub(facts.machine.astray?)?;
    let host = *concerned.first()?;
    if grown == 0 {
        return Some(Finding::ok(Check::Astray, "no answers come to the director"));
    }
    let found = format!(
        "in a second the kernel has dropped {grown} packets that are for others or from an address \
         of its own: do {} send their answers here?",
        names(&concerned)
    );
    let severity = if is_unheard { Severity::Warning } else { Severity::Note };
    let finding = Finding::new(severity, Check::Astray, found);
    let look = format!("{} route show default", ip(host));
    Some(finding.remedy(look).on(host))
}

/// A director of an older release does not say how many there may be.
fn table(facts: &Facts, running: &Running) -> Option<Finding> {
    let (now, most) = (running.now.connections, running.now.max_connections);
    let found = format!("{now} of {most} connections are in the table");
    if most == 0 {
        return None;
    }
    if now <= most / 10 * 9 {
        return Some(Finding::ok(Check::Table, found));
    }
    let finding = Finding::warning(Check::Table, found).remedy("dirctl settings drop_entry=1");
    Some(match &facts.file {
        Some(file) => {
            let shown = quoted(&file.path);
            let more = most.saturating_mul(2).min(33_554_400);
            finding
                .remedy(format!(
                    "sed -i '/^max_connections/d; 1i max_connections = {more}' {shown}"
                ))
                .remedy("systemctl restart switchyard-director")
        }
        None => finding,
    })
}

fn drops(running: &Running) -> Vec<Finding> {
    let before: BTreeMap<&str, u64> =
        running.before.verdicts.iter().map(|it| (it.reason.as_str(), it.packets)).collect();
    let grown = |count: &VerdictCount| {
        let before = before.get(count.reason.as_str()).copied().unwrap_or(0);
        count.packets.saturating_sub(before)
    };
    let mut findings = Vec::new();
    for count in &running.now.verdicts {
        let reason = DropReason::ALL.iter().find(|reason| reason.label() == count.reason);
        let (Some(reason), more @ 1..) = (reason, grown(count)) else { continue };
        let severity = if HARMLESS.contains(reason) { Severity::Note } else { Severity::Warning };
        let found = format!("{} grows, {more} in a second: {}", count.reason, reason.meaning());
        findings.push(Finding::new(severity, Check::Drops, found).remedy(look_at(*reason)));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(Check::Drops, "nothing has been dropped for a second"));
    }
    findings
}

/// Where the cause is to be seen, or what keeps the worst off.
fn look_at(reason: DropReason) -> &'static str {
    match reason {
        DropReason::NoServer | DropReason::NoServerReset | DropReason::ServerLost => {
            "dirctl servers"
        }
        DropReason::NoRoute | DropReason::NoPort => "ip route; ip -6 route",
        DropReason::NoNeighbour => "ip neighbour show nud failed",
        DropReason::TableFull => "dirctl settings drop_entry=1",
        DropReason::TooBig => "ip -brief link; ip route",
        _ => "dirctl status",
    }
}

fn rings(facts: &Facts, running: &Running) -> Vec<Finding> {
    let mut findings = Vec::new();
    for port in &running.now.ports {
        let before = running
            .before
            .ports
            .iter()
            .find(|it| (&it.interface, it.queue) == (&port.interface, port.queue));
        let Some(before) = before else { continue };
        let both = [
            ("rx_ring_size", "received", port.receive_dropped, before.receive_dropped),
            ("tx_ring_size", "to transmit", port.transmit_dropped, before.transmit_dropped),
        ];
        for (key, what, now, before) in both {
            let more = now.saturating_sub(before);
            if more == 0 {
                continue;
            }
            let (interface, queue) = (&port.interface, port.queue);
            let found = format!(
                "{interface}, queue {queue}: {more} frames {what} lost in a second, the ring is full"
            );
            let finding = Finding::warning(Check::Rings, found);
            findings.push(match &facts.file {
                Some(file) => finding
                    .remedy(format!("sed -i '/^{key}/d; 1i {key} = 8192' {}", quoted(&file.path)))
                    .remedy("systemctl restart switchyard-director"),
                None => finding.remedy("dirctl status"),
            });
        }
    }
    if findings.is_empty() && !running.now.ports.is_empty() {
        findings.push(Finding::ok(Check::Rings, "no frames have been lost for a second"));
    }
    findings
}
