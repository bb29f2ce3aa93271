//! A packet without a connection: is it for a service, may it open a connection, and to whom?

use std::sync::Arc;
use std::time::Duration;

use forwarding::helpers::dns;
use forwarding::{Headers, Packet};
use schedulers::Key;
use schedulers::placement::NameHasher;

use super::connection::{Connection, Tuple};
use super::connections::Way;
use super::service::{Service, Services};
use super::signal::Signal;
use super::verdict::{DropReason, PassReason, Stop};
use super::witness::Decision;
use super::{Dispatcher, Routes, SCTP, Target, UDP, ftp, sip};

/// What a packet names inside, where its service goes by that.
#[derive(Clone, Copy, Default)]
pub(super) struct Named<'a> {
    /// A Call-ID of SIP.
    pub(super) call: Option<&'a [u8]>,
    /// The hash of the name in a DNS question.
    pub(super) name: Option<u64>,
}

/// Bytes of a UDP header.
const UDP_HEADER: usize = 8;

/// The hash of the name in a DNS question, if the packet is such a one. Later fragments have none: they
/// follow the first one.
fn question_name(frame: &[u8], headers: &Headers) -> Option<u64> {
    if headers.protocol != UDP || headers.is_later_fragment() {
        return None;
    }
    let data = frame.get(headers.l4 + UDP_HEADER..headers.end)?;
    dns::question_name_hash(data, NameHasher::default())
}

/// What a scheduler goes by in a packet without a name.
pub(super) fn key_by_ends(headers: &Headers) -> Key {
    Key {
        protocol: headers.protocol,
        source: headers.source,
        source_port: headers.source_port,
        destination: headers.destination,
        destination_port: headers.destination_port,
        name: None,
    }
}

/// What the scheduler of `service` goes by in a packet.
pub(super) fn key_of(service: &Service, frame: &[u8], headers: &Headers) -> Key {
    let name = if service.goes_by_name() { question_name(frame, headers) } else { None };
    Key { name, ..key_by_ends(headers) }
}

impl Dispatcher {
    /// Makes a connection for the packet: of a server that calls a client, or of a client. What is
    /// in `Err` is final.
    pub(super) fn begin(
        &mut self,
        now: Duration,
        services: &Services,
        routes: &mut impl Routes,
        packet: &mut Packet<'_>,
        headers: &Headers,
        signal: Signal,
    ) -> Result<Target, Stop> {
        let frame = packet.bytes();
        if let Some(target) = self.call_out(now, &services.callers, frame, headers, signal) {
            return Ok(target);
        }
        if self.is_stray_answer(services, headers, signal) {
            return Err(self.refuse_answer(now, routes, packet, *headers));
        }
        match self.schedule(now, services, frame, headers, signal) {
            Err(Stop::Drop(reason @ (DropReason::NoServer | DropReason::NoServerReset))) => self
                .bypass(now, services, routes, headers, signal)
                .unwrap_or_else(|| Err(self.refuse(now, packet, headers, reason))),
            scheduled => scheduled,
        }
    }

    /// Makes a connection for the packet. What is in `Err` is final, except that
    /// [`DropReason::NoServer`] and [`DropReason::NoServerReset`] are still to be told to the client.
    fn schedule(
        &self,
        now: Duration,
        services: &Services,
        frame: &[u8],
        headers: &Headers,
        signal: Signal,
    ) -> Result<Target, Stop> {
        let service = services.of(headers).ok_or(Stop::Pass(PassReason::NoService))?;
        self.witness
            .note(|| Decision::Service { key: service.key, scheduler: service.spec().scheduler });
        if headers.protocol == SCTP && signal == Signal::Nothing && !headers.is_later_fragment() {
            return Err(Stop::Drop(DropReason::NoChunk));
        }
        if !signal.may_be_scheduled(&self.shared.settings) {
            if self.may_be_by_hash(now, signal) {
                let target = self.by_hash(now, service, headers, false);
                return target.map_err(|_| Stop::Pass(PassReason::NoConnection));
            }
            self.witness.note(|| Decision::OpensNothing);
            return Err(Stop::Pass(PassReason::NoConnection));
        }
        if let Some(reason) = ftp::leaves_alone(service, headers) {
            return Err(Stop::Pass(reason));
        }
        let once = headers.protocol == UDP && service.is_one_packet();
        if once && headers.is_later_fragment() {
            return self.use_again(now, headers);
        }
        if !once && !self.has_room(now) {
            self.witness.note(|| Decision::TableFull);
            return self.by_hash(now, service, headers, true);
        }
        let call = match service.goes_by_call() {
            true => Some(sip::call_id(frame, headers).ok_or(Stop::Drop(DropReason::NoCallId))?),
            false => None,
        };
        let name = match service.goes_by_name() {
            true => {
                let name = question_name(frame, headers);
                let what = "name in the question";
                self.witness.note(|| Decision::Named { what, is_there: name.is_some() });
                name
            }
            false => None,
        };
        let connection = self.connect(now, service, headers, Named { call, name })?;
        self.enter(now, headers, signal, connection)
    }

    /// Puts a new connection into the table, with its first packet; one of one-packet scheduling is
    /// only used.
    pub(super) fn enter(
        &self,
        now: Duration,
        headers: &Headers,
        signal: Signal,
        connection: Connection,
    ) -> Result<Target, Stop> {
        self.witness.note(|| Decision::Opened {
            server: connection.server_endpoint.into(),
            is_once: headers.protocol == UDP && connection.service().is_one_packet(),
        });
        if headers.protocol == UDP && connection.service().is_one_packet() {
            return Ok(self.use_once(now, headers, signal, connection));
        }
        let timeouts = &self.shared.timeouts;
        self.shared
            .connections
            .insert(connection, |connection| {
                connection.incoming(signal, headers.ip_len(), now, timeouts);
                Target::of(Way::In, connection).announcing(headers, connection)
            })
            .ok_or(Stop::Drop(DropReason::TableFull))
    }

    /// A new connection of `service`, counted, that is still to be put into the table. Of `headers`
    /// only the ends count.
    pub(super) fn connect(
        &self,
        now: Duration,
        service: &Arc<Service>,
        headers: &Headers,
        Named { call, name }: Named<'_>,
    ) -> Result<Connection, Stop> {
        if self.shared.defence.drops_packet() {
            return Err(Stop::Drop(DropReason::DropPacket));
        }
        let key = Key { name, ..key_by_ends(headers) };
        let (decision, control) = self
            .decide(service, &key, call, now)
            .ok_or_else(|| ftp::without_server(service, headers))?;
        service.traffic.connection();
        decision.binding.server.traffic.connection();
        let tuple = Tuple {
            protocol: headers.protocol,
            template: false,
            client: (headers.source, headers.source_port),
            peer: (headers.destination, headers.destination_port),
        };
        let connection = Connection::new(tuple, decision.binding, now).controlled_by(control);
        Ok(if self.shared.ftp.helps(&connection) { connection.helped() } else { connection })
    }
}
