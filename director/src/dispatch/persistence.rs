//! Persistence: a template sends all connections of one client to the same server
//! (behaviour of the kernel's `ip_vs_sched_persist`).
//!
//! The template is an entry of the connection table whose client has port 0 and an address cut to
//! the service's prefix. It is followed even to an overloaded server, and to a quiesced one unless
//! the service or `expire_quiescent_template` says otherwise; never to a removed one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use schedulers::Key;

use super::Dispatcher;
use super::connection::{Connection, Control, Tuple};
use super::service::{Decision, Service};
use super::settings::Setting;

impl Dispatcher {
    /// The server for a new connection: the template's, else the scheduler's with a new template.
    /// The control ties the connection to its template.
    pub(super) fn decide(
        &self,
        service: &Arc<Service>,
        key: &Key,
        now: Duration,
    ) -> Option<(Decision, Option<Arc<Control>>)> {
        let Some((timeout, prefix)) = service.persistence() else {
            return service.schedule(key, now).map(|decision| (decision, None));
        };
        let connections = &self.shared.connections;
        let tuple = Tuple {
            protocol: key.protocol,
            template: true,
            client: (masked(key.source, prefix), 0),
            peer: (key.destination, service.template_port()),
        };
        let renew = |template: &mut Connection| {
            let server = &template.server;
            let leaves_quiesced = service.policy.leaves_quiesced()
                || self.shared.settings.is_on(Setting::ExpireQuiescentTemplate);
            let is_left = leaves_quiesced && server.load.weight() == 0;
            if !server.is_available() || is_left {
                return None;
            }
            template.expires = now + timeout;
            let decision =
                Decision { server: template.server.clone(), transmitter: template.transmitter };
            Some((decision, template.control()))
        };
        match connections.with_tuple(&tuple, renew) {
            Some(Some(found)) => return Some(found),
            Some(None) => connections.remove(&tuple),
            None => {}
        }
        let Decision { server, transmitter } = service.schedule(key, now)?;
        let template =
            Connection::template(tuple, transmitter, service.clone(), server, now + timeout);
        // Another worker may have been first: then its template holds.
        connections.insert(template, renew).flatten()
    }
}

/// The first `prefix` bits of an address; the rest is 0.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_cuts_an_address_at_any_bit() {
        let cut = |address: &str, prefix| masked(address.parse().unwrap(), prefix).to_string();
        assert_eq!(cut("192.0.2.199", 32), "192.0.2.199");
        assert_eq!(cut("192.0.2.199", 24), "192.0.2.0");
        assert_eq!(cut("192.0.2.199", 25), "192.0.2.128");
        assert_eq!(cut("192.0.2.199", 0), "0.0.0.0");
        assert_eq!(cut("2001:db8:1:2::5", 64), "2001:db8:1:2::");
        assert_eq!(cut("2001:db8:1:2::5", 128), "2001:db8:1:2::5");
    }
}
