//! Direct routing: the IP packet goes on as it is, but for its TTL.

use crate::Headers;

/// Lowers TTL or hop limit by one and updates the IPv4 header checksum (RFC 1141). All forwarding
/// methods to another host do this. False, and no change, when the TTL is 1 or 0: the packet must
/// be answered with ICMP time exceeded and dropped.
#[must_use]
pub fn decrement_ttl(frame: &mut [u8], headers: &mut Headers) -> bool {
    let _ = (frame, headers);
    unimplemented!()
}
