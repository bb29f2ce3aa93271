//! Frames of one ethertype: an AF_PACKET socket for protocols that are spoken now and then, not for
//! traffic. Heartbeats, ARP, neighbour discovery.
//!
//! Knows how to open one; what is in the frames is the caller's business.

use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::interface::{self, InterfaceError};
use crate::{silence, sockopt};

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EthernetError {
    /// The interface cannot be asked.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The kernel refused.
    #[error(
        "opening a socket for ethertype {ethertype:#06x} on {interface}: {source}; CAP_NET_RAW is needed"
    )]
    Open {
        /// The interface.
        interface: String,
        /// The ethertype.
        ethertype: u16,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Which frames of an ethertype are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All of them.
    All,
    /// IPv6 packets with this ICMPv6 type right behind their IPv6 header. The kernel leaves the
    /// others out, so that a host's IPv6 traffic does not pass through the socket.
    Icmpv6(u8),
}

/// Opens a socket that receives the frames of `ethertype` that come in on `interface` from now on,
/// and does not block. What this machine sends itself is left out.
///
/// It comes as a [`UdpSocket`] because std has no name for it, and tokio takes it too: use `recv`
/// and `send`, which carry whole frames from their Ethernet header on; addresses have no meaning.
///
/// # Errors
/// When there is no such interface, or `CAP_NET_RAW` is missing.
///
/// ```no_run
/// use netio::ethernet::{self, Wanted};
///
/// let socket = ethernet::open("eth0", 0x0806, Wanted::All)?;
/// let mut buffer = [0; 1514];
/// println!("an ARP frame of {} bytes", socket.recv(&mut buffer)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open(interface: &str, ethertype: u16, wanted: Wanted) -> Result<UdpSocket, EthernetError> {
    let index = interface::index(interface)?;
    let failed =
        |source| EthernetError::Open { interface: interface.to_owned(), ethertype, source };
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // Protocol 0: nothing comes in before everything is set and the socket is bound.
    // SAFETY: the call takes and returns integers only.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(failed(io::Error::last_os_error()));
    }
    // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    if let Wanted::Icmpv6(kind) = wanted {
        filter(fd.as_fd(), kind).map_err(failed)?;
    }
    sockopt::set(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1i32)
        .and_then(|()| bind(fd.as_fd(), index, ethertype))
        .map_err(failed)?;
    Ok(fd.into())
}

/// Has the card of `interface` let frames for `mac` in as well, as long as `socket` lives, which
/// [`open`] gave.
///
/// # Errors
/// When the card has no room for it, or the interface is gone.
pub fn join(socket: &impl AsFd, interface: &str, mac: [u8; 6]) -> io::Result<()> {
    let index = interface::index(interface).map_err(io::Error::other)?;
    let kind = if mac[0] & 1 == 1 { libc::PACKET_MR_MULTICAST } else { libc::PACKET_MR_UNICAST };
    let mut address = [0; 8];
    address[..6].copy_from_slice(&mac);
    let membership = libc::packet_mreq {
        mr_ifindex: index as i32,
        mr_type: kind as u16,
        mr_alen: 6,
        mr_address: address,
    };
    sockopt::set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, membership)
}

fn bind(fd: BorrowedFd<'_>, index: u32, ethertype: u16) -> io::Result<()> {
    // SAFETY: a C struct of integers; zero is a value of each.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = index as i32;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: pointer and length are of `address`, which the kernel only reads during the call.
    let answer = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Classic BPF: an IPv6 packet whose next header is ICMPv6 and whose ICMPv6 type is `kind`.
fn filter(fd: BorrowedFd<'_>, kind: u8) -> io::Result<()> {
    const LOAD_BYTE: u16 = 0x30;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ICMPV6: u32 = 58;
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let mut program = [
        step(LOAD_BYTE, 14 + 6, 0, 0),
        step(JUMP_IF_EQUAL, ICMPV6, 0, 3),
        step(LOAD_BYTE, 14 + 40, 0, 0),
        step(JUMP_IF_EQUAL, u32::from(kind), 0, 1),
        step(RETURN, u32::MAX, 0, 0),
        step(RETURN, 0, 0, 0),
    ];
    silence::attach(fd, &mut program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_interface_is_named_in_the_error() {
        let error = open("no-such-iface", 0x0806, Wanted::All).unwrap_err();
        assert!(error.to_string().contains("no-such-iface"), "{error}");
    }
}
