//! ICMP errors, as clients, servers and routers send them.

use std::net::{IpAddr, SocketAddr};

use forwarding::checksum::{Sum, pseudo_header};

use super::chunks::Chunks;
use super::frames;
use super::place::ROUTERS;
use super::step::{Flaw, IcmpError, Kind, Packet, Problem, Protocol};

/// Payload of the packet that an error is about.
const PAYLOAD: usize = 600;

/// The error that `packet` is, about a packet that went from `to` to `from`.
pub(super) fn packet(
    packet: &Packet,
    error: IcmpError,
    (from, to): (SocketAddr, SocketAddr),
    id: u16,
) -> Vec<u8> {
    let (kind, protocol) = match packet.flow.protocol {
        Protocol::Tcp => (Kind::Data(PAYLOAD), 6),
        Protocol::Udp => (Kind::Datagram(PAYLOAD), 17),
        Protocol::Sctp => (Kind::Sctp(Chunks::Data(PAYLOAD)), 132),
    };
    let ends = (to.ip(), from.ip());
    let past = Packet { ttl: 55, ..*packet };
    let mut quote = frames::ip(&past, ends, protocol, id, &frames::transport(kind, to, from));
    match error.flaw {
        Some(Flaw::QuotedSum) => quote[10] ^= 1,
        Some(Flaw::QuotedWords(words)) => quote[0] = 0x40 | words,
        Some(Flaw::Sum) | None => {}
    }
    quote.truncate(error.quoted);

    let v6 = from.is_ipv6();
    let sender = if error.router { ROUTERS[usize::from(v6)] } else { from.ip() };
    let ([kind, code], word) = head(error.problem, v6);
    let mut message = vec![kind, code, 0, 0];
    message.extend(word.to_be_bytes());
    message.extend(quote);
    let sum = match (sender, to.ip()) {
        (IpAddr::V4(_), _) => Sum::default(),
        (_, to) => pseudo_header(sender, to, 58, message.len() as u32),
    };
    let sum = sum.bytes(&message).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    if error.flaw == Some(Flaw::Sum) {
        message[3] ^= 1;
    }
    frames::ip(packet, (sender, to.ip()), if v6 { 58 } else { 1 }, id, &message)
}

/// Type and code, and the word behind the checksum (RFC 792, RFC 1191, RFC 4443).
fn head(problem: Problem, v6: bool) -> ([u8; 2], u32) {
    match (problem, v6) {
        (Problem::Unreachable { port: true }, false) => ([3, 3], 0),
        (Problem::Unreachable { port: false }, false) => ([3, 1], 0),
        (Problem::TooBig(mtu), false) => ([3, 4], mtu.into()),
        (Problem::TimeExceeded, false) => ([11, 0], 0),
        (Problem::Parameter, false) => ([12, 0], 9 << 24),
        (Problem::Unreachable { port: true }, true) => ([1, 4], 0),
        (Problem::Unreachable { port: false }, true) => ([1, 3], 0),
        (Problem::TooBig(mtu), true) => ([2, 0], mtu.into()),
        (Problem::TimeExceeded, true) => ([3, 0], 0),
        (Problem::Parameter, true) => ([4, 1], 6),
    }
}
