//! A captured packet becomes a frame with room around it.

use forwarding::Headers;
use forwarding::wire::protocol;

use super::file::{Captured, LONGEST};
use super::pipeline::HEADROOM;

/// A packet as it lies in the rooms.
pub(super) struct Placed {
    /// Bytes of the frame.
    pub(super) length: usize,
    /// Bytes at its end that were not captured and stand as zeros.
    pub(super) missing: usize,
    /// Whether not all of it was captured.
    pub(super) is_cut: bool,
    pub(super) headers: Option<Headers>,
}

/// Puts a packet as a frame into every room. Where all headers were captured and only data is missing, that is
/// taken for zeros: what becomes of a packet does not depend on it, but for a few protocols.
pub(super) fn place(captured: &Captured<'_>, mac: [u8; 6], rooms: &mut [Vec<u8>]) -> Placed {
    let mut placed = Placed { length: 0, missing: 0, is_cut: false, headers: None };
    for room in rooms {
        let Some(room) = room.get_mut(HEADROOM..HEADROOM + LONGEST) else { continue };
        let framed = captured.link.frame(captured.bytes, captured.length, mac, room);
        let Some((length, whole)) = framed else { return placed };
        placed = Placed { length, missing: 0, is_cut: whole > length, headers: None };
        if whole > length && whole <= room.len() {
            room[length..whole].fill(0);
            if let Ok(headers) = forwarding::parse(&room[..whole])
                && headers.l4 + needed(&headers) <= length
            {
                placed.missing = whole - length;
                placed.length = whole;
                placed.headers = Some(headers);
                continue;
            }
        }
        placed.headers = forwarding::parse(&room[..length]).ok();
    }
    placed
}

/// Bytes of a transport header, without which nothing can be said of a packet.
fn needed(headers: &Headers) -> usize {
    match headers.protocol {
        _ if headers.is_later_fragment() => 0,
        protocol::TCP => 20,
        protocol::SCTP => 16,
        // An error quotes a header and eight bytes more.
        protocol::ICMP | protocol::ICMPV6 => 8 + 40 + 8,
        _ => 8,
    }
}
