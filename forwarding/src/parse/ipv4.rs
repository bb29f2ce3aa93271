//! The IPv4 header of a packet.

use std::net::IpAddr;

use super::Extent;
use crate::checksum::Sum;
use crate::wire::ipv4;
use crate::{Family, Fragment, Headers, Malformed};

/// What the header of four words and a half of most packets begins with: version 4, no options.
const WITHOUT_OPTIONS: u8 = 0x45;

/// Reads the IPv4 header at `l3`, of a packet that may reach to the end of `bytes`. What is not in
/// this header (tag, ports, TCP flags) is left empty.
#[inline(always)]
pub(crate) fn network(bytes: &[u8], l3: usize, extent: Extent) -> Result<Headers, Malformed> {
    let header = ipv4::Header::at(bytes, l3).ok_or(Malformed::Truncated)?;
    let (header_len, sum) = if header.version_and_length() == WITHOUT_OPTIONS {
        (ipv4::LEN, header.sum())
    } else {
        with_options(bytes, l3)?
    };
    let total_length = usize::from(header.total_length());
    if total_length < header_len {
        return Err(Malformed::BadHeader);
    }
    let end = match extent {
        Extent::Whole if l3 + total_length > bytes.len() => return Err(Malformed::Truncated),
        Extent::Whole if sum.folded() != 0xffff => return Err(Malformed::BadChecksum),
        Extent::Whole => l3 + total_length,
        Extent::Quote => bytes.len().min(l3 + total_length),
    };
    let flags_and_offset = header.flags_and_offset();
    Ok(Headers {
        family: Family::V4,
        vlan: None,
        l3,
        l4: l3 + header_len,
        end,
        protocol: header.protocol(),
        source: IpAddr::V4(header.source()),
        destination: IpAddr::V4(header.destination()),
        source_port: 0,
        destination_port: 0,
        ttl: header.ttl(),
        dont_fragment: flags_and_offset & ipv4::DONT_FRAGMENT != 0,
        fragment: fragment(flags_and_offset, header.identification(), end - l3 - header_len),
        tcp_flags: 0,
    })
}

/// Length and sum of a header that is not the usual one.
#[cold]
fn with_options(bytes: &[u8], l3: usize) -> Result<(usize, Sum), Malformed> {
    let header = ipv4::Header::at(bytes, l3).ok_or(Malformed::Truncated)?;
    let header_len = header.header_len();
    if header.version() != 4 || header_len < ipv4::LEN {
        return Err(Malformed::BadHeader);
    }
    let options = bytes.get(l3 + ipv4::LEN..l3 + header_len).ok_or(Malformed::Truncated)?;
    Ok((header_len, header.sum().bytes(options)))
}

#[inline(always)]
fn fragment(flags_and_offset: u16, id: u16, length: usize) -> Fragment {
    let id = u32::from(id);
    if flags_and_offset & (ipv4::OFFSET | ipv4::MORE_FRAGMENTS) == 0 {
        Fragment::Whole
    } else if flags_and_offset & ipv4::OFFSET == 0 {
        Fragment::First { id, length: length as u16 }
    } else {
        let more = flags_and_offset & ipv4::MORE_FRAGMENTS != 0;
        Fragment::Later { id, offset: (flags_and_offset & ipv4::OFFSET) * 8, more }
    }
}
