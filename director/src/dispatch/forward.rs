//! The way out: route, TTL, MTU, and the rewrite that the connection's method makes.

use std::net::IpAddr;
use std::time::Duration;

use forwarding::checksum::{self, Partial};
use forwarding::icmp::Error;
use forwarding::tunnel::Outer;
use forwarding::{Family, Headers, Packet, direct, icmp, nat, tunnel};

use super::connections::Way;
use super::verdict::{DropReason, Method, PassReason, Path, Stop, Verdict};
use super::{Dispatcher, Routes, Target};
use crate::control::api::Forwarding;

impl Target {
    /// How the packet goes on and to which address, or why it is not ours to send on.
    pub(super) fn method(&self) -> Result<(Method, IpAddr), PassReason> {
        match (self.way, self.forwarding) {
            (_, Forwarding::Local) => Err(PassReason::Local),
            (Way::In, Forwarding::Nat) => Ok((Method::Nat, self.server.0)),
            (Way::In, Forwarding::Tunnel) => Ok((Method::Tunnel, self.server.0)),
            (Way::In, Forwarding::Direct) => Ok((Method::Direct, self.server.0)),
            (Way::Out, Forwarding::Nat) => Ok((Method::NatReply, self.client.0)),
            // A server that answers through the director although it need not.
            (Way::Out, _) => Err(PassReason::NoService),
        }
    }
}

impl Dispatcher {
    /// Sends a packet on by its connection's method.
    pub(super) fn forward(
        &mut self,
        now: Duration,
        routes: &mut impl Routes,
        packet: &mut Packet<'_>,
        mut headers: Headers,
        target: &Target,
    ) -> Verdict {
        let (method, destination) = match target.method() {
            Ok(way_on) => way_on,
            Err(reason) => return Verdict::Pass(reason),
        };
        let path = match self.prepare(now, routes, packet, &mut headers, method, destination) {
            Ok(path) => path,
            Err(stop) => {
                if matches!(stop, Stop::Answer(_)) {
                    self.count_own_error(headers.protocol, target);
                }
                return stop.into();
            }
        };
        let partial = checksum::partial(packet.bytes(), &headers);
        match method {
            Method::Nat => {
                let (address, port) = target.server;
                nat::rewrite_destination(packet.bytes_mut(), &mut headers, address, port, partial);
            }
            Method::NatReply => {
                let (address, port) = target.virtual_endpoint;
                nat::rewrite_source(packet.bytes_mut(), &mut headers, address, port, partial);
            }
            Method::Tunnel => {
                return self.encapsulate(packet, &headers, partial, path, destination);
            }
            Method::Direct => {}
        }
        Verdict::Transmit { method, path, partial, headers }
    }

    /// An error of our own about a client's packet is a packet to the client, and counts as one,
    /// unless the method is NAT: the kernel finds the connection of what it sends itself by the
    /// address that the server answers from.
    fn count_own_error(&self, protocol: u8, target: &Target) {
        if target.way != Way::In || target.forwarding == Forwarding::Nat {
            return;
        }
        let Some((_, reply)) = self.reply() else { return };
        let bytes = reply.ip_len();
        self.shared.connections.with(
            protocol,
            target.client,
            target.virtual_endpoint,
            |_, connection| connection.counted(bytes, false),
        );
    }

    /// What all methods do before the rewrite: family, route, TTL and MTU.
    pub(super) fn prepare(
        &mut self,
        now: Duration,
        routes: &mut impl Routes,
        packet: &mut Packet<'_>,
        headers: &mut Headers,
        method: Method,
        destination: IpAddr,
    ) -> Result<Path, Stop> {
        if method != Method::Tunnel && destination.is_ipv4() != (headers.family == Family::V4) {
            return Err(Stop::Drop(DropReason::FamilyMismatch));
        }
        let path = routes.path(destination).ok_or(Stop::Drop(DropReason::NoRoute))?;
        if !direct::decrement_ttl(packet.bytes_mut(), headers) {
            let reason = DropReason::TtlExceeded;
            let own = own_address(routes, headers, method);
            return Err(self.answer(now, packet, headers, own, Error::TimeExceeded, reason));
        }
        let overhead = match method {
            Method::Tunnel => tunnel::overhead(destination),
            _ => 0,
        };
        let mtu = path.mtu.saturating_sub(overhead as u32);
        if headers.ip_len() > mtu as usize && headers.dont_fragment {
            let reason = DropReason::TooBig;
            let own = own_address(routes, headers, method);
            return Err(self.answer(now, packet, headers, own, Error::TooBig { mtu }, reason));
        }
        Ok(path)
    }

    /// Puts the packet into a tunnel to `server`.
    pub(super) fn encapsulate(
        &mut self,
        packet: &mut Packet<'_>,
        headers: &Headers,
        partial: Option<Partial>,
        path: Path,
        server: IpAddr,
    ) -> Verdict {
        let Some(source) = path.source else {
            return Verdict::Drop(DropReason::NoRoute);
        };
        let outer = Outer { source, destination: server, id: self.next_id };
        self.next_id = self.next_id.wrapping_add(1);
        let Some((outer, shift)) = tunnel::encapsulate(packet, headers, &outer) else {
            return Verdict::Drop(DropReason::NoRoom);
        };
        let partial = partial
            .map(|partial| Partial { start: partial.start.wrapping_add_signed(shift), ..partial });
        Verdict::Transmit { method: Method::Tunnel, path, partial, headers: outer }
    }

    /// Writes the ICMP error about `packet` into the reply buffer, unless none may be sent.
    pub(super) fn answer(
        &mut self,
        now: Duration,
        packet: &Packet<'_>,
        headers: &Headers,
        source: IpAddr,
        error: Error,
        reason: DropReason,
    ) -> Stop {
        if !self.limiter.allow(now) {
            return Stop::Drop(reason);
        }
        let partial = checksum::partial(packet.bytes(), headers);
        let mut reply = Packet::new(&mut self.reply[..], 0, 0);
        let written = icmp::error(&mut reply, packet.bytes(), headers, partial, source, error);
        match written {
            Some(headers) => {
                icmp::number(reply.bytes_mut(), &headers, self.next_id);
                self.next_id = self.next_id.wrapping_add(1);
                self.replied = Some((reply.len(), headers));
                Stop::Answer(reason)
            }
            None => Stop::Drop(reason),
        }
    }
}

/// The address that the sender of a packet hears errors from: a router speaks with its own; on the
/// way in the VIP is the director's own.
fn own_address(routes: &mut impl Routes, headers: &Headers, method: Method) -> IpAddr {
    match method {
        Method::NatReply => {
            routes.path(headers.source).and_then(|back| back.source).unwrap_or(headers.source)
        }
        _ => headers.destination,
    }
}
