//! ICMP errors about our own tunnel packets: the client is told, in terms of the packet that it has
//! sent.
//!
//! ```text
//!   router -> director   fragmentation needed, MTU 1400, about  director -> server | client -> VIP
//!   VIP -> client        fragmentation needed, MTU 1380, about                       client -> VIP
//! ```
//!
//! As the kernel's `ip_vs_in_icmp` does for IPIP: the error is consumed. The kernel remembers the
//! path's MTU besides; here each client hears of it from the router, by way of us.

use std::time::Duration;

use forwarding::icmp::{self, Error};
use forwarding::wire::icmp::{Header, v4, v6};
use forwarding::wire::protocol;
use forwarding::{Family, Headers, Packet};

use super::connections::Way;
use super::transmitter::Transmitter;
use super::verdict::{DropReason, Verdict};
use super::{Dispatcher, SCTP, TCP, UDP};
use crate::control::api::Tunnel;

/// The least MTU that IPv4 knows (RFC 791 section 3.2).
const LEAST_MTU: u32 = 68;

/// Whether a quoted packet is one that we may have put into a tunnel.
pub(super) fn is_tunnels(quote: &Headers) -> bool {
    matches!(quote.protocol, protocol::IPIP | protocol::IPV6 | protocol::GRE | protocol::UDP)
}

/// The packet inside `quote`, as its client has sent it.
pub(super) fn inside(frame: &[u8], quote: &Headers) -> Option<Headers> {
    icmp::tunnelled(frame, quote)
}

impl Dispatcher {
    /// Answers the client of the packet inside `quote`, the tunnel packet that the ICMP error in
    /// `packet` is about. `None` when no connection of ours has sent it.
    pub(super) fn tell_client(
        &mut self,
        now: Duration,
        packet: &Packet<'_>,
        headers: &Headers,
        quote: &Headers,
    ) -> Option<Verdict> {
        let inner = icmp::tunnelled(packet.bytes(), quote)?;
        if !matches!(inner.protocol, TCP | UDP | SCTP) {
            return None;
        }
        let ours = self.shared.connections.with(
            inner.protocol,
            (inner.source, inner.source_port),
            (inner.destination, inner.destination_port),
            |way, connection| {
                way == Way::In
                    && is_of(connection.transmitter(), quote)
                    && connection.server_endpoint.0 == quote.destination
            },
        );
        if ours != Some(true) {
            return None;
        }
        if !icmp::has_right_sum(packet.bytes(), headers) {
            return Some(Verdict::Drop(DropReason::IcmpChecksum));
        }
        let reason = DropReason::TunnelError;
        let message = Header::at(packet.bytes(), headers.l4)?;
        let (kind, code, rest) = (message.kind(), message.code(), message.rest());
        Some(match for_client(headers.family, (kind, code, rest), quote, &inner) {
            // It speaks as the packet's destination would: to the client there is no tunnel.
            Some(error) => {
                self.answer(now, packet, &inner, inner.destination, error, reason).into()
            }
            None => Verdict::Drop(reason),
        })
    }
}

/// Whether a quoted packet is one that this transmitter has made.
fn is_of(transmitter: Transmitter, quote: &Headers) -> bool {
    let Transmitter::Tunnel(tunnel) = transmitter else { return false };
    match tunnel {
        Tunnel::Ipip => matches!(quote.protocol, protocol::IPIP | protocol::IPV6),
        Tunnel::Gue { port, .. } => {
            quote.protocol == protocol::UDP && quote.destination_port == port
        }
        Tunnel::Gre { .. } => quote.protocol == protocol::GRE,
    }
}

/// What an error of type, code and rest about the tunnel packet `quote` means for `inner`; `None`
/// when it is nothing that the client could do anything about.
fn for_client(
    family: Family,
    (kind, code, rest): (u8, u8, u32),
    quote: &Headers,
    inner: &Headers,
) -> Option<Error> {
    match (family, kind, code) {
        (Family::V4, v4::UNREACHABLE, v4::FRAGMENTATION_NEEDED) => {
            too_big(rest & 0xffff, quote, inner)
        }
        (Family::V6, v6::TOO_BIG, _) => too_big(rest, quote, inner),
        (Family::V4, v4::TIME_EXCEEDED, _) | (Family::V6, v6::TIME_EXCEEDED, _) => {
            Some(Error::TimeExceeded)
        }
        (Family::V4, v4::UNREACHABLE, _) | (Family::V6, v6::UNREACHABLE, _) => {
            let code = match inner.family {
                same if same == family => code,
                Family::V4 => v4::HOST,
                Family::V6 => v6::ADDRESS,
            };
            Some(Error::Unreachable { code })
        }
        _ => None,
    }
}

fn too_big(mtu: u32, quote: &Headers, inner: &Headers) -> Option<Error> {
    // Routers cut what may be cut; who does not ask for the path's MTU needs not hear of it.
    if !inner.dont_fragment {
        return None;
    }
    let overhead = inner.l3 - quote.l3;
    let mtu = mtu.checked_sub(overhead as u32)?;
    (mtu >= LEAST_MTU).then_some(Error::TooBig { mtu })
}
