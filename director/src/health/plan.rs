//! What the configuration file asks for: how the servers of a service are checked, and what becomes
//! of what that finds. Values only.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// How the servers of one service are watched. By default not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceHealth {
    /// All of them must pass for a server to be up.
    pub checks: Vec<Check>,
    /// Whether its servers run our agent, and how it is asked.
    pub agent: Option<AgentWatch>,
    /// What becomes of the service when all its servers have failed.
    pub all_down: AllDown,
    /// Whether weights follow what servers report, and how far.
    pub feedback: Option<Feedback>,
}

impl ServiceHealth {
    /// Whether anything watches its servers.
    pub fn is_watched(&self) -> bool {
        !self.checks.is_empty() || self.agent.is_some()
    }
}

/// What becomes of a service when all its servers have failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllDown {
    /// All are taken for up: more likely the checker is wrong than all of them.
    #[default]
    Keep,
    /// Nobody is sent anywhere.
    Drop,
    /// New connections go to the fallback server.
    Fallback,
}

/// One check of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is done.
    pub kind: CheckKind,
    /// Port on the server; `None` = the server's own.
    pub port: Option<u16>,
    /// From one check to the next, 100 ms..=1 h; default 2 s.
    pub interval: Duration,
    /// How much the interval varies at random, percent of it, 0..=50; default 10.
    pub jitter: u8,
    /// How long an answer may take, 10 ms..=interval; default 1 s or the interval if that is less.
    pub timeout: Duration,
    /// Passes in a row that make a failed server good again, 1..=100; default 2.
    pub rise: u32,
    /// Failures in a row that make it fail, 1..=100; default 3.
    pub fall: u32,
    /// Which way the check goes.
    pub via: Via,
}

/// Which way a check goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Via {
    /// To the server's own address.
    #[default]
    Server,
    /// To the VIP, along the way that clients' packets take: by the server's MAC address (direct)
    /// or through its tunnel. It finds a server without the VIP, and a tunnel that does not work.
    Path,
}

/// What a check does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// A TCP connection can be opened.
    Tcp,
    /// An HTTP request is answered as expected.
    Http(Http),
    /// The same over TLS.
    Https(Http, Tls),
    /// A DNS question is answered (`NOERROR` or `NXDOMAIN`).
    Dns(Dns),
    /// A datagram is answered, or at least not refused by ICMP.
    Udp(Udp),
    /// An ICMP echo request is answered.
    Icmp,
    /// A command ends with 0; it is told the server in its environment.
    Exec(Vec<String>),
    /// The server's agent-check of HAProxy, a line of text over TCP on a port of its own.
    AgentCheck(AgentCheck),
}

/// An HTTP request and what is expected of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// Path and query; default `/`.
    pub path: String,
    /// `Host:`; `None` = the server's address.
    pub host: Option<String>,
    /// Statuses that pass; default 200..=399.
    pub expect: Vec<RangeInclusive<u16>>,
    /// Statuses that mean: no new connections, the old ones may stay; default 503 alone.
    pub soft: Vec<RangeInclusive<u16>>,
    /// What the first 64 KiB of the body must contain.
    pub contains: Option<String>,
}

/// How TLS is spoken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The name that is asked for (SNI) and that the certificate is compared with; `None` = `host`.
    pub name: Option<String>,
    /// Certificates (PEM) that the server's must be signed by; `None` = any certificate will do.
    pub authority: Option<PathBuf>,
}

/// A DNS question, over UDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dns {
    /// Whose; default the root, `.`.
    pub name: String,
    /// Type of record by number; default 6, SOA.
    pub record: u16,
}

/// A datagram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Udp {
    /// What is sent; may be empty.
    pub send: Vec<u8>,
    /// What an answer must begin with; `None` = silence passes too, only ICMP unreachable fails.
    pub expect: Option<Vec<u8>>,
}

/// HAProxy's agent-check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCheck {
    /// What is sent first (`agent-send`).
    pub send: Option<String>,
}

/// How our agent on a server is asked (defaults as in connection-integrity tracking).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentWatch {
    /// Its port; default [`realserver_agent::protocol::PORT`].
    pub port: u16,
    /// From one probe to the next, 20 ms..=1 min; default 1 s.
    pub period: Duration,
    /// Without any answer for so long the direction is lost; at least twice the period; default 5 s.
    pub timeout: Duration,
    /// Answers in a row after which a lost direction is back; default 2.
    pub rise: u32,
    /// Whether TCP must confirm that a direction is lost whose UDP answers have stopped; default yes.
    pub confirm_tcp: bool,
    /// File with the secret that answers are signed with.
    pub key_file: Option<PathBuf>,
}

/// How weights follow reports: weight x factor, where the factor comes from the load that the agent
/// reports (1 - load / 10000) or the percentage of an agent-check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The smallest factor, per mille of the configured weight, 1..=1000; default 100.
    pub least: u16,
    /// The largest, per mille, `least`..=10000; default 1000.
    pub most: u16,
    /// A change below this many per mille is not made, 0..=1000; default 50.
    pub hysteresis: u16,
    /// The largest change at once, per mille, 1..=10000; default 200.
    pub step: u16,
}

impl Default for Check {
    fn default() -> Check {
        Check {
            kind: CheckKind::Tcp,
            port: None,
            interval: Duration::from_secs(2),
            jitter: 10,
            timeout: Duration::from_secs(1),
            rise: 2,
            fall: 3,
            via: Via::Server,
        }
    }
}

impl Default for Http {
    fn default() -> Http {
        Http {
            path: "/".to_owned(),
            host: None,
            expect: vec![200..=399],
            soft: vec![503..=503],
            contains: None,
        }
    }
}

impl Default for Dns {
    fn default() -> Dns {
        Dns { name: ".".to_owned(), record: 6 }
    }
}

impl Default for AgentWatch {
    fn default() -> AgentWatch {
        AgentWatch {
            port: realserver_agent::protocol::PORT,
            period: Duration::from_secs(1),
            timeout: Duration::from_secs(5),
            rise: 2,
            confirm_tcp: true,
            key_file: None,
        }
    }
}

impl Default for Feedback {
    fn default() -> Feedback {
        Feedback { least: 100, most: 1000, hysteresis: 50, step: 200 }
    }
}

impl CheckKind {
    /// The word of the configuration file for it.
    pub fn word(&self) -> &'static str {
        match self {
            CheckKind::Tcp => "tcp",
            CheckKind::Http(_) => "http",
            CheckKind::Https(..) => "https",
            CheckKind::Dns(_) => "dns",
            CheckKind::Udp(_) => "udp",
            CheckKind::Icmp => "icmp",
            CheckKind::Exec(_) => "exec",
            CheckKind::AgentCheck(_) => "agent-check",
        }
    }
}
