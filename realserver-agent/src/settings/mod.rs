//! What the configuration file says to the agent: its own table `[agent]`, and of the director's keys
//! what tells a real server what it is there for.
//!
//! ```toml
//! [agent]
//! listen = "0.0.0.0:6086"                  # default: both families, port 6086
//! key_file = "/etc/switchyard/agent.key"   # probes and answers are signed; default: they are not
//! from = ["10.0.0.0/8"]                    # who may ask; default: anybody
//! load = { cpu = 1.0, connections = 0.5 }  # what load is made of, by weight; default: cpu alone
//! full = { connections = 1000, queue = 128 }
//! command = ["/usr/local/bin/load", "-1"]  # prints 0..=10000 or 75%
//! check = [{ type = "http", path = "/ready" }, { type = "exec", command = ["/bin/true"] }]
//! drain_deadline = "30s"
//! control = "/run/realserver-agent/control.sock"
//! agent_check = true                       # HAProxy's agent-check on the same port, or on its own
//! ```
//!
//! Knows the grammar, and must not know the running agent. Keys of the director that are not needed
//! here are not looked at: the director tells what is wrong in those.

mod agent;
pub mod duration;
pub mod key;
mod reader;
mod services;
pub mod share;
pub mod spelling;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use toml::de::DeTable;

use crate::kind::Kind;
use crate::protocol::PORT;
use reader::Table;

/// The tables of `[agent]`.
pub use agent::{CHECK, FULL, KEYS, LOAD};

/// What the agent takes from the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `[agent]`
    pub agent: Agent,
    /// `mode`
    pub mode: Mode,
    /// The servers of all services, in the order of the file.
    pub entries: Vec<Entry>,
}

/// Which of its two shapes the director takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// One machine forwards for all.
    #[default]
    Dispatcher,
    /// The nodes filter the flooded traffic, and have the VIPs by themselves.
    Nlb,
}

/// A server of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where clients connect to; `None` = the service is named by a mark.
    pub listen: Option<SocketAddr>,
    /// What the service speaks; TCP when it is named by a mark.
    pub protocol: Protocol,
    /// The server's own address.
    pub address: IpAddr,
    /// Its port, when it is written.
    pub port: Option<u16>,
    /// How packets come to it.
    pub forwarding: Forwarding,
}

/// What a service speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// How packets come to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// With its own address as destination.
    Nat,
    /// As they are.
    Direct,
    /// Inside a tunnel of this type.
    Tunnel(Kind),
}

/// The table `[agent]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// Where probes are answered, UDP and TCP.
    pub listen: Vec<SocketAddr>,
    /// File with the secret that directors and agents share.
    pub key_file: Option<PathBuf>,
    /// Networks that may ask; empty = anybody.
    pub from: Vec<IpNet>,
    /// What load is made of.
    pub load: Weights,
    /// What counts as full.
    pub full: Full,
    /// A program that prints the load.
    pub command: Option<Vec<String>>,
    /// All of them must pass, or the state is down.
    pub checks: Vec<Check>,
    /// How long SIGTERM waits for connections to end, 0..=1 d; default 30 s.
    pub drain_deadline: Duration,
    /// The control socket; `None` = [`CONTROL`].
    pub control: Option<PathBuf>,
    /// Where HAProxy's agent-check is answered.
    pub agent_check: AgentCheck,
}

/// Where the control socket is unless the file says otherwise.
pub const CONTROL: &str = "/run/realserver-agent/control.sock";

/// Weights of what the load is made of, each 0..=1000; not all are 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// The share of the last second that the processors were not idle.
    pub cpu: f64,
    /// Memory that is not available.
    pub memory: f64,
    /// Established connections of [`Full::connections`].
    pub connections: f64,
    /// Connections waiting to be accepted, of [`Full::queue`].
    pub queue: f64,
    /// What the command prints.
    pub command: f64,
}

/// What counts as a load of 10000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// Established connections, at least 1; default 1000.
    pub connections: u32,
    /// Connections waiting to be accepted, at least 1; default 128.
    pub queue: u32,
}

/// Where HAProxy's agent-check is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentCheck {
    /// Nowhere.
    Off,
    /// On the port of the probes: who is silent or speaks text is answered in text.
    Shared,
    /// There, and on a port of its own at once.
    Port(u16),
}

/// A check of this host by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is done.
    pub kind: CheckKind,
    /// From the start of one to the start of the next, 100 ms..=1 h; default 2 s.
    pub interval: Duration,
    /// How long one may take, 10 ms..=interval; default 1 s, or the interval if that is less.
    pub timeout: Duration,
    /// Passes in a row that make it good again, 1..=100; default 2.
    pub rise: u32,
    /// Failures in a row that make it fail, 1..=100; default 3.
    pub fall: u32,
}

/// What a check does. Without a port it looks at every TCP service of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// Opens a connection.
    Tcp {
        /// Its port.
        port: Option<u16>,
    },
    /// Sends an HTTP request.
    Http {
        /// Its port.
        port: Option<u16>,
        /// Path and query; default `/`.
        path: String,
        /// `Host:`; `None` = the address.
        host: Option<String>,
        /// Statuses that pass; default 200..=399.
        expect: RangeInclusive<u16>,
    },
    /// Runs a program, which passes when it ends with 0.
    Exec(Vec<String>),
}

/// One thing that is wrong in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where, in bytes of the text.
    pub span: Range<usize>,
    /// The key with its path, `agent.load.cpu`; services and servers are counted from 1. Empty when
    /// the text is not TOML.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {path}: {source}\n    check the path, and that it is UTF-8 text", path = path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something in it is wrong: the lines to show.
    #[error("{0}")]
    Wrong(String),
}

impl Default for Agent {
    fn default() -> Agent {
        Agent {
            listen: vec![([0, 0, 0, 0], PORT).into(), ([0u16; 8], PORT).into()],
            key_file: None,
            from: Vec::new(),
            load: Weights::default(),
            full: Full::default(),
            command: None,
            checks: Vec::new(),
            drain_deadline: Duration::from_secs(30),
            control: None,
            agent_check: AgentCheck::Shared,
        }
    }
}

impl Default for Weights {
    fn default() -> Weights {
        Weights { cpu: 1.0, memory: 0.0, connections: 0.0, queue: 0.0, command: 0.0 }
    }
}

impl Default for Full {
    fn default() -> Full {
        Full { connections: 1000, queue: 128 }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => write!(f, "{}\n    {}", self.what, self.remedy),
            key => write!(f, "{key}: {}\n    {}", self.what, self.remedy),
        }
    }
}

/// Bytes of a file at most that are read.
const LONGEST: u64 = 64 << 20;

/// Reads the file at `path`.
///
/// # Errors
/// When it cannot be read, or anything in it that the agent needs is wrong: each with its line,
/// column, key and remedy.
pub fn load(path: &Path) -> Result<Settings, SettingsError> {
    use std::io::Read;
    let mut text = String::new();
    crate::operators_file::open(path)
        .and_then(|file| file.take(LONGEST).read_to_string(&mut text))
        .map_err(|source| SettingsError::Unreadable { path: path.to_owned(), source })?;
    parse(&text).map_err(|faults| {
        let shown = |fault: &Fault| {
            let (line, column) = place(&text, fault.span.start);
            format!("{}:{line}:{column}: {fault}", path.display())
        };
        SettingsError::Wrong(faults.iter().map(shown).collect::<Vec<_>>().join("\n"))
    })
}

/// What the agent takes from the text of a file.
///
/// # Errors
/// Everything that is wrong in that, in the order of the text.
///
/// ```
/// use realserver_agent::settings::parse;
///
/// let settings = parse("[agent]\nload = { memory = 1 }").unwrap();
/// assert_eq!(settings.agent.load.cpu, 0.0);
///
/// let faults = parse("[agent]\nlisen = 5").unwrap_err();
/// assert_eq!(faults[0].key, "agent.lisen");
/// assert!(faults[0].remedy.starts_with("did you mean listen?"));
/// ```
pub fn parse(text: &str) -> Result<Settings, Vec<Fault>> {
    read(text, |top, faults| {
        let (mode, entries) = services::read(top, faults);
        Settings { agent: agent::read(top, faults), mode, entries }
    })
}

/// The table `[agent]` alone, for a director that reads the rest of the file by itself.
///
/// # Errors
/// As of [`parse`].
pub fn parse_agent(text: &str) -> Result<Agent, Vec<Fault>> {
    read(text, agent::read)
}

fn read<T>(
    text: &str,
    what: impl FnOnce(&Table<'_>, &mut Vec<Fault>) -> T,
) -> Result<T, Vec<Fault>> {
    let document = DeTable::parse(text).map_err(|error| {
        vec![Fault {
            span: error.span().unwrap_or(0..0),
            key: String::new(),
            what: format!("this is not TOML: {}", error.message().replace('\n', ", ")),
            remedy: "write TOML: key = value, text in \"double quotes\", tables as [agent]".into(),
        }]
    })?;
    let mut faults = Vec::new();
    let value = what(&Table::top(&document), &mut faults);
    faults.sort_by_key(|fault| fault.span.start);
    if faults.is_empty() { Ok(value) } else { Err(faults) }
}

/// Line and column in characters, both from 1, of a byte of the text.
pub fn place(text: &str, byte: usize) -> (usize, usize) {
    let mut byte = byte.min(text.len());
    while !text.is_char_boundary(byte) {
        byte -= 1;
    }
    let before = &text[..byte];
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line..].chars().count() + 1)
}
