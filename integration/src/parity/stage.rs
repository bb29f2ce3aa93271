//! Both directors in one lab, set up alike, and the operator's commands to both.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use director::control::operations::Command;
use director::fwmark::Rule;
use netio::ethtool::Offload;

use super::marks;
use super::place;
use super::runner::BATCH;
use super::step::Packet;
use super::world::World;
use crate::kernel_host::{Answer, KernelHost};
use crate::lab::{Host, Lab, Link};
use crate::programs;
use crate::running::Director;
use crate::topology::{VIP_V4, VIP_V6};

/// Settings of both: they route for the servers, on one segment, and answer as often as they are
/// asked (limits of ICMP count in real time, and are no part of a comparison).
const SETTINGS: [(&str, &str); 9] = [
    ("net.ipv4.ip_forward", "1"),
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    ("net.ipv4.conf.all.send_redirects", "0"),
    ("net.ipv4.conf.default.send_redirects", "0"),
    ("net.ipv6.conf.all.forwarding", "1"),
    ("net.ipv4.icmp_ratelimit", "0"),
    ("net.ipv6.icmp.ratelimit", "0"),
    // What the kernel sends itself over IPv6 bears a random flow label otherwise.
    ("net.ipv6.auto_flowlabels", "0"),
];

/// More of the kernel's: how many ICMP errors it sends in all.
const KERNEL_SETTINGS: [(&str, &str); 2] =
    [("net.ipv4.icmp_msgs_per_sec", "1000000"), ("net.ipv4.icmp_msgs_burst", "1000000")];

/// The same of ours.
const CONFIGURATION: &str = "\
mode = \"dispatcher\"
interfaces = [\"eth0\"]
[settings]
icmp_ratelimit = 0
icmpv6_ratelimit = 0
icmp_msgs_per_sec = 1000000
icmp_msgs_burst = 1000000
";

/// How long one script may take on one side.
const SCRIPT_LIMIT: Duration = Duration::from_secs(120);

/// Runs the script in the folder `$1` where our `ipvsadm`, `$0`, has taken the real one's place, for
/// who names it by its path too. As in the guest, no name server is asked.
const OUR_SHELL: &str = "\
    : > \"$1/resolv.conf\" && mount --bind \"$1/resolv.conf\" /etc/resolv.conf; \
    mount --bind \"$0\" /usr/sbin/ipvsadm && exec sh \"$1/script\" \"$1\"";

/// The two sides of a comparison.
pub(crate) struct Stage {
    // In the order in which they are to end: the lab last.
    pub(super) kernel: KernelHost,
    pub(super) worlds: [World; 2],
    ours: Director,
    our_host: Host,
    lab: Lab,
    files: u32,
}

impl Stage {
    /// Builds both, without any service but the sentinel.
    pub(crate) fn build(name: &str) -> Result<Stage> {
        let mut stage = Stage::set_up(name)?;
        let server = crate::topology::server_addresses(place::SENTINEL_SERVER)[0];
        let sentinel = [
            format!("-A -u {} -s rr", place::SENTINEL),
            format!("-a -u {} -r {server} -g", place::SENTINEL),
        ];
        for answer in stage.restore(&sentinel)? {
            ensure!(answer.code == 0, "the sentinel service is refused: {}", answer.output);
        }
        for world in &mut stage.worlds {
            world.exchange(&[], 0).context("the sentinel does not arrive")?;
        }
        Ok(stage)
    }

    /// Builds both, without any service.
    pub(crate) fn set_up(name: &str) -> Result<Stage> {
        let lab = Lab::new(&format!("parity-{name}"))?;
        let world = lab.host("world")?;
        world.sysctl("net.ipv6.conf.default.disable_ipv6", "1")?;
        let (theirs, ours) = (lab.host("kernel")?, lab.host("ours")?);
        let segments = [lab.segment("theirs")?, lab.segment("wire")?];
        for (segment, interface) in segments.iter().zip(["eth0", "eth1"]) {
            lab.connect(&world, segment, interface, &[])?;
        }
        lab.connect(&theirs, &segments[0], "eth0", &[])?;
        lab.connect_with(&ours, &segments[1], &Link::new("eth0").addresses(&place::DIRECTOR)?)?;

        let kernel = set_up_kernel(&lab, &theirs).context("set up the kernel's side")?;
        let director = set_up_ours(&lab, &ours).context("set up Switchyard's side")?;
        let worlds = [
            World::open(&world, "eth0", theirs.mac("eth0")?)?,
            World::open(&world, "eth1", ours.mac("eth0")?)?,
        ];
        Ok(Stage { kernel, worlds, ours: director, our_host: ours, lab, files: 0 })
    }

    /// The directors' names, for reports.
    pub(super) fn names(&self) -> [String; 2] {
        [format!("kernel {}", self.kernel.release()), "Switchyard".to_owned()]
    }

    /// An `ipvsadm` command to both.
    pub(super) fn ipvsadm(&mut self, arguments: &str) -> Result<[Answer; 2]> {
        let theirs = self.kernel.run(&format!("ipvsadm {arguments}"))?;
        Ok([theirs, self.our_ipvsadm(&format!("\"$0\" {arguments}"))?])
    }

    /// A setting to both.
    pub(super) fn set(&mut self, name: &str, value: u32) -> Result<()> {
        self.kernel.sysctl(&format!("net.ipv4.vs.{name}"), &value.to_string())?;
        let settings = BTreeMap::from([(name.to_owned(), value)]);
        self.ours.client()?.apply(&[Command::SetSettings { settings }])?;
        Ok(())
    }

    /// Rules to both, by `ipvsadm -R`.
    pub(super) fn restore(&mut self, rules: &[String]) -> Result<[Answer; 2]> {
        let theirs = self.kernel.feed("ipvsadm -R", rules)?;
        self.files += 1;
        let file = self.lab.logs().join(format!("rules-{}", self.files));
        std::fs::write(&file, rules.join("\n") + "\n")?;
        Ok([theirs, self.our_ipvsadm(&format!("\"$0\" -R < {}", file.display()))?])
    }

    /// Takes everything from both tables, and puts the timeouts back.
    pub(crate) fn clear(&mut self) -> Result<()> {
        for command in ["-C", "--set 900 120 300"] {
            for answer in self.ipvsadm(command)? {
                ensure!(answer.code == 0, "ipvsadm {command}: {}", answer.output);
            }
        }
        Ok(())
    }

    /// Runs a shell script on both sides, on which `ipvsadm` is the kernel's on the one and ours on
    /// the other, and returns what it prints. `$1` is a folder of its own to write to.
    pub(crate) fn shell(&mut self, script: &str) -> Result<[String; 2]> {
        self.files += 1;
        let name = format!("script-{}", self.files);
        let there = format!("/run/{name}");
        self.kernel.must(&format!("mkdir {there}"))?;
        self.kernel.write(&format!("{there}/script"), script)?;
        let here = self.lab.logs().join(name);
        std::fs::create_dir(&here)?;
        std::fs::write(here.join("script"), script)?;
        let ours = self
            .our_host
            .command("unshare")
            .args(["--mount", "sh", "-c", OUR_SHELL])
            .arg(programs::path("ipvsadm")?)
            .arg(&here)
            .env("SWITCHYARD_SOCKET", self.ours.socket());
        let kernel = &mut self.kernel;
        std::thread::scope(|both| {
            let theirs = both.spawn(move || {
                kernel.run_within(&format!("sh {there}/script {there}"), SCRIPT_LIMIT)
            });
            let ours = ours.output(SCRIPT_LIMIT)?;
            let theirs = theirs.join().map_err(|_| anyhow!("the kernel's side panicked"))??;
            Ok([theirs.output, String::from_utf8_lossy(&ours.stdout).into_owned()])
        })
    }

    /// Rules for firewall marks to both.
    pub(crate) fn marks(&mut self, rules: &[Rule]) -> Result<()> {
        for command in marks::iptables(rules) {
            self.kernel.must(&command)?;
        }
        self.ours.client()?.apply(&[Command::SetMarks { marks: rules.to_vec() }])?;
        Ok(())
    }

    /// Sends packets to both; `first_id` is the IPv4 identification of the first. What comes of them is
    /// compared by nobody.
    pub(crate) fn send(&mut self, packets: &[Packet], first_id: u16) -> Result<()> {
        for (number, batch) in packets.chunks(BATCH).enumerate() {
            let id = first_id.wrapping_add((number * BATCH) as u16);
            for world in &mut self.worlds {
                world.exchange(batch, id)?;
            }
        }
        Ok(())
    }

    /// What became of our side's packets, by the director's own count.
    pub(crate) fn verdicts(&self) -> Result<Vec<String>> {
        let status = self.ours.client()?.status()?;
        let verdicts = status.verdicts.iter().map(|it| format!("{}: {}", it.reason, it.packets));
        Ok(verdicts.chain(status.warnings).collect())
    }

    /// Runs a line of shell in which `$0` is our `ipvsadm`.
    fn our_ipvsadm(&self, line: &str) -> Result<Answer> {
        let output = self
            .our_host
            .command("sh")
            .args(["-c", &format!("exec 2>&1; {line}")])
            .arg(programs::path("ipvsadm")?)
            .env("SWITCHYARD_SOCKET", self.ours.socket())
            .output(Duration::from_secs(30))?;
        Ok(Answer {
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            code: output.status.code().unwrap_or(-1),
        })
    }
}

fn set_up_kernel(lab: &Lab, host: &Host) -> Result<KernelHost> {
    let mut kernel = KernelHost::boot(lab, host, "eth0")?;
    for (key, value) in SETTINGS.into_iter().chain(KERNEL_SETTINGS) {
        kernel.sysctl(key, value)?;
    }
    let device = KernelHost::INTERFACE;
    let vips = [VIP_V4, VIP_V6].map(|vip| vip.to_string());
    let mut commands = Vec::new();
    for address in place::DIRECTOR.into_iter().chain(vips.iter().map(String::as_str)) {
        let nodad = if address.contains(':') { " nodad" } else { "" };
        commands.push(format!("address add {address} dev {device}{nodad}"));
    }
    for network in place::VIP_NETWORKS {
        commands.push(format!("route add local {network} dev lo"));
    }
    for any in ["0.0.0.0/0", "::/0"] {
        commands.push(format!("route add local {any} dev lo table 100"));
    }
    for (address, mac) in place::neighbours() {
        commands.push(format!("neigh replace {address} lladdr {mac} dev {device} nud permanent"));
    }
    for gateway in place::GATEWAY {
        commands.push(format!("route add default via {gateway}"));
    }
    kernel.ip(&commands)?;
    // A batch takes rules of one family only.
    let mark = place::TRANSPARENT;
    let rule = format!("rule add fwmark {mark}/{mark} lookup 100");
    kernel.must(&format!("ip {rule} && ip -6 {rule}"))?;
    Ok(kernel)
}

fn set_up_ours(lab: &Lab, host: &Host) -> Result<Director> {
    for (key, value) in SETTINGS {
        host.sysctl(key, value)?;
    }
    // It is older than the default above.
    host.sysctl("net.ipv4.conf.eth0.send_redirects", "0")?;
    host.offload("eth0", Offload::TxChecksum, false)?;
    for vip in [VIP_V4, VIP_V6] {
        host.add_address("eth0", &vip.to_string())?;
    }
    for network in place::VIP_NETWORKS {
        let ip = host.command("ip").args(["route", "add", "local", network, "dev", "lo"]);
        let output = ip.output(Duration::from_secs(10))?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for (address, mac) in place::neighbours() {
        host.neighbour("eth0", address, mac)?;
    }
    for (destination, gateway) in ["0.0.0.0/0", "::/0"].iter().zip(place::GATEWAY) {
        host.route(destination, gateway)?;
    }
    Director::start(lab, host, CONFIGURATION)
}
