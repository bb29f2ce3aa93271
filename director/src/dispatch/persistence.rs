//! Persistence: a template sends all connections of one client to the same server
//! (behaviour of the kernel's `ip_vs_sched_persist`).
//!
//! The template is an entry of the connection table whose client has port 0 and an address cut to
//! the service's prefix. Where the service is named by a firewall mark the template is too, so that
//! it holds for whatever ports and addresses bear the mark. It is followed even to an overloaded
//! server, and to a quiesced one unless the service or `expire_quiescent_template` says otherwise;
//! never to a removed one, nor to one that has failed since. The fallback server of a service
//! gets no templates: its clients shall go back as soon as one of the others has come back.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use schedulers::Key;

use super::Dispatcher;
use super::connection::{Connection, Control, Endpoint, Tuple};
use super::service::{Decision, Service};
use super::settings::Setting;
use super::sip::Call;
use super::witness::Decision as Noted;
use crate::control::api::ServiceKey;

impl Dispatcher {
    /// The server for a new connection: the template's, else the scheduler's with a new template.
    /// The control ties the connection to its template. `call` is the Call-ID where the service goes
    /// by it.
    pub(super) fn decide(
        &self,
        service: &Arc<Service>,
        key: &Key,
        call: Option<&[u8]>,
        now: Duration,
    ) -> Option<(Decision, Option<Arc<Control>>)> {
        let Some((timeout, prefix)) = service.persistence() else {
            return self.ask(service, key, now).map(|decision| (decision, None));
        };
        let connections = &self.shared.connections;
        let asked = (key.destination, key.destination_port);
        let (protocol, peer) = names(service, key.protocol, asked);
        let client = (masked(key.source, prefix), 0);
        let tuple = match call {
            Some(id) => connections.name_of_call(id, protocol, client, peer),
            None => Tuple { protocol, template: true, client, peer },
        };
        let renew = |template: &mut Connection, is_new: bool| {
            let server = template.server();
            let leaves_quiesced = service.policy.leaves_quiesced()
                || self.shared.settings.is_on(Setting::ExpireQuiescentTemplate);
            let is_left = leaves_quiesced && server.load.weight() == 0;
            let is_of_call = call.is_none_or(|id| template.is_of_call(id, client));
            let left = match (server.is_available(), is_left, is_of_call) {
                (false, ..) => Some("its server is gone"),
                (_, true, _) => Some("its server has weight 0"),
                (.., false) => Some("it is of another call"),
                _ => None,
            };
            let at = template.server_endpoint.0;
            if !is_new {
                self.witness.note(|| Noted::Template { server: at, left });
            }
            if left.is_some() {
                return None;
            }
            template.renew(now);
            let decision = Decision { binding: template.binding.clone(), is_makeshift: false };
            Some((decision, template.control()))
        };
        match connections.with_tuple(&tuple, |template| renew(template, false)) {
            Some(Some(found)) => return Some(found),
            Some(None) => connections.remove(&tuple),
            None => self.witness.note(|| Noted::NoTemplate { prefix, timeout }),
        }
        let decision = self.ask(service, key, now)?;
        if decision.is_makeshift {
            return Some((decision, None));
        }
        let mut template = Connection::template(tuple, decision.binding, timeout, now);
        if let Some(id) = call {
            template = template.of_call(Call { id: id.into(), client });
        }
        // Another worker may have been first: then its template holds.
        connections.insert(template, |template| renew(template, true)).flatten()
    }

    /// Asks the service's scheduler.
    fn ask(&self, service: &Service, key: &Key, now: Duration) -> Option<Decision> {
        if self.witness.is_there() {
            self.ask_aloud(service, key, now)
        } else {
            service.schedule(key, now)
        }
    }

    /// The same before a witness.
    #[cold]
    fn ask_aloud(&self, service: &Service, key: &Key, now: Duration) -> Option<Decision> {
        let (bearings, candidates) = service.weigh(key);
        let decision = service.schedule(key, now);
        let server = decision.as_ref().map(|decision| decision.binding.server.address());
        self.witness.note(|| match (&decision, server) {
            (Some(Decision { is_makeshift: true, .. }), Some(server)) => Noted::Fallback { server },
            _ => Noted::Scheduled { bearings, candidates, chosen: server },
        });
        decision
    }
}

/// A template of a firewall mark is of no protocol.
const IP: u8 = 0;

/// Protocol and virtual address in the template of a connection over `protocol` to `asked`.
pub(super) fn names(service: &Service, protocol: u8, asked: Endpoint) -> (u8, Endpoint) {
    match service.key {
        ServiceKey::Address { .. } => (protocol, (asked.0, service.template_port())),
        ServiceKey::Fwmark { fwmark, ipv6 } => (IP, (mark_as_address(fwmark, ipv6), 0)),
    }
}

/// The mark in place of a virtual address, as the kernel lists it: `0.0.0.7`, or `0:7::`.
fn mark_as_address(mark: u32, ipv6: bool) -> IpAddr {
    match ipv6 {
        false => Ipv4Addr::from_bits(mark).into(),
        true => Ipv6Addr::from_bits(u128::from(mark) << 96).into(),
    }
}

/// The first `prefix` bits of an address; the rest is 0.
pub(super) fn masked(address: IpAddr, prefix: u8) -> IpAddr {
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
