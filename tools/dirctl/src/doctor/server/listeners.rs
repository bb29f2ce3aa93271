//! Somebody listens where clients' packets come to.

use std::net::{IpAddr, SocketAddr};

use realserver_agent::role::Served;
use realserver_agent::settings::Protocol;

use super::Facts;
use crate::doctor::finding::{Check, Finding, names};

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut good = Vec::new();
    for served in &facts.role.served {
        let Served { address, port: Some(port), protocol: Some(protocol) } = *served else {
            continue;
        };
        let word = match protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            // Its sockets are in a table of their own.
            Protocol::Sctp => continue,
        };
        let wanted = SocketAddr::new(address, port);
        let of_protocol = || facts.listeners.iter().filter(|it| it.protocol == protocol);
        if of_protocol().any(|listener| listener.takes(wanted)) {
            good.push(format!("{wanted}/{word}"));
            continue;
        }
        let elsewhere: Vec<IpAddr> = of_protocol()
            .filter(|it| it.address.port() == port)
            .map(|it| it.address.ip())
            .collect();
        let found = if elsewhere.is_empty() {
            format!("nobody listens on {wanted}/{word}, or on all addresses")
        } else {
            format!("nobody listens on {wanted}/{word}, only on {}", names(&elsewhere))
        };
        let flag = if protocol == Protocol::Tcp { 't' } else { 'u' };
        let look = format!("ss -ln{flag}p 'sport = :{port}'");
        findings.push(Finding::fault(Check::ServerListener, found).remedy(look));
    }
    if !good.is_empty() {
        let found = format!("somebody listens on {}", names(&good));
        findings.push(Finding::ok(Check::ServerListener, found));
    }
    findings
}
