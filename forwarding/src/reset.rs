//! A TCP reset of our own: the client hears at once that nobody will answer.
//!
//! Knows RFC 9293's rule for a segment that belongs to no connection (section 3.10.7.1). Must not know
//! why nobody answers.
//!
//! ```text
//!   segment          reset
//!   RST              none
//!   ACK              sequence = its acknowledgement          RST
//!   no ACK           sequence = 0, acknowledging all of it   RST, ACK
//! ```
//!
//! So it is within the window of whoever sent the segment, SYN_SENT included, and is believed.

use crate::reply::{TTL, is_one_host, link_len, write_link, write_network};
use crate::wire::{ipv4, ipv6, tcp};
use crate::{Family, Fragment, Headers, Packet};

/// Writes into `reply` a whole Ethernet frame with the reset that answers the TCP segment in
/// `frame`: addresses and ports swapped, on every layer; VLAN tag kept. Returns its headers, or
/// `None` when none may be sent: to a reset, to anything that is not TCP, to a fragment unless it is
/// the first and has an ACK (of another the length is not known), from or to an address that is not
/// one host's; nor when `reply` has no room.
///
/// ```
/// # let mut frame = Vec::new();
/// # etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
/// #     .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
/// #     .tcp(12345, 80, 1000, 64_000).syn().write(&mut frame, b"").unwrap();
/// use forwarding::{Packet, parse, reset, wire::tcp};
///
/// let headers = parse(&frame).unwrap();
/// let mut chunk = [0; 128];
/// let mut reply = Packet::new(&mut chunk, 0, 0);
/// let written = reset::reset(&mut reply, &frame, &headers).unwrap();
/// assert_eq!((written.source_port, written.destination_port), (80, 12345));
/// let answer = tcp::Header::at(reply.bytes(), written.l4).unwrap();
/// assert_eq!((answer.sequence(), answer.acknowledgement()), (0, 1001));
/// ```
pub fn reset(reply: &mut Packet<'_>, frame: &[u8], headers: &Headers) -> Option<Headers> {
    let (sequence, acknowledgement, tcp_flags) = numbers(frame, headers)?;
    if !is_one_host(headers.source) || !is_one_host(headers.destination) {
        return None;
    }
    let link = frame.get(..link_len(headers))?;
    let l4 = link.len()
        + match headers.family {
            Family::V4 => ipv4::LEN,
            Family::V6 => ipv6::LEN,
        };
    let answer = Headers {
        l3: link.len(),
        l4,
        end: l4 + tcp::LEN,
        source: headers.destination,
        destination: headers.source,
        source_port: headers.destination_port,
        destination_port: headers.source_port,
        ttl: TTL,
        dont_fragment: true,
        fragment: Fragment::Whole,
        tcp_flags,
        ..*headers
    };
    if !reply.resize(answer.end) {
        return None;
    }
    let bytes = reply.bytes_mut();
    write_link(bytes, link, headers.family)?;
    write_network(bytes, &answer, 0)?;
    let mut segment = tcp::Header::at_mut(bytes, l4)?;
    segment.clear();
    segment.set_source_port(answer.source_port);
    segment.set_destination_port(answer.destination_port);
    segment.set_sequence(sequence);
    segment.set_acknowledgement(acknowledgement);
    segment.set_flags(tcp_flags);
    let checksum = answer.pseudo_header().bytes(bytes.get(l4..)?).checksum();
    tcp::Header::at_mut(bytes, l4)?.set_checksum(checksum);
    Some(answer)
}

/// Sequence number, acknowledgement number and flags of the reset that answers a segment.
fn numbers(frame: &[u8], headers: &Headers) -> Option<(u32, u32, u8)> {
    if !headers.is_tcp() || headers.is_later_fragment() {
        return None;
    }
    let segment = tcp::Header::at(frame, headers.l4)?;
    let flags = segment.flags();
    if flags & tcp::RST != 0 {
        return None;
    }
    if flags & tcp::ACK != 0 {
        return Some((segment.acknowledgement(), 0, tcp::RST));
    }
    if headers.fragment != Fragment::Whole {
        return None;
    }
    let data = headers.payload_len().checked_sub(segment.header_len())? as u32;
    // SYN and FIN take a place in the sequence, as a byte of data does.
    let controls = (flags & (tcp::SYN | tcp::FIN)).count_ones();
    let next = segment.sequence().wrapping_add(data).wrapping_add(controls);
    Some((0, next, tcp::RST | tcp::ACK))
}

#[cfg(test)]
mod tests;
