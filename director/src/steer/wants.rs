//! The steering decision in plain Rust: the twin of the program, line for line.
//!
//! The property test holds the two together. The AF_PACKET port asks this one whether the guard
//! has taken a packet from the kernel.

use super::keys::{Key, KeySet, Kind};
use super::protocol::{
    DATA_PORTS, DESTINATION_OPTIONS, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_QINQ,
    ETHERTYPE_VLAN, FRAGMENT, HOP_BY_HOP, ICMP, ICMP_ERRORS, ICMPV6, ICMPV6_ERRORS,
    LATER_FRAGMENTS, MAX_EXTENSIONS, ROUTING, TCP, TRANSPORTS, TUNNELS,
};

/// Addresses, what follows, and whether it is only the rest of it.
struct Network<'a> {
    source: [u8; 16],
    destination: [u8; 16],
    protocol: u8,
    /// Behind the headers; empty also when they claim to be longer than the frame.
    payload: &'a [u8],
    later_fragment: bool,
}

impl KeySet {
    /// Whether steering takes this frame: a packet of a virtual service, the reply of a NAT
    /// server, or an ICMP error about one. `frame` begins with the Ethernet header and may have
    /// one VLAN tag. Does not know of [`Mark`](super::Mark)s.
    pub fn wants(&self, frame: &[u8]) -> bool {
        self.decide(frame).unwrap_or(false)
    }

    /// `None` as soon as the frame is too short for what it says it is.
    fn decide(&self, frame: &[u8]) -> Option<bool> {
        let (mut ethertype, mut packet) = (half(frame, 12)?, &frame[14..]);
        if matches!(ethertype, ETHERTYPE_VLAN | ETHERTYPE_QINQ) {
            (ethertype, packet) = (half(packet, 2)?, &packet[4..]);
        }
        let (network, error_payload) = match ethertype {
            ETHERTYPE_IPV4 => {
                let network = ipv4(packet)?;
                let error = network.error_payload(ICMP, ICMP_ERRORS);
                (network, error)
            }
            ETHERTYPE_IPV6 => {
                let network = ipv6(packet)?;
                let error = network.error_payload(ICMPV6, ICMPV6_ERRORS);
                (network, error)
            }
            _ => return None,
        };
        if network.later_fragment {
            let (protocol, port) = (0, 0);
            return Some(
                LATER_FRAGMENTS.contains(&network.protocol)
                    && (self.has(Kind::Service, network.destination, protocol, port)
                        || self.has(Kind::Server, network.source, protocol, port)),
            );
        }
        match error_payload {
            None => self.has_either(&network, Kind::Server, Kind::Service),
            Some(quoted) => {
                let quoted = match ethertype {
                    ETHERTYPE_IPV4 => ipv4(quoted)?,
                    _ => ipv6(quoted)?,
                };
                if quoted.later_fragment {
                    return None;
                }
                if TUNNELS.contains(&quoted.protocol) {
                    return Some(self.has(Kind::TunnelServer, quoted.destination, 0, 0));
                }
                self.has_either(&quoted, Kind::Service, Kind::Server)
            }
        }
    }

    /// Whether source or destination, with port or for all ports, or for those of FTP's data
    /// connections, is a key of its kind.
    fn has_either(&self, network: &Network<'_>, source: Kind, destination: Kind) -> Option<bool> {
        if !TRANSPORTS.contains(&network.protocol) {
            return None;
        }
        let source_port = half(network.payload, 0)?;
        let destination_port = half(network.payload, 2)?;
        let protocol = network.protocol;
        Some(
            self.has(destination, network.destination, protocol, destination_port)
                || self.has(destination, network.destination, protocol, 0)
                || self.has(source, network.source, protocol, source_port)
                || self.has(source, network.source, protocol, 0)
                || self.has_data(destination, network.destination, protocol, destination_port)
                || self.has_data(source, network.source, protocol, source_port),
        )
    }

    fn has_data(&self, kind: Kind, address: [u8; 16], protocol: u8, port: u16) -> bool {
        let may_be = protocol == TCP && port >= u16::from_be_bytes([DATA_PORTS, 0]);
        may_be && kind.data().is_some_and(|kind| self.has(kind, address, protocol, 0))
    }

    fn has(&self, kind: Kind, address: [u8; 16], protocol: u8, port: u16) -> bool {
        self.contains(&Key { address, port, protocol, kind })
    }
}

impl<'a> Network<'a> {
    /// The quoted packet, if this is an error message.
    fn error_payload(&self, icmp: u8, errors: &[u8]) -> Option<&'a [u8]> {
        if self.later_fragment || self.protocol != icmp {
            return None;
        }
        let kind = self.payload.first_chunk::<8>()?[0];
        errors.contains(&kind).then(|| &self.payload[8..])
    }
}

fn ipv4(packet: &[u8]) -> Option<Network<'_>> {
    let header = packet.first_chunk::<20>()?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || header_len < 20 {
        return None;
    }
    let mapped = |at: usize| {
        let mut address = [0; 16];
        address[10..12].fill(0xff);
        address[12..].copy_from_slice(&header[at..at + 4]);
        address
    };
    Some(Network {
        source: mapped(12),
        destination: mapped(16),
        protocol: header[9],
        payload: packet.get(header_len..).unwrap_or_default(),
        later_fragment: half(header, 6)? & 0x1fff != 0,
    })
}

fn ipv6(packet: &[u8]) -> Option<Network<'_>> {
    let header = packet.first_chunk::<40>()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let address = |at: usize| {
        let mut address = [0; 16];
        address.copy_from_slice(&header[at..at + 16]);
        address
    };
    let mut network = Network {
        source: address(8),
        destination: address(24),
        protocol: header[6],
        payload: &packet[40..],
        later_fragment: false,
    };
    for _ in 0..MAX_EXTENSIONS {
        let length = match network.protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => {
                8 + 8 * usize::from(network.payload.first_chunk::<8>()?[1])
            }
            FRAGMENT => 8,
            _ => break,
        };
        let extension = network.payload.first_chunk::<8>()?;
        let offset = half(extension, 2)? & 0xfff8;
        network.later_fragment = network.protocol == FRAGMENT && offset != 0;
        network.protocol = extension[0];
        network.payload = network.payload.get(length..).unwrap_or_default();
        if network.later_fragment {
            break;
        }
    }
    Some(network)
}

/// Two bytes in network order.
fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([pair[0], pair[1]]))
}
