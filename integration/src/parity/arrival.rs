//! A packet that a director has sent, as it is compared: without what must differ.

use std::fmt;
use std::net::SocketAddr;

use forwarding::checksum::Sum;
use forwarding::{Headers, parse};

use super::frames::ETHERNET;
use super::place::{GUE_PORT, Who, who};
use super::step::{Flow, Protocol};

const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Bytes of a UDP header.
const UDP: usize = 8;

/// A packet with whom it went to.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Whose MAC address it bears.
    pub(super) to: Who,
    /// From the IP header on, without padding; identifications that the director chose are zero.
    pub(super) packet: Vec<u8>,
}

impl Arrival {
    /// Reads a frame; `None` when it is none of a director's forwarding (ARP, neighbour discovery,
    /// multicast).
    pub(super) fn read(frame: &[u8]) -> Option<Arrival> {
        let (ethernet, ip) = frame.split_at_checked(ETHERNET)?;
        let to = who(ethernet[..6].try_into().ok()?)?;
        let mut packet = match [ethernet[12], ethernet[13]] {
            IPV4 => ip.get(..usize::from(u16::from_be_bytes([*ip.get(2)?, *ip.get(3)?])))?,
            IPV6 => ip.get(..40 + usize::from(u16::from_be_bytes([*ip.get(4)?, *ip.get(5)?])))?,
            _ => return None,
        }
        .to_vec();
        let v6 = packet.first()? >> 4 == 6;
        let protocol = *packet.get(if v6 { 6 } else { 9 })?;
        if v6 && protocol == 58 && matches!(packet.get(40)?, 130..=143) {
            return None;
        }
        let gue = forget_source_port(&mut packet, v6);
        if !v6 && (gue || matches!(protocol, 1 | 4 | 41 | 47)) {
            forget_identification(&mut packet);
        }
        // Who puts an IPv6 datagram together and cuts it again numbers the fragments anew.
        if v6 && protocol == 44 {
            packet.get_mut(44..48)?.fill(0);
        }
        Some(Arrival { to, packet })
    }

    /// The header that the client wrote, as it is now (the inner one of a tunnel packet), and the
    /// frame it is in.
    fn inner(&self) -> Option<(Headers, Vec<u8>)> {
        let mut ip = &self.packet[..];
        let mut gue = gue_at(ip).map(|udp| ip[udp + UDP..].to_vec());
        if let Some(payload) = &mut gue {
            let range = forwarding::tunnel::decapsulate_gue(payload)?;
            ip = &payload[range];
        } else if let Some(range) = forwarding::tunnel::decapsulate(ip) {
            ip = &ip[range];
        }
        let mut frame = vec![0; ETHERNET];
        frame[12..].copy_from_slice(if ip[0] >> 4 == 6 { &IPV6 } else { &IPV4 });
        frame.extend(ip);
        parse(&frame).ok().map(|headers| (headers, frame))
    }

    /// Client and addressee of a packet on its way to a server.
    pub(super) fn ends(&self) -> Option<(Protocol, SocketAddr, SocketAddr)> {
        let (headers, _) = self.inner()?;
        let protocol = match headers.protocol {
            6 => Protocol::Tcp,
            17 => Protocol::Udp,
            132 => Protocol::Sctp,
            _ => return None,
        };
        Some((
            protocol,
            SocketAddr::new(headers.source, headers.source_port),
            SocketAddr::new(headers.destination, headers.destination_port),
        ))
    }

    /// The client it is from, for or about.
    pub(super) fn client(&self) -> Option<SocketAddr> {
        let (headers, frame) = self.inner()?;
        if headers.is_icmp() {
            let quoted = forwarding::icmp::quoted(&frame, &headers)?;
            return Some(SocketAddr::new(quoted.source, quoted.source_port));
        }
        let (_, from, to) = self.ends()?;
        Some(if self.to == Who::Client { to } else { from })
    }

    /// Whether it is a TCP reset to a client.
    pub(super) fn resets_client(&self) -> bool {
        let reset = |(headers, _): (Headers, _)| headers.is_tcp() && headers.tcp_flags & 0x04 != 0;
        self.to == Who::Client && self.inner().is_some_and(reset)
    }

    /// Whom it went to, and as what if that is out of the ordinary.
    pub(super) fn fate(&self) -> String {
        match self.inner() {
            Some((headers, _)) if headers.is_icmp() => format!("{}:icmp", self.to),
            _ => self.to.to_string(),
        }
    }

    /// Whether it is `flow`'s, on the way to a server.
    pub(super) fn is_of(&self, flow: &Flow) -> bool {
        matches!(self.to, Who::Server(_))
            && self.ends().is_some_and(|(protocol, client, _)| {
                (protocol, client) == (flow.protocol, flow.client)
            })
    }
}

/// Where the UDP header of a GUE packet is.
fn gue_at(packet: &[u8]) -> Option<usize> {
    let (protocol, udp) = match packet.first()? >> 4 {
        6 => (*packet.get(6)?, 40),
        _ => (*packet.get(9)?, usize::from(packet[0] & 0xf) * 4),
    };
    let port = packet.get(udp + 2..udp + 4)?;
    (protocol == 17 && port == GUE_PORT.to_be_bytes()).then_some(udp)
}

/// Zeroes the source port of a GUE packet, which each director takes from a hash of its own, and
/// puts 0xffff for a checksum that is right; a wrong one stays. Whether it is such a packet.
fn forget_source_port(packet: &mut [u8], v6: bool) -> bool {
    let Some(udp) = gue_at(packet) else { return false };
    if packet[udp + 6..udp + 8] != [0, 0] {
        let addresses = if v6 { &packet[8..40] } else { &packet[12..20] };
        let length = (packet.len() - udp) as u32;
        let sum = Sum::default().bytes(addresses).word(17).word(length).bytes(&packet[udp..]);
        if sum.checksum() != 0 {
            return true;
        }
        packet[udp + 6..udp + 8].fill(0xff);
    }
    packet[udp..udp + 2].fill(0);
    true
}

/// Zeroes the identification of an IPv4 header whose checksum is right; a wrong one stays, and
/// stays different.
fn forget_identification(packet: &mut [u8]) {
    let length = usize::from(packet[0] & 0xf) * 4;
    if packet.len() < length || Sum::default().bytes(&packet[..length]).checksum() != 0 {
        return;
    }
    packet[4..6].fill(0);
    packet[10..12].fill(0);
    let sum = Sum::default().bytes(&packet[..length]).checksum();
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

impl fmt::Debug for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "to {}:", self.to)?;
        if let Some((protocol, from, to)) = self.ends() {
            write!(f, " {protocol:?} {from} > {to}")?;
        }
        for (index, byte) in self.packet.iter().take(96).enumerate() {
            let space = if index % 4 == 0 { " " } else { "" };
            write!(f, "{space}{byte:02x}")?;
        }
        match self.packet.len() {
            0..=96 => Ok(()),
            length => write!(f, " ... ({length} bytes)"),
        }
    }
}
