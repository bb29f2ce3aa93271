//! An ICMP echo request is answered.
//!
//! Over a ping socket, which needs no capability where `net.ipv4.ping_group_range` says so, or else a
//! raw one, which needs `CAP_NET_RAW`. On a raw socket all echo replies of the host arrive, on a ping
//! socket the kernel has chosen the identifier: an answer counts if its payload, at random, is ours.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::IpAddr;

use forwarding::checksum::Sum;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use tokio::net::UdpSocket;

use super::{Deadline, Outcome, trouble};

/// Bytes of a message: header and payload.
const LENGTH: usize = 8 + 16;
/// The longest answer that is looked at, with an IPv4 header of any length before it.
const LONGEST: usize = 60 + LENGTH;

/// Types of messages, by family.
#[derive(Clone, Copy, Debug)]
struct Family {
    request: u8,
    reply: u8,
    address: AddressFamily,
    protocol: SockProtocol,
}

const V4: Family =
    Family { request: 8, reply: 0, address: AddressFamily::Inet, protocol: SockProtocol::Icmp };
const V6: Family = Family {
    request: 128,
    reply: 129,
    address: AddressFamily::Inet6,
    protocol: SockProtocol::IcmpV6,
};

pub(super) async fn run(address: IpAddr, deadline: Deadline) -> Result<Outcome, Outcome> {
    let family = if address.is_ipv4() { V4 } else { V6 };
    let (socket, is_raw) = open(family)?;
    let step = "echo request";
    let sending = |error| trouble::outcome(step, &error);
    socket.connect((address, 0)).await.map_err(sending)?;
    let message = message(family);
    deadline.limit(step, socket.send(&message)).await?.map_err(sending)?;
    let mut buffer = [0; LONGEST];
    let answered = deadline.limit("echo reply", async {
        loop {
            let length = socket.recv(&mut buffer).await?;
            if is_answer(&buffer[..length], &message, family, is_raw) {
                return Ok(());
            }
        }
    });
    answered.await?.map_err(|error: io::Error| trouble::outcome("echo reply", &error))?;
    Ok(Outcome::PASSED)
}

/// A socket to ask with, and whether it is a raw one.
fn open(family: Family) -> Result<(UdpSocket, bool), Outcome> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let open = |kind| socket(family.address, kind, flags, family.protocol);
    let (opened, is_raw) = match open(SockType::Datagram) {
        Ok(opened) => (opened, false),
        Err(_) => {
            let opened = open(SockType::Raw).map_err(|error| {
                let error = trouble::words(&error.into());
                Outcome::Unable(format!(
                    "no socket for ICMP: {error}; widen net.ipv4.ping_group_range or give \
                     CAP_NET_RAW"
                ))
            })?;
            (opened, true)
        }
    };
    UdpSocket::from_std(opened.into())
        .map(|socket| (socket, is_raw))
        .map_err(|error| Outcome::Unable(trouble::words(&error)))
}

/// An echo request with a payload at random. The kernel completes the checksum of ICMPv6.
fn message(family: Family) -> [u8; LENGTH] {
    let mut message = [0; LENGTH];
    message[0] = family.request;
    for half in message[4..].chunks_mut(8) {
        let random = RandomState::new().build_hasher().finish().to_be_bytes();
        half.copy_from_slice(&random[..half.len()]);
    }
    let checksum = Sum::default().bytes(&message).checksum();
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    message
}

/// Whether a packet is the reply to `message`.
fn is_answer(packet: &[u8], message: &[u8; LENGTH], family: Family, is_raw: bool) -> bool {
    let header = match packet.first() {
        Some(first) if is_raw && family.reply == V4.reply => usize::from(first & 0x0f) * 4,
        _ => 0,
    };
    let Some(answer) = packet.get(header..) else { return false };
    // A ping socket's identifier is the kernel's; the sequence number is ours everywhere.
    let same = if is_raw { 4.. } else { 6.. };
    answer.len() == LENGTH
        && answer[..2] == [family.reply, 0]
        && answer[same.clone()] == message[same]
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, loopbacks, run};
    use super::*;
    use crate::health::plan::CheckKind;

    #[test]
    fn this_host_answers_to_both_families() {
        for loopback in loopbacks() {
            match run(&check(CheckKind::Icmp), loopback) {
                Outcome::PASSED => {}
                // Where the tests may not do it.
                Outcome::Unable(why) => assert!(why.contains("CAP_NET_RAW"), "{why}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn only_the_reply_to_this_request_counts() {
        for family in [V4, V6] {
            let request = message(family);
            assert_eq!(Sum::default().bytes(&request).checksum(), 0);
            let mut reply = request;
            reply[0] = family.reply;
            assert!(is_answer(&reply, &request, family, false));
            assert!(!is_answer(&request, &request, family, false));
            assert!(!is_answer(&reply[..LENGTH - 1], &request, family, false));
            assert!(!is_answer(&[], &request, family, true));
            let mut other = reply;
            other[LENGTH - 1] ^= 1;
            assert!(!is_answer(&other, &request, family, false));
            let mut of_another_socket = reply;
            of_another_socket[4] ^= 1;
            assert!(is_answer(&of_another_socket, &request, family, false));
            let raw = |reply: &[u8]| match family.reply {
                0 => [&[0x46; 24], reply].concat(),
                _ => reply.to_vec(),
            };
            assert!(is_answer(&raw(&reply), &request, family, true));
            assert!(!is_answer(&raw(&of_another_socket), &request, family, true));
            assert!(!is_answer(&[0x4f], &request, family, true));
        }
        assert_ne!(message(V4), message(V4));
    }
}
