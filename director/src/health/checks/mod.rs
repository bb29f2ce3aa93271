//! The checks: one file per kind, each of which does one check of one server and says what came of
//! it.
//!
//! Knows sockets and what servers answer. Must not know what is made of an [`Outcome`]: nothing here
//! counts, remembers or repeats.
//!
//! Whatever a server sends is bounded, in bytes by each kind and in time by the [`Deadline`] that all
//! steps of a check share. What goes wrong on this side (no descriptors, no permission) is
//! [`Outcome::Unable`], so that a director in need marks nobody down.

mod deadline;
mod stream;
mod tcp;
mod trouble;

use std::net::SocketAddr;
use std::sync::Arc;

use super::outcome::Outcome;
use super::path::Path;
use super::plan::{Check, CheckKind};
use crate::control::api::{ServerSpec, ServiceKey};
use deadline::Deadline;

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
pub async fn run(check: &Check, target: &Target) -> Outcome {
    let deadline = Deadline::after(check.timeout);
    let address = target.address(check);
    let done = match &check.kind {
        CheckKind::Tcp => tcp::run(address, deadline).await,
        other => Err(Outcome::Unable(format!("{} is not there yet", other.word()))),
    };
    done.unwrap_or_else(|outcome| outcome)
}

#[cfg(test)]
mod tests;
