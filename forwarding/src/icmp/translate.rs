//! An ICMP error crosses the translation that the packet it is about has crossed the other way.

use std::net::IpAddr;

use crate::address::{self, End};
use crate::checksum::{Delta, Sum};
use crate::wire::{icmp, protocol, tcp, udp};
use crate::{Family, Headers};

/// What [`translate`] replaces. Addresses must be of the packet's family.
#[derive(Clone, Copy, Debug, Default)]
pub struct Translation {
    /// New source of the outer packet.
    pub outer_source: Option<IpAddr>,
    /// New destination of the outer packet.
    pub outer_destination: Option<IpAddr>,
    /// New source of the quoted packet.
    pub quoted_source: Option<(IpAddr, u16)>,
    /// New destination of the quoted packet.
    pub quoted_destination: Option<(IpAddr, u16)>,
}

/// Translates an ICMP error: the outer address `from -> to` and the quoted address and port.
///
/// `outer_source`/`outer_destination`: new outer addresses, where given. `quoted_source` /
/// `quoted_destination`: new address and port in the quote, where given. The quoted IPv4 header
/// checksum, the quoted transport checksum where it is quoted, and the ICMP checksum are updated.
/// An SCTP checksum in the quote is left as it was: it cannot be updated without all the data.
///
/// `quote` is what [`quoted`](fn@super::quoted) returned and is used up by this: it describes the
/// quote as it was.
pub fn translate(
    frame: &mut [u8],
    headers: &mut Headers,
    quote: &Headers,
    translation: &Translation,
) {
    // The quote is summed before and after, so that no change in it can be forgotten. It begins at
    // an even place of the message: the ICMP header has 8 bytes, IP headers have a multiple of 4.
    let before = sum(frame, quote);
    let mut delta = Delta::default();
    if let Some((address, port)) = translation.quoted_source {
        rewrite_quote(frame, quote, End::Source, address, port);
    }
    if let Some((address, port)) = translation.quoted_destination {
        rewrite_quote(frame, quote, End::Destination, address, port);
    }
    delta = delta.sum(before, sum(frame, quote));

    let outer = [
        (End::Source, translation.outer_source),
        (End::Destination, translation.outer_destination),
    ];
    for (end, address) in outer {
        let Some(address) = address else { continue };
        let Some(_) = address::replace(frame, headers, end, address) else {
            continue;
        };
        let place = match end {
            End::Source => &mut headers.source,
            End::Destination => &mut headers.destination,
        };
        let old = std::mem::replace(place, address);
        // ICMPv6 sums a pseudo header (RFC 4443 section 2.3), ICMP does not.
        if headers.family == Family::V6 {
            delta = delta.address(old, address);
        }
    }
    if let Some(mut message) = icmp::Header::at_mut(frame, headers.l4) {
        message.set_checksum(delta.apply(message.checksum()));
    }
}

fn sum(frame: &[u8], quote: &Headers) -> Sum {
    Sum::default().bytes(frame.get(quote.l3..quote.end).unwrap_or_default())
}

/// NAT of a quoted packet, of which there may be no more than the ports.
fn rewrite_quote(frame: &mut [u8], quote: &Headers, end: End, address: IpAddr, port: u16) {
    let Some(delta) = address::replace(frame, quote, end, address) else {
        return;
    };
    let Some(transport) = frame.get_mut(quote.l4..quote.end) else {
        return;
    };
    let old_port = match end {
        End::Source => quote.source_port,
        End::Destination => quote.destination_port,
    };
    let delta = delta.u16(old_port, port);
    match quote.protocol {
        protocol::TCP => {
            write_port(transport, end, port);
            // RFC 792 quotes end before it; then there is nothing to keep right.
            let field = transport.get_mut(tcp::CHECKSUM..).and_then(<[u8]>::first_chunk_mut);
            if let Some(field) = field {
                *field = delta.apply(u16::from_be_bytes(*field)).to_be_bytes();
            }
        }
        protocol::UDP => {
            write_port(transport, end, port);
            if let Some(mut header) = udp::Header::at_mut(transport, 0)
                && header.checksum() != 0
            {
                header.set_computed_checksum(delta.apply(header.checksum()));
            }
        }
        protocol::SCTP => write_port(transport, end, port),
        _ => {}
    }
}

/// TCP, UDP and SCTP all begin with the ports.
fn write_port(transport: &mut [u8], end: End, port: u16) {
    let field = match end {
        End::Source => transport.get_mut(..2),
        End::Destination => transport.get_mut(2..4),
    };
    if let Some(field) = field {
        field.copy_from_slice(&port.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
