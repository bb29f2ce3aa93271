//! Commands as words: what is on the wire is what an operator typed.
//!
//! | words | order |
//! |---|---|
//! | `query`, `params`, `display`, `history`, `connections` | questions |
//! | `start`, `stop`, `suspend`, `resume`, `reload` | to the host |
//! | `drainstop [DEADLINE]` | to the host; `30s`, `5m`, or none |
//! | `enable`, `disable`, `drain`, `queryport` and a port target | to rules |
//! | `weight TARGET 0-100` | to rules |
//! | `filter PROTOCOL CLIENT[:PORT] VIP[:PORT]` | who takes this |
//!
//! A port target is `VIP:PORT`, `VIP:all`, `all:PORT` or `all`; an IPv6 address with a port is in
//! brackets.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Which rules are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortTarget {
    /// Rules of this virtual address; `None` = of all.
    pub vip: Option<IpAddr>,
    /// The rule that covers this port; `None` = all.
    pub port: Option<u16>,
}

/// A packet to be asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuple {
    /// `tcp`, `udp`, `gre` or `icmp`.
    pub protocol: String,
    /// The client; its port is 0 where there is none.
    pub client: SocketAddr,
    /// The virtual address; its port is 0 where there is none.
    pub vip: SocketAddr,
}

/// What is asked of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Where do you stand, with which members?
    Query,
    /// Which parameters are in force?
    Params,
    /// Everything, for a support case.
    Display,
    /// Past convergences.
    History,
    /// Connections held.
    Connections,
    /// Join the cluster.
    Start,
    /// Leave at once.
    Stop,
    /// Take no new flows, leave after the last or at the deadline.
    DrainStop(Option<Duration>),
    /// Leave and lock.
    Suspend,
    /// Unlock.
    Resume,
    /// Read the configuration again.
    Reload,
    /// Serve these rules again.
    Enable(PortTarget),
    /// Serve these rules no more.
    Disable(PortTarget),
    /// Take no new flows for these rules.
    Drain(PortTarget),
    /// How do these rules stand?
    QueryPort(PortTarget),
    /// Take this weight, 0 to 100, for these rules.
    Weight(PortTarget, u8),
    /// Who takes this packet, and why?
    Filter(Tuple),
}

/// Words that are no command, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Wrong(pub String);

const COMMANDS: &str = "query, params, display, history, connections, start, stop, drainstop, \
                        suspend, resume, reload, enable, disable, drain, queryport, weight, filter";

impl Order {
    /// Reads words.
    ///
    /// # Errors
    ///
    /// Names the word that is wrong and what is allowed in its place.
    pub fn parse(words: &str) -> Result<Order, Wrong> {
        let mut words = words.split_ascii_whitespace();
        let command = words.next().unwrap_or_default();
        let mut next =
            |what: &str| words.next().ok_or_else(|| Wrong(format!("{command}: {what} is missing")));
        let order = match command {
            "query" => Order::Query,
            "params" => Order::Params,
            "display" => Order::Display,
            "history" => Order::History,
            "connections" => Order::Connections,
            "start" => Order::Start,
            "stop" => Order::Stop,
            "suspend" => Order::Suspend,
            "resume" => Order::Resume,
            "reload" => Order::Reload,
            "drainstop" => Order::DrainStop(next("").ok().map(deadline).transpose()?),
            "enable" => Order::Enable(target(next("a port target")?)?),
            "disable" => Order::Disable(target(next("a port target")?)?),
            "drain" => Order::Drain(target(next("a port target")?)?),
            "queryport" => Order::QueryPort(target(next("a port target")?)?),
            "weight" => Order::Weight(target(next("a port target")?)?, weight(next("a weight")?)?),
            "filter" => {
                let protocol = protocol(next("a protocol")?)?;
                let client = endpoint(next("the client's address")?)?;
                Order::Filter(Tuple {
                    protocol,
                    client,
                    vip: endpoint(next("a virtual address")?)?,
                })
            }
            other => return Err(Wrong(format!("{other:?} is no command: one of {COMMANDS}"))),
        };
        match words.next() {
            None => Ok(order),
            Some(word) => Err(Wrong(format!("{command}: {word:?} is one word too many"))),
        }
    }
}

fn deadline(word: &str) -> Result<Duration, Wrong> {
    let wrong = || Wrong(format!("deadline {word:?}: write a number and s, m or h, as 30s or 5m"));
    let digits = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u32 = digits.parse().map_err(|_| wrong())?;
    let unit = match &word[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    Ok(Duration::from_secs(u64::from(number) * unit))
}

fn target(word: &str) -> Result<PortTarget, Wrong> {
    let wrong = || Wrong(format!("port target {word:?}: write VIP:PORT, VIP:all, all:PORT or all"));
    if word == "all" {
        return Ok(PortTarget { vip: None, port: None });
    }
    if let Ok(both) = word.parse::<SocketAddr>() {
        return Ok(PortTarget { vip: Some(both.ip()), port: Some(both.port()) });
    }
    if let Ok(vip) = word.parse() {
        return Ok(PortTarget { vip: Some(vip), port: None });
    }
    let (vip, port) = word.rsplit_once(':').ok_or_else(wrong)?;
    let vip = match vip.trim_start_matches('[').trim_end_matches(']') {
        "all" => None,
        vip => Some(vip.parse().map_err(|_| wrong())?),
    };
    let port = match port {
        "all" => None,
        port => Some(port.parse().map_err(|_| wrong())?),
    };
    Ok(PortTarget { vip, port })
}

fn weight(word: &str) -> Result<u8, Wrong> {
    let weight = word.parse().ok().filter(|&weight: &u8| weight <= 100);
    weight.ok_or_else(|| Wrong(format!("weight {word:?}: give a number from 0 to 100")))
}

fn protocol(word: &str) -> Result<String, Wrong> {
    match word {
        "tcp" | "udp" | "gre" | "icmp" => Ok(word.to_owned()),
        _ => Err(Wrong(format!("protocol {word:?}: one of tcp, udp, gre, icmp"))),
    }
}

fn endpoint(word: &str) -> Result<SocketAddr, Wrong> {
    let address = || word.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 0));
    let wrong = |_| Wrong(format!("{word:?}: write an address, or address:port"));
    word.parse().or_else(|_| address()).map_err(wrong)
}

impl fmt::Display for PortTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.vip, self.port) {
            (None, None) => f.write_str("all"),
            (None, Some(port)) => write!(f, "all:{port}"),
            (Some(IpAddr::V4(vip)), None) => write!(f, "{vip}:all"),
            (Some(IpAddr::V6(vip)), None) => write!(f, "[{vip}]:all"),
            (Some(vip), Some(port)) => SocketAddr::new(vip, port).fmt(f),
        }
    }
}

/// The words that [`Order::parse`] reads back.
impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Query => f.write_str("query"),
            Order::Params => f.write_str("params"),
            Order::Display => f.write_str("display"),
            Order::History => f.write_str("history"),
            Order::Connections => f.write_str("connections"),
            Order::Start => f.write_str("start"),
            Order::Stop => f.write_str("stop"),
            Order::DrainStop(None) => f.write_str("drainstop"),
            Order::DrainStop(Some(within)) => write!(f, "drainstop {}s", within.as_secs()),
            Order::Suspend => f.write_str("suspend"),
            Order::Resume => f.write_str("resume"),
            Order::Reload => f.write_str("reload"),
            Order::Enable(target) => write!(f, "enable {target}"),
            Order::Disable(target) => write!(f, "disable {target}"),
            Order::Drain(target) => write!(f, "drain {target}"),
            Order::QueryPort(target) => write!(f, "queryport {target}"),
            Order::Weight(target, weight) => write!(f, "weight {target} {weight}"),
            Order::Filter(Tuple { protocol, client, vip }) => {
                write!(f, "filter {protocol} {client} {vip}")
            }
        }
    }
}
