//! IP packets as the kernel hands them to AF_PACKET sockets without their Ethernet header: for a host
//! that must see what its own stack would not take, and send what it would not send.
//!
//! Knows the sockets, and which packets come in. What is in them is the caller's business.

use std::io;
use std::mem;
use std::net::UdpSocket;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::{silence, sockopt};

/// A family of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    fn ethertype(self) -> u16 {
        match self {
            Family::V4 => 0x0800,
            Family::V6 => 0x86dd,
        }
    }
}

/// Opens a socket that sees, on all interfaces, the TCP and UDP packets that come in for one of these
/// `ports`, and the ICMP errors "unreachable" about packets from one; fragments are left out. It does
/// not block. The kernel's own stack goes on handling them as it does.
///
/// It comes as a [`UdpSocket`] because std has no name for it, and tokio takes it too: `recv` gives a
/// packet from its IP header on, with trailing bytes of its frame if there are any, up to 64 KiB long
/// where the kernel has put segments together. Send with [`send`].
///
/// # Errors
/// `PermissionDenied` without `CAP_NET_RAW`.
pub fn open(family: Family, ports: RangeInclusive<u16>) -> io::Result<UdpSocket> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // Protocol 0: nothing comes in before everything is set and the socket is bound.
    // SAFETY: the call takes and returns integers only.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    silence::attach(fd.as_fd(), &mut program(family, &ports))?;
    sockopt::set(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1i32)?;
    let address = address(family, 0, [0; 6]);
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: pointer and length are of `address`, which the kernel only reads during the call.
    let answer = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) };
    if answer == 0 { Ok(fd.into()) } else { Err(io::Error::last_os_error()) }
}

/// Sends `packet`, an IP packet of this family, to the Ethernet address `to` on the segment of the
/// interface with index `interface`. The kernel makes the Ethernet header; it does not look at its
/// routes. `socket` is one that [`open`] gave.
///
/// # Errors
/// When the interface is gone or down, or the packet is too long for it.
pub fn send(
    socket: &impl AsFd,
    family: Family,
    interface: u32,
    to: [u8; 6],
    packet: &[u8],
) -> io::Result<()> {
    let address = address(family, interface, to);
    // SAFETY: both pointers and lengths are of borrowed memory, which the kernel only reads during
    // the call.
    let sent = unsafe {
        libc::sendto(
            socket.as_fd().as_raw_fd(),
            packet.as_ptr().cast(),
            packet.len(),
            libc::MSG_DONTWAIT,
            (&raw const address).cast(),
            size_of_val(&address) as libc::socklen_t,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn address(family: Family, interface: u32, to: [u8; 6]) -> libc::sockaddr_ll {
    // SAFETY: a C struct of integers; zero is a value of each.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = family.ethertype().to_be();
    address.sll_ifindex = interface as i32;
    address.sll_halen = 6;
    address.sll_addr[..6].copy_from_slice(&to);
    address
}

/// Classic BPF: the kernel lets the packet through whose program returns more than 0. Offsets are
/// from the IP header on.
fn program(family: Family, ports: &RangeInclusive<u16>) -> Vec<libc::sock_filter> {
    const LOAD_BYTE: u16 = 0x30;
    const LOAD_BYTE_INDEXED: u16 = 0x50;
    const LOAD_HALF: u16 = 0x28;
    const LOAD_HALF_INDEXED: u16 = 0x48;
    const INDEX_IPV4_HEADER: u16 = 0xb1;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const JUMP_IF_ABOVE: u16 = 0x25;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const JUMP_IF_ANY_BIT: u16 = 0x45;
    const JUMP: u16 = 0x05;
    const RETURN: u16 = 0x06;
    const TCP: u32 = 6;
    const UDP: u32 = 17;
    /// Offset of a fragment, and whether more follow.
    const FRAGMENT: u32 = 0x3fff;
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let (first, last) = (u32::from(*ports.start()), u32::from(*ports.end()));
    match family {
        Family::V4 => vec![
            step(LOAD_HALF, 6, 0, 0),
            step(JUMP_IF_ANY_BIT, FRAGMENT, 12, 0),
            step(INDEX_IPV4_HEADER, 0, 0, 0),
            step(LOAD_BYTE, 9, 0, 0),
            step(JUMP_IF_EQUAL, TCP, 6, 0),
            step(JUMP_IF_EQUAL, UDP, 5, 0),
            step(JUMP_IF_EQUAL, 1, 0, 7),
            step(LOAD_BYTE_INDEXED, 0, 0, 0),
            step(JUMP_IF_EQUAL, 3, 0, 5),
            // The source port of the packet quoted.
            step(LOAD_HALF_INDEXED, 8 + 20, 0, 0),
            step(JUMP, 1, 0, 0),
            step(LOAD_HALF_INDEXED, 2, 0, 0),
            step(JUMP_IF_AT_LEAST, first, 0, 1),
            step(JUMP_IF_ABOVE, last, 0, 1),
            step(RETURN, 0, 0, 0),
            step(RETURN, u32::MAX, 0, 0),
        ],
        Family::V6 => vec![
            step(LOAD_BYTE, 6, 0, 0),
            step(JUMP_IF_EQUAL, TCP, 6, 0),
            step(JUMP_IF_EQUAL, UDP, 5, 0),
            step(JUMP_IF_EQUAL, 58, 0, 7),
            step(LOAD_BYTE, 40, 0, 0),
            step(JUMP_IF_EQUAL, 1, 0, 5),
            step(LOAD_HALF, 40 + 8 + 40, 0, 0),
            step(JUMP, 1, 0, 0),
            step(LOAD_HALF, 40 + 2, 0, 0),
            step(JUMP_IF_AT_LEAST, first, 0, 1),
            step(JUMP_IF_ABOVE, last, 0, 1),
            step(RETURN, 0, 0, 0),
            step(RETURN, u32::MAX, 0, 0),
        ],
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::*;

    /// Ports that the kernel gives nobody by itself, and no other test uses.
    const PORTS: RangeInclusive<u16> = 62_100..=62_199;

    fn loopbacks() -> [(Family, IpAddr); 2] {
        [(Family::V4, Ipv4Addr::LOCALHOST.into()), (Family::V6, Ipv6Addr::LOCALHOST.into())]
    }

    #[test]
    fn only_what_is_for_one_of_the_ports_and_errors_about_it_come_in() {
        for (family, ip) in loopbacks() {
            let socket = match open(family, PORTS) {
                Ok(socket) => socket,
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                    continue;
                }
            };
            let mut buffer = [0; 2048];
            let mut arrived = |sign: &[u8]| -> usize {
                let mut count = 0;
                while let Ok(length) = socket.recv(&mut buffer) {
                    count += usize::from(buffer[..length].windows(sign.len()).any(|it| it == sign));
                }
                count
            };
            for (port, expected) in [(62_099, 0), (62_100, 1), (62_199, 1), (62_200, 0)] {
                let sender = UdpSocket::bind((ip, 0)).unwrap();
                let _receiver = UdpSocket::bind((ip, port)).unwrap();
                sender.send_to(b"there", (ip, port)).unwrap();
                assert_eq!(arrived(b"there"), expected, "{port}");
            }
            for (port, expected) in [(62_099, 0), (62_110, 1)] {
                let nobody = UdpSocket::bind((ip, 0)).unwrap().local_addr().unwrap();
                let sender = UdpSocket::bind((ip, port)).unwrap();
                sender.send_to(b"astray", nobody).unwrap();
                assert_eq!(arrived(b"astray"), expected, "an error about {port}");
            }
            for (port, expected) in [(62_099, 0), (62_120, 1)] {
                let address = std::net::SocketAddr::from((ip, port));
                std::net::TcpStream::connect(address).unwrap_err();
                assert_eq!(arrived(&port.to_be_bytes()), expected, "a SYN to {port}");
            }
        }
    }
}
