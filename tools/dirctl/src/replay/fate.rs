//! What became of a packet, in the words of the pipeline, and which flow it was of.

use std::fmt;
use std::net::SocketAddr;

use director::control::api::ServiceKey;
use director::world::ClusterHost;
use forwarding::Headers;
use forwarding::wire::protocol;

/// In one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// It went on, to a server, a client or past them.
    Forwarded,
    /// One host of a cluster took it.
    Taken,
    /// It is the business of the kernel, of the director or of every host.
    Passed,
    /// It ended there.
    Dropped,
}

impl Verdict {
    /// Its name in output.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Forwarded => "forwarded",
            Verdict::Taken => "taken",
            Verdict::Passed => "passed",
            Verdict::Dropped => "dropped",
        }
    }
}

/// Who gets a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A real server.
    Server(SocketAddr),
    /// A host of a cluster.
    Host(ClusterHost),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Server(address) => write!(f, "{address}"),
            Target::Host(ClusterHost { id, address: None }) => write!(f, "host {id}"),
            Target::Host(ClusterHost { id, address: Some(address) }) => {
                write!(f, "host {id} ({address})")
            }
        }
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// In one word.
    pub verdict: Verdict,
    /// Why, or how: a drop or pass reason, a forwarding method.
    pub reason: &'static str,
    /// The reason in one line.
    pub meaning: &'static str,
    /// Whether its sender was told, by ICMP or RST.
    pub answered: bool,
    /// The service that it is for, where that is known.
    pub service: Option<ServiceKey>,
    /// Who gets it, or had sent it.
    pub target: Option<Target>,
    /// Whether it is of a client: only those say where a flow goes.
    pub is_clients: bool,
}

/// Ends of a flow, as its packets have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// IP protocol number.
    pub protocol: u8,
    /// Who sent the packet.
    pub from: SocketAddr,
    /// To whom.
    pub to: SocketAddr,
}

impl Flow {
    /// That of a packet.
    pub fn of(headers: &Headers) -> Flow {
        Flow {
            protocol: headers.protocol,
            from: SocketAddr::new(headers.source, headers.source_port),
            to: SocketAddr::new(headers.destination, headers.destination_port),
        }
    }
}

impl fmt::Display for Flow {
    /// `tcp 198.51.100.7:41000 > 192.0.2.10:80`; without ports where there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.protocol {
            protocol::TCP => "tcp",
            protocol::UDP => "udp",
            protocol::SCTP => "sctp",
            protocol::ICMP | protocol::ICMPV6 => "icmp",
            other => return write!(f, "ip/{other} {} > {}", self.from.ip(), self.to.ip()),
        };
        if self.from.port() == 0 && self.to.port() == 0 {
            return write!(f, "{name} {} > {}", self.from.ip(), self.to.ip());
        }
        write!(f, "{name} {} > {}", self.from, self.to)
    }
}
