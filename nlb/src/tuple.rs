//! A flow as the filter tells it from others: protocol, client, virtual address and their ports.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use forwarding::wire::protocol;

/// The port of PPTP's control connection, whose tunnel is GRE (RFC 2637).
pub const PPTP: u16 = 1723;

/// A flow between a client and a virtual address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tuple {
    /// IP protocol number: 6 TCP, 17 UDP, 47 GRE.
    pub protocol: u8,
    /// The client's address.
    pub client: IpAddr,
    /// The client's port, host order; 0 of GRE.
    pub client_port: u16,
    /// The virtual address.
    pub vip: IpAddr,
    /// The port of the virtual address, host order; 0 of GRE.
    pub vip_port: u16,
}

impl Tuple {
    /// The GRE tunnel between the same addresses.
    #[must_use]
    pub fn tunnel(&self) -> Tuple {
        Tuple { protocol: protocol::GRE, client_port: 0, vip_port: 0, ..*self }
    }
}

impl fmt::Display for Tuple {
    /// `192.0.2.7:40000 -> 198.51.100.10:80 protocol 6`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let client = SocketAddr::new(self.client, self.client_port);
        let vip = SocketAddr::new(self.vip, self.vip_port);
        write!(f, "{client} -> {vip} protocol {}", self.protocol)
    }
}
