//! What the tests of all kinds need.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::Target;
use crate::control::api::{Forwarding, Protocol, ServerSpec, ServiceKey, Tunnel};
use crate::health::outcome::Outcome;
use crate::health::plan::{Check, CheckKind};

/// A check with time enough for a busy machine.
pub(super) fn check(kind: CheckKind) -> Check {
    Check { kind, timeout: Duration::from_secs(10), ..Check::default() }
}

/// The server at this address, of a service that is elsewhere.
pub(super) fn target(address: SocketAddr) -> Target {
    let protocol = Protocol::Tcp;
    Target {
        service: ServiceKey::Address { protocol, address: ([192, 0, 2, 10], 80).into() },
        server: ServerSpec {
            address,
            forwarding: Forwarding::Nat,
            tunnel: Tunnel::Ipip,
            weight: 1,
            upper_threshold: 0,
            lower_threshold: 0,
        },
        path: None,
    }
}

/// One check of the server at this address, from start to end.
pub(super) fn run(check: &Check, address: SocketAddr) -> Outcome {
    block_on(super::run(check, &target(address)))
}

/// In a runtime as the director's.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Any port of both families.
pub(super) fn loopbacks() -> [SocketAddr; 2] {
    [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()].map(|ip| (ip, 0).into())
}
