//! FTP: control connections through NAT announce data connections, and the packets of those find
//! their way although no service has their ports (behaviour of the kernel's `ip_vs_ftp.c`, and of
//! what `ip_vs_core.c` and `ip_vs_ctl.c` know of FTP).
//!
//! ```text
//!   client                      VIP                                  server
//!   :4000 ── control ────────── :21 ─────────────────────────────── :21
//!   :1025 <─ data, active ───── :20 <────────────────────────────── :20    PORT, EPRT
//!   any   ── data, passive ───> :50000 ───────────────────────────> :50000 227, 229
//! ```
//!
//! [`helper`](Helper) listens to control connections; what they announce enters the connection
//! table in state LISTEN. This file has the rules for packets that nobody has announced: they exist
//! for services whose servers answer around the director, and need persistence there.

mod helper;

use forwarding::Headers;

use super::TCP;
use super::connection::Connection;
use super::service::Service;
use super::transmitter::Transmitter;
use super::verdict::{PassReason, Stop};
pub use helper::Helper;

/// The port of FTP's control connections.
pub(crate) const FTP: u16 = 21;
/// The port from which servers open data connections.
const FTP_DATA: u16 = 20;
/// Ports from here on are anybody's: a passive server takes one of them.
const FIRST_UNPRIVILEGED: u16 = 1024;

/// Ports of virtual services whose connections by NAT are FTP control connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports(Vec<u16>);

impl Default for Ports {
    fn default() -> Ports {
        Ports(vec![FTP])
    }
}

impl Ports {
    /// The most that there can be, as in the kernel (`IP_VS_APP_MAX_PORTS`).
    pub const MOST: usize = 8;

    /// These ports; none switches the helper off.
    pub fn new(ports: &[u16]) -> Ports {
        Ports(ports.to_vec())
    }

    /// Whether a virtual port is one of them.
    pub fn contains(&self, port: u16) -> bool {
        self.0.contains(&port)
    }

    /// Whether a new connection is an FTP control connection.
    pub(super) fn helps(&self, connection: &Connection) -> bool {
        connection.transmitter() == Transmitter::Nat
            && connection.tuple.protocol == TCP
            && self.contains(connection.tuple.peer.1)
    }
}

/// Whether a packet to this port of a VIP may be of a data connection.
pub(super) fn is_data_port(port: u16) -> bool {
    port == FTP_DATA || port >= FIRST_UNPRIVILEGED
}

/// Why a packet that would open a connection of `service` must not, although the service was found
/// for it.
pub(super) fn leaves_alone(service: &Service, headers: &Headers) -> Option<PassReason> {
    let unannounced = headers.source_port == FTP_DATA
        || is_unasked(service, headers) && service.persistence().is_none();
    unannounced.then_some(PassReason::FtpData)
}

/// What becomes of a packet that would open a connection of `service`, for which there is no
/// server. A drop is still to be answered as the service says.
pub(super) fn without_server(service: &Service, headers: &Headers) -> Stop {
    match is_unasked(service, headers) {
        true => Stop::Pass(PassReason::FtpData),
        false => Stop::Drop(service.policy.no_server(headers.protocol)),
    }
}

/// Whether the packet is for another port of an FTP service: for somebody else on that address
/// perhaps, so it is not for us to refuse it.
fn is_unasked(service: &Service, headers: &Headers) -> bool {
    service.port() == FTP && headers.destination_port != FTP
}
