//! A copy of everything that a packet can meet, so that it can be tried what would become of it.
//!
//! Copied are the connections and templates that the packet could belong to, the services that it could be for,
//! with their servers and schedulers ([`schedulers::Scheduler::fork`]), settings, timeouts and limits. The
//! copy is decided on by the very [`Dispatcher`] that carries traffic, and thrown away: nothing
//! that is done to it concerns the original. Packets go on meanwhile; each part is copied under the lock
//! that it has anyway.
//!
//! Not copied is what no one packet can tell: where eviction would look in a full table, and which of
//! idle destinations lblc would forget first.

use std::collections::HashMap;
use std::sync::Arc;

use forwarding::{Headers, icmp};
use schedulers::Key;

use super::connection::{Connection, Controls, Endpoint, Tuple};
use super::connections::{Binding, Connections};
use super::persistence::{masked, names};
use super::real_server::RealServer;
use super::service::{Service, Services};
use super::{Dispatcher, Shared, sip};

/// See the module.
pub struct Fork {
    /// What dispatchers share.
    pub shared: Arc<Shared>,
    /// The services.
    pub services: Services,
}

impl Fork {
    /// For what is no packet: nothing is known of it.
    pub fn of_nothing(live: &Shared) -> Fork {
        let shared = Shared { connections: live.connections.fork(), ..Shared::new(1) };
        Fork { shared: Arc::new(shared), services: Services::default() }
    }

    /// Copies what a packet with these headers can meet. `frame` is the packet.
    pub fn of(live: &Shared, services: &Services, frame: &[u8], headers: &Headers) -> Fork {
        let mut fork = Forker {
            live,
            services,
            connections: live.connections.fork(),
            forked: services.clone(),
            by_service: HashMap::new(),
            by_server: HashMap::new(),
            controls: Controls::default(),
            copies: Vec::new(),
        };
        let mut headers = *headers;
        if headers.is_later_fragment()
            && let Some(ports) = live.fragments.ports(&headers)
        {
            (headers.source_port, headers.destination_port) = ports;
        }
        let headers = &headers;
        fork.flow(frame, headers);
        if let Some(quote) = icmp::quoted(frame, headers) {
            // The quoted packet went the other way.
            let inverse = Headers {
                source: quote.destination,
                source_port: quote.destination_port,
                destination: quote.source,
                destination_port: quote.source_port,
                ..quote
            };
            fork.flow(&[], &inverse);
            fork.tunnel(frame, &quote);
        }
        fork.finish(headers)
    }
}

/// A copy that is being made.
struct Forker<'a> {
    live: &'a Shared,
    services: &'a Services,
    connections: Connections,
    forked: Services,
    /// By where the original is in memory.
    by_service: HashMap<*const Service, Arc<Service>>,
    by_server: HashMap<*const RealServer, Arc<RealServer>>,
    controls: Controls,
    copies: Vec<Connection>,
}

impl Forker<'_> {
    /// What a packet of this flow can meet.
    fn flow(&mut self, frame: &[u8], headers: &Headers) {
        let key = super::schedule::key_by_ends(headers);
        let from = (headers.source, headers.source_port);
        let to = (headers.destination, headers.destination_port);
        let candidates =
            [self.services.of(headers), self.services.find(headers.protocol, to.0, to.1)];
        for service in candidates.into_iter().flatten() {
            let key = super::schedule::key_of(service, frame, headers);
            let fork = self.service(service, &key);
            self.forked.insert(fork);
            self.template(service, frame, headers);
        }
        if let Some(binding) = self.services.callers.get(from) {
            let service = binding.service.clone();
            let fork = self.service(&service, &key);
            self.forked.set_callers(std::iter::once(&fork));
            self.forked.insert(fork);
            self.call(&service, frame, headers);
        }
        let mut found = Vec::new();
        self.live
            .connections
            .peek_both(headers.protocol, from, to, |known| found.push(known.sketch()));
        // Data connections of FTP that wait for their client's port.
        let portless = Tuple {
            protocol: headers.protocol,
            template: false,
            client: (headers.source, 0),
            peer: to,
        };
        self.live.connections.peek_tuple(&portless, |known| found.push(known.sketch()));
        found.into_iter().for_each(|sketch| self.copy(sketch, &key));
    }

    /// The client's template, if the service has such.
    fn template(&mut self, service: &Arc<Service>, frame: &[u8], headers: &Headers) {
        let Some((_, prefix)) = service.persistence() else { return };
        let asked = (headers.destination, headers.destination_port);
        let (protocol, peer) = names(service, headers.protocol, asked);
        let client = (masked(headers.source, prefix), 0);
        let tuple = match service.goes_by_call() {
            false => Tuple { protocol, template: true, client, peer },
            true => {
                let Some(id) = sip::call_id(frame, headers) else { return };
                self.live.connections.name_of_call(id, protocol, client, peer)
            }
        };
        self.named(&tuple, headers);
    }

    /// The template of a server's call to a client.
    fn call(&mut self, service: &Arc<Service>, frame: &[u8], headers: &Headers) {
        let Some((_, prefix)) = service.persistence() else { return };
        let (Some(vip), Some(id)) = (service.address(), sip::call_id(frame, headers)) else {
            return;
        };
        let (protocol, peer) = names(service, headers.protocol, vip);
        let owner = (masked(headers.destination, prefix), 0);
        let tuple = self.live.connections.name_of_call(id, protocol, owner, peer);
        self.named(&tuple, headers);
        let client: Endpoint = (headers.destination, headers.destination_port);
        let tuple = Tuple { protocol: headers.protocol, template: false, client, peer: vip };
        self.named(&tuple, headers);
    }

    /// What an ICMP error about a packet of our own tunnel is about: the packet inside.
    fn tunnel(&mut self, frame: &[u8], quote: &Headers) {
        if !super::tunnel_errors::is_tunnels(quote) {
            return;
        }
        if let Some(inner) = super::tunnel_errors::inside(frame, quote) {
            self.flow(&[], &inner);
        }
    }

    fn named(&mut self, tuple: &Tuple, headers: &Headers) {
        let mut found = None;
        self.live.connections.peek_tuple(tuple, |known| found = Some(known.sketch()));
        if let Some(sketch) = found {
            self.copy(sketch, &super::schedule::key_by_ends(headers));
        }
    }

    fn copy(&mut self, sketch: super::connection::Sketch, key: &Key) {
        let binding = self.binding(&sketch.binding, key);
        if self.copies.iter().any(|known| known.tuple == sketch.tuple) {
            return;
        }
        self.copies.push(sketch.made(binding, &mut self.controls));
    }

    fn binding(&mut self, binding: &Arc<Binding>, key: &Key) -> Arc<Binding> {
        let service = self.service(&binding.service, key);
        let server = self.server(&binding.server);
        self.connections.bind(&service, &server, binding.transmitter)
    }

    fn server(&mut self, server: &Arc<RealServer>) -> Arc<RealServer> {
        let fork = self.by_server.entry(Arc::as_ptr(server));
        fork.or_insert_with(|| Arc::new(server.fork())).clone()
    }

    /// The service with all its servers, for one choice by `key`.
    fn service(&mut self, service: &Arc<Service>, key: &Key) -> Arc<Service> {
        if let Some(fork) = self.by_service.get(&Arc::as_ptr(service)) {
            return fork.clone();
        }
        let by_server = &mut self.by_server;
        let fork = service.fork(key, &self.connections, |server| {
            let fork = by_server.entry(Arc::as_ptr(server));
            fork.or_insert_with(|| Arc::new(server.fork())).clone()
        });
        self.by_service.insert(Arc::as_ptr(service), fork.clone());
        fork
    }

    fn finish(mut self, headers: &Headers) -> Fork {
        let has_room = !self.live.connections.is_full();
        for connection in self.copies {
            self.connections.restore(connection);
        }
        self.connections.limit_to_content(has_room);
        let by_server = &self.by_server;
        let fork_of = |server: &Arc<RealServer>| by_server.get(&Arc::as_ptr(server)).cloned();
        let shared = Shared {
            connections: self.connections,
            timeouts: self.live.timeouts.fork(),
            fragments: self.live.fragments.fork(headers, fork_of),
            ftp: self.live.ftp.clone(),
            settings: self.live.settings.fork(),
            limiter: self.live.limiter.fork(),
            defence: self.live.defence.fork(),
            overflow: self.live.overflow.fork(),
        };
        Fork { shared: Arc::new(shared), services: self.forked }
    }
}

impl Dispatcher {
    /// A pipeline on a fork, with a witness that takes notes.
    pub fn on(fork: &Fork) -> Dispatcher {
        let mut dispatcher = Dispatcher::new(fork.shared.clone(), 0);
        dispatcher.witness = super::witness::Witness::attentive();
        dispatcher.refresh();
        dispatcher
    }
}
