//! `cache_bypass`: while no server of a service by firewall mark takes a client's packet, the packet
//! goes on to where the client has sent it. So clients of a transparent cache reach their origin
//! server when all caches are down (behaviour of the kernel's `ip_vs_leave` and `ip_vs_bypass_xmit`).
//!
//! It opens a connection without a server, which is listed with the unspecified address and port 0
//! in place of one and counts nowhere. The connection bypasses the servers to its end, also when one
//! has come back. What the origin server answers is not ours: it is routed like any other packet.

use std::net::IpAddr;
use std::time::Duration;

use forwarding::Headers;

use super::connection::{Connection, Tuple};
use super::service::Services;
use super::settings::Setting;
use super::signal::Signal;
use super::transmitter::Transmitter;
use super::verdict::Stop;
use super::witness::Decision;
use super::{Dispatcher, Routes, Target};
use crate::control::api::ServiceKey;

impl Dispatcher {
    /// Makes a connection past the servers for a packet that none of them takes; `None` when the
    /// packet is to be refused.
    pub(super) fn bypass(
        &self,
        now: Duration,
        services: &Services,
        routes: &mut impl Routes,
        headers: &Headers,
        signal: Signal,
    ) -> Option<Result<Target, Stop>> {
        if !self.shared.settings.is_on(Setting::CacheBypass) {
            return None;
        }
        let service = services.of(headers)?;
        let is_marked = matches!(service.key, ServiceKey::Fwmark { .. });
        if !is_marked || !leads_on(headers.destination, routes) {
            return None;
        }
        self.witness.note(|| Decision::Bypassed);
        let nobody = service.nobody();
        let binding = self.shared.connections.bind(service, nobody, Transmitter::Bypass);
        let tuple = Tuple {
            protocol: headers.protocol,
            template: false,
            client: (headers.source, headers.source_port),
            peer: (headers.destination, headers.destination_port),
        };
        Some(self.enter(now, headers, signal, Connection::bypassing(tuple, binding, now)))
    }
}

/// Whether packets to `destination` go to another host. There is no path to the director's own
/// addresses, nor to the broadcast addresses of its networks.
fn leads_on(destination: IpAddr, routes: &mut impl Routes) -> bool {
    let is_unicast = match destination {
        IpAddr::V4(v4) => v4.octets()[0] != 0 && !v4.is_multicast() && !v4.is_broadcast(),
        IpAddr::V6(v6) => !v6.is_unspecified() && !v6.is_multicast() && !v6.is_loopback(),
    };
    is_unicast && routes.path(destination).is_some()
}
