//! Puts another address into an IP header: what NAT does to packets, and to quotes in ICMP errors.

use std::net::IpAddr;

use crate::Headers;
use crate::checksum::Delta;
use crate::wire::{ipv4, ipv6};

/// Which end of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Where it comes from.
    Source,
    /// Where it goes.
    Destination,
}

/// Writes `address` into the IP header at `headers.l3` and keeps the IPv4 header checksum right.
/// Returns what the change does to every other checksum over that address; `None`, and no change,
/// when the address is of the other family.
#[inline]
pub(crate) fn replace(
    frame: &mut [u8],
    headers: &Headers,
    end: End,
    address: IpAddr,
) -> Option<Delta> {
    let old = match end {
        End::Source => headers.source,
        End::Destination => headers.destination,
    };
    let delta = Delta::default().address(old, address);
    match (old, address) {
        (IpAddr::V4(_), IpAddr::V4(address)) => {
            let mut header = ipv4::Header::at_mut(frame, headers.l3)?;
            match end {
                End::Source => header.set_source(address),
                End::Destination => header.set_destination(address),
            }
            header.set_checksum(delta.apply(header.checksum()));
        }
        (IpAddr::V6(_), IpAddr::V6(address)) => {
            let mut header = ipv6::Header::at_mut(frame, headers.l3)?;
            match end {
                End::Source => header.set_source(address),
                End::Destination => header.set_destination(address),
            }
        }
        _ => return None,
    }
    Some(delta)
}
