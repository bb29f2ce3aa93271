//! What a client hears whose packet goes to nobody: no server can take it, or its server has been
//! removed.
//!
//! ```text
//!                        TCP                                   others
//!   no server            ICMP port unreachable, or RST         ICMP port unreachable
//!   server removed       nothing, or RST                       nothing, or ICMP port unreachable
//!   server failed        RST                                   lost.rs
//! ```
//!
//! The first of each is the kernel's way, the second a setting of the service. Resets and ICMP errors
//! share the limit of all, but for those to clients of a server that has failed.

use std::time::Duration;

use forwarding::icmp::Error;
use forwarding::{Headers, Packet, reset};

use super::connection::Tuple;
use super::verdict::{DropReason, Stop};
use super::{Dispatcher, Shared, TCP, tcp};

impl Dispatcher {
    /// Tells the client that no server takes its packet, or why it is not told.
    pub(super) fn refuse(
        &mut self,
        now: Duration,
        packet: &Packet<'_>,
        headers: &Headers,
        reason: DropReason,
    ) -> Stop {
        let Shared { limiter, settings, .. } = &*self.shared;
        match (reason, headers.protocol) {
            (DropReason::NoServerReset | DropReason::ServerGone, TCP) => {
                match limiter.allow_reset(now, settings) {
                    true => self.reset(packet, headers, reason),
                    false => Stop::Drop(reason),
                }
            }
            // There is one for each connection that there was, and all clients of a server may need
            // theirs at once.
            (DropReason::ServerLost, TCP) => self.reset(packet, headers, reason),
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
        reason: DropReason,
        tuple: &Tuple,
    ) -> Stop {
        let stop = self.refuse(now, packet, headers, reason);
        if matches!(stop, Stop::Answer(_)) || tcp::resets(headers.tcp_flags) {
            self.shared.connections.remove(tuple);
        }
        stop
    }

    /// Writes the RST that answers `packet` into the reply buffer, unless there is none to it.
    pub(super) fn reset(
        &mut self,
        packet: &Packet<'_>,
        headers: &Headers,
        reason: DropReason,
    ) -> Stop {
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
