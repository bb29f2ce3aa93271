//! The words of `dirctl nlb`, and the command each comes to.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use director::control::nlb::{
    FilterQuestion, FlowProtocol, NlbCommand, PortTarget, TcpFlag, WhatIf,
};

/// What `dirctl nlb` is given.
#[derive(Debug, Args)]
pub struct Nlb {
    /// Which host: all, or one by id, name or address; without it the one this runs on
    #[arg(long, global = true, value_name = "all|ID|NAME|ADDRESS")]
    pub host: Option<String>,
    /// Ask over the network instead of the control socket: the cluster's primary address, or a
    /// host's own
    ///
    /// Works from any machine of the cluster's segment whose way to the cluster has no NAT, with
    /// the key in --key-file, for nodes that have not set remote_control = false.
    #[arg(long, global = true, value_name = "ADDRESS", requires = "key_file")]
    pub cluster: Option<IpAddr>,
    /// File with the cluster's key, as nlb.key_file has it
    #[arg(long, global = true, value_name = "FILE", requires = "cluster")]
    pub key_file: Option<PathBuf>,
    /// Print what the control API answers, as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Words,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Words {
    /// Show the cluster: who is a member, in which state, with how many flows
    Query,
    /// Join the cluster; ends a drain
    Start,
    /// Leave at once: connections of this host break. See drainstop
    Stop,
    /// Take no new connections and leave when the last one has ended
    #[command(after_help = DRAIN_HELP)]
    Drainstop {
        /// Leave after this time whatever is left: 90s, 10m, 1h; without it nlb.drain_timeout
        #[arg(long, value_name = "TIME", value_parser = time)]
        deadline: Option<u64>,
        /// Do not wait for the end of the drain
        #[arg(long)]
        no_wait: bool,
    },
    /// Leave at once and refuse every command but resume
    Suspend,
    /// End a suspension; the host is stopped then, start it next
    Resume,
    /// Read the configuration file again, as SIGHUP does
    Reload,
    /// Serve port rules again
    #[command(after_help = TARGET_HELP)]
    Enable {
        /// all, VIP, VIP:PORT or all:PORT
        target: PortTarget,
    },
    /// Serve port rules no more, on this host
    #[command(after_help = TARGET_HELP)]
    Disable {
        /// all, VIP, VIP:PORT or all:PORT
        target: PortTarget,
    },
    /// Take no new connections of port rules, on this host
    #[command(after_help = TARGET_HELP)]
    Drain {
        /// all, VIP, VIP:PORT or all:PORT
        target: PortTarget,
    },
    /// Give a host another share in port rules, until it restarts or reloads
    #[command(after_help = TARGET_HELP)]
    Weight {
        /// all, VIP, VIP:PORT or all:PORT
        target: PortTarget,
        /// 0 to 100; 0 takes nothing new
        #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
        weight: u8,
    },
    /// Show what a host runs with: settings, addresses, port rules, counters
    Params,
    /// Show all of params, query and history, for a report
    Display,
    /// Show the Ethernet addresses that follow from a primary address
    Ip2mac {
        /// Without it the cluster's own
        address: Option<IpAddr>,
    },
    /// Say which host takes a packet, and why
    #[command(after_help = FILTER_HELP)]
    Filter {
        /// tcp, udp, gre or icmp (a ping)
        protocol: Protocol,
        /// ADDRESS:PORT, an IPv6 ADDRESS in brackets; for gre and icmp an address alone
        client: Endpoint,
        /// The same of the virtual address
        vip: Endpoint,
        /// Flags of a TCP packet; without any it is the first one of a connection, a syn
        #[arg(value_enum)]
        flags: Vec<Flag>,
    },
    /// Show past convergences: when, why, who
    History,
    /// Show the flows that a host holds
    Connections {
        /// So many at most
        #[arg(long, default_value_t = 1000)]
        limit: usize,
    },
    /// Show who has how many buckets, and who would have if
    #[command(after_help = MAP_HELP)]
    Map {
        /// Change nothing. The only way there is: maps follow from hosts and weights
        #[arg(long)]
        dry_run: bool,
        /// A host that would be there, by id
        #[arg(long, value_name = "ID", value_parser = host_id)]
        with: Vec<u8>,
        /// A host that would not
        #[arg(long, value_name = "ID", value_parser = host_id)]
        without: Vec<u8>,
        /// Another weight of a host
        #[arg(long, value_name = "ID=WEIGHT", value_parser = weight)]
        weight: Vec<(u8, u8)>,
    },
    /// Measure what the filter costs on this machine, and show how a cluster would grow
    #[command(after_help = CAPACITY_HELP)]
    Capacity {
        /// What serving a packet costs, nanoseconds of processor; without it measured: a datagram
        /// through this host's stack, less than any application needs
        #[arg(long, value_name = "NANOSECONDS")]
        served: Option<f64>,
    },
}

const DRAIN_HELP: &str = "\
On a terminal it shows how many connections are left until the host has stopped; Ctrl-C ends the
watching, not the drain. `dirctl nlb start` ends a drain.

Examples:
  dirctl nlb drainstop --deadline 10m       # before a reboot
  dirctl nlb drainstop --host web3 --no-wait";

const TARGET_HELP: &str = "\
Rules that differ only in their ports share a map of clients, so that a client is with one host for
all of them: what is done to one is done to them all, and the answer lists them. What is set here
holds until the host restarts.

Examples:
  dirctl nlb drain 192.0.2.10:443           # this host takes no new clients of the web service
  dirctl nlb weight all 20 --host 2         # host 2 takes less of everything
  dirctl nlb enable all";

const FILTER_HELP: &str = "\
Nothing is sent and nothing changed: each host asks its own maps, sockets and pins.

Examples:
  dirctl nlb filter tcp 203.0.113.7:40000 192.0.2.10:80 --host all
  dirctl nlb filter tcp 203.0.113.7:40000 192.0.2.10:80 ack     # a later packet of it
  dirctl nlb filter icmp 203.0.113.7 192.0.2.10

Exit codes: 0 a host takes it, 1 none of those asked does, 4 they disagree.";

const MAP_HELP: &str = "\
Examples:
  dirctl nlb map                            # as it is
  dirctl nlb map --dry-run --without 3      # host 3 goes
  dirctl nlb map --dry-run --with 4 --weight 1=20";

const CAPACITY_HELP: &str = "\
With N hosts each receives the packets of all, so each serves 1 / (1 + (N-1) x O) of what it would
serve alone, where O is the cost of dropping a packet over that of serving one. The cost of receiving
a frame in the driver is not in what is measured here: it depends on the card.";

/// What is balanced.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[allow(missing_docs)] // Their names say it.
pub enum Protocol {
    Tcp,
    Udp,
    Gre,
    Icmp,
}

/// Where in a connection a packet is.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[allow(missing_docs)] // Their names say it.
pub enum Flag {
    Syn,
    Ack,
    Fin,
    Rst,
}

/// An address with a port, or without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint(IpAddr, Option<u16>);

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Endpoint, String> {
        let both = text.parse::<SocketAddr>().map(|it| Endpoint(it.ip(), Some(it.port())));
        both.or_else(|_| text.parse().map(|address| Endpoint(address, None)))
            .map_err(|_| "write 203.0.113.7:40000, [2001:db8::7]:40000, or an address alone".into())
    }
}

/// Seconds of `90s`, `10m`, `1h`, or a bare number of seconds.
pub fn time(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 3600),
        _ => (text, 1),
    };
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    seconds.filter(|&it| it <= 86_400).ok_or_else(|| "write 90s, 10m or 1h, a day at most".into())
}

fn host_id(text: &str) -> Result<u8, String> {
    let id = text.parse().ok().filter(|id| (1..=32).contains(id));
    id.ok_or_else(|| "a host id is 1 to 32".into())
}

fn weight(text: &str) -> Result<(u8, u8), String> {
    let (id, weight) = text.split_once('=').ok_or("write ID=WEIGHT, as in 2=20")?;
    let weight = weight.parse().ok().filter(|weight| *weight <= 100);
    Ok((host_id(id)?, weight.ok_or("a weight is 0 to 100")?))
}

impl Words {
    /// What is asked of a node.
    ///
    /// # Errors
    /// When words that are right each for itself do not go together.
    pub fn command(&self) -> Result<NlbCommand, String> {
        Ok(match self {
            Words::Query => NlbCommand::Query,
            Words::Start => NlbCommand::Start,
            Words::Stop => NlbCommand::Stop,
            Words::Drainstop { deadline, .. } => NlbCommand::Drainstop { deadline: *deadline },
            Words::Suspend => NlbCommand::Suspend,
            Words::Resume => NlbCommand::Resume,
            Words::Reload => NlbCommand::Reload,
            Words::Enable { target } => NlbCommand::Enable { target: *target },
            Words::Disable { target } => NlbCommand::Disable { target: *target },
            Words::Drain { target } => NlbCommand::Drain { target: *target },
            Words::Weight { target, weight } => {
                NlbCommand::Weight { target: *target, weight: *weight }
            }
            Words::Params => NlbCommand::Params,
            Words::Display => NlbCommand::Display,
            Words::Ip2mac { address } => NlbCommand::Ip2mac { address: *address },
            Words::Filter { protocol, client, vip, flags } => {
                NlbCommand::Filter(question(*protocol, *client, *vip, flags)?)
            }
            Words::History => NlbCommand::History,
            Words::Connections { limit } => NlbCommand::Connections { limit: *limit },
            Words::Map { with, without, weight, .. } => NlbCommand::Map(WhatIf {
                with: with.clone(),
                without: without.clone(),
                weights: weight.iter().copied().collect(),
            }),
            Words::Capacity { .. } => NlbCommand::Capacity,
        })
    }
}

fn question(
    protocol: Protocol,
    client: Endpoint,
    vip: Endpoint,
    flags: &[Flag],
) -> Result<FilterQuestion, String> {
    let has_ports = matches!(protocol, Protocol::Tcp | Protocol::Udp);
    let port = |whose: &str, Endpoint(address, port): Endpoint| match (has_ports, port) {
        (true, None) => Err(format!("{whose} {address} needs a port, as in {address}:80")),
        (false, Some(_)) => Err(format!("gre and icmp have no ports: give {address} alone")),
        (_, port) => Ok(port.unwrap_or(0)),
    };
    if !matches!(protocol, Protocol::Tcp) && !flags.is_empty() {
        return Err("only tcp has flags".to_owned());
    }
    if client.0.is_ipv4() != vip.0.is_ipv4() {
        return Err(format!("{} and {} are of different families", client.0, vip.0));
    }
    Ok(FilterQuestion {
        protocol: match protocol {
            Protocol::Tcp => FlowProtocol::Tcp,
            Protocol::Udp => FlowProtocol::Udp,
            Protocol::Gre => FlowProtocol::Gre,
            Protocol::Icmp => FlowProtocol::Icmp,
        },
        client: client.0,
        client_port: port("the client", client)?,
        vip: vip.0,
        port: port("the virtual address", vip)?,
        flags: flags
            .iter()
            .map(|flag| match flag {
                Flag::Syn => TcpFlag::Syn,
                Flag::Ack => TcpFlag::Ack,
                Flag::Fin => TcpFlag::Fin,
                Flag::Rst => TcpFlag::Rst,
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests;
