//! A cluster with nginx on every host and a node before it, and the file that all of them read.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use director::control::nlb::views::NlbView;
use director::control::nlb::{NlbCommand, NlbRequest};
use integration::cluster::{Cluster, VIP_V4, VIP_V6, host_addresses};
use integration::lab::{Host, Process};
use integration::nginx;
use integration::running::Director;

/// Both families with their VIP; the index is the one of `host_addresses`.
pub(crate) const FAMILIES: [(&str, IpAddr); 2] = [("IPv4", VIP_V4), ("IPv6", VIP_V6)];

/// HTTP, by nginx.
pub(crate) const HTTP: u16 = 80;
/// DNS, by dnsmasq.
pub(crate) const DNS: u16 = 53;
/// UDP echo, by the lab's own program.
pub(crate) const ECHO: u16 = 7;
/// Bytes of a download.
pub(crate) const DOWNLOAD: usize = 256 * 1024;

pub(crate) fn is_vip(address: IpAddr) -> bool {
    address == VIP_V4 || address == VIP_V6
}

/// The file of a site.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// `dispatcher` or `nlb`.
    pub(crate) mode: &'static str,
    /// Hosts in the file; those that are built may be fewer.
    pub(crate) hosts: usize,
    pub(crate) key: &'static str,
    /// `period` of heartbeats, as the file has it.
    pub(crate) period: &'static str,
    /// Weights of the hosts; those beyond have 50.
    pub(crate) weights: Vec<u8>,
    /// A line for each service: `persistence = ...`.
    pub(crate) service: &'static str,
    /// Families of the VIPs, 0 and 1.
    pub(crate) families: &'static [usize],
    /// More of `[nlb]`.
    pub(crate) nlb: &'static str,
    /// At the end.
    pub(crate) more: String,
    /// Seconds that a download takes.
    pub(crate) download_seconds: usize,
}

impl Site {
    /// HTTP, DNS and echo on both VIPs, shared alike, and heartbeats five times a second.
    pub(crate) fn new(hosts: usize) -> Site {
        Site {
            mode: "nlb",
            hosts,
            key: "a key for the lab and nobody else",
            period: "200ms",
            weights: Vec::new(),
            service: "",
            families: &[0, 1],
            nlb: "",
            more: String::new(),
            download_seconds: 8,
        }
    }

    /// The file.
    pub(crate) fn file(&self) -> String {
        let Site { mode, key, period, nlb, service, more, .. } = self;
        let mut text = format!(
            "mode = \"{mode}\"\ninterfaces = [\"eth0\"]\n\
             [nlb]\nkey = \"{key}\"\nperiod = \"{period}\"\n{nlb}\n"
        );
        for &family in self.families {
            for (port, protocol) in [(HTTP, "tcp"), (DNS, "udp"), (ECHO, "udp")] {
                let listen = SocketAddr::new(FAMILIES[family].1, port);
                text += &format!(
                    "[[service]]\nlisten = \"{listen}/{protocol}\"\nscheduler = \"rr\"\n\
                     forwarding = \"direct\"\n{service}\n"
                );
                for number in 1..=self.hosts {
                    let address = host_addresses(number)[family];
                    let weight = self.weights.get(number - 1).unwrap_or(&50);
                    text += &format!(
                        "[[service.server]]\naddress = \"{address}\"\nweight = {weight}\n"
                    );
                }
            }
        }
        text + more
    }
}

/// A cluster at work.
pub(crate) struct Bed {
    pub(crate) cluster: Cluster,
    pub(crate) site: Site,
    /// The node of each host; `None` where none runs.
    pub(crate) nodes: Vec<Option<Director>>,
    _web: Vec<Process>,
}

impl Bed {
    /// Builds the hosts with nginx, and starts no node.
    pub(crate) fn build(name: &str, site: Site) -> Result<Bed> {
        Bed::with_hosts(name, site.hosts, site)
    }

    /// As [`build`](Bed::build), with more hosts than the file has.
    pub(crate) fn with_hosts(name: &str, hosts: usize, site: Site) -> Result<Bed> {
        let cluster = Cluster::build(name, hosts)?;
        let _web = cluster
            .hosts
            .iter()
            .map(|host| start_web(&cluster, host, &site))
            .collect::<Result<_>>()?;
        let nodes = (0..hosts).map(|_| None).collect();
        Ok(Bed { cluster, site, nodes, _web })
    }

    /// Builds it and starts all nodes, at the same time, until they have converged together.
    pub(crate) fn serving(name: &str, site: Site) -> Result<Bed> {
        let mut bed = Bed::build(name, site)?;
        let all: Vec<usize> = (1..=bed.site.hosts).collect();
        bed.start(&all)?;
        bed.wait_converged(&all, &all)?;
        bed.settle();
        Ok(bed)
    }

    /// Starts the nodes of these hosts with the site's file, and waits until each is ready.
    pub(crate) fn start(&mut self, numbers: &[usize]) -> Result<()> {
        let file = self.site.file();
        self.start_with(numbers, &file)
    }

    /// As [`start`](Bed::start), with another file.
    pub(crate) fn start_with(&mut self, numbers: &[usize], file: &str) -> Result<()> {
        for &number in numbers {
            let host = &self.cluster.hosts[number - 1];
            self.nodes[number - 1] = Some(Director::launch(&self.cluster.lab, host, file)?);
        }
        for &number in numbers {
            self.node(number)?.process().wait_for_log("ready:", Duration::from_secs(20))?;
        }
        Ok(())
    }

    /// The node of a host.
    pub(crate) fn node(&self, number: usize) -> Result<&Director> {
        self.nodes[number - 1].as_ref().with_context(|| format!("no node on host {number}"))
    }

    /// The log of a node.
    pub(crate) fn log(&self, number: usize) -> Result<String> {
        Ok(self.node(number)?.process().log())
    }

    /// How many times a node has begun to converge.
    pub(crate) fn convergences(&self, number: usize) -> Result<usize> {
        Ok(self.log(number)?.matches("converging:").count())
    }

    /// The hosts that a node tells of.
    pub(crate) fn hosts(&self, number: usize) -> Result<Vec<u8>> {
        let request = NlbRequest { command: NlbCommand::Query, hosts: None };
        let reply = self.node(number)?.client()?.nlb(&request)?;
        let view = reply.answers.first().and_then(|answer| answer.view.as_deref());
        match view {
            Some(NlbView::Query(query)) => Ok(query.hosts.iter().map(|host| host.host).collect()),
            _ => bail!("host {number} answers {reply:?}"),
        }
    }

    /// Waits until a node has begun to converge more than `before` times: it has noticed.
    pub(crate) fn wait_noticed(&self, number: usize, before: usize) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.convergences(number)? <= before {
            ensure!(
                Instant::now() < deadline,
                "host {number} notices nothing:\n{}",
                self.log(number)?
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Waits until the last word of each of `numbers` is that it has converged with `members`;
    /// returns how long that took.
    pub(crate) fn wait_converged(&self, numbers: &[usize], members: &[usize]) -> Result<Duration> {
        let names: Vec<String> = members.iter().map(ToString::to_string).collect();
        let wanted = format!("with hosts {} (", names.join(", "));
        let start = Instant::now();
        loop {
            let mut missing = None;
            for &number in numbers {
                let log = self.log(number)?;
                let last = log.lines().rev().find(|line| line.contains("converg"));
                if !last.is_some_and(|line| line.contains(&wanted)) {
                    missing = Some(log);
                    break;
                }
            }
            let Some(log) = missing else { return Ok(start.elapsed()) };
            if start.elapsed() > Duration::from_secs(30) {
                bail!("hosts {numbers:?} do not converge with {members:?}:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Time in which buckets change hands after a convergence: two heartbeats, and one for a busy
    /// machine. At the shortest a tenth of a second.
    pub(crate) fn settle(&self) {
        let period = match self.site.period.strip_suffix("ms") {
            Some(digits) => Duration::from_millis(digits.parse().unwrap_or(1000)),
            None => Duration::from_secs(1),
        };
        std::thread::sleep(3 * period + Duration::from_millis(100));
    }

    /// Ends a node with SIGTERM; it has to end cleanly.
    pub(crate) fn stop(&mut self, number: usize) -> Result<()> {
        let node = self.nodes[number - 1].take().context("no node")?;
        let status = node.process().stop()?;
        ensure!(status.success(), "node {number} ended with {status}:\n{}", node.process().log());
        Ok(())
    }

    /// Ends all nodes with SIGTERM; the file's last test.
    pub(crate) fn stop_all(&mut self) -> Result<()> {
        for number in 1..=self.nodes.len() {
            if self.nodes[number - 1].is_some() {
                self.stop(number)?;
            }
        }
        Ok(())
    }

    /// Name of a host, as its servers say it.
    pub(crate) fn name(&self, number: usize) -> &str {
        self.cluster.hosts[number - 1].name()
    }

    /// What `ip` prints on a host: the word of a program that is not ours.
    pub(crate) fn ip(&self, number: usize, arguments: &[&str]) -> Result<String> {
        let host = &self.cluster.hosts[number - 1];
        let output = host.command("ip").args(arguments).output(Duration::from_secs(5))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn start_web(cluster: &Cluster, host: &Host, site: &Site) -> Result<Process> {
    let rate = DOWNLOAD / site.download_seconds.max(1);
    let lines = format!("keepalive_timeout 0; location /download {{ limit_rate {rate}; }}");
    let files = vec![("page", format!("{}\n", host.name())), ("download", "x".repeat(DOWNLOAD))];
    nginx::start(&cluster.lab, host, &nginx::Site { port: HTTP, lines, files })
}
