//! What becomes of packets of connections whose server has failed ([`RealServer::lose`]).
//!
//! ```text
//!              opens a connection        TCP        SCTP          UDP
//!   client     to another server         RST        ICMP          to another server
//!   server     -                         RST        nothing       nothing, but see below
//! ```
//!
//! The client's entry goes with the packet that is answered so. The server may have been cut off only
//! for a while, and may not know of it: what it still sends reaches nobody, because for the client the
//! connection is over, or will be with its next packet. So the entry stays.
//!
//! [`RealServer::lose`]: super::service::RealServer::lose

use std::time::Duration;

use forwarding::{Headers, Packet};

use super::connection::Connection;
use super::policy::Lost;
use super::settings::Settings;
use super::signal::Signal;
use super::transmitter::Transmitter;
use super::verdict::{DropReason, Stop};
use super::{Dispatcher, TCP, UDP};

/// What becomes of a client's packet.
pub(super) fn of_client(signal: Signal, settings: &Settings) -> Lost {
    // `sloppy_tcp` takes any segment for one that may open a connection; of this one we know better.
    let opens = signal == Signal::Udp || signal.opens() && signal.may_be_scheduled(settings);
    if opens { Lost::Over } else { Lost::Dead }
}

/// What becomes of a server's packet that came over `connection`, if that is dead.
pub(super) fn of_server(connection: &Connection) -> Option<Lost> {
    // What we do not translate is the host's to route.
    if connection.transmitter() != Transmitter::Nat || !connection.server().is_lost() {
        return None;
    }
    // A server that calls clients opens connections, too.
    let calls = connection.tuple.protocol == UDP && connection.service().goes_by_call();
    Some(if calls { Lost::Over } else { Lost::Unheard })
}

impl Dispatcher {
    /// Tells a server that had failed that its connection is over, as the client would.
    pub(super) fn refuse_lost(
        &mut self,
        now: Duration,
        packet: &Packet<'_>,
        headers: &Headers,
    ) -> Stop {
        let reason = DropReason::ServerLost;
        if headers.protocol != TCP || !self.shared.limiter.allow_reset(now, &self.shared.settings) {
            return Stop::Drop(reason);
        }
        self.reset(packet, headers, reason)
    }
}
