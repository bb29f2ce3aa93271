//! A packet without a connection: is it for a service, may it open a connection, and to whom?

use std::time::Duration;

use forwarding::Headers;
use schedulers::Key;

use super::connection::{Connection, Tuple};
use super::connections::Way;
use super::service::Services;
use super::verdict::{DropReason, PassReason, Stop};
use super::{Dispatcher, TCP, Target, tcp};

impl Dispatcher {
    /// Makes a connection for the packet. What is in `Err` is final, except that
    /// [`DropReason::NoServer`] is still to be answered with ICMP.
    pub(super) fn schedule(
        &self,
        now: Duration,
        services: &Services,
        headers: &Headers,
    ) -> Result<Target, Stop> {
        let service = services.of(headers).ok_or(Stop::Pass(PassReason::NoService))?;
        if headers.protocol == TCP && !tcp::may_be_scheduled(headers.tcp_flags) {
            return Err(Stop::Pass(PassReason::NoConnection));
        }
        if self.shared.connections.is_full() {
            return Err(Stop::Drop(DropReason::TableFull));
        }
        let key = Key {
            protocol: headers.protocol,
            source: headers.source,
            source_port: headers.source_port,
            destination: headers.destination,
            destination_port: headers.destination_port,
        };
        let (decision, control) =
            self.decide(service, &key, now).ok_or(Stop::Drop(DropReason::NoServer))?;
        service.traffic.connection();
        decision.server.traffic.connection();
        let tuple = Tuple {
            protocol: headers.protocol,
            template: false,
            client: (headers.source, headers.source_port),
            peer: (headers.destination, headers.destination_port),
        };
        let connection =
            Connection::new(tuple, decision.transmitter, service.clone(), decision.server, now)
                .controlled_by(control);
        let timeouts = &self.shared.timeouts;
        self.shared
            .connections
            .insert(connection, |connection| {
                connection.incoming(headers.tcp_flags, headers.ip_len(), now, timeouts);
                Target::of(Way::In, connection)
            })
            .ok_or(Stop::Drop(DropReason::TableFull))
    }
}
