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
            unable(
                "a service that is known by a firewall mark has no address; use via = \"server\"",
            )
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

#[cfg(test)]
mod tests {
    use super::super::tests::{check, target};
    use super::*;
    use crate::control::api::ServiceKey;
    use crate::health::plan::CheckKind;
    use crate::network::{Network, Resolver};

    fn along() -> Check {
        Check { via: Via::Path, ..check(CheckKind::Tcp) }
    }

    fn through(forwarding: Forwarding) -> Target {
        let mut target = target(([10, 0, 0, 11], 8080).into());
        target.server.forwarding = forwarding;
        let network = Arc::new(arc_swap::ArcSwap::from_pointee(Network::default()));
        target.path = Some(Arc::new(Path::new(network, Resolver::disconnected())));
        target
    }

    fn address(check: &Check, target: &Target) -> String {
        match Way::of(check, target) {
            Ok(Way::Kernel(address)) => format!("kernel {address}"),
            Ok(Way::Path(_, passage)) => format!("path {}", passage.vip),
            Err(Outcome::Unable(_)) => "unable".to_owned(),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_way_is_the_methods_and_the_port_the_checks() {
        let (nat, direct) = (through(Forwarding::Nat), through(Forwarding::Direct));
        let other_port = Check { port: Some(81), ..along() };
        assert_eq!(address(&along(), &nat), "kernel 10.0.0.11:8080");
        assert_eq!(address(&along(), &direct), "path 192.0.2.10:80");
        assert_eq!(address(&other_port, &direct), "path 192.0.2.10:81");
        assert_eq!(address(&along(), &through(Forwarding::Tunnel)), "path 192.0.2.10:80");
        assert_eq!(
            address(&along(), &through(Forwarding::Direct.at_home())),
            "kernel 192.0.2.10:80"
        );
        assert_eq!(address(&check(CheckKind::Tcp), &direct), "kernel 10.0.0.11:8080");
        assert_eq!(address(&Check { via: Via::Server, ..other_port }, &nat), "kernel 10.0.0.11:81");
    }

    #[test]
    fn without_a_vip_or_a_path_the_check_is_unable() {
        let mut marked = through(Forwarding::Direct);
        marked.service = ServiceKey::Fwmark { fwmark: 1, ipv6: false };
        assert_eq!(address(&along(), &marked), "unable");
        let without = Target { path: None, ..through(Forwarding::Direct) };
        assert_eq!(address(&along(), &without), "unable");
    }
}
