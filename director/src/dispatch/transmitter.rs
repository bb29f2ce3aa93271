//! How a connection's packets reach its server: bound to the connection when it is made, so that
//! the packet path does not look at the server again.

use forwarding::tunnel::{Encapsulation, GueChecksum, SourcePorts};

use crate::control::api::{Forwarding, ServerSpec, Tunnel, TunnelChecksum};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmitter {
    /// Network address translation.
    Nat,
    /// Direct routing.
    Direct,
    /// In a tunnel of this type.
    Tunnel(Tunnel),
    /// The director's own stack.
    Local,
    /// Past all servers, to the address that the client asks for.
    Bypass,
}

impl Transmitter {
    /// Whether packets go to a server. Those that do not count neither there nor on the service.
    pub fn has_server(self) -> bool {
        !matches!(self, Transmitter::Bypass)
    }
}

impl From<&ServerSpec> for Transmitter {
    fn from(spec: &ServerSpec) -> Transmitter {
        match spec.forwarding {
            Forwarding::Nat => Transmitter::Nat,
            Forwarding::Direct => Transmitter::Direct,
            Forwarding::Local(_) => Transmitter::Local,
            Forwarding::Tunnel => Transmitter::Tunnel(spec.tunnel),
        }
    }
}

/// What a tunnel of this type puts around a packet.
pub fn encapsulation(tunnel: Tunnel) -> Encapsulation {
    match tunnel {
        Tunnel::Ipip => Encapsulation::Ipip,
        Tunnel::Gue { port, checksum } => Encapsulation::Gue {
            port,
            source_ports: SourcePorts::default(),
            checksum: match checksum {
                TunnelChecksum::Nocsum => GueChecksum::Nocsum,
                TunnelChecksum::Csum => GueChecksum::Csum,
                TunnelChecksum::Remcsum => GueChecksum::Remcsum,
            },
        },
        Tunnel::Gre { checksum } => {
            Encapsulation::Gre { checksum: checksum != TunnelChecksum::Nocsum }
        }
    }
}
