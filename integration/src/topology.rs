//! The standard topology: a client, a director and its real servers, configured as an operator
//! would configure them for a forwarding method.
//!
//! ```text
//!            client                         director                    server1 ... server3
//!   192.0.2.100/24                 192.0.2.1/24  10.77.0.1/24            10.77.0.11 ... 13/24
//!   2001:db8:1::100/64        2001:db8:1::1/64  fd77::1/64                 fd77::11 ... 13/64
//!              |                               |                                |
//!   -----------+-------------------------------+--------------------------------+----- "wire"
//!
//!   VIP 192.0.2.10 and 2001:db8:1::10: on the director's eth0;
//!   with direct routing and tunnels also on every server's lo, where nobody hears of it.
//! ```
//!
//! Two-armed ([`Kind::NatTwoArmed`]) the client is on `front`, the servers on `back`, and the
//! director on both with `eth0` and `eth1`.
//!
//! Knows addresses, routes and kernel settings. Does not start the director: who uses the
//! topology does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::http;
use crate::lab::{Host, Lab, Link, Process, Segment};

/// The virtual address clients ask, IPv4.
pub const VIP_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 10));
/// The virtual address clients ask, IPv6.
pub const VIP_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0x10));
/// The client's addresses.
pub const CLIENT: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 100)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0x100)),
];
/// The director's addresses on the servers' networks: their gateway with NAT.
pub const DIRECTOR_INSIDE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1)),
];
/// The networks the client is in.
pub const CLIENT_NETWORKS: [&str; 2] = ["192.0.2.0/24", "2001:db8:1::/64"];

/// The addresses of server `number` (1, 2, ...): 10.77.0.11 and fd77::11, and so on.
///
/// # Panics
/// When `number` is not in 1 to 89: the written digits of both addresses are the same up to 99.
pub fn server_addresses(number: usize) -> [IpAddr; 2] {
    assert!((1..90).contains(&number), "there is no server {number}");
    let last = 10 + number as u16;
    // fd77::11 is written with the decimal digits of 10.77.0.11.
    let digits = last / 10 * 16 + last % 10;
    [
        Ipv4Addr::new(10, 77, 0, last as u8).into(),
        Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, digits).into(),
    ]
}

/// How the director will forward, which decides how servers and networks are set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// NAT (masquerading) on one segment; the servers' default route is the director.
    Nat,
    /// NAT between two segments.
    NatTwoArmed,
    /// Direct routing: the servers have the VIPs and answer the client themselves.
    Direct,
    /// As direct; in addition the servers unpack IP-in-IP ([`Topology::start_agents`]).
    Tunnel,
}

/// What may differ from the standard.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many servers, 1 to 89.
    pub servers: usize,
    /// Queues of the director's interfaces.
    pub director_queues: u32,
    /// MTU in bytes of all interfaces; `None`: 1500.
    pub mtu: Option<u32>,
}

impl Default for Options {
    fn default() -> Options {
        Options { servers: 3, director_queues: 1, mtu: None }
    }
}

/// The topology, built.
#[derive(Debug)]
pub struct Topology {
    /// The lab it stands in; everything goes with it.
    pub lab: Lab,
    /// How the director is to forward.
    pub kind: Kind,
    /// Who asks.
    pub client: Host,
    /// Where the director is to run: the VIPs are on its `eth0`.
    pub director: Host,
    /// `server1`, `server2`, ...
    pub servers: Vec<Host>,
    /// The client's segment; of all but [`Kind::NatTwoArmed`] the only one.
    pub front: Segment,
    /// The servers' segment; the same as `front` on one segment.
    pub back: Segment,
}

impl Topology {
    /// Builds it.
    ///
    /// # Errors
    /// When the caller is not root or the kernel lacks network namespaces, veth or bridges.
    pub fn build(kind: Kind, options: &Options) -> Result<Topology> {
        let lab = Lab::new(&format!("{kind:?}").to_lowercase())?;
        let (front, back) = if kind == Kind::NatTwoArmed {
            (lab.segment("front")?, lab.segment("back")?)
        } else {
            let wire = lab.segment("wire")?;
            (wire.clone(), wire)
        };
        let link = |interface: &str, addresses: &[&str]| -> Result<Link> {
            let link = Link::new(interface).addresses(addresses)?;
            Ok(match options.mtu {
                Some(mtu) => link.mtu(mtu),
                None => link,
            })
        };

        let client = lab.host("client")?;
        let outside = link("eth0", &["192.0.2.100/24", "2001:db8:1::100/64"])?;
        lab.connect_with(&client, &front, &outside)?;

        let director = lab.host("director")?;
        prepare_director(&director, kind)?;
        let outside = ["192.0.2.1/24", "2001:db8:1::1/64"];
        let inside = ["10.77.0.1/24", "fd77::1/64"];
        let queues = options.director_queues;
        if kind == Kind::NatTwoArmed {
            lab.connect_with(&director, &front, &link("eth0", &outside)?.queues(queues))?;
            lab.connect_with(&director, &back, &link("eth1", &inside)?.queues(queues))?;
        } else {
            let both = [outside, inside].concat();
            lab.connect_with(&director, &front, &link("eth0", &both)?.queues(queues))?;
        }
        for vip in [VIP_V4, VIP_V6] {
            director.add_address("eth0", &vip.to_string())?;
        }

        let mut servers = Vec::new();
        for number in 1..=options.servers {
            let server = lab.host(&format!("server{number}"))?;
            let [v4, v6] = server_addresses(number);
            let addresses = [format!("{v4}/24"), format!("{v6}/64")];
            let addresses = addresses.each_ref().map(String::as_str);
            lab.connect_with(&server, &back, &link("eth0", &addresses)?)?;
            prepare_server(&server, kind)
                .with_context(|| format!("prepare {} for {kind:?}", server.name()))?;
            servers.push(server);
        }
        Ok(Topology { lab, kind, client, director, servers, front, back })
    }

    /// Client, director and servers.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        [&self.client, &self.director].into_iter().chain(&self.servers)
    }

    /// Starts an HTTP server on every server, on all its addresses, and waits until they serve.
    /// `lab_binary` is the program `switchyard-lab`.
    ///
    /// # Errors
    /// When one does not start; the error shows its log.
    pub fn start_web(
        &self,
        lab_binary: &Path,
        port: u16,
        body_bytes: usize,
    ) -> Result<Vec<Process>> {
        self.on_servers(|server| {
            let process = server
                .command(lab_binary)
                .args(["serve-http", "--name", server.name()])
                .args(["--listen", &format!("0.0.0.0:{port}")])
                .args(["--listen", &format!("[::]:{port}")])
                .args(["--body-bytes", &body_bytes.to_string()])
                .spawn()?;
            process.wait_for_log("serves HTTP", Duration::from_secs(10))?;
            Ok(process)
        })
    }

    /// Starts the agent's decapsulation on every server and waits until it unpacks.
    ///
    /// # Errors
    /// When one does not start; the error shows its log.
    pub fn start_agents(&self, lab_binary: &Path) -> Result<Vec<Process>> {
        self.on_servers(|server| {
            let process = server
                .command(lab_binary)
                .args(["realserver-agent", "run", "--tunnel", "ipip"])
                .args(["--vip", &VIP_V4.to_string(), "--vip", &VIP_V6.to_string()])
                .spawn()?;
            process.wait_for_log("ready", Duration::from_secs(10))?;
            Ok(process)
        })
    }

    fn on_servers(&self, start: impl Fn(&Host) -> Result<Process>) -> Result<Vec<Process>> {
        self.servers.iter().map(start).collect()
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
}

fn set(host: &Host, settings: &[(&str, &str)]) -> Result<()> {
    for (key, value) in settings {
        host.sysctl(key, value)?;
    }
    Ok(())
}

/// With NAT the director is the servers' router, also for what is not balanced; it must not tell
/// them, on one segment, that there is a shorter way (ICMP redirect), for replies must come back
/// through it. With direct routing and tunnels it routes nothing.
fn prepare_director(director: &Host, kind: Kind) -> Result<()> {
    match kind {
        Kind::Nat | Kind::NatTwoArmed => set(
            director,
            &[
                ("net.ipv4.ip_forward", "1"),
                ("net.ipv4.conf.all.send_redirects", "0"),
                ("net.ipv4.conf.default.send_redirects", "0"),
                ("net.ipv6.conf.all.forwarding", "1"),
                ("net.ipv6.conf.default.forwarding", "1"),
            ],
        ),
        Kind::Direct | Kind::Tunnel => Ok(()),
    }
}

/// The servers' side of each method. The ARP problem: a server has the VIP, and must not say so.
///
/// * IPv4: by default a Linux host answers ARP for any address it has, on any interface.
///   `arp_ignore=1` restricts it to addresses of the interface that is asked, which leaves out
///   those on `lo`; `arp_announce=2` keeps the VIP out of the sender field of its own requests.
/// * IPv6 needs no such setting: the kernel looks a solicited address up on the interface that
///   received the solicitation, so one on `lo` is not answered for. Neither does it announce the
///   VIP: a solicitation takes the packet's source only if the outgoing interface has it.
///   (`tests/lab_topology.rs` holds the kernel to both.)
fn prepare_server(server: &Host, kind: Kind) -> Result<()> {
    match kind {
        Kind::Nat | Kind::NatTwoArmed => {
            for (destination, gateway) in ["0.0.0.0/0", "::/0"].iter().zip(DIRECTOR_INSIDE) {
                server.route(destination, &gateway.to_string())?;
            }
            // IPv6 has no `send_redirects`: while no director runs, the kernel there forwards what
            // a server still sends and tells it of the shorter way. A server that believed it would
            // answer past the next director until the exception expires.
            server.sysctl("net.ipv6.conf.eth0.accept_redirects", "0")
        }
        Kind::Direct | Kind::Tunnel => {
            set(
                server,
                &[
                    ("net.ipv4.conf.all.arp_ignore", "1"),
                    ("net.ipv4.conf.all.arp_announce", "2"),
                    // What comes out of a tunnel comes from an address that is routed elsewhere.
                    ("net.ipv4.conf.all.rp_filter", "0"),
                    ("net.ipv4.conf.default.rp_filter", "0"),
                ],
            )?;
            for vip in [VIP_V4, VIP_V6] {
                server.add_address("lo", &vip.to_string())?;
            }
            for network in CLIENT_NETWORKS {
                server.route_on_link(network, "eth0")?;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_the_same_digits_in_both_families() {
        let written = |number| server_addresses(number).map(|address| address.to_string());
        assert_eq!(written(1), ["10.77.0.11", "fd77::11"]);
        assert_eq!(written(89), ["10.77.0.99", "fd77::99"]);
    }
}
