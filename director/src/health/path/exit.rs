//! Where packets to the VIP leave: to the server's Ethernet address, or in its tunnel.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use forwarding::Packet;
use forwarding::tunnel::{Encapsulation, Outer};
use forwarding::wire::ethernet;
use netio::cooked;
use netio::raw::{self, RawFamily};

use super::Passage;
use crate::control::api::Forwarding;
use crate::dispatch::transmitter::encapsulation;
use crate::network::Network;

/// The protocol number of raw sockets whose packets bring their IP header along.
const WITH_HEADER: u8 = 255;
/// Room for what a tunnel puts around a packet: IPv6, UDP and GUE headers.
const ROOM: usize = 128;

/// The way through a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// Whom the server answers: an address of ours, of the VIP's family.
    pub(super) source: IpAddr,
    /// The longest packet to the VIP, bytes.
    pub(super) mtu: usize,
    pub(super) wrapping: Wrapping,
}

/// What is put around a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrapping {
    /// An Ethernet header, by the kernel.
    Ethernet { interface: u32, to: ethernet::Address },
    /// A tunnel.
    Tunnel { encapsulation: Encapsulation, source: IpAddr, server: IpAddr },
}

/// Why there is no way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// A reason that is not the server's.
    Unable(String),
    /// No client's packet would reach the server either.
    Failed(String),
    /// The Ethernet address of this one is not known.
    NoNeighbour { interface: u32, address: IpAddr },
}

/// The way as these tables say it.
pub(super) fn route(network: &Network, passage: &Passage) -> Result<Route, Obstacle> {
    let server = passage.server.address.ip();
    let vip = passage.vip.ip();
    let no_route = || Obstacle::Failed(format!("no route to {server}"));
    let route = network.route(server).ok_or_else(no_route)?;
    let own =
        route.source.ok_or_else(|| Obstacle::Unable(format!("no address towards {server}")))?;
    let is_same_family = server.is_ipv4() == vip.is_ipv4();
    let (wrapping, overhead) = match passage.server.forwarding {
        Forwarding::Tunnel => {
            let encapsulation = encapsulation(passage.server.tunnel);
            let wrapping = Wrapping::Tunnel { encapsulation, source: own, server };
            (wrapping, encapsulation.overhead(server, false))
        }
        _ if is_same_family => {
            let interface = route.interface;
            let address = route.next_hop(server);
            let to = network
                .neighbour(interface, address)
                .ok_or(Obstacle::NoNeighbour { interface, address })?;
            (Wrapping::Ethernet { interface, to }, 0)
        }
        _ => {
            let why =
                format!("{server} is of another family than {vip}: only a tunnel leads there");
            return Err(Obstacle::Unable(why));
        }
    };
    let source = match is_same_family {
        true => own,
        false => other_address(network, route.interface, vip)
            .ok_or_else(|| Obstacle::Unable(format!("no address that {vip} could answer to")))?,
    };
    let mtu = (route.mtu as usize).saturating_sub(overhead);
    Ok(Route { source, mtu, wrapping })
}

/// An address of ours in the VIP's family, best one on this interface: a global one with neighbours,
/// for those that stand alone are VIPs.
fn other_address(network: &Network, interface: u32, vip: IpAddr) -> Option<IpAddr> {
    let fit = network.addresses().filter(|own| {
        own.address.is_ipv4() == vip.is_ipv4()
            && own.scope == 0
            && !own.tentative
            && own.address != vip
    });
    let rank = |own: &crate::network::Address| {
        let is_alone = own.subnet.prefix_len() == own.subnet.max_prefix_len();
        (own.deprecated, is_alone, own.interface != interface, own.secondary)
    };
    fit.min_by_key(|own| rank(own)).map(|own| own.address)
}

/// A way with its sockets.
#[derive(Debug)]
pub(super) struct Exit {
    wrapping: Wrapping,
    sender: Sender,
    /// What GUE's source port is chosen by; also where the identification of outer packets begins.
    flow: u32,
    sent: u16,
}

#[derive(Debug)]
enum Sender {
    Cooked(Arc<tokio::net::UdpSocket>),
    Raw(UdpSocket),
    #[cfg(test)]
    Memory(tokio::sync::mpsc::UnboundedSender<Vec<u8>>),
}

impl Exit {
    /// Opens what is needed beside the socket that answers come in by.
    pub(super) fn open(
        route: Route,
        cooked: Arc<tokio::net::UdpSocket>,
        flow: u32,
    ) -> io::Result<Exit> {
        let sender = match route.wrapping {
            Wrapping::Ethernet { .. } => Sender::Cooked(cooked),
            Wrapping::Tunnel { server: IpAddr::V4(_), .. } => {
                Sender::Raw(raw::open(RawFamily::V4, WITH_HEADER)?)
            }
            Wrapping::Tunnel { server: IpAddr::V6(_), .. } => {
                Sender::Raw(raw::open(RawFamily::V6, WITH_HEADER)?)
            }
        };
        Ok(Exit { wrapping: route.wrapping, sender, flow, sent: 0 })
    }

    /// One that leads nowhere but into memory.
    #[cfg(test)]
    pub(super) fn into_memory(
        wrapping: Wrapping,
        sender: tokio::sync::mpsc::UnboundedSender<Vec<u8>>,
    ) -> Exit {
        Exit { wrapping, sender: Sender::Memory(sender), flow: 7, sent: 0 }
    }

    /// Sends an IP packet to the VIP. What the kernel has no room for is lost, as on any network.
    pub(super) fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let wrapped;
        let bytes = match self.wrapping {
            Wrapping::Ethernet { .. } => packet,
            Wrapping::Tunnel { .. } => {
                wrapped = self
                    .wrap(packet)
                    .ok_or_else(|| io::Error::other("the packet does not fit into the tunnel"))?;
                &wrapped
            }
        };
        let sent = match (&self.sender, self.wrapping) {
            (Sender::Cooked(socket), Wrapping::Ethernet { interface, to }) => {
                cooked::send(socket, family(bytes), interface, to, bytes)
            }
            (Sender::Raw(socket), Wrapping::Tunnel { server, .. }) => {
                socket.send_to(bytes, SocketAddr::new(server, 0)).map(drop)
            }
            #[cfg(test)]
            (Sender::Memory(channel), _) => channel.send(bytes.to_vec()).map_err(io::Error::other),
            _ => Err(io::Error::other("a socket of the wrong kind")),
        };
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            sent => sent,
        }
    }

    /// The packet in its tunnel, from the outer IP header on. The TTL is what a director leaves.
    fn wrap(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let Wrapping::Tunnel { encapsulation, source, server } = self.wrapping else {
            return None;
        };
        let start = ROOM - ethernet::LEN;
        let mut chunk = vec![0; ROOM + packet.len()];
        chunk[ROOM..].copy_from_slice(packet);
        write_ether_type(&mut chunk[start..]);
        let headers = forwarding::parse(&chunk[start..]).ok()?;
        let len = chunk.len() - start;
        let mut frame = Packet::new(&mut chunk, start, len);
        self.sent = self.sent.wrapping_add(1);
        let outer = Outer {
            source,
            destination: server,
            // Of 0 the kernel would make another.
            id: (self.flow as u16).wrapping_add(self.sent).max(1),
            path_mtu_discovery: true,
        };
        encapsulation.encapsulate(&mut frame, &headers, None, self.flow, &outer)?;
        frame.bytes().get(ethernet::LEN..).map(<[u8]>::to_vec)
    }
}

fn family(packet: &[u8]) -> cooked::Family {
    match packet.first().map(|first| first >> 4) {
        Some(6) => cooked::Family::V6,
        _ => cooked::Family::V4,
    }
}

/// Makes a frame of an IP packet with room for an Ethernet header before it.
pub(super) fn write_ether_type(frame: &mut [u8]) {
    let ether_type = match family(frame.get(ethernet::LEN..).unwrap_or_default()) {
        cooked::Family::V4 => ethernet::IPV4,
        cooked::Family::V6 => ethernet::IPV6,
    };
    if let Some(mut header) = ethernet::Header::at_mut(frame, 0) {
        header.set_ether_type(ether_type);
    }
}

#[cfg(test)]
mod tests;
