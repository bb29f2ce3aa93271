//! A client, our director, and a real server that has a kernel of its own, with the agent on it.
//!
//! ```text
//!       client               director                 server1: a guest
//!   192.0.2.100/24      192.0.2.1/24, 10.77.0.1/24      10.77.0.11/24
//!  2001:db8:1::100     2001:db8:1::1, fd77::1            fd77::11
//!         |                     |                           |
//!   ------+---------------------+---------------------------+------
//! ```
//!
//! Knows how to build it and what to ask it. Must not know which devices a test expects.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use integration::http::Plan;
use integration::kernel_host::KernelHost;
use integration::programs;
use integration::running::Director;
use integration::topology::{
    CLIENT_NETWORKS, Kind, Options, Topology, VIP_V4, VIP_V6, server_addresses,
};

/// The port of the services.
pub(super) const HTTP: u16 = 80;

/// Where the guest sees the folder of our programs.
const PROGRAMS: &str = "/run/programs";
const FILE: &str = "/run/switchyard.toml";
const LOG: &str = "/run/agent.log";
const PID: &str = "/run/agent.pid";

/// How long something in the guest may take: it is slow when the machine is busy, and nothing
/// depends on how long it takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// See the module.
pub(super) struct Bed {
    // Before the lab, whose end ends them.
    pub(super) guest: KernelHost,
    pub(super) director: Option<Director>,
    pub(super) topology: Topology,
}

/// Both families of the VIP, served by the server's address of one family with this tunnel.
pub(super) fn config(server: IpAddr, tunnel: &str) -> String {
    let services = [VIP_V4, VIP_V6].map(|vip| {
        let listen = SocketAddr::new(vip, HTTP);
        let server = SocketAddr::new(server, HTTP);
        format!(
            "\n[[service]]\nlisten = \"{listen}/tcp\"\nscheduler = \"rr\"\nforwarding = \"tunnel\"\n\
             [[service.server]]\naddress = \"{server}\"\ntunnel = {tunnel}\n"
        )
    });
    let agent = "\n[agent]\ndrain_deadline = 0\n";
    format!("mode = \"dispatcher\"\ninterfaces = [\"eth0\"]\n{}{agent}", services.concat())
}

/// The server's addresses, IPv4 and IPv6.
pub(super) fn server() -> [IpAddr; 2] {
    server_addresses(1)
}

impl Bed {
    /// Builds it; in the guest a web server waits for its VIPs, and nobody has them yet.
    pub(super) fn build() -> Result<Bed> {
        let topology =
            Topology::build(Kind::Tunnel, &Options { servers: 0, ..Options::default() })?;
        let host = topology.lab.host("server1")?;
        topology.lab.connect(&host, &topology.back, "eth0", &[])?;
        let mut guest = KernelHost::boot_bare(&topology.lab, &host, "eth0")?;
        let [v4, v6] = server();
        guest.add_address(&format!("{v4}/24"))?;
        guest.add_address(&format!("{v6}/64"))?;
        for network in CLIENT_NETWORKS {
            guest.must(&format!("ip route add {network} dev {}", KernelHost::INTERFACE))?;
        }
        let lab_program = Path::new(crate::real_server::LAB_BINARY);
        let folder = lab_program.parent().context("our programs are in a folder")?;
        ensure!(programs::path("realserver-agent")?.parent() == Some(folder), "in one folder");
        guest.show(folder, PROGRAMS)?;
        let name = lab_program.file_name().context("it has a name")?.to_string_lossy();
        guest.must(&format!(
            "{PROGRAMS}/{name} serve-http --name server1 --listen 0.0.0.0:{HTTP} --listen [::]:{HTTP} \
             >/run/web.log 2>&1 &"
        ))?;
        let mut bed = Bed { guest, director: None, topology };
        bed.wait_for("/run/web.log", "serves HTTP")?;
        Ok(bed)
    }

    /// Gives director and agent this file; the director starts or reads it again.
    pub(super) fn configure(&mut self, config: &str) -> Result<()> {
        self.guest.write(FILE, config)?;
        if let Some(director) = self.director.take() {
            director.stop()?;
        }
        let (lab, host) = (&self.topology.lab, &self.topology.director);
        self.director = Some(Director::start(lab, host, config)?);
        Ok(())
    }

    /// Starts the agent with the director's file, and waits until it is ready.
    pub(super) fn start_agent(&mut self, arguments: &str) -> Result<()> {
        self.launch_agent(arguments)?;
        self.wait_until_ready()
    }

    /// Starts it and does not wait.
    pub(super) fn launch_agent(&mut self, arguments: &str) -> Result<()> {
        self.run_agent(&format!("--config {FILE} {arguments}"))
    }

    /// Runs it with these arguments alone, and does not wait.
    pub(super) fn run_agent(&mut self, arguments: &str) -> Result<()> {
        let run = format!("exec {PROGRAMS}/realserver-agent run {arguments}");
        let run = format!("echo $$ >{PID}; RUST_LOG=realserver_agent=debug {run}");
        let line = format!(": >{LOG}; (sh -c '{run}' >{LOG} 2>&1; echo ended: $? >>{LOG}) &");
        self.guest.must(&line).map(drop)
    }

    /// Waits until the agent has prepared everything.
    pub(super) fn wait_until_ready(&mut self) -> Result<()> {
        self.wait_for(LOG, " ready ").map(drop)
    }

    /// Sends the agent a signal.
    pub(super) fn signal(&mut self, signal: &str) -> Result<()> {
        self.guest.must(&format!("kill -{signal} $(cat {PID})")).map(drop)
    }

    /// Ends the agent by a signal, and waits for that: its exit code.
    pub(super) fn end_agent(&mut self, signal: &str) -> Result<i32> {
        self.signal(signal)?;
        self.ended_agent()
    }

    /// Waits until it has ended: its exit code.
    pub(super) fn ended_agent(&mut self) -> Result<i32> {
        let log = self.wait_for(LOG, "ended: ")?;
        let code = log.lines().find_map(|line| line.strip_prefix("ended: "));
        Ok(code.context("no exit code")?.trim().parse()?)
    }

    /// What the agent has said.
    pub(super) fn agent_log(&mut self) -> Result<String> {
        self.guest.must(&format!("cat {LOG}"))
    }

    /// What the agent tells of itself.
    pub(super) fn status(&mut self) -> Result<String> {
        self.guest.must(&format!("{PROGRAMS}/realserver-agent status"))
    }

    /// Waits until the agent has said this so many times.
    pub(super) fn wait_for_agent(&mut self, what: &str, times: usize) -> Result<()> {
        let said = |log: &str| log.matches(what).count() >= times;
        self.wait_until(LOG, said).map(drop).context(what.to_owned())
    }

    fn wait_for(&mut self, file: &str, what: &str) -> Result<String> {
        self.wait_until(file, |log| log.contains(what)).context(what.to_owned())
    }

    /// Waits until a file in the guest is as it should be.
    fn wait_until(&mut self, file: &str, is_so: impl Fn(&str) -> bool) -> Result<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = self.guest.must(&format!("cat {file} 2>/dev/null; true"))?;
            if is_so(&text) {
                return Ok(text);
            }
            let ended = text.contains("ended: ");
            ensure!(!ended && Instant::now() < deadline, "{file} in the guest:\n{text}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Asks the VIPs of both families from the client: each so many times, by way of the director.
    pub(super) fn ask(&mut self, count: u64) -> Result<()> {
        for vip in [VIP_V4, VIP_V6] {
            let mut plan = Plan::new(SocketAddr::new(vip, HTTP), count);
            plan.request_limit = PATIENCE;
            let tally = self.topology.fetch(&plan, |_| ())?;
            if tally.answered() != count {
                let director = self.director.as_ref().map(Director::status).transpose()?;
                let verdicts = director.map(|it| it.verdicts).unwrap_or_default();
                let links = self.guest.must("ip -s link")?;
                let status = self.guest.run(&format!("{PROGRAMS}/realserver-agent status"))?.output;
                let log = self.guest.run(&format!("cat {LOG}"))?.output;
                bail!("{vip}: {:?}\n{verdicts:?}\n{links}\n{status}\n{log}", tally.errors);
            }
        }
        Ok(())
    }

    /// The interfaces with this in their names, and the packets that each has received.
    pub(super) fn received(&mut self, prefix: &str) -> Result<Vec<(String, u64)>> {
        let files = format!("/sys/class/net/{prefix}*/statistics/rx_packets");
        let script = format!("for f in {files}; do [ -e $f ] && echo $f $(cat $f); done; true");
        let listed = self.guest.must(&script)?;
        let line = |line: &str| -> Option<(String, u64)> {
            let (path, count) = line.split_once(' ')?;
            Some((path.split('/').nth(4)?.to_owned(), count.trim().parse().ok()?))
        };
        listed.lines().map(|it| line(it).context("cannot read the counters")).collect()
    }

    /// What the agent may change: interfaces, addresses, settings, UDP sockets. Devices that a module
    /// brings along with itself are left out: the module stays.
    pub(super) fn state(&mut self) -> Result<String> {
        let brought = "tunl0|sit0|ip6tnl0|gre0|gretap0|erspan0|ip6gre0";
        self.guest.must(&format!(
            "ip -o address | grep -vwE '{brought}' | grep -vw fe80 | sed 's/^[0-9]*//'; \
             ip -o link | grep -vwE '{brought}' | cut -d: -f2; \
             grep . /proc/sys/net/ipv4/conf/all/arp_ignore /proc/sys/net/ipv4/conf/all/arp_announce \
             /proc/sys/net/ipv4/conf/all/rp_filter; \
             cut -c1-30 /proc/net/udp /proc/net/udp6 | grep -v sl; true"
        ))
    }
}
