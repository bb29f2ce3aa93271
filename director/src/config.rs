//! The configuration file: TOML, one file for both modes.

use std::path::PathBuf;

use crate::control::api::{ServerSpec, ServiceSpec};

/// Which of its two shapes the director takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One machine forwards for all.
    Dispatcher,
    /// Every node filters the flooded traffic.
    Nlb,
}

/// How packets are taken from an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// The best that works: zero-copy, copy, generic, AF_PACKET.
    Auto,
    /// AF_XDP with zero-copy, or fail.
    ZeroCopy,
    /// AF_XDP in copy mode on a native XDP program, or fail.
    Copy,
    /// AF_XDP on generic XDP, or fail.
    Generic,
    /// AF_PACKET.
    Packet,
}

/// A service and its servers as the file declares them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredService {
    /// The service.
    pub service: ServiceSpec,
    /// Its servers in the order of the file.
    pub servers: Vec<ServerSpec>,
}

/// The whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `mode`
    pub mode: Mode,
    /// `interfaces`: where packets come in and go out.
    pub interfaces: Vec<String>,
    /// `io`
    pub io: Io,
    /// `workers`: packet threads; `None` = one per queue, at most one per core.
    pub workers: Option<usize>,
    /// `ring_size`: descriptors per ring, a power of two, 64..=32768; default 2048.
    pub ring_size: u32,
    /// `frames`: chunks of packet memory per worker; `None` = enough for all rings.
    pub frames: Option<u32>,
    /// `own_addresses`: put the VIPs on an interface and take them away again.
    pub own_addresses: bool,
    /// `control`: path of the control socket.
    pub control: PathBuf,
    /// `timeouts = { tcp = "15m", tcp_fin = "2m", udp = "5m" }`; `None` = the kernel's defaults
    pub timeouts: Option<crate::control::api::Timeouts>,
    /// `max_connections`: most connections in the table; default 1048576.
    pub max_connections: usize,
    /// `[[service]]`
    pub services: Vec<DeclaredService>,
}
