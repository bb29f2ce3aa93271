//! What the kernel's part of the director, the steering program, has to know of the table.

use std::net::{IpAddr, SocketAddr};

use super::Table;
use super::marks::Marks;
use crate::control::api::{ServiceKey, Tunnel};
use crate::dispatch::transmitter::Transmitter;
use crate::steer::{Key, KeySet, Kind};

/// IP protocol number of UDP.
const UDP: u8 = 17;

/// What the steering program needs to know of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Interest {
    /// Packets to a service: IP protocol number, address and port (0 = every port).
    Service(u8, SocketAddr),
    /// Packets from a NAT server: IP protocol number, address and port (0 = every port).
    NatServer(u8, SocketAddr),
    /// TCP packets to a port from 1024 on of an FTP service's address: passive data connections.
    FtpService(IpAddr),
    /// TCP packets from such a port of an FTP service's NAT server.
    FtpServer(IpAddr),
    /// ICMP errors about packets in a tunnel to this server.
    TunnelServer(IpAddr),
    /// The same where the tunnel is UDP: address and GUE port.
    GueServer(SocketAddr),
}

impl Interest {
    /// What steering has to look for, to take what is of interest: one key or two.
    pub fn keys(self) -> impl Iterator<Item = Key> {
        let with_fragments = |kind, protocol, address: SocketAddr| {
            let key = Key::new(kind, protocol, address.ip(), address.port());
            [Some(key), Some(key.of_fragments())]
        };
        let keys = match self {
            Interest::Service(protocol, address) => {
                with_fragments(Kind::Service, protocol, address)
            }
            Interest::NatServer(protocol, address) => {
                with_fragments(Kind::Server, protocol, address)
            }
            Interest::FtpService(address) => [Some(Key::of_data(Kind::ServiceData, address)), None],
            Interest::FtpServer(address) => [Some(Key::of_data(Kind::ServerData, address)), None],
            Interest::TunnelServer(address) => [Some(Key::of_tunnel(address)), None],
            // Errors quote what we sent to the port, as they do of a NAT server.
            Interest::GueServer(address) => with_fragments(Kind::Server, UDP, address),
        };
        keys.into_iter().flatten()
    }
}

impl Table {
    /// Every address the steering program has to know, each once, sorted. Removed servers, and
    /// their services, are among them as long as they have connections: what comes on those still
    /// has to be translated, or kept from the kernel's stack. See [`Table::tidings`] for what is new.
    pub fn interests(&self) -> Vec<Interest> {
        let state = self.lock();
        let keys = state.known_keys();
        let shares = keys.iter().map(|key| state.share(key, &self.shared.ftp));
        let mut interests: Vec<Interest> = shares.flat_map(|share| share.interests).collect();
        interests.sort_unstable();
        interests.dedup();
        interests
    }

    /// All that the steering program takes; everything else is the kernel's.
    pub fn steering(&self) -> KeySet {
        let mut keys = KeySet::new();
        for interest in self.interests() {
            interest.keys().for_each(|key| keys.insert_key(key));
        }
        keys.set_marked(self.marked());
        keys
    }
}

/// What has to be steered for a service that is named by an address; see
/// [`Table::marked`](Table::marked) for those that are named by a mark.
pub(super) fn of_service(service: &ServiceKey) -> Option<Interest> {
    match *service {
        ServiceKey::Address { protocol, address } => {
            Some(Interest::Service(protocol.number(), address))
        }
        ServiceKey::Fwmark { .. } => None,
    }
}

/// What has to be steered for a server of `service`.
pub(super) fn of_server(
    service: &ServiceKey,
    transmitter: Transmitter,
    server: SocketAddr,
    marks: &Marks,
) -> Vec<Interest> {
    match (transmitter, *service) {
        (Transmitter::Nat, ServiceKey::Address { protocol, address }) => {
            // Servers of a service for every port are spoken to on the port that the client chose.
            let port = if address.port() == 0 { 0 } else { server.port() };
            vec![Interest::NatServer(protocol.number(), SocketAddr::new(server.ip(), port))]
        }
        (Transmitter::Nat, ServiceKey::Fwmark { fwmark, .. }) => {
            // So are those of a persistent mark, and whether it is one may change.
            let server = SocketAddr::new(server.ip(), 0);
            marks.protocols(fwmark).map(|protocol| Interest::NatServer(protocol, server)).collect()
        }
        (Transmitter::Tunnel(Tunnel::Gue { port, .. }), _) => {
            vec![Interest::GueServer(SocketAddr::new(server.ip(), port))]
        }
        (Transmitter::Tunnel(Tunnel::Ipip | Tunnel::Gre { .. }), _) => {
            vec![Interest::TunnelServer(server.ip())]
        }
        (Transmitter::Direct | Transmitter::Local | Transmitter::Bypass, _) => Vec::new(),
    }
}
