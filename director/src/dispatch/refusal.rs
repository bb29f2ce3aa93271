//! What a client hears whose packet goes to nobody: no server can take it, or its server has been
//! removed.
//!
//! ```text
//!                        TCP                                   others
//!   no server            ICMP port unreachable, or RST         ICMP port unreachable
//!   server removed       nothing, or RST                       nothing, or ICMP port unreachable
//! ```
//!
//! The first of each is the kernel's way, the second a setting of the service.

use std::time::Duration;

use forwarding::icmp::Error;
use forwarding::{Headers, Packet, reset};

use super::connection::Tuple;
use super::verdict::{DropReason, Stop};
use super::{Dispatcher, TCP, tcp};

impl Dispatcher {
    /// Tells the client that no server takes its packet, or why it is not told.
    pub(super) fn refuse(
        &mut self,
        now: Duration,
        packet: &Packet<'_>,
        headers: &Headers,
        reason: DropReason,
    ) -> Stop {
        match (reason, headers.protocol) {
            (DropReason::NoServerReset | DropReason::ServerGone, TCP) => {
                self.reset(now, packet, headers, reason)
            }
            _ => {
                let (vip, error) = (headers.destination, Error::PortUnreachable);
                self.answer(now, packet, headers, vip, error, reason)
            }
        }
    }

    /// Tells the client that its server is gone. When it has been told, or has itself given up, the
    /// connection is over; until then the next packet is another occasion.
    pub(super) fn refuse_gone(
        &mut self,
        now: Duration,
        packet: &Packet<'_>,
        headers: &Headers,
        tuple: &Tuple,
    ) -> Stop {
        let stop = self.refuse(now, packet, headers, DropReason::ServerGone);
        if matches!(stop, Stop::Answer(_)) || tcp::resets(headers.tcp_flags) {
            self.shared.connections.remove(tuple);
        }
        stop
    }

    /// Writes the RST that answers `packet` into the reply buffer, unless none may be sent. Resets
    /// and ICMP errors share the limit of all.
    fn reset(
        &mut self,
        now: Duration,
        packet: &Packet<'_>,
        headers: &Headers,
        reason: DropReason,
    ) -> Stop {
        if !self.shared.limiter.allow_reset(now, &self.shared.settings) {
            return Stop::Drop(reason);
        }
        let mut reply = Packet::new(&mut self.reply[..], 0, 0);
        match reset::reset(&mut reply, packet.bytes(), headers) {
            Some(headers) => {
                self.replied = Some((reply.len(), headers));
                Stop::Answer(reason)
            }
            None => Stop::Drop(reason),
        }
    }
}
