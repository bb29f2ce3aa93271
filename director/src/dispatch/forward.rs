//! The way out: route, TTL, MTU, and the rewrite that the connection's method makes.

use std::net::IpAddr;
use std::time::Duration;

use forwarding::checksum::{self, Partial};
use forwarding::icmp::Error;
use forwarding::tunnel::{Encapsulation, Outer};
use forwarding::{Family, Fragment, Headers, Packet, direct, icmp, mss, nat};

use super::connection::Endpoint;
use super::connections::{Connections, Way};
use super::settings::Setting;
use super::transmitter::{Transmitter, encapsulation};
use super::verdict::{DropReason, Method, PassReason, Path, Stop, Verdict};
use super::witness::Decision;
use super::{Dispatcher, Routes, Shared, Target};

/// Where a packet goes and what is done to it for that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Onward {
    pub(super) method: Method,
    pub(super) destination: IpAddr,
    /// What goes around it, with [`Method::Tunnel`].
    pub(super) tunnel: Option<Encapsulation>,
}

impl Onward {
    /// The longest packet that goes this way, in bytes: the path's MTU, less what the tunnel adds.
    fn mtu(&self, path: &Path, partial: Option<Partial>) -> u32 {
        let overhead = |tunnel: Encapsulation| tunnel.overhead(self.destination, partial.is_some());
        path.mtu.saturating_sub(self.tunnel.map_or(0, overhead) as u32)
    }
}

impl Target {
    /// How the packet goes on and to which address, or why it is not ours to send on.
    pub(super) fn onward(&self) -> Result<Onward, PassReason> {
        let (method, destination, tunnel) = match (self.way, self.transmitter) {
            (_, Transmitter::Local) => return Err(PassReason::Local),
            (Way::In, Transmitter::Nat) => (Method::Nat, self.server.0, None),
            (Way::In, Transmitter::Tunnel(tunnel)) => {
                (Method::Tunnel, self.server.0, Some(encapsulation(tunnel)))
            }
            (Way::In, Transmitter::Direct) => (Method::Direct, self.server.0, None),
            (Way::In, Transmitter::Bypass) => (Method::Bypass, self.virtual_endpoint.0, None),
            (Way::Out, Transmitter::Nat) => (Method::NatReply, self.client.0, None),
            // A server that answers through the director although it need not.
            (Way::Out, _) => return Err(PassReason::NoService),
        };
        Ok(Onward { method, destination, tunnel })
    }

    /// Whether the packet would leave with a wrong checksum: SCTP's covers the ports and can only be
    /// computed anew, but the rest of a fragmented packet is not here.
    fn breaks_checksum(&self, headers: &Headers) -> bool {
        headers.is_sctp()
            && headers.fragment != Fragment::Whole
            && self.transmitter == Transmitter::Nat
            && self.server.1 != self.virtual_endpoint.1
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
        let onward = match target.onward() {
            Ok(onward) => onward,
            Err(reason) => return Verdict::Pass(reason),
        };
        if target.breaks_checksum(&headers) {
            return Verdict::Drop(DropReason::SctpFragment);
        }
        // Nobody after us could complete a CRC.
        checksum::complete_sctp(packet.bytes_mut(), &headers);
        // Nothing that comes before the rewrite changes what the transport checksum covers.
        let partial = checksum::partial(packet.bytes(), &headers);
        let path = match self.prepare(now, routes, packet, &mut headers, &onward, partial) {
            Ok(path) => path,
            Err(stop) => {
                if matches!(stop, Stop::Answer(_)) {
                    self.count_own_error(headers.protocol, target);
                }
                return stop.into();
            }
        };
        if let Some(most) = target.mss.bytes(headers.family, || onward.mtu(&path, partial)) {
            self.witness.note(|| Decision::Clamped { most });
            mss::clamp(packet.bytes_mut(), &headers, partial, most);
        }
        let method = onward.method;
        match method {
            Method::Nat => {
                if target.is_helped
                    && let Err(stop) = self.help_client(now, packet, &headers, target, partial)
                {
                    return stop.into();
                }
                let (address, port) = target.server;
                nat::rewrite_destination(packet.bytes_mut(), &mut headers, address, port, partial);
            }
            Method::NatReply => {
                if target.is_helped
                    && let Err(stop) = self.help_server(now, packet, &mut headers, target, partial)
                {
                    return stop.into();
                }
                let (address, port) = target.virtual_endpoint;
                nat::rewrite_source(packet.bytes_mut(), &mut headers, address, port, partial);
            }
            Method::Tunnel => {
                return self.encapsulate(packet, &headers, partial, path, &onward, target);
            }
            Method::Direct | Method::Bypass => {}
        }
        Verdict::Transmit { method, path, partial, headers }
    }

    /// An error of our own about a client's packet is a packet to the client, and counts as one,
    /// unless the method is NAT: the kernel finds the connection of what it sends itself by the
    /// address that the server answers from.
    fn count_own_error(&self, protocol: u8, target: &Target) {
        if target.way != Way::In || target.transmitter == Transmitter::Nat {
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
        onward: &Onward,
        partial: Option<Partial>,
    ) -> Result<Path, Stop> {
        let &Onward { method, destination, .. } = onward;
        if method != Method::Tunnel && destination.is_ipv4() != (headers.family == Family::V4) {
            return Err(Stop::Drop(DropReason::FamilyMismatch));
        }
        let path = routes.path(destination);
        self.witness.note(|| Decision::Way { destination, path });
        let path = path.ok_or(Stop::Drop(DropReason::NoRoute))?;
        if !direct::decrement_ttl(packet.bytes_mut(), headers) {
            let reason = DropReason::TtlExceeded;
            let own = own_address(routes, headers, method);
            return Err(self.answer(now, packet, headers, own, Error::TimeExceeded, reason));
        }
        let mtu = onward.mtu(&path, partial);
        self.witness.note(|| Decision::Fits {
            mtu,
            length: headers.ip_len() as u32,
            overhead: path.mtu - mtu,
        });
        if headers.ip_len() > mtu as usize
            && headers.dont_fragment
            && !self.is_cut_regardless(headers.family, method)
        {
            let reason = DropReason::TooBig;
            let own = own_address(routes, headers, method);
            return Err(self.answer(now, packet, headers, own, Error::TooBig { mtu }, reason));
        }
        Ok(path)
    }

    /// Whether a packet of its family goes out in pieces by this method though its sender would not
    /// have it fragmented: an IPv4 packet in a tunnel, without discovery of the path's MTU.
    fn is_cut_regardless(&self, family: Family, method: Method) -> bool {
        family == Family::V4
            && method == Method::Tunnel
            && !self.shared.settings.is_on(Setting::PmtuDisc)
    }

    /// Puts the packet into the tunnel to its server. All packets of a connection, later fragments
    /// too, have the same source port there.
    pub(super) fn encapsulate(
        &mut self,
        packet: &mut Packet<'_>,
        headers: &Headers,
        partial: Option<Partial>,
        path: Path,
        onward: &Onward,
        target: &Target,
    ) -> Verdict {
        let Some(source) = path.source else {
            return Verdict::Drop(DropReason::NoRoute);
        };
        let outer = Outer {
            source,
            destination: onward.destination,
            id: self.next_id,
            path_mtu_discovery: self.shared.settings.is_on(Setting::PmtuDisc),
        };
        self.next_id = self.next_id.wrapping_add(1);
        let tunnel = onward.tunnel.unwrap_or_default();
        let (client, vip) = (target.client, target.virtual_endpoint);
        let flow = flow_source(&self.shared.connections, tunnel, client, vip);
        match tunnel.encapsulate(packet, headers, partial, flow, &outer) {
            Some(made) => Verdict::Transmit {
                method: Method::Tunnel,
                path,
                partial: made.partial,
                headers: made.headers,
            },
            None => Verdict::Drop(DropReason::NoRoom),
        }
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
        let Shared { limiter, settings, .. } = &*self.shared;
        if !limiter.allow(now, settings, headers.source, error) {
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

/// What the source port of a tunnel is chosen by, where it has one.
pub(super) fn flow_source(
    connections: &Connections,
    tunnel: Encapsulation,
    client: Endpoint,
    vip: Endpoint,
) -> u32 {
    match tunnel {
        Encapsulation::Gue { .. } => connections.flow_hash(client, vip),
        Encapsulation::Ipip | Encapsulation::Gre { .. } => 0,
    }
}

/// The address that the sender of a packet hears errors from: a router speaks with its own; on the
/// way to a server the VIP is the director's own.
pub(super) fn own_address(routes: &mut impl Routes, headers: &Headers, method: Method) -> IpAddr {
    match method {
        Method::NatReply | Method::Bypass => {
            routes.path(headers.source).and_then(|back| back.source).unwrap_or(headers.source)
        }
        _ => headers.destination,
    }
}
