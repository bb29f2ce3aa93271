//! SCTP (RFC 9260): the common header, and the headers of the chunks behind it. The checksum is a
//! CRC32c without a pseudo header, so addresses may change under it, ports may not.

use super::{put, take, u16_at};

/// Bytes of the common header.
pub const LEN: usize = 12;

/// Where the checksum is, from the start of the header.
pub const CHECKSUM: usize = 8;

/// Bytes of a chunk's header.
pub const CHUNK_LEN: usize = 4;

mod field {
    pub(super) const SOURCE_PORT: usize = 0;
    pub(super) const DESTINATION_PORT: usize = 2;
    pub(super) const CHUNK_TYPE: usize = 0;
    pub(super) const CHUNK_LENGTH: usize = 2;
}

/// Types of chunks (RFC 9260 section 3.2; ECNE and CWR are of RFC 4960 appendix A).
pub mod chunk {
    /// User data.
    pub const DATA: u8 = 0;
    /// Opens an association.
    pub const INIT: u8 = 1;
    /// Answers INIT.
    pub const INIT_ACK: u8 = 2;
    /// Acknowledges data.
    pub const SACK: u8 = 3;
    /// Asks whether the other side is there.
    pub const HEARTBEAT: u8 = 4;
    /// Answers HEARTBEAT.
    pub const HEARTBEAT_ACK: u8 = 5;
    /// Ends an association at once.
    pub const ABORT: u8 = 6;
    /// Begins an orderly end.
    pub const SHUTDOWN: u8 = 7;
    /// Answers SHUTDOWN.
    pub const SHUTDOWN_ACK: u8 = 8;
    /// Reports an error.
    pub const ERROR: u8 = 9;
    /// Returns the cookie of INIT ACK.
    pub const COOKIE_ECHO: u8 = 10;
    /// Answers COOKIE ECHO: the association stands.
    pub const COOKIE_ACK: u8 = 11;
    /// Echoes a congestion mark.
    pub const ECNE: u8 = 12;
    /// Says that the sender has slowed down.
    pub const CWR: u8 = 13;
    /// Answers SHUTDOWN ACK.
    pub const SHUTDOWN_COMPLETE: u8 = 14;
}

header! {
    /// An SCTP common header.
    Header, LEN
}

impl<T: std::borrow::Borrow<[u8; LEN]>> Header<T> {
    /// Source port.
    #[inline]
    pub fn source_port(&self) -> u16 {
        u16_at(self.bytes(), field::SOURCE_PORT)
    }

    /// Destination port.
    #[inline]
    pub fn destination_port(&self) -> u16 {
        u16_at(self.bytes(), field::DESTINATION_PORT)
    }

    /// CRC32c, as [`checksum::sctp`](crate::checksum::sctp) computes it (on the wire its bytes are
    /// the other way round: RFC 9260 appendix A).
    #[inline]
    pub fn checksum(&self) -> u32 {
        u32::from_le_bytes(take(self.bytes(), CHECKSUM))
    }
}

impl<T: std::borrow::BorrowMut<[u8; LEN]>> Header<T> {
    /// Sets the source port; the checksum is not touched.
    #[inline]
    pub fn set_source_port(&mut self, port: u16) {
        put(self.bytes_mut(), field::SOURCE_PORT, port.to_be_bytes());
    }

    /// Sets the destination port; the checksum is not touched.
    #[inline]
    pub fn set_destination_port(&mut self, port: u16) {
        put(self.bytes_mut(), field::DESTINATION_PORT, port.to_be_bytes());
    }

    /// Sets the CRC32c.
    #[inline]
    pub fn set_checksum(&mut self, checksum: u32) {
        put(self.bytes_mut(), CHECKSUM, checksum.to_le_bytes());
    }
}

/// Types of the first two chunks of a packet (common header and chunks). There is no second where
/// the first ends the packet, or says it is shorter than its own header.
///
/// ```
/// use forwarding::wire::sctp::{chunk, first_chunks};
///
/// let mut packet = vec![0; 12]; // common header
/// packet.extend([chunk::COOKIE_ACK, 0, 0, 4]);
/// packet.extend([chunk::ABORT, 0, 0, 4]);
/// assert_eq!(first_chunks(&packet), [Some(chunk::COOKIE_ACK), Some(chunk::ABORT)]);
/// assert_eq!(first_chunks(&packet[..19]), [Some(chunk::COOKIE_ACK), None]);
/// ```
#[inline]
pub fn first_chunks(packet: &[u8]) -> [Option<u8>; 2] {
    let Some((first, length)) = chunk_at(packet, LEN) else {
        return [None, None];
    };
    let second =
        (length >= CHUNK_LEN).then(|| chunk_at(packet, LEN + length.next_multiple_of(4))).flatten();
    [Some(first), second.map(|(kind, _)| kind)]
}

/// Type and length of the chunk at `offset`. The length is that of the chunk with its header,
/// without the padding to a multiple of 4; nothing says yet that it is right.
#[inline]
fn chunk_at(packet: &[u8], offset: usize) -> Option<(u8, usize)> {
    let header: &[u8; CHUNK_LEN] = packet.get(offset..)?.first_chunk()?;
    let length = u16_at(header, field::CHUNK_LENGTH);
    Some((header[field::CHUNK_TYPE], usize::from(length)))
}
