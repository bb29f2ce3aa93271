//! Network address translation (masquerading): one address and port are replaced, checksums follow.
//!
//! Knows headers and their checksums. Must not know which address a packet should get, nor TTLs
//! (a translated packet is also routed: [`decrement_ttl`](crate::direct::decrement_ttl)).

use std::net::IpAddr;

use crate::address::{self, End};
use crate::checksum::{self, Delta, Partial};
use crate::wire::{icmp, protocol, sctp, tcp, udp};
use crate::{Family, Fragment, Headers};

/// Replaces destination address and port (request, client to server). `address` must be of the
/// packet's family; with one of the other nothing happens. Later fragments have only their address
/// replaced. `headers` is updated to match.
///
/// When `partial` says that the transport checksum is still to be completed, the new pseudo-header
/// sum is written, otherwise the checksum is updated incrementally (a UDP checksum of 0 is computed
/// in full, as the kernel does; of a fragment it stays 0). SCTP's CRC32c is computed in full when
/// the port changes or the sender had left it 0; of a first fragment it cannot be.
#[inline]
pub fn rewrite_destination(
    frame: &mut [u8],
    headers: &mut Headers,
    address: IpAddr,
    port: u16,
    partial: Option<Partial>,
) {
    rewrite(frame, headers, End::Destination, address, port, partial);
}

/// Replaces source address and port (reply, server to client); otherwise as
/// [`rewrite_destination`].
#[inline]
pub fn rewrite_source(
    frame: &mut [u8],
    headers: &mut Headers,
    address: IpAddr,
    port: u16,
    partial: Option<Partial>,
) {
    rewrite(frame, headers, End::Source, address, port, partial);
}

#[inline(always)]
fn rewrite(
    frame: &mut [u8],
    headers: &mut Headers,
    end: End,
    address: IpAddr,
    port: u16,
    partial: Option<Partial>,
) {
    let Some(delta) = address::replace(frame, headers, end, address) else {
        return;
    };
    match end {
        End::Source => headers.source = address,
        End::Destination => headers.destination = address,
    }
    if headers.is_later_fragment() {
        return;
    }
    // A checksum that is partial further inside (a tunnel from a local machine) is not this one.
    let partial = partial.filter(|partial| partial.start == headers.l4);
    match headers.protocol {
        protocol::TCP => tcp(frame, headers, end, port, delta, partial),
        protocol::UDP => udp(frame, headers, end, port, delta, partial),
        protocol::SCTP => sctp(frame, headers, end, port),
        protocol::ICMPV6 if headers.family == Family::V6 => icmpv6(frame, headers, delta),
        _ => {}
    }
}

/// Puts `port` into `headers`; returns the old one.
#[inline(always)]
fn exchange_port(headers: &mut Headers, end: End, port: u16) -> u16 {
    let place = match end {
        End::Source => &mut headers.source_port,
        End::Destination => &mut headers.destination_port,
    };
    std::mem::replace(place, port)
}

#[inline(always)]
fn tcp(
    frame: &mut [u8],
    headers: &mut Headers,
    end: End,
    port: u16,
    delta: Delta,
    partial: Option<Partial>,
) {
    let Some(mut header) = tcp::Header::at_mut(frame, headers.l4) else {
        return;
    };
    match end {
        End::Source => header.set_source_port(port),
        End::Destination => header.set_destination_port(port),
    }
    let old_port = exchange_port(headers, end, port);
    header.set_checksum(match partial {
        Some(_) => headers.pseudo_header().folded(),
        None => delta.u16(old_port, port).apply(header.checksum()),
    });
}

#[inline(always)]
fn udp(
    frame: &mut [u8],
    headers: &mut Headers,
    end: End,
    port: u16,
    delta: Delta,
    partial: Option<Partial>,
) {
    let Some(mut header) = udp::Header::at_mut(frame, headers.l4) else {
        return;
    };
    match end {
        End::Source => header.set_source_port(port),
        End::Destination => header.set_destination_port(port),
    }
    let old_port = exchange_port(headers, end, port);
    match (partial, header.checksum()) {
        (Some(_), _) => header.set_checksum(headers.pseudo_header().folded()),
        (None, 0) => fill_udp(frame, headers),
        (None, old) => header.set_computed_checksum(delta.u16(old_port, port).apply(old)),
    }
}

/// Gives a UDP datagram that came without a checksum a real one (`udp_dnat_handler` of the kernel's
/// `ip_vs_proto_udp.c` does). A fragment stays without: its data is not all here.
#[cold]
fn fill_udp(frame: &mut [u8], headers: &Headers) {
    if headers.fragment != Fragment::Whole {
        return;
    }
    let Some(mut header) = udp::Header::at_mut(frame, headers.l4) else {
        return;
    };
    header.set_checksum(0);
    let length = header.length();
    let Some(datagram) = frame.get_mut(headers.l4..headers.l4 + usize::from(length)) else {
        return;
    };
    let sum = checksum::pseudo_header(
        headers.source,
        headers.destination,
        protocol::UDP,
        u32::from(length),
    );
    let checksum = sum.bytes(datagram).checksum();
    if let Some(mut header) = udp::Header::at_mut(datagram, 0) {
        header.set_computed_checksum(checksum);
    }
}

fn sctp(frame: &mut [u8], headers: &mut Headers, end: End, port: u16) {
    let Some(mut header) = sctp::Header::at_mut(frame, headers.l4) else {
        return;
    };
    match end {
        End::Source => header.set_source_port(port),
        End::Destination => header.set_destination_port(port),
    }
    let missing = header.checksum() == 0;
    let changed = exchange_port(headers, end, port) != port;
    if (changed || missing) && headers.fragment == Fragment::Whole {
        checksum::fill_sctp(frame, headers);
    }
}

/// ICMPv6 has no ports, but its checksum covers the addresses.
fn icmpv6(frame: &mut [u8], headers: &Headers, delta: Delta) {
    if let Some(mut header) = icmp::Header::at_mut(frame, headers.l4) {
        header.set_checksum(delta.apply(header.checksum()));
    }
}

#[cfg(test)]
mod tests;
