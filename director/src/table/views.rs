//! The table as the control API shows it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Table;
use crate::control::api::{
    ConnectionView, EngineData, Protocol, ServerSpec, ServerView, ServiceView,
};
use crate::control::workers::StateCount;
use crate::dispatch::connection::Connection;
use crate::dispatch::connections::PART;
use crate::dispatch::service::{Member, Service};
use crate::dispatch::sip;

impl Table {
    /// All services in the order of their addition, their servers newest first.
    pub fn service_views(&self) -> Vec<ServiceView> {
        self.each_service_view().collect()
    }

    /// The same, made while they are read. Which services there are is settled now, and what they
    /// look like when their turn comes: the table is not locked meanwhile.
    pub fn each_service_view(&self) -> impl Iterator<Item = ServiceView> + Send + use<> {
        let state = self.lock();
        let is_declared = |service: &Service| state.declared.contains_key(&service.key);
        let services: Vec<_> =
            state.services.iter().map(|service| (service.clone(), is_declared(service))).collect();
        services.into_iter().map(|(service, declared)| service_view(&service, declared))
    }

    /// Connections of one part of the table that have not expired by `now`, [`PART`] of them at most,
    /// or `None` past the last part.
    pub fn connection_views(&self, part: usize, now: Duration) -> Option<Vec<ConnectionView>> {
        let mut views = Vec::with_capacity(PART);
        let is_there = self.shared.connections.visit(part, |connection| {
            if connection.expires > now {
                views.push(connection_view(connection, now));
            }
        });
        is_there.then_some(views)
    }
}

impl Table {
    /// Connections by protocol and state, templates apart. Reads the whole table once: some 20 ms for a
    /// million.
    pub fn connection_states(&self) -> Vec<StateCount> {
        let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        self.shared.connections.survey(|protocol, state, is_template| {
            let name = match (is_template, protocol) {
                (true, _) => ("template", ""),
                (_, 6) => ("tcp", state.name()),
                (_, 17) => ("udp", state.name()),
                _ => ("sctp", state.name()),
            };
            *counts.entry(name).or_default() += 1;
        });
        let row = |((protocol, state), connections): ((&str, &str), u64)| StateCount {
            protocol: protocol.to_owned(),
            state: state.to_owned(),
            connections,
        };
        counts.into_iter().map(row).collect()
    }
}

fn service_view(service: &Service, declared: bool) -> ServiceView {
    let choice = service.choice();
    ServiceView {
        spec: service.spec(),
        declared,
        stats: service.traffic.stats(),
        servers: choice.members().iter().map(server_view).collect(),
        fallback: choice.fallback().map(server_view),
    }
}

fn server_view(Member { server, spec, .. }: &Member) -> ServerView {
    ServerView {
        spec: shown(spec),
        effective_weight: server.load.weight(),
        local: spec.forwarding.is_local(),
        active: server.load.active(),
        inactive: server.load.inactive(),
        persistent: server.templates(),
        picks: server.traffic.picks(),
        stats: server.traffic.stats(),
    }
}

/// A server with the method that was asked for.
pub(super) fn shown(spec: &ServerSpec) -> ServerSpec {
    ServerSpec { forwarding: spec.forwarding.asked(), ..spec.clone() }
}

fn connection_view(connection: &Connection, now: Duration) -> ConnectionView {
    ConnectionView {
        protocol: match connection.tuple.protocol {
            6 => Some(Protocol::Tcp),
            17 => Some(Protocol::Udp),
            132 => Some(Protocol::Sctp),
            _ => None,
        },
        client: connection.call().map_or(connection.tuple.client, |call| call.client).into(),
        virtual_address: connection.tuple.peer.into(),
        server: connection.server_endpoint.into(),
        state: connection.state_name().to_owned(),
        expires: (connection.expires - now).as_secs() as u32,
        engine: connection.call().map(|call| EngineData {
            name: sip::NAME.to_owned(),
            data: String::from_utf8_lossy(&call.id).into_owned(),
        }),
    }
}
