//! SCTP packets as scenarios name them: what is behind the common header (RFC 9260 section 3).

use std::net::SocketAddr;

use forwarding::checksum;
use forwarding::wire::sctp::chunk;

/// What an SCTP packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunks {
    /// Opens.
    Init,
    /// The answer to it.
    InitAck,
    /// Returns the cookie.
    CookieEcho,
    /// The answer to that.
    CookieAck,
    /// This many bytes.
    Data(usize),
    /// Nothing but an acknowledgement.
    Sack,
    /// Asks whether the other side is there.
    Heartbeat,
    /// No more from this side.
    Shutdown,
    /// The answer to it.
    ShutdownAck,
    /// The answer to that.
    ShutdownComplete,
    /// Something is wrong.
    Error,
    /// The end.
    Abort,
    /// Returns the cookie, and ends right behind it.
    CookieEchoAbort,
    /// Nothing: the common header alone.
    None,
    /// Data under a checksum that is wrong.
    Unsound,
}

impl Chunks {
    /// Types of the chunks, and the bytes behind the header of each.
    fn parts(self) -> Vec<(u8, usize)> {
        vec![match self {
            Chunks::Init => (chunk::INIT, 16),
            // The fixed part and a cookie.
            Chunks::InitAck => (chunk::INIT_ACK, 16 + 4 + 32),
            Chunks::CookieEcho => (chunk::COOKIE_ECHO, 32),
            Chunks::CookieAck => (chunk::COOKIE_ACK, 0),
            // TSN, stream, protocol; then the data.
            Chunks::Data(length) => (chunk::DATA, 12 + length),
            Chunks::Unsound => (chunk::DATA, 12 + 8),
            Chunks::Sack => (chunk::SACK, 12),
            Chunks::Heartbeat => (chunk::HEARTBEAT, 12),
            Chunks::Shutdown => (chunk::SHUTDOWN, 4),
            Chunks::ShutdownAck => (chunk::SHUTDOWN_ACK, 0),
            Chunks::ShutdownComplete => (chunk::SHUTDOWN_COMPLETE, 0),
            Chunks::Error => (chunk::ERROR, 8),
            Chunks::Abort => (chunk::ABORT, 0),
            // A cookie whose length has to be padded.
            Chunks::CookieEchoAbort => return vec![(chunk::COOKIE_ECHO, 5), (chunk::ABORT, 0)],
            Chunks::None => return Vec::new(),
        }]
    }

    /// The packet, common header first, with its checksum.
    pub(super) fn packet(self, from: SocketAddr, to: SocketAddr) -> Vec<u8> {
        let mut bytes = [from.port().to_be_bytes(), to.port().to_be_bytes()].concat();
        bytes.extend(77u32.to_be_bytes());
        bytes.extend([0; 4]);
        for (kind, length) in self.parts() {
            bytes.extend([kind, 0]);
            bytes.extend((4 + length as u16).to_be_bytes());
            bytes.extend((0..length).map(|index| index as u8));
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        let sum = checksum::sctp(&bytes) ^ u32::from(self == Chunks::Unsound);
        bytes[8..12].copy_from_slice(&sum.to_le_bytes());
        bytes
    }
}
