//! Raw IP sockets of one protocol: what the host receives of it, reassembled by the kernel.
//!
//! While such a socket is open the kernel does not answer "protocol unreachable" for its protocol.
//! Knows how to open one; what is in the packets is the caller's business.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use crate::sockopt;

/// Room for packets that have not been read, in bytes as the kernel counts them (it doubles the
/// number, and books about 2300 for a packet of 1500). A TCP sender may have 6 MiB under way
/// (`net.ipv4.tcp_rmem`), which all arrive while the reader waits for its turn; the default of
/// 208 KiB holds 90 packets.
const RECEIVE_BUFFER: i32 = 8 << 20;

/// Which IP carries the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawFamily {
    /// IPv4: a received packet begins with its IPv4 header.
    V4,
    /// IPv6: the kernel has taken the IPv6 header and its extension headers off.
    V6,
}

/// Opens a raw socket that receives one IP protocol in the calling thread's network namespace, and
/// does not block. `protocol` is the number in the IP header (4 for IPv4 in IP, 41 for IPv6 in IP).
///
/// It comes as a [`UdpSocket`] because std has no name for it: `recv_from` and `send_to` are the
/// same system calls for every datagram socket of the Internet families, and tokio takes it too.
/// The port of a peer has no meaning.
///
/// # Errors
/// `PermissionDenied` without `CAP_NET_RAW`; another when the kernel has no such family.
pub fn open(family: RawFamily, protocol: u8) -> io::Result<UdpSocket> {
    let domain = match family {
        RawFamily::V4 => libc::AF_INET,
        RawFamily::V6 => libc::AF_INET6,
    };
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call takes and returns integers only.
    let fd = unsafe { libc::socket(domain, kind, i32::from(protocol)) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let buffer = |option| sockopt::set(fd.as_fd(), libc::SOL_SOCKET, option, RECEIVE_BUFFER);
    if buffer(libc::SO_RCVBUFFORCE).is_err() {
        // Without CAP_NET_ADMIN: as far as net.core.rmem_max allows.
        let _ = buffer(libc::SO_RCVBUF);
    }
    Ok(fd.into())
}
