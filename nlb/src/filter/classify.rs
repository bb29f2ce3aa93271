//! Classify: what a packet to a virtual address is.

use forwarding::wire::{ethernet, icmp, protocol, tcp, udp};

use super::frame::{self, Ip, Part, Upper};
use super::{FragmentKey, Policy};
use crate::tuple::Tuple;

/// UDP port of remote control at the primary address.
pub const CONTROL_PORT: u16 = 2504;

/// ICMP types of echo requests, IPv4 and IPv6.
const ECHO: [u8; 2] = [8, 128];
/// ICMPv6 types of neighbour discovery: router solicitation to redirect.
const NEIGHBOUR_DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;

/// What a packet to a virtual address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Neighbour discovery.
    Discovery,
    /// A remote command.
    Control,
    /// Nothing that is balanced.
    Unmanaged,
    /// An ICMP echo request, as a tuple without ports.
    Echo(Tuple),
    /// Of a flow of TCP. A SYN without ACK begins one; an ICMP error about one does not.
    Tcp { tuple: Tuple, begins: bool },
    /// Of a flow of UDP. An ICMP error about one begins none.
    Udp { tuple: Tuple, begins: bool },
    /// Of the tunnel of a PPTP client.
    Gre(Tuple),
    /// A fragment that does not tell.
    Later(FragmentKey),
}

/// `None` when a header that must be there is not.
pub(super) fn classify(frame: &[u8], ip: &Ip, upper: &Upper, policy: &Policy) -> Option<Class> {
    if let (Part::Later { id }, true) = (upper.part, is_followed(ip, upper)) {
        return Some(Class::Later(fragment_key(ip, upper, id)));
    }
    let portless = Tuple {
        protocol: upper.protocol,
        client: ip.source,
        client_port: 0,
        vip: ip.destination,
        vip_port: 0,
    };
    let with_ports = |client_port, vip_port| Tuple { client_port, vip_port, ..portless };
    Some(match (upper.protocol, ip.is_ipv4()) {
        (protocol::TCP, _) => {
            let header = tcp::Header::at(frame, upper.offset)?;
            let begins = header.flags() & (tcp::SYN | tcp::ACK) == tcp::SYN;
            let tuple = with_ports(header.source_port(), header.destination_port());
            Class::Tcp { tuple, begins }
        }
        (protocol::UDP, _) => {
            let header = udp::Header::at(frame, upper.offset)?;
            let tuple = with_ports(header.source_port(), header.destination_port());
            if tuple.vip == policy.primary && tuple.vip_port == CONTROL_PORT {
                Class::Control
            } else {
                Class::Udp { tuple, begins: true }
            }
        }
        (protocol::GRE, _) => Class::Gre(portless),
        (protocol::ICMP, true) | (protocol::ICMPV6, false) => {
            message(frame, ip, upper.offset, portless)?
        }
        _ => Class::Unmanaged,
    })
}

/// An ICMP message.
fn message(frame: &[u8], ip: &Ip, at: usize, portless: Tuple) -> Option<Class> {
    let kind = icmp::Header::at(frame, at)?.kind();
    let family = if ip.is_ipv4() { forwarding::Family::V4 } else { forwarding::Family::V6 };
    Some(if kind == ECHO[usize::from(!ip.is_ipv4())] {
        Class::Echo(portless)
    } else if !ip.is_ipv4() && NEIGHBOUR_DISCOVERY.contains(&kind) {
        Class::Discovery
    } else if icmp::quotes(family, kind) {
        quoted(frame, ip, at + icmp::LEN).unwrap_or(Class::Unmanaged)
    } else {
        Class::Unmanaged
    })
}

/// The flow of TCP or UDP that a frame is about by its quote: it is an ICMP error about a packet from the
/// address that it is for.
pub fn quoted_flow(frame: &[u8]) -> Option<Tuple> {
    let link = frame::link(frame)?;
    let ip = match link.ether_type {
        ethernet::IPV4 => frame::ipv4(frame, link.payload)?,
        ethernet::IPV6 => frame::ipv6(frame, link.payload)?,
        _ => return None,
    };
    let upper = ip.upper(frame)?;
    let family = if ip.is_ipv4() { forwarding::Family::V4 } else { forwarding::Family::V6 };
    let is_error = matches!(
        (upper.protocol, ip.is_ipv4()),
        (protocol::ICMP, true) | (protocol::ICMPV6, false)
    ) && icmp::quotes(family, icmp::Header::at(frame, upper.offset)?.kind());
    match quoted(frame, &ip, upper.offset + icmp::LEN).filter(|_| is_error)? {
        Class::Tcp { tuple, .. } | Class::Udp { tuple, .. } => Some(tuple),
        _ => None,
    }
}

/// The flow that an ICMP error is about: the quoted packet went from the virtual address to the
/// client. Extension headers in a quote are not stepped over.
fn quoted(frame: &[u8], ip: &Ip, at: usize) -> Option<Class> {
    let quote = if ip.is_ipv4() { frame::ipv4(frame, at) } else { frame::ipv6(frame, at) }?;
    if quote.source != ip.destination {
        return None;
    }
    let (protocol, at) = quote.next()?;
    let ports = udp::Header::at(frame, at)?;
    let tuple = Tuple {
        protocol,
        client: quote.destination,
        client_port: ports.destination_port(),
        vip: quote.source,
        vip_port: ports.source_port(),
    };
    match protocol {
        protocol::TCP => Some(Class::Tcp { tuple, begins: false }),
        protocol::UDP => Some(Class::Udp { tuple, begins: false }),
        _ => None,
    }
}

/// Whether a later fragment must follow its first one because only that tells where it belongs.
fn is_followed(ip: &Ip, upper: &Upper) -> bool {
    match upper.protocol {
        protocol::TCP | protocol::UDP => true,
        protocol::ICMP => ip.is_ipv4(),
        // Behind the fragment header destination options may come before the transport.
        protocol::ICMPV6 | protocol::DESTINATION_OPTIONS => !ip.is_ipv4(),
        _ => false,
    }
}

/// The key by which later fragments will find what became of this first one.
pub(super) fn first_fragment(ip: &Ip, upper: &Upper) -> Option<FragmentKey> {
    match upper.part {
        Part::First { id } if is_followed(ip, upper) => Some(fragment_key(ip, upper, id)),
        _ => None,
    }
}

fn fragment_key(ip: &Ip, upper: &Upper, id: u32) -> FragmentKey {
    let protocol = if ip.is_ipv4() { upper.protocol } else { 0 };
    FragmentKey { source: ip.source, destination: ip.destination, id, protocol }
}
