//! The checks: one file per kind, each of which does one check of one server and says what came of
//! it.
//!
//! Knows sockets and what servers answer. Must not know what is made of an [`Outcome`]: nothing here
//! counts, remembers or repeats.
//!
//! Whatever a server sends is bounded, in bytes by each kind and in time by the [`Deadline`] that all
//! steps of a check share. What goes wrong on this side (no descriptors, no permission) is
//! [`Outcome::Unable`], so that a director in need marks nobody down.

mod agent_check;
mod datagram;
mod deadline;
mod dns;
mod exec;
mod http;
mod icmp;
mod stream;
mod tcp;
mod tls;
pub(in crate::health) mod trouble;
mod udp;
mod way;
mod words;

use std::net::SocketAddr;
use std::sync::Arc;

use super::outcome::Outcome;
use super::path::Path;
use super::plan::{Check, CheckKind, Via};
use crate::control::api::{ServerSpec, ServiceKey};
pub(in crate::health) use deadline::Deadline;
use way::Way;

/// Whom a check is about.
#[derive(Clone, Debug)]
pub struct Target {
    /// The service.
    pub service: ServiceKey,
    /// The server, as it stands in that service.
    pub server: ServerSpec,
    /// The way to the VIP through a server, for checks that go along it; `None` where there is none.
    pub path: Option<Arc<Path>>,
}

impl Target {
    /// Where the check goes: the server's address, and the check's port or else the server's.
    pub fn address(&self, check: &Check) -> SocketAddr {
        let server = self.server.address;
        SocketAddr::new(server.ip(), check.port.unwrap_or(server.port()))
    }

    /// The service's address and port; `None` of one that is known by a firewall mark.
    pub fn vip(&self) -> Option<SocketAddr> {
        match self.service {
            ServiceKey::Address { address, .. } => Some(address),
            ServiceKey::Fwmark { .. } => None,
        }
    }
}

/// Does one check, which is over when `check.timeout` is. Needs a tokio runtime with time and I/O;
/// may be dropped at any time, and leaves nothing behind.
///
/// A check of kind exec or agent-check goes to the server whatever `check.via` says, and one of kind
/// icmp is unable to go along the path: an answer to ping says nothing of a service.
pub async fn run(check: &Check, target: &Target) -> Outcome {
    let deadline = Deadline::after(check.timeout);
    dispatch(check, target, deadline).await.unwrap_or_else(|outcome| outcome)
}

/// `Err` is an outcome as well: that of a step which did not succeed.
async fn dispatch(check: &Check, target: &Target, deadline: Deadline) -> Result<Outcome, Outcome> {
    let server = target.address(check);
    let way = || Way::of(check, target);
    match &check.kind {
        CheckKind::Tcp => tcp::run(&way()?, deadline).await,
        CheckKind::Http(http) => {
            let way = way()?;
            let stream = stream::connect(&way, false, deadline).await?;
            http::run(stream, way.address(), 80, http, deadline).await
        }
        CheckKind::Https(http, tls) => {
            let way = way()?;
            let host = http::host(http, way.address(), 443);
            let stream = stream::connect(&way, false, deadline).await?;
            let stream = tls::open(stream, tls, &host, deadline).await?;
            http::run(stream, way.address(), 443, http, deadline).await
        }
        CheckKind::Dns(dns) => dns::run(&way()?, dns, deadline).await,
        CheckKind::Udp(udp) => udp::run(&way()?, udp, deadline).await,
        CheckKind::Icmp if check.via == Via::Path => Err(Outcome::Unable(
            "a check of kind icmp does not go along the forwarding path".to_owned(),
        )),
        CheckKind::Icmp => icmp::run(server.ip(), deadline).await,
        CheckKind::Exec(command) => exec::run(command, server, target, deadline).await,
        CheckKind::AgentCheck(agent) => agent_check::run(server, agent, deadline).await,
    }
}

#[cfg(test)]
mod tests;
