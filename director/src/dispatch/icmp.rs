//! ICMP errors about packets that we forwarded go where the packets of that connection go.
//!
//! The quoted packet tells which connection: an error about what the server sent quotes
//! `VIP -> client` and comes to the VIP; an error about what we sent to a NAT server quotes
//! `client -> server` and goes to the client. One about a packet that we have put into a tunnel
//! quotes `director -> server` (`tunnel_errors.rs`). Everything else is the kernel's, unless
//! `schedule_icmp` is set: then an error about a service's packet goes to a server in any case.
//!
//! What cannot be read is the kernel's too, as it is (`NF_ACCEPT` of IPVS): nothing is rewritten by a
//! quote that is no packet. One about a connection with a wrong checksum is dropped.

use std::time::Duration;

use forwarding::icmp::{self, Translation};
use forwarding::{Headers, Packet};

use super::connection::Connection;
use super::connections::Way;
use super::schedule::Named;
use super::service::Services;
use super::settings::Setting;
use super::tunnel_errors::is_tunnels;
use super::verdict::{DropReason, Method, PassReason, Stop, Verdict};
use super::witness::Decision;
use super::{Dispatcher, Routes, SCTP, TCP, Target, UDP};

impl Dispatcher {
    pub(super) fn handle_icmp(
        &mut self,
        now: Duration,
        services: &Services,
        routes: &mut impl Routes,
        packet: &mut Packet<'_>,
        mut headers: Headers,
    ) -> Verdict {
        let pass = Verdict::Pass(PassReason::Icmp);
        let Some(quote) = icmp::quoted(packet.bytes(), &headers) else {
            return match icmp::is_garbled(packet.bytes(), &headers) {
                true => Verdict::Pass(PassReason::IcmpUnreadable),
                false => pass,
            };
        };
        if is_tunnels(&quote)
            && let Some(verdict) = self.tell_client(now, packet, &headers, &quote)
        {
            return verdict;
        }
        if !matches!(quote.protocol, TCP | UDP | SCTP) {
            return pass;
        }
        let bytes = headers.ip_len();
        // Translating it would make up for what happened to it on the way.
        let is_sound = icmp::has_right_sum(packet.bytes(), &headers);
        // The quoted packet went the other way: its destination is who sends here.
        let target = self.shared.connections.with(
            quote.protocol,
            (quote.destination, quote.destination_port),
            (quote.source, quote.source_port),
            |way, connection| {
                if connection.server().is_lost() {
                    return None;
                }
                let before = (connection.state, connection.expires);
                self.witness.note(|| Decision::followed(way, connection, before, now));
                if is_sound {
                    connection.counted(bytes, way == Way::In);
                }
                Some(Target::of(way, connection))
            },
        );
        let target = match target {
            Some(_) if !is_sound => return Verdict::Drop(DropReason::IcmpChecksum),
            Some(Some(target)) => target,
            // Nothing crosses it any more.
            Some(None) => return Verdict::Drop(DropReason::ServerLost),
            None => match self.schedule_icmp(now, services, &quote, bytes) {
                Ok(target) => target,
                Err(stop) => return stop.into(),
            },
        };
        let onward = match target.onward() {
            Ok(onward) => onward,
            Err(PassReason::Local) => return Verdict::Pass(PassReason::Local),
            Err(_) => return pass,
        };
        let path = match self.prepare(now, routes, packet, &mut headers, &onward, None) {
            Ok(path) => path,
            // No error is ever sent about an error.
            Err(Stop::Answer(reason)) => return Verdict::Drop(reason),
            Err(stop) => return stop.into(),
        };
        let method = onward.method;
        let translation = match method {
            Method::Nat => Translation {
                outer_destination: Some(target.server.0),
                quoted_source: Some(target.server),
                ..Translation::default()
            },
            Method::NatReply => Translation {
                outer_source: Some(target.virtual_endpoint.0),
                quoted_destination: Some(target.virtual_endpoint),
                ..Translation::default()
            },
            Method::Tunnel => {
                return self.encapsulate(packet, &headers, None, path, &onward, &target);
            }
            Method::Direct | Method::Bypass => {
                return Verdict::Transmit { method, path, partial: None, headers };
            }
        };
        // Lowering the TTL has left the quote where it was.
        let Some(quote) = icmp::quoted(packet.bytes(), &headers) else {
            return Verdict::Drop(DropReason::IcmpUnknown);
        };
        icmp::translate(packet.bytes_mut(), &mut headers, &quote, &translation);
        Verdict::Transmit { method, path, partial: None, headers }
    }

    /// Makes a connection for an ICMP error of `bytes` whose quote is what some server has sent:
    /// another director's client, whose errors come here. It lives for moments.
    fn schedule_icmp(
        &self,
        now: Duration,
        services: &Services,
        quote: &Headers,
        bytes: usize,
    ) -> Result<Target, Stop> {
        let pass = Stop::Pass(PassReason::Icmp);
        if !self.shared.settings.is_on(Setting::ScheduleIcmp) {
            return Err(pass);
        }
        let service = services.find(quote.protocol, quote.source, quote.source_port).ok_or(pass)?;
        if self.shared.connections.is_full() {
            return Err(Stop::Drop(DropReason::TableFull));
        }
        let inverse = Headers {
            source: quote.destination,
            source_port: quote.destination_port,
            destination: quote.source,
            destination_port: quote.source_port,
            ..*quote
        };
        if service.goes_by_call() {
            return Err(Stop::Drop(DropReason::NoCallId));
        }
        let connection = self.connect(now, service, &inverse, Named::default())?;
        connection.counted(bytes, true);
        if service.is_one_packet() && quote.protocol == UDP {
            return Ok(Target::of(Way::In, &connection));
        }
        let target = |connection: &mut Connection| Target::of(Way::In, connection);
        let inserted = self.shared.connections.insert(connection, target);
        inserted.ok_or(Stop::Drop(DropReason::TableFull))
    }
}
