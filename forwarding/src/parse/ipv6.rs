//! The IPv6 header of a packet and its extension headers.

use std::net::IpAddr;

use super::Extent;
use crate::wire::{extension, ipv6, protocol};
use crate::{Family, Fragment, Headers, Malformed};

/// Extension headers that we step over in one packet. RFC 8200 section 4.1 recommends an order in
/// which there are at most six, one of each kind and destination options twice.
const MAX_EXTENSIONS: usize = 8;

/// Reads the IPv6 header at `l3`, of a packet that may reach to the end of `bytes`, and steps
/// over its extension headers. What is not in these headers (tag, ports, TCP flags) is left empty.
#[inline(always)]
pub(crate) fn network(bytes: &[u8], l3: usize, extent: Extent) -> Result<Headers, Malformed> {
    let header = ipv6::Header::at(bytes, l3).ok_or(Malformed::Truncated)?;
    let payload_length = usize::from(header.payload_length());
    // A length of 0 is that of a jumbogram (RFC 2675), which no port of ours can carry.
    if header.version() != 6 || payload_length == 0 {
        return Err(Malformed::BadHeader);
    }
    let l4 = l3 + ipv6::LEN;
    let end = match extent {
        Extent::Whole if l4 + payload_length > bytes.len() => return Err(Malformed::Truncated),
        Extent::Whole => l4 + payload_length,
        Extent::Quote => bytes.len().min(l4 + payload_length),
    };
    let mut headers = Headers {
        family: Family::V6,
        vlan: None,
        l3,
        l4,
        end,
        protocol: header.next_header(),
        source: IpAddr::V6(header.source()),
        destination: IpAddr::V6(header.destination()),
        source_port: 0,
        destination_port: 0,
        ttl: header.hop_limit(),
        dont_fragment: true,
        fragment: Fragment::Whole,
        tcp_flags: 0,
    };
    if !matches!(headers.protocol, protocol::TCP | protocol::UDP | protocol::ICMPV6) {
        step_over_extensions(bytes, &mut headers)?;
    }
    Ok(headers)
}

/// Moves `l4` and `protocol` behind the extension headers.
#[cold]
fn step_over_extensions(bytes: &[u8], headers: &mut Headers) -> Result<(), Malformed> {
    let bytes = bytes.get(..headers.end).ok_or(Malformed::Truncated)?;
    let first = headers.l4;
    let mut fragmented = false;
    for _ in 0..MAX_EXTENSIONS {
        let kind = headers.protocol;
        if !is_extension(kind) {
            return Ok(());
        }
        let header = extension::Header::at(bytes, headers.l4).ok_or(Malformed::Truncated)?;
        let mut len = header.header_len();
        match kind {
            // Only right behind the IPv6 header (RFC 8200 section 4.1).
            protocol::HOP_BY_HOP if headers.l4 != first => return Err(Malformed::BadHeader),
            // The destination is only the next segment; the checksum is made with the final one.
            protocol::ROUTING if header.segments_left() != 0 => return Ok(()),
            protocol::FRAGMENT if fragmented => return Err(Malformed::BadHeader),
            protocol::FRAGMENT => {
                fragmented = true;
                len = extension::LEN;
                let length = headers.end.saturating_sub(headers.l4 + len);
                headers.fragment = fragment(header, length);
            }
            _ => {}
        }
        headers.protocol = header.next_header();
        headers.l4 += len;
        if headers.l4 > headers.end {
            return Err(Malformed::Truncated);
        }
        if headers.is_later_fragment() {
            return Ok(());
        }
    }
    if is_extension(headers.protocol) {
        return Err(Malformed::BadHeader);
    }
    Ok(())
}

fn is_extension(protocol: u8) -> bool {
    matches!(
        protocol,
        protocol::HOP_BY_HOP
            | protocol::ROUTING
            | protocol::FRAGMENT
            | protocol::DESTINATION_OPTIONS
    )
}

/// A fragment header on a packet that is not fragmented ("atomic fragment", RFC 6946) makes it no
/// fragment.
fn fragment(header: extension::Header<&[u8; extension::LEN]>, length: usize) -> Fragment {
    let (offset_and_flags, id) = (header.offset_and_flags(), header.identification());
    let more = offset_and_flags & extension::MORE_FRAGMENTS != 0;
    if !more && offset_and_flags & extension::OFFSET == 0 {
        Fragment::Whole
    } else if offset_and_flags & extension::OFFSET == 0 {
        Fragment::First { id, length: length as u16 }
    } else {
        Fragment::Later { id, offset: offset_and_flags & extension::OFFSET, more }
    }
}
