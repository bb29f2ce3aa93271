//! A lab with a director that serves a few ports by one forwarding method, and what must hold
//! after traffic has gone through it: nothing lost without an explanation.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use director::control::api::Status;
use director::dispatch::verdict::DropReason;
use integration::lab::{Host, Process};
use integration::running::Director;
use integration::topology::{Kind, Options, Topology, VIP_V4, VIP_V6, server_addresses};
use netio::ethtool::Offload;

use crate::LAB_BINARY;

/// One packet in so many may be lost to a ring that ran over: with clients, servers and the director
/// on one busy machine the worker is sometimes given no time for as long as its ring lasts.
const STARVED: u64 = 1000;

/// Both families with their VIP; the index is the one of `server_addresses`.
pub(crate) const FAMILIES: [(&str, IpAddr); 2] = [("IPv4", VIP_V4), ("IPv6", VIP_V6)];

/// HTTP, by nginx.
pub(crate) const HTTP: u16 = 80;
/// iperf3; only the first server, for its two connections must meet.
pub(crate) const BULK: u16 = 5201;
/// DNS, by dnsmasq.
pub(crate) const DNS: u16 = 53;
/// UDP echo, by the lab's own program.
pub(crate) const ECHO: u16 = 7;

/// What to build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    /// `io` of the configuration.
    pub(crate) io: &'static str,
    /// Whether peers leave checksums to their (imaginary) network cards.
    pub(crate) offload: bool,
    pub(crate) queues: u32,
    pub(crate) workers: u32,
}

impl Plan {
    /// One queue, one worker, AF_XDP copy mode.
    pub(crate) fn new(kind: Kind, offload: bool) -> Plan {
        Plan { kind, io: "copy", offload, queues: 1, workers: 1 }
    }

    /// For messages: what runs here.
    pub(crate) fn title(&self) -> String {
        let sums = if self.offload { "on" } else { "off" };
        format!("{:?}, io {}, peers' checksum offload {sums}", self.kind, self.io)
    }

    fn config(&self, servers: usize) -> String {
        let (forwarding, interfaces) = match self.kind {
            Kind::Nat => ("nat", "\"eth0\""),
            Kind::NatTwoArmed => ("nat", "\"eth0\", \"eth1\""),
            Kind::Direct => ("direct", "\"eth0\""),
            Kind::Tunnel => ("tunnel", "\"eth0\""),
        };
        let mut text = format!(
            "mode = \"dispatcher\"\ninterfaces = [{interfaces}]\nio = \"{}\"\nworkers = {}\n",
            self.io, self.workers
        );
        let services = [
            (HTTP, "tcp", servers),
            (BULK, "tcp", 1),
            (DNS, "udp", servers),
            (ECHO, "udp", servers),
        ];
        for (family, (_, vip)) in FAMILIES.iter().enumerate() {
            for (port, protocol, servers) in services {
                let listen = SocketAddr::new(*vip, port);
                // Writing to a string cannot fail, here and below.
                let _ = write!(
                    text,
                    "\n[[service]]\nlisten = \"{listen}/{protocol}\"\nscheduler = \"rr\"\n\
                     forwarding = \"{forwarding}\"\n"
                );
                for number in 1..=servers {
                    let address = SocketAddr::new(server_addresses(number)[family], port);
                    let _ = write!(text, "\n  [[service.server]]\n  address = \"{address}\"\n");
                }
            }
        }
        text
    }
}

/// A lab with a running director.
#[derive(Debug)]
pub(crate) struct Bed {
    pub(crate) topology: Topology,
    pub(crate) director: Director,
    plan: Plan,
    _agents: Vec<Process>,
}

impl Bed {
    /// Builds it; servers unpack tunnels when the plan's method needs it.
    pub(crate) fn build(plan: Plan) -> Result<Bed> {
        let options = Options { director_queues: plan.queues, ..Options::default() };
        let topology = Topology::build(plan.kind, &options)?;
        if !plan.offload {
            for host in [&topology.client].into_iter().chain(&topology.servers) {
                host.offload("eth0", Offload::TxChecksum, false)?;
            }
        }
        if plan.io == "generic" {
            no_super_frames(&topology)?;
        }
        let agents = match plan.kind {
            Kind::Tunnel => topology.start_agents(LAB_BINARY.as_ref())?,
            _ => Vec::new(),
        };
        let config = plan.config(topology.servers.len());
        let director = Director::start(&topology.lab, &topology.director, &config)
            .with_context(|| plan.title())?;
        Ok(Bed { topology, director, plan, _agents: agents })
    }

    pub(crate) fn client(&self) -> &Host {
        &self.topology.client
    }

    pub(crate) fn servers(&self) -> &[Host] {
        &self.topology.servers
    }

    pub(crate) fn title(&self) -> String {
        self.plan.title()
    }

    /// Fails when the director has dropped a packet, or a ring was too full to take one. Packets
    /// larger than the path were answered with ICMP, which is how a sender learns its size.
    pub(crate) fn nothing_was_lost(&self) -> Result<()> {
        // Workers tell their ports' counters ten times a second.
        std::thread::sleep(Duration::from_millis(200));
        let status = self.director.status()?;
        let title = self.title();
        for drop in DropReason::ALL.iter().filter(|&&reason| reason != DropReason::TooBig) {
            let count = status.verdicts.iter().find(|count| count.reason == drop.label());
            ensure!(
                count.is_none_or(|count| count.packets == 0),
                "{title}: dropped packets\n{}",
                show(&status)
            );
        }
        let dropped: u64 =
            status.ports.iter().map(|port| port.receive_dropped + port.transmit_dropped).sum();
        ensure!(
            dropped <= packets(&status) / STARVED,
            "{title}: rings were full\n{}",
            show(&status)
        );
        Ok(())
    }

    /// Packets that may have been lost although the director is right: see [`STARVED`].
    pub(crate) fn may_be_lost(&self) -> Result<u64> {
        Ok(packets(&self.director.status()?) / STARVED)
    }

    /// Sums of counters of the kernel's TCP (`nstat` shows them) over client and servers, zeroes
    /// left out.
    pub(crate) fn tcp_counters(&self, names: &[&str]) -> Result<BTreeMap<String, u64>> {
        let mut sums = BTreeMap::new();
        for host in [self.client()].into_iter().chain(self.servers()) {
            let text = host.run(|| -> std::io::Result<String> {
                let read = |name| std::fs::read_to_string(format!("/proc/thread-self/net/{name}"));
                Ok(read("snmp")? + &read("netstat")?)
            })??;
            // Each group is a line of names and a line of values.
            let lines: Vec<_> = text.lines().collect();
            for [keys, values] in lines.as_chunks::<2>().0 {
                for (key, value) in keys.split(' ').zip(values.split(' ')).skip(1) {
                    if names.contains(&key) && value != "0" {
                        *sums.entry(key.to_owned()).or_default() += value.parse::<u64>()?;
                    }
                }
            }
        }
        Ok(sums)
    }

    /// What the director has counted, for a person.
    pub(crate) fn counters(&self) -> String {
        self.director.status().map_or_else(|error| format!("{error:#}"), |status| show(&status))
    }
}

/// The kernel switches segmentation offload off at the far end of a veth whose near end has native
/// XDP; not with generic XDP, where the operator does it.
fn no_super_frames(topology: &Topology) -> Result<()> {
    let segments = [(&topology.front, "director-eth0"), (&topology.back, "director-eth1")];
    let count = if topology.kind == Kind::NatTwoArmed { 2 } else { 1 };
    for (segment, port) in &segments[..count] {
        for offload in [Offload::TcpSegmentation, Offload::GenericSegmentation] {
            segment.host().offload(port, offload, false)?;
        }
    }
    Ok(())
}

/// Packets that all ports have received.
fn packets(status: &Status) -> u64 {
    status.ports.iter().map(|port| port.received).sum()
}

fn show(status: &Status) -> String {
    let mut text = String::new();
    for port in &status.ports {
        let _ = writeln!(
            text,
            "  {} queue {} ({}): received {}, transmitted {}, dropped {} and {}",
            port.interface,
            port.queue,
            port.io,
            port.received,
            port.transmitted,
            port.receive_dropped,
            port.transmit_dropped
        );
    }
    for count in &status.verdicts {
        let _ = writeln!(text, "  {:>10} {}", count.packets, count.reason);
    }
    text
}
