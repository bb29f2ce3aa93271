//! Direct routing: the IP packet goes on as it is, but for its TTL.
//!
//! Knows the TTL. Must not know the next hop: the director resolves it and writes its MAC address
//! with [`set_addresses`](crate::wire::ethernet::set_addresses).

use crate::checksum::Delta;
use crate::wire::{ipv4, ipv6};
use crate::{Family, Headers};

/// Lowers TTL or hop limit by one and updates the IPv4 header checksum (RFC 1141). All forwarding
/// methods to another host do this. False, and no change, when the TTL is 1 or 0: the packet must
/// be answered with ICMP time exceeded and dropped.
#[must_use]
#[inline]
pub fn decrement_ttl(frame: &mut [u8], headers: &mut Headers) -> bool {
    if headers.ttl <= 1 {
        return false;
    }
    let ttl = headers.ttl - 1;
    match headers.family {
        Family::V4 => {
            let Some(mut header) = ipv4::Header::at_mut(frame, headers.l3) else {
                return false;
            };
            let before = header.ttl_and_protocol();
            header.set_ttl(ttl);
            let delta = Delta::default().u16(before, header.ttl_and_protocol());
            header.set_checksum(delta.apply(header.checksum()));
        }
        Family::V6 => {
            let Some(mut header) = ipv6::Header::at_mut(frame, headers.l3) else {
                return false;
            };
            header.set_hop_limit(ttl);
        }
    }
    headers.ttl = ttl;
    true
}

#[cfg(test)]
mod tests;
