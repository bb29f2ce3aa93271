//! The sockets that a tunnel's packets arrive at.
//!
//! Knows which type of tunnel needs which. Must not know what is in a packet.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use anyhow::{Context, Result};
use netio::raw::{self, RawFamily};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn6, bind, setsockopt, socket, sockopt::Ipv6V6Only,
};

use crate::decapsulation::{Buffer, Carrier, GRE, IPIP, IPV6};
use crate::kind::Kind;

/// A socket and what it receives.
#[derive(Debug)]
pub(crate) struct Arrival {
    socket: tokio::net::UdpSocket,
    carrier: Carrier,
}

impl Arrival {
    /// All that this type of tunnel needs, in the calling thread's network namespace: a socket for
    /// each outer family, for IPIP also for each inner one. Needs a tokio runtime.
    pub(crate) fn open(kind: Kind) -> Result<Vec<Arrival>> {
        match kind {
            Kind::Ipip => [RawFamily::V4, RawFamily::V6]
                .into_iter()
                .flat_map(|family| [IPIP, IPV6].map(|protocol| Arrival::raw(family, protocol)))
                .collect(),
            Kind::Gre { .. } => [RawFamily::V4, RawFamily::V6]
                .into_iter()
                .map(|family| Arrival::raw(family, GRE))
                .collect(),
            Kind::Gue { port } => [udp_v4(port), udp_v6(port)]
                .into_iter()
                .map(|socket| {
                    let socket = socket.with_context(|| {
                        format!(
                            "receive GUE on UDP port {port}: it must be free (ss -lun, ip fou \
                             show), and ports below 1024 need CAP_NET_BIND_SERVICE"
                        )
                    })?;
                    Arrival::new(socket, Carrier::Gue)
                })
                .collect(),
        }
    }

    fn raw(family: RawFamily, protocol: u8) -> Result<Arrival> {
        let socket = raw::open(family, protocol).with_context(|| {
            format!("open a raw socket for protocol {protocol}: CAP_NET_RAW is needed")
        })?;
        Arrival::new(socket, Carrier::Raw { family, protocol })
    }

    fn new(socket: UdpSocket, carrier: Carrier) -> Result<Arrival> {
        socket.set_nonblocking(true)?;
        Ok(Arrival { socket: tokio::net::UdpSocket::from_std(socket)?, carrier })
    }

    /// How its packets have come.
    pub(crate) fn carrier(&self) -> Carrier {
        self.carrier
    }

    /// Waits for a packet.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// Receives a packet into the buffer: its length and its outer source. `None` when there is no
    /// more.
    pub(crate) fn receive(&self, buffer: &mut Buffer) -> io::Result<Option<(usize, IpAddr)>> {
        match self.socket.try_recv_from(buffer.space(self.carrier)) {
            Ok((length, source)) => Ok(Some((length, source.ip()))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn udp_v4(port: u16) -> io::Result<UdpSocket> {
    UdpSocket::bind(SocketAddr::from(([0, 0, 0, 0], port)))
}

/// For IPv6 alone: std's would take the port for IPv4 as well, or not, as a system setting says.
fn udp_v6(port: u16) -> io::Result<UdpSocket> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet6, SockType::Datagram, flags, None)?;
    setsockopt(&socket, Ipv6V6Only, &true)?;
    let address: SocketAddr = ([0u16; 8], port).into();
    if let SocketAddr::V6(address) = address {
        bind(socket.as_raw_fd(), &SockaddrIn6::from(address))?;
    }
    netio::udp::accept_without_checksum(&socket)?;
    Ok(UdpSocket::from(socket))
}
