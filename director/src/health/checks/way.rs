//! Which way a check goes.

use std::net::SocketAddr;
use std::sync::Arc;

use super::{Outcome, Target};
use crate::control::api::Forwarding;
use crate::health::path::{Passage, Path};
use crate::health::plan::{Check, Via};

/// See the module.
#[derive(Clone, Debug)]
pub(super) enum Way<'a> {
    /// By the kernel's stack, to this address.
    Kernel(SocketAddr),
    /// To the VIP, through the server.
    Path(&'a Arc<Path>, Passage),
}

impl<'a> Way<'a> {
    /// The way of this check. With NAT the path to the VIP through the server is that to the server.
    pub(super) fn of(check: &Check, target: &'a Target) -> Result<Way<'a>, Outcome> {
        let server = target.address(check);
        if check.via == Via::Server || target.server.forwarding == Forwarding::Nat {
            return Ok(Way::Kernel(server));
        }
        let unable = |why: &str| Outcome::Unable(format!("no check along the path: {why}"));
        let mut vip = target.vip().ok_or_else(|| {
            unable("a service that is known by a firewall mark has no address; use via = \"server\"")
        })?;
        vip.set_port(match (check.port, vip.port()) {
            (Some(port), _) => port,
            // Any port of the VIP: the server's is one.
            (None, 0) => server.port(),
            (None, port) => port,
        });
        if vip.port() == 0 {
            return Err(unable("the service is all ports; give the check one"));
        }
        let path =
            target.path.as_ref().ok_or_else(|| unable("this director follows no neighbours"))?;
        // Its own stack serves the VIP.
        if matches!(target.server.forwarding, Forwarding::Local(_)) || path.is_local(server.ip()) {
            return Ok(Way::Kernel(vip));
        }
        Ok(Way::Path(path, Passage { vip, server: target.server.clone() }))
    }

    /// What is connected to.
    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Way::Kernel(address) => *address,
            Way::Path(_, passage) => passage.vip,
        }
    }
}
