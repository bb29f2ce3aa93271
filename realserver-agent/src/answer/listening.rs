//! The sockets that probes arrive at: UDP and TCP on the same address.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, listen, setsockopt, socket,
    sockopt,
};
use tokio::net::{TcpListener, UdpSocket};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Both sockets of an address.
#[derive(Debug)]
pub struct Pair {
    /// Where datagrams arrive.
    pub udp: UdpSocket,
    /// Where connections arrive.
    pub tcp: TcpListener,
}

impl Pair {
    /// Opens both. Needs a tokio runtime. With port 0 the system chooses one for both.
    ///
    /// # Errors
    /// When the address is not this host's, or the port is taken.
    pub fn open(address: SocketAddr) -> io::Result<Pair> {
        // Of a port that the system chooses for UDP, TCP may be taken.
        let tries = if address.port() == 0 { 20 } else { 1 };
        let mut pair = Pair::try_open(address);
        for _ in 1..tries {
            if pair.is_ok() {
                break;
            }
            pair = Pair::try_open(address);
        }
        pair
    }

    fn try_open(address: SocketAddr) -> io::Result<Pair> {
        let udp = udp(address)?;
        let tcp = tcp(udp.local_addr()?)?;
        Ok(Pair { udp, tcp })
    }

    /// Where both are.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }
}

fn udp(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = bound(address, SockType::Datagram)?;
    // So that an answer comes from the address that was asked, also where a host has several.
    if address.is_ipv4() {
        setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
    } else {
        setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
    }
    UdpSocket::from_std(socket.into())
}

/// A listening TCP socket.
pub(crate) fn tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = bound(address, SockType::Stream)?;
    listen(&socket, Backlog::new(BACKLOG)?)?;
    TcpListener::from_std(socket.into())
}

/// For this family alone, whatever the system's setting says; never blocks.
fn bound(address: SocketAddr, kind: SockType) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(family, kind, flags, None)?;
    if address.is_ipv6() {
        setsockopt(&socket, sockopt::Ipv6V6Only, &true)?;
    }
    if kind == SockType::Stream {
        // Connections of an agent that has just ended must not be in the way.
        setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    }
    bind(socket.as_raw_fd(), &SockaddrStorage::from(address))?;
    Ok(socket)
}
