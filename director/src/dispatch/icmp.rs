//! ICMP errors about packets that we forwarded go where the packets of that connection go.
//!
//! The quoted packet tells which connection: an error about what the server sent quotes
//! `VIP -> client` and comes to the VIP; an error about what we sent to a NAT server quotes
//! `client -> server` and goes to the client. One about a packet that we have put into a tunnel
//! quotes `director -> server` (`tunnel_errors.rs`). Everything else is the kernel's.

use std::time::Duration;

use forwarding::icmp::{self, Translation};
use forwarding::{Headers, Packet};

use super::connections::Way;
use super::tunnel_errors::is_tunnels;
use super::verdict::{DropReason, Method, PassReason, Stop, Verdict};
use super::{Dispatcher, Routes, SCTP, TCP, Target, UDP};

impl Dispatcher {
    pub(super) fn handle_icmp(
        &mut self,
        now: Duration,
        routes: &mut impl Routes,
        packet: &mut Packet<'_>,
        mut headers: Headers,
    ) -> Verdict {
        let pass = Verdict::Pass(PassReason::Icmp);
        let Some(quote) = icmp::quoted(packet.bytes(), &headers) else {
            return pass;
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
        // The quoted packet went the other way: its destination is who sends here.
        let target = self.shared.connections.with(
            quote.protocol,
            (quote.destination, quote.destination_port),
            (quote.source, quote.source_port),
            |way, connection| {
                connection.counted(bytes, way == Way::In);
                Target::of(way, connection)
            },
        );
        let Some(target) = target else { return pass };
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
            Method::Direct => {
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
}
