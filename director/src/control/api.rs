//! The words of the control API, version 1. Every type is one JSON object.

use super::workers::{SocketView, WorkerView};
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

pub use super::batch::{Applied, Batch, BatchOutcome, CommandRefusal, OnRefusal};
pub use super::extras::{
    Bias, BiasWindow, Extras, GoneServer, HashKey, MssClamp, NoDestination, OwnTimeouts, Placement,
    Teardown,
};
pub use super::health::HealthSummary;
pub use super::method::{Asked, Forwarding};
pub use super::server_view::ServerView;

/// Transport protocol of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP, 6.
    Tcp,
    /// UDP, 17.
    Udp,
    /// SCTP, 132.
    Sctp,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Protocol; 3] = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp];

    /// The IP protocol number.
    pub fn number(self) -> u8 {
        match self {
            Protocol::Tcp => 6,
            Protocol::Udp => 17,
            Protocol::Sctp => 132,
        }
    }
}

/// What names a virtual service. In JSON: `{"protocol":"tcp","address":"192.0.2.10:80"}` or
/// `{"fwmark":7,"ipv6":false}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ServiceKey {
    /// By protocol, address and port; port 0 is any port of a persistent service.
    Address {
        /// Transport protocol.
        protocol: Protocol,
        /// VIP and port.
        address: SocketAddr,
    },
    /// By firewall mark.
    Fwmark {
        /// 1..=4294967295.
        fwmark: u32,
        /// Whether the packets are IPv6.
        ipv6: bool,
    },
}

/// Tunnel type of a server with [`Forwarding::Tunnel`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "type")]
pub enum Tunnel {
    /// IP in IP.
    #[default]
    Ipip,
    /// Generic UDP encapsulation.
    Gue {
        /// UDP port of the server.
        port: u16,
        /// `nocsum`, `csum` or `remcsum`.
        checksum: TunnelChecksum,
    },
    /// Generic routing encapsulation.
    Gre {
        /// `nocsum` or `csum`.
        checksum: TunnelChecksum,
    },
}

/// Checksum variant of a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TunnelChecksum {
    /// None.
    #[default]
    Nocsum,
    /// A full checksum.
    Csum,
    /// Remote checksum offload.
    Remcsum,
}

/// Persistence of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Persistence {
    /// Seconds a template lives after its last use, 1..=2678400.
    pub timeout: u32,
    /// How many leading bits of the client address name a client: 0..=32, or 1..=128 for IPv6. With
    /// 0 all clients are one.
    pub prefix: u8,
    /// Persistence engine (`sip`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
}

/// A service as it is asked for: without its servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceSpec {
    /// Its name.
    #[serde(flatten)]
    pub key: ServiceKey,
    /// Scheduler, by name.
    pub scheduler: String,
    /// Scheduler flags: 0x8, 0x10, 0x20.
    #[serde(default)]
    pub flags: u32,
    /// Persistence, when wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Persistence>,
    /// One-packet scheduling (UDP).
    #[serde(default)]
    pub one_packet: bool,
    /// What the kernel's IPVS does not do. `None` in an edit leaves it as it is, when a service is
    /// added it is all off; always there in an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extras: Option<Extras>,
}

impl ServiceSpec {
    /// What its scheduler goes by, flags included.
    pub fn placement(&self) -> Placement {
        self.extras.unwrap_or_default().placement.with_flags(&self.scheduler, self.flags)
    }

    /// Whether queries for one name go to one server. Each datagram is then scheduled by itself.
    pub fn goes_by_name(&self) -> bool {
        self.placement().key == Some(HashKey::DnsName)
    }
}

/// A real server as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSpec {
    /// Address and port.
    pub address: SocketAddr,
    /// How packets reach it.
    pub forwarding: Forwarding,
    /// Tunnel type, looked at only with [`Forwarding::Tunnel`].
    #[serde(default)]
    pub tunnel: Tunnel,
    /// 0..=2147483647; 0 = quiesced.
    pub weight: i32,
    /// No new connections from this many on; 0 = no limit.
    #[serde(default)]
    pub upper_threshold: u32,
    /// New connections again below this many; 0 = three quarters of the upper one.
    #[serde(default)]
    pub lower_threshold: u32,
}

/// Counters and rates of a service or server (rates are averages as the kernel's estimator makes them).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Connections scheduled.
    pub connections: u64,
    /// Packets from clients.
    pub in_packets: u64,
    /// Packets to clients (NAT only: the others answer around the director).
    pub out_packets: u64,
    /// Bytes of IP packets from clients.
    pub in_bytes: u64,
    /// Bytes of IP packets to clients.
    pub out_bytes: u64,
    /// Connections per second.
    pub cps: u64,
    /// Packets from clients per second.
    pub in_pps: u64,
    /// Packets to clients per second.
    pub out_pps: u64,
    /// Bytes from clients per second.
    pub in_bps: u64,
    /// Bytes to clients per second.
    pub out_bps: u64,
}

/// A service as it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceView {
    /// As it was asked for.
    #[serde(flatten)]
    pub spec: ServiceSpec,
    /// Whether the configuration file declares it.
    pub declared: bool,
    /// Counters.
    pub stats: Stats,
    /// Its servers in kernel order: newest first.
    pub servers: Vec<ServerView>,
    /// Who takes new connections when all of them have failed, where the file declares one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<ServerView>,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionView {
    /// Protocol; `None` for a template of a firewall mark.
    pub protocol: Option<Protocol>,
    /// Client address and port.
    pub client: SocketAddr,
    /// VIP and port.
    pub virtual_address: SocketAddr,
    /// Server address and port.
    pub server: SocketAddr,
    /// State in the kernel's words: `ESTABLISHED`, `SYN_RECV`, `UDP`, ...
    pub state: String,
    /// Whole seconds until it expires unless a packet comes.
    pub expires: u32,
    /// Of a template that a persistence engine has made: what it goes by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineData>,
}

/// What a persistence engine goes by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineData {
    /// The engine (`sip`).
    pub name: String,
    /// Its data (a Call-ID).
    pub data: String,
}

/// The three timeouts that `ipvsadm --set` sets, seconds. In a request 0 leaves a value as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// TCP ESTABLISHED.
    pub tcp: u32,
    /// TCP FIN_WAIT.
    pub tcp_fin: u32,
    /// UDP.
    pub udp: u32,
}

/// What the director is and does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Version of the director (`0.1.0`).
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// Seconds since start.
    pub uptime: f64,
    /// `dispatcher` or `nlb`.
    pub mode: String,
    /// Configuration file, when there is one.
    pub config: Option<String>,
    /// The file that was applied and is in force in place of that, until a restart or a reload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<String>,
    /// Buckets of the connection table, for the first line of `ipvsadm -L`.
    pub table_size: u32,
    /// Connections now in the table.
    pub connections: u64,
    /// Most that there may be; 0 where nobody counts.
    #[serde(default)]
    pub max_connections: u64,
    /// Services.
    pub services: u32,
    /// One per interface and queue.
    pub ports: Vec<PortView>,
    /// How the workers are.
    #[serde(default)]
    pub workers: Vec<WorkerView>,
    /// How packets are taken, in one line: which way, and why not a better one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub packets: String,
    /// Packets by verdict and reason since start: (name, what it means, count); zero counts are left out.
    pub verdicts: Vec<VerdictCount>,
    /// What has come of a full connection table, in the same form; empty as long as it never was.
    #[serde(default)]
    pub overflow: Vec<VerdictCount>,
    /// How the servers are; `None` when nobody watches them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthSummary>,
    /// What the operator should know: last failed reload and the like.
    pub warnings: Vec<String>,
}

/// One packet port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortView {
    /// Interface name.
    pub interface: String,
    /// Queue number.
    pub queue: u32,
    /// Worker that serves it.
    pub worker: u32,
    /// How: `AF_XDP zero-copy`, `AF_XDP copy`, `AF_XDP generic`, `AF_PACKET`.
    pub io: String,
    /// Frames received.
    pub received: u64,
    /// Frames transmitted.
    pub transmitted: u64,
    /// Frames lost on receive: rings full.
    pub receive_dropped: u64,
    /// Frames lost on transmit: rings full.
    pub transmit_dropped: u64,
    /// Frames of packet memory that lie in its rings to receive into.
    #[serde(default)]
    pub receiving: u64,
    /// Those that are being sent.
    #[serde(default)]
    pub transmitting: u64,
    /// What the kernel counts for its socket; AF_XDP only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<SocketView>,
}

/// How many packets met one fate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictCount {
    /// What that comes to: `forwarded`, `passed`, `dropped` or `sent`; empty where it is neither.
    #[serde(default)]
    pub verdict: String,
    /// Short name, a metrics label (`no_service`, `ttl_exceeded`, ...).
    pub reason: String,
    /// One line of what it means.
    pub meaning: String,
    /// Packets.
    pub packets: u64,
}

/// Why a request was refused. In JSON: `{"error":"service_exists","message":"..."}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Which kind; the kernel's errno for the same thing is in [`RefusalKind::errno`].
    pub error: RefusalKind,
    /// What to tell a person.
    pub message: String,
}

/// Kinds of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// Add service: it is there already. EEXIST.
    ServiceExists,
    /// Edit, delete, zero, get service; any command on servers: no such service. ESRCH.
    NoSuchService,
    /// Add server: it is there already. EEXIST.
    ServerExists,
    /// Edit, delete server: no such server. ENOENT.
    NoSuchServer,
    /// No scheduler or persistence engine of that name. ENOENT.
    NoSuchScheduler,
    /// A value out of its range, or a combination that makes no sense. EINVAL.
    Invalid,
    /// Lower threshold above the upper one. ERANGE.
    Range,
    /// The text of a configuration file is wrong; the message lists every problem. EINVAL.
    BadFile,
    /// The file has keys that only a restart follows. EINVAL.
    NeedsRestart,
    /// No applied file waits to be confirmed. EINVAL.
    NothingWaits,
    /// Malformed request: not JSON, unknown path, too long.
    BadRequest,
    /// Something this version cannot do.
    Unsupported,
    /// Too many clients at once, or an applied file waits to be confirmed; worth another try. EAGAIN.
    Busy,
    /// The director itself failed, which is a bug in it. EIO.
    Internal,
}

impl RefusalKind {
    /// The errno that the kernel answers with in the same case.
    pub fn errno(self) -> i32 {
        match self {
            RefusalKind::ServiceExists | RefusalKind::ServerExists => 17,
            RefusalKind::NoSuchService => 3,
            RefusalKind::NoSuchServer | RefusalKind::NoSuchScheduler => 2,
            RefusalKind::Invalid
            | RefusalKind::BadFile
            | RefusalKind::NeedsRestart
            | RefusalKind::NothingWaits
            | RefusalKind::BadRequest => 22,
            RefusalKind::Range => 34,
            RefusalKind::Unsupported => 95,
            RefusalKind::Busy => 11,
            RefusalKind::Internal => 5,
        }
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => "sctp",
        })
    }
}

/// As the configuration file writes it: `192.0.2.10:80/tcp`, `fwmark 7`.
impl std::fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ServiceKey::Address { protocol, address } => write!(f, "{address}/{protocol}"),
            ServiceKey::Fwmark { fwmark, ipv6: false } => write!(f, "fwmark {fwmark}"),
            ServiceKey::Fwmark { fwmark, ipv6: true } => write!(f, "fwmark {fwmark} (IPv6)"),
        }
    }
}

impl ServiceKey {
    /// The VIP, when the service is named by one.
    pub fn vip(&self) -> Option<IpAddr> {
        match self {
            ServiceKey::Address { address, .. } => Some(address.ip()),
            ServiceKey::Fwmark { .. } => None,
        }
    }

    /// Whether its clients speak IPv6.
    pub fn is_ipv6(&self) -> bool {
        match self {
            ServiceKey::Address { address, .. } => address.is_ipv6(),
            ServiceKey::Fwmark { ipv6, .. } => *ipv6,
        }
    }
}
