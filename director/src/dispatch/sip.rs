//! The persistence engine `sip` (behaviour of the kernel's `ip_vs_pe_sip`): what keeps datagrams
//! together is the Call-ID in them, and not the client's address alone. Two calls of a client may
//! go to two servers; a call goes to one server for all clients that the service's prefix makes
//! one.
//!
//! The template of a call bears its Call-ID. A server that calls a client makes a template and a connection as well, from behind, so
//! that the client's answers come to it and bear the virtual address.
//!
//! Templates are entries of the connection table and count as such; what a Call-ID adds to one is
//! at most 255 bytes.

use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use forwarding::Headers;
use forwarding::helpers::sip;
use hashbrown::HashMap;

use super::connection::{Connection, Endpoint, Tuple};
use super::connections::{Binding, Connections, Way};
use super::persistence::{masked, names};
use super::service::Service;
use super::signal::Signal;
use super::{Dispatcher, Target, UDP};
use crate::control::api::Forwarding;

/// The engine's name.
pub const NAME: &str = "sip";

/// Bytes of a UDP header.
const HEADER: usize = 8;

/// What the template of a call bears.
#[derive(Debug)]
pub struct Call {
    /// The Call-ID, letters, digits and a few signs of ASCII.
    pub id: Box<[u8]>,
    /// Whose call it is, cut to the service's prefix.
    pub client: Endpoint,
}

/// The Call-ID in a datagram, if it is one of UDP and has one.
pub(super) fn call_id<'a>(frame: &'a [u8], headers: &Headers) -> Option<&'a [u8]> {
    if headers.protocol != UDP || headers.is_later_fragment() {
        return None;
    }
    let data = frame.get(headers.l4 + HEADER..headers.end)?;
    data.get(sip::call_id(data)?)
}

/// NAT servers that may call clients: those of services with the engine, by address and port.
#[derive(Clone, Default)]
pub struct Callers(HashMap<Endpoint, Arc<Binding>, foldhash::quality::RandomState>);

impl Callers {
    /// Adds the servers of `service`, if they are such.
    pub fn add(&mut self, service: &Arc<Service>) {
        if !service.goes_by_call() {
            return;
        }
        for member in service.choice().everyone() {
            if member.spec.forwarding == Forwarding::Nat {
                let end = (member.spec.address.ip(), member.spec.address.port());
                self.0.insert(end, member.binding.clone());
            }
        }
    }

    /// The server at this end, if it is one.
    pub(super) fn get(&self, end: Endpoint) -> Option<&Arc<Binding>> {
        self.0.get(&end)
    }

    /// Whether there are none: then nobody need be looked for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Connections {
    /// The tuple of the template of a call. A hash stands for client and Call-ID; whoever finds
    /// the template compares these themselves.
    pub(super) fn name_of_call(
        &self,
        id: &[u8],
        protocol: u8,
        client: Endpoint,
        peer: Endpoint,
    ) -> Tuple {
        let hash = Ipv6Addr::from_bits(self.hash_of(client, id));
        Tuple { protocol, template: true, client: (hash.into(), 0), peer }
    }
}

impl Dispatcher {
    /// The target of a datagram by which a server calls a client. `None` when it is none of such.
    pub(super) fn call_out(
        &self,
        now: Duration,
        callers: &Callers,
        frame: &[u8],
        headers: &Headers,
        signal: Signal,
    ) -> Option<Target> {
        if callers.is_empty() || headers.protocol != UDP || self.shared.connections.is_full() {
            return None;
        }
        let binding = callers.0.get(&(headers.source, headers.source_port))?;
        let (service, server) = (&binding.service, &binding.server);
        let vip = service.address()?;
        let client = (headers.destination, headers.destination_port);
        let call = call_id(frame, headers)?;
        let (lifetime, prefix) = service.persistence()?;
        let (protocol, peer) = names(service, UDP, vip);
        let owner = (masked(headers.destination, prefix), 0);
        let template = self.shared.connections.name_of_call(call, protocol, owner, peer);
        let connections = &self.shared.connections;
        let renew = |template: &mut Connection| {
            let same = template.is_of_call(call, owner) && Arc::ptr_eq(template.server(), server);
            same.then(|| {
                template.renew(now);
                template.control()
            })
        };
        let known = connections.with_tuple(&template, renew);
        let control = match known {
            Some(Some(control)) => control,
            _ => {
                connections.remove(&template);
                let made = Connection::template(template, binding.clone(), lifetime, now)
                    .of_call(Call { id: call.into(), client: owner });
                connections.insert(made, renew).flatten()?
            }
        };
        let tuple = Tuple { protocol: UDP, template: false, client, peer: vip };
        let connection = Connection::new(tuple, binding.clone(), now).controlled_by(control);
        service.traffic.connection();
        server.traffic.connection();
        connections.insert(connection, |connection| {
            connection.outgoing(signal, headers.ip_len(), now, &self.shared.timeouts);
            Target::of(Way::Out, connection)
        })
    }
}
