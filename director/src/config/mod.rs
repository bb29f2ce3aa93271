//! The configuration file: TOML, one file for both modes.
//!
//! Knows the grammar of the file and what makes no sense in it. Must not know the running director:
//! what comes out is a value, and a file with anything wrong in it yields no value at all but the
//! list of everything that is wrong, each with its line, its key and its remedy.
//!
//! The file is walked by hand over `toml`'s spanned tree rather than deserialised, because a
//! derived deserialiser stops at the first fault and cannot say which of two lines contradict.
//! What may stand where is said once, as data ([`mod@reference`]): the parser goes by it, and so do the
//! tables of `docs/configuration.md`.

mod address;
mod extras;
mod fields;
mod health;
mod kernel_settings;
mod mark;
pub mod nlb;
mod problem;
pub mod reference;
mod scheduling;
mod server;
mod service;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use realserver_agent::operators_file;

use crate::control::api::{ServerSpec, ServiceKey, ServiceSpec};
use crate::dispatch::ftp::Ports;
use crate::dispatch::settings::Setting;
use crate::fwmark::Rule;
use crate::health::plan::ServiceHealth;
pub use health::HealthSettings;
pub use problem::{ConfigError, Problem};
pub use scheduling::KERNEL_SCHEDULERS;

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
    /// Who takes new connections when all servers have failed
    /// ([`AllDown::Fallback`](crate::health::plan::AllDown::Fallback)).
    pub fallback: Option<ServerSpec>,
    /// How its servers are watched.
    pub health: ServiceHealth,
}

impl DeclaredService {
    /// The virtual address, if it is named by one.
    pub fn vip(&self) -> Option<IpAddr> {
        match self.service.key {
            ServiceKey::Address { address, .. } => Some(address.ip()),
            ServiceKey::Fwmark { .. } => None,
        }
    }
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
    /// `cpus`: the cores of the workers, one each in turn; empty = those that serve the interrupts
    /// of their queues, else one core each.
    pub cpus: Vec<usize>,
    /// `busy_poll`: whether workers look at the card itself while there is traffic; `None` = with
    /// zero-copy.
    pub busy_poll: Option<bool>,
    /// `rx_ring_size`, else `ring_size`: descriptors for frames received, a power of two, 64..=32768;
    /// default 2048.
    pub rx_ring_size: u32,
    /// `tx_ring_size`, else `ring_size`: the same for frames to transmit.
    pub tx_ring_size: u32,
    /// `frames`: chunks of packet memory per worker; `None` = enough for all rings.
    pub frames: Option<u32>,
    /// `own_addresses`: put the VIPs on an interface and take them away again.
    pub own_addresses: bool,
    /// `control`: path of the control socket.
    pub control: PathBuf,
    /// `metrics`: where `/metrics` is served over TCP, if it is.
    pub metrics: Option<SocketAddr>,
    /// `sandbox`: give up capabilities and system calls that are not needed any more.
    pub sandbox: bool,
    /// `timeouts = { tcp = "15m", tcp_fin = "2m", udp = "5m" }`; `None` = the kernel's defaults
    pub timeouts: Option<crate::control::api::Timeouts>,
    /// `ftp_ports`: virtual ports whose connections by NAT are FTP control connections.
    pub ftp_ports: Ports,
    /// `[settings]`: those that the file names.
    pub settings: BTreeMap<Setting, u32>,
    /// `max_connections`: most connections in the table; default 1048576.
    pub max_connections: usize,
    /// `[[mark]]`
    pub marks: Vec<Rule>,
    /// `[health]`
    pub health: HealthSettings,
    /// `[nlb]`, and what follows for this mode from the services.
    pub nlb: nlb::Nlb,
    /// `[[service]]`
    pub services: Vec<DeclaredService>,
}

/// Bytes of a file at most: a hundred thousand services.
const LONGEST: u64 = 64 << 20;

/// Reads and parses the file at `path`.
///
/// # Errors
/// When the file cannot be read, or anything in it is wrong; then nothing of it counts.
pub fn load(path: &Path) -> Result<Config, ConfigError> {
    let text = read(path)
        .map_err(|source| ConfigError::Unreadable { path: path.to_path_buf(), source })?;
    parse(&text, &path.display().to_string())
}

/// The text of a file.
///
/// # Errors
/// When it cannot be read, is none, or is absurdly long.
pub(crate) fn read(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    operators_file::open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
    match text.len() as u64 > LONGEST {
        true => Err(std::io::Error::other("it is too long to be a configuration file")),
        false => Ok(text),
    }
}

/// Parses the text of a file called `name` (used in error texts only).
///
/// # Errors
/// Everything that is wrong in it, at once, in the order of the lines.
///
/// ```
/// let config = director::config::parse(
///     r#"
///     interfaces = ["eth0"]
///     [[service]]
///     listen = "192.0.2.10:80/tcp"
///     forwarding = "nat"
///         [[service.server]]
///         address = "10.0.0.11:8080"
///     "#,
///     "example.toml",
/// )?;
/// assert_eq!(config.services[0].service.scheduler, "wlc");
///
/// let error = director::config::parse("interfaces = []", "example.toml").unwrap_err();
/// assert!(error.to_string().starts_with("example.toml:1:14: interfaces: "));
/// # Ok::<(), director::config::ConfigError>(())
/// ```
pub fn parse(text: &str, name: &str) -> Result<Config, ConfigError> {
    parse_with(text, name, &scheduling::known())
}

/// [`parse`] against a given list of scheduler names: tests must not depend on which schedulers
/// happen to be linked in.
fn parse_with(text: &str, name: &str, schedulers: &[&str]) -> Result<Config, ConfigError> {
    let (document, faults) = toml::de::DeTable::parse_recoverable(text);
    let mut report = problem::Report::new(text);
    let place = |fault: &&toml::de::Error| fault.span().map_or(0, |span| span.start);
    if let Some(fault) = faults.iter().min_by_key(place) {
        // What the recovery makes of a broken text, and all that the parser finds wrong after the
        // first slip, are mostly problems that are not there.
        report.syntax(fault);
        return Err(report.into_error(name));
    }
    let root = fields::Fields::root(&document, &[settings::KEYS], &mut report);
    let settings = settings::read(&root, &mut report);
    let marks = mark::read_all(&root, &mut report);
    let mode = settings.as_ref().map_or(Mode::Dispatcher, |settings| settings.mode);
    let agent = health::agent_of_servers(&root, text, &mut report);
    let services = service::read_all(&root, mode, schedulers, &agent, &mut report);
    let nlb = nlb::read(&root, mode, &services, &mut report);
    match settings {
        Some(settings) if report.is_clean() => Ok(Config { marks, nlb, services, ..settings }),
        _ => Err(report.into_error(name)),
    }
}
