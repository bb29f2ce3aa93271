//! Packets made of words, to be asked about: right in every checksum.

use std::net::{IpAddr, SocketAddr};

use forwarding::checksum::{Sum, pseudo_header};

use super::LONGEST;

/// Which protocol, and what of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP with these flags (byte 13 of its header).
    Tcp(u8),
    /// UDP.
    Udp,
    /// SCTP with one chunk of this type: 1 is INIT.
    Sctp(u8),
    /// An echo request.
    Echo,
}

/// A packet that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Protocol.
    pub transport: Transport,
    /// From where. The port of an echo request is its identifier.
    pub source: SocketAddr,
    /// To where.
    pub destination: SocketAddr,
    /// Bytes behind the transport header.
    pub data: usize,
    /// TTL or hop limit.
    pub ttl: u8,
    /// IPv4: whether it must not be fragmented.
    pub dont_fragment: bool,
}

/// The Ethernet frame.
///
/// # Errors
/// Why there cannot be such a packet, in words.
pub fn frame(wanted: &Wanted) -> Result<Vec<u8>, String> {
    let Wanted { source, destination, .. } = *wanted;
    if source.is_ipv4() != destination.is_ipv4() {
        return Err(format!("{source} and {destination} are of different families"));
    }
    let payload = payload(wanted);
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    let too_long = || format!("{} bytes of data do not fit into a packet", wanted.data);
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let length = u16::try_from(payload.len() + 20).map_err(|_| too_long())?;
            let flags = if wanted.dont_fragment { 0x40 } else { 0 };
            let mut header = vec![0x45, 0];
            header.extend(length.to_be_bytes());
            header.extend([0, 1, flags, 0, wanted.ttl, number(wanted), 0, 0]);
            header.extend(from.octets());
            header.extend(to.octets());
            let sum = Sum::default().bytes(&header).checksum();
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            frame.extend([8, 0]);
            frame.extend(header);
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let length = u16::try_from(payload.len()).map_err(|_| too_long())?;
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(length.to_be_bytes());
            frame.extend([number(wanted), wanted.ttl]);
            frame.extend(from.octets());
            frame.extend(to.octets());
        }
        _ => unreachable!("families have been compared"),
    }
    frame.extend(payload);
    if frame.len() > LONGEST {
        return Err(too_long());
    }
    Ok(frame)
}

fn number(wanted: &Wanted) -> u8 {
    match wanted.transport {
        Transport::Tcp(_) => 6,
        Transport::Udp => 17,
        Transport::Sctp(_) => 132,
        Transport::Echo if wanted.source.is_ipv4() => 1,
        Transport::Echo => 58,
    }
}

/// The transport header and what is behind it.
fn payload(wanted: &Wanted) -> Vec<u8> {
    let mut bytes = Vec::new();
    let ends = |bytes: &mut Vec<u8>| {
        bytes.extend(wanted.source.port().to_be_bytes());
        bytes.extend(wanted.destination.port().to_be_bytes());
    };
    let data = wanted.data.min(LONGEST);
    let checksum = match wanted.transport {
        Transport::Tcp(flags) => {
            ends(&mut bytes);
            bytes.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
            Some(16)
        }
        Transport::Udp => {
            ends(&mut bytes);
            bytes.extend(((8 + data) as u16).to_be_bytes());
            bytes.extend([0, 0]);
            Some(6)
        }
        Transport::Sctp(chunk) => {
            ends(&mut bytes);
            let tag = if chunk == 1 { 0_u32 } else { 1 };
            bytes.extend(tag.to_be_bytes());
            bytes.extend([0; 4]);
            bytes.extend([chunk, 0, 0, 20]);
            bytes.extend([0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1]);
            None
        }
        Transport::Echo => {
            bytes.extend([if wanted.source.is_ipv4() { 8 } else { 128 }, 0, 0, 0]);
            bytes.extend(wanted.source.port().to_be_bytes());
            bytes.extend([0, 1]);
            Some(2)
        }
    };
    bytes.resize(bytes.len() + data, 0);
    match checksum {
        Some(at) => {
            let (from, to) = (wanted.source.ip(), wanted.destination.ip());
            let is_plain = wanted.transport == Transport::Echo && from.is_ipv4();
            let begin = match is_plain {
                true => Sum::default(),
                false => pseudo_header(from, to, number(wanted), bytes.len() as u32),
            };
            let sum = begin.bytes(&bytes).checksum();
            bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        }
        None => {
            let sum = forwarding::checksum::sctp(&bytes);
            bytes[8..12].copy_from_slice(&sum.to_le_bytes());
        }
    }
    bytes
}
