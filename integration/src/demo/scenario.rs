//! What the demo shows: three methods, each with a scheduler of its own.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use crate::topology::{Kind, Topology, VIP_V4, VIP_V6, server_addresses};

/// One forwarding method.
#[derive(Debug)]
pub struct Method {
    /// As the configuration names it.
    pub name: &'static str,
    /// How the lab is set up for it.
    pub kind: Kind,
    /// Which scheduler its services have.
    pub scheduler: &'static str,
    /// Weights of the three servers.
    pub weights: [u32; 3],
}

/// All of them.
pub const METHODS: &[Method] = &[
    Method { name: "nat", kind: Kind::Nat, scheduler: "rr", weights: [1, 1, 1] },
    Method { name: "tunnel", kind: Kind::Tunnel, scheduler: "wrr", weights: [3, 2, 1] },
    Method { name: "direct", kind: Kind::Direct, scheduler: "wlc", weights: [1, 1, 1] },
];

/// Both families with their VIP.
pub(super) const FAMILIES: [(&str, IpAddr); 2] = [("IPv4", VIP_V4), ("IPv6", VIP_V6)];

impl Method {
    /// Whether servers need an agent that unpacks tunnel packets.
    pub fn needs_agents(&self) -> bool {
        self.kind == Kind::Tunnel
    }

    /// The director's configuration.
    pub fn config(&self, topology: &Topology) -> String {
        let mut text = String::from("mode = \"dispatcher\"\ninterfaces = [\"eth0\"]\n");
        for (family, (_, vip)) in FAMILIES.iter().enumerate() {
            let listen = SocketAddr::new(*vip, 80);
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "\n[[service]]\nlisten = \"{listen}/tcp\"\nscheduler = \"{}\"\nforwarding = \"{}\"\n",
                self.scheduler, self.name
            );
            for (number, weight) in (1..=topology.servers.len()).zip(self.weights) {
                let address = SocketAddr::new(server_addresses(number)[family], 80);
                let _ = write!(
                    text,
                    "\n  [[service.server]]\n  address = \"{address}\"\n  weight = {weight}\n"
                );
            }
        }
        text
    }
}
