//! Ports and flags: the transport header of a packet.

use crate::wire::{icmp, protocol, sctp, tcp, udp};
use crate::{Fragment, Headers, Malformed};

/// Bytes of a TCP, UDP or SCTP header that an ICMP error must quote to be of use: the ports. RFC 792
/// asks for 8; the kernel is content with these.
pub(crate) const PORTS: usize = 4;

/// Bytes that the first fragment of a protocol has at least: a later one that begins among them
/// would replace at the receiver what was checked and rewritten here (RFC 3128).
fn header_len(protocol: u8) -> usize {
    match protocol {
        protocol::TCP => tcp::LEN,
        protocol::UDP => udp::LEN,
        protocol::SCTP => sctp::LEN,
        _ => 0,
    }
}

/// Checks the transport header and reads its ports. A later fragment has none; an unknown protocol
/// is not looked at.
#[inline(always)]
pub(crate) fn read(bytes: &[u8], headers: &mut Headers) -> Result<(), Malformed> {
    if let Fragment::Later { offset, .. } = headers.fragment {
        let header = header_len(headers.protocol);
        return if usize::from(offset) < header { Err(Malformed::Overlap) } else { Ok(()) };
    }
    let packet = bytes.get(..headers.end).ok_or(Malformed::Truncated)?;
    match headers.protocol {
        protocol::TCP => {
            let tcp = tcp::Header::at(packet, headers.l4).ok_or(Malformed::Truncated)?;
            if tcp.header_len() < tcp::LEN {
                return Err(Malformed::BadHeader);
            }
            if tcp.header_len() > headers.payload_len() {
                return Err(Malformed::Truncated);
            }
            headers.source_port = tcp.source_port();
            headers.destination_port = tcp.destination_port();
            headers.tcp_flags = tcp.flags();
        }
        protocol::UDP => {
            let udp = udp::Header::at(packet, headers.l4).ok_or(Malformed::Truncated)?;
            let length = usize::from(udp.length());
            if length < udp::LEN {
                return Err(Malformed::BadHeader);
            }
            // The length is that of the datagram, of which a first fragment is a part.
            if headers.fragment == Fragment::Whole && length > headers.payload_len() {
                return Err(Malformed::Truncated);
            }
            headers.source_port = udp.source_port();
            headers.destination_port = udp.destination_port();
        }
        protocol::SCTP => {
            let sctp = sctp::Header::at(packet, headers.l4).ok_or(Malformed::Truncated)?;
            headers.source_port = sctp.source_port();
            headers.destination_port = sctp.destination_port();
        }
        protocol::ICMP | protocol::ICMPV6 if headers.is_icmp() => {
            icmp::Header::at(packet, headers.l4).ok_or(Malformed::Truncated)?;
        }
        _ => {}
    }
    Ok(())
}

/// Reads the ports of a quoted packet, of whose transport header no more need be there. `None` when
/// they are not, or when the protocol is not TCP, UDP or SCTP.
pub(crate) fn read_quoted(bytes: &[u8], headers: &mut Headers) -> Option<()> {
    let transport = bytes.get(headers.l4..headers.end)?;
    // All three begin with the ports.
    if headers.is_later_fragment()
        || !matches!(headers.protocol, protocol::TCP | protocol::UDP | protocol::SCTP)
    {
        return None;
    }
    let [source @ .., a, b] = *transport.first_chunk::<PORTS>()?;
    headers.source_port = u16::from_be_bytes(source);
    headers.destination_port = u16::from_be_bytes([a, b]);
    if headers.is_tcp() {
        headers.tcp_flags = transport.get(tcp::FLAGS).copied().unwrap_or(0);
    }
    Some(())
}
