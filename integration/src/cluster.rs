//! A cluster without a dispatcher: clients and hosts on one segment that floods.
//!
//! ```text
//!       client                 host1            host2            host3 ...
//!  10.78.0.100/24         10.78.0.11/24    10.78.0.12/24    10.78.0.13/24
//!  fd78::100/64            fd78::11/64      fd78::12/64      fd78::13/64
//!        |                      |                |                |
//!  ------+----------------------+----------------+----------------+------ "wire"
//!
//!  VIP 10.78.0.10 and fd78::10 at 02-BF-0A-4E-00-0A: no host's own, so the bridge floods it
//! ```
//!
//! The client has further addresses, `10.78.1.x` and `fd78::1:x`, so that there are many clients. Knows
//! addresses; who uses the cluster starts the nodes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::Signal;

use crate::http;
use crate::lab::{Host, Lab, Process, Segment};
use crate::running::Director;

/// The virtual address, IPv4.
pub const VIP_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 78, 0, 10));
/// The virtual address, IPv6.
pub const VIP_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 0x10));
/// Further addresses of the client, 1 to this.
pub const CLIENTS: u8 = 64;

/// The cluster's segment, built.
#[derive(Debug)]
pub struct Cluster {
    /// The lab it stands in; everything goes with it.
    pub lab: Lab,
    /// Who asks.
    pub client: Host,
    /// `host1`, `host2`, ...
    pub hosts: Vec<Host>,
    /// What floods.
    pub wire: Segment,
}

/// Addresses of host `number` (1, 2, ...), which is its id.
pub fn host_addresses(number: usize) -> [IpAddr; 2] {
    let last = 10 + number as u16;
    // fd78::11 is written with the decimal digits of 10.78.0.11.
    let digits = last / 10 * 16 + last % 10;
    [
        Ipv4Addr::new(10, 78, 0, last as u8).into(),
        Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, digits).into(),
    ]
}

/// Further addresses `number` of the client, 1 to [`CLIENTS`], one of each family.
pub fn client_addresses(number: u8) -> [IpAddr; 2] {
    [
        Ipv4Addr::new(10, 78, 1, number).into(),
        Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 1, number.into()).into(),
    ]
}

impl Cluster {
    /// Builds it with `hosts` hosts, up to 32.
    ///
    /// # Errors
    /// When the caller is not root or the kernel lacks network namespaces, veth or bridges.
    pub fn build(name: &str, hosts: usize) -> Result<Cluster> {
        let lab = Lab::new(name)?;
        let wire = lab.segment("wire")?;
        let client = lab.host("client")?;
        lab.connect(&client, &wire, "eth0", &["10.78.0.100/16", "fd78::100/64"])?;
        for number in 1..=CLIENTS {
            let [v4, v6] = client_addresses(number);
            client.add_address("eth0", &format!("{v4}/16"))?;
            client.add_address("eth0", &format!("{v6}/64"))?;
        }
        let mut built = Vec::new();
        for number in 1..=hosts {
            let host = lab.host(&format!("host{number}"))?;
            let [v4, v6] = host_addresses(number);
            lab.connect(&host, &wire, "eth0", &[&format!("{v4}/16"), &format!("{v6}/64")])?;
            built.push(host);
        }
        Ok(Cluster { lab, client, hosts: built, wire })
    }

    /// The file of this cluster: a web service on port 80 of both VIPs by direct routing.
    /// `nlb` is added to the table `[nlb]`, `more` to the end.
    pub fn config(&self, mode: &str, nlb: &str, more: &str) -> String {
        let servers = |family: usize| -> String {
            (1..=self.hosts.len())
                .map(|number| {
                    let address = host_addresses(number)[family];
                    format!("[[service.server]]\naddress = \"{address}\"\nweight = 50\n")
                })
                .collect()
        };
        format!(
            "mode = \"{mode}\"\ninterfaces = [\"eth0\"]\n\
             [nlb]\nkey = \"a key for the lab and nobody else\"\n{nlb}\n\
             [[service]]\nlisten = \"{VIP_V4}:80/tcp\"\nscheduler = \"rr\"\n\
             forwarding = \"direct\"\n{}\
             [[service]]\nlisten = \"[{VIP_V6}]:80/tcp\"\nscheduler = \"rr\"\n\
             forwarding = \"direct\"\n{}{more}",
            servers(0),
            servers(1),
        )
    }

    /// Starts a web server on every host, on all its addresses, and waits until they serve.
    /// `lab_binary` is the program `switchyard-lab`.
    ///
    /// # Errors
    /// When one does not start; the error shows its log.
    pub fn start_web(&self, lab_binary: &Path, body_bytes: usize) -> Result<Vec<Process>> {
        let start = |host: &Host| {
            let process = host
                .command(lab_binary)
                .args(["serve-http", "--name", host.name()])
                .args(["--listen", "0.0.0.0:80", "--listen", "[::]:80"])
                .args(["--body-bytes", &body_bytes.to_string()])
                .spawn()?;
            process.wait_for_log("serves HTTP", Duration::from_secs(10))?;
            Ok(process)
        };
        self.hosts.iter().map(start).collect()
    }

    /// Fetches from inside the client.
    ///
    /// # Errors
    /// When the client's namespace is gone; failed requests are in the tally.
    pub fn fetch(
        &self,
        plan: &http::Plan,
        progress: impl FnMut(http::Progress) + Send,
    ) -> Result<http::Tally> {
        self.client.run(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            Ok(runtime.block_on(http::fetch_many(plan, progress)))
        })?
    }

    /// Starts the node of host `number` (1, 2, ...) and waits until its filter is in place.
    ///
    /// # Errors
    /// When it does not start; the error shows its log.
    pub fn start_node(&self, number: usize, config: &str) -> Result<Director> {
        Director::start(&self.lab, &self.hosts[number - 1], config)
    }

    /// Starts the nodes of all hosts and waits until they have converged together.
    ///
    /// # Errors
    /// When one does not start or they do not agree; the error shows a log.
    pub fn start_nodes(&self, config: &str) -> Result<Vec<Director>> {
        let numbers = 1..=self.hosts.len();
        let nodes: Vec<Director> =
            numbers.clone().map(|number| self.start_node(number, config)).collect::<Result<_>>()?;
        let all: Vec<String> = numbers.map(|number| number.to_string()).collect();
        let line = format!("with hosts {} (", all.join(", "));
        for node in &nodes {
            node.process().wait_for_log(&line, Duration::from_secs(30))?;
        }
        Ok(nodes)
    }
}

/// Puts a director before the hosts of the cluster, on the same segment, and prepares the hosts for
/// it: `config` is [`Cluster::config`] with mode `dispatcher`. The agents keep the VIPs on the hosts
/// as long as they run.
///
/// # Errors
/// When one of them does not start; the error shows its log.
pub fn dispatch(
    cluster: &Cluster,
    lab_binary: &Path,
    config: &str,
) -> Result<(Director, Vec<Process>)> {
    let host = cluster.lab.host("director")?;
    cluster.lab.connect(&host, &cluster.wire, "eth0", &["10.78.0.1/16", "fd78::1/64"])?;
    let start = |host: &Host| {
        let agent = host
            .command(lab_binary)
            .args(["realserver-agent", "run"])
            .args(["--vip", &VIP_V4.to_string(), "--vip", &VIP_V6.to_string()])
            .spawn()?;
        agent.wait_for_log("ready", Duration::from_secs(10))?;
        Ok(agent)
    };
    let agents = cluster.hosts.iter().map(start).collect::<Result<_>>()?;
    let config = format!("own_addresses = true\n{config}");
    Ok((Director::start(&cluster.lab, &host, &config)?, agents))
}

/// Ends a node as a crash does: at once, with no word to the others.
///
/// # Errors
/// When it is gone already.
pub fn crash(node: &Director) -> Result<()> {
    node.process().signal(Signal::SIGKILL)
}
