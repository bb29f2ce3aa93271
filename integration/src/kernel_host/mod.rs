//! A host with a kernel of its own: a Linux that runs as an ordinary process.
//!
//! Debian's `user-mode-linux` is a kernel made to run as a program, with modules beside it: all of
//! IPVS, and devices for tunnels, which the machine's kernel need not have. Started inside a host of
//! the lab, on the host's interface, it is one more machine on the segment: a director whose decisions
//! are what ours are compared with, or a real server. The machine's file system is its root
//! (read-only), so the programs in it, `ipvsadm` before all, are the machine's.
//!
//! Knows how to start it, talk with it and end it. Must not know what is compared.

mod console;
mod registers;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use netio::ethtool::Offload;

use crate::lab::{Host, Lab, Process};
use console::Console;

pub use console::Answer;

/// The program, of the package `user-mode-linux`.
const PROGRAM: &str = "/usr/bin/linux.uml";

/// Coming up takes about 4 s on an idle machine.
const START_LIMIT: Duration = Duration::from_secs(60);
const COMMAND_LIMIT: Duration = Duration::from_secs(30);
const HALT_LIMIT: Duration = Duration::from_secs(10);

/// Bytes of a command's input at a time, of what the console takes in a line.
const BYTES_AT_A_TIME: usize = 2000;

/// Offloads under which frames between two kernels of this machine are not what they would be on
/// a wire.
const OFFLOADS: [Offload; 4] = [
    Offload::TxChecksum,
    Offload::TcpSegmentation,
    Offload::GenericSegmentation,
    Offload::GenericReceive,
];

/// Whether such a kernel can be run here: the error says which package is missing.
///
/// # Errors
/// When `user-mode-linux`, `ipvsadm`, `kmod`, `iptables` or `iproute2` is not installed.
pub fn supported() -> Result<()> {
    let programs = [
        (&[PROGRAM][..], "user-mode-linux"),
        (&["/usr/sbin/ipvsadm", "/sbin/ipvsadm"], "ipvsadm"),
        (&["/usr/sbin/modprobe", "/sbin/modprobe"], "kmod"),
        (&["/usr/sbin/iptables-legacy", "/sbin/iptables-legacy"], "iptables"),
        (&["/usr/bin/ip", "/bin/ip", "/usr/sbin/ip", "/sbin/ip"], "iproute2"),
    ];
    for (places, package) in programs {
        let there = places.iter().any(|place| Path::new(place).exists());
        ensure!(there, "a kernel of its own needs the Debian package {package}");
    }
    Ok(())
}

/// A running kernel. Dropping it ends it.
#[derive(Debug)]
pub struct KernelHost {
    process: Process,
    console: Console,
    release: String,
}

impl KernelHost {
    /// The guest's interface.
    pub const INTERFACE: &str = "vec0";

    /// Boots a kernel inside `host`, on `interface`, which must have no address, and waits until
    /// IPVS is loaded. The guest's `vec0` has the interface's MAC address.
    ///
    /// # Errors
    /// When a package is missing or it does not come up; the error shows what it said.
    pub fn boot(lab: &Lab, host: &Host, interface: &str) -> Result<KernelHost> {
        KernelHost::boot_with(lab, host, interface, "ipvs")
    }

    /// The same without IPVS and without any tunnel: of those the kernel loads what is asked for.
    ///
    /// # Errors
    /// As for [`boot`](Self::boot).
    pub fn boot_bare(lab: &Lab, host: &Host, interface: &str) -> Result<KernelHost> {
        KernelHost::boot_with(lab, host, interface, "nothing")
    }

    fn boot_with(lab: &Lab, host: &Host, interface: &str, with: &str) -> Result<KernelHost> {
        supported()?;
        for offload in OFFLOADS {
            host.offload(interface, offload, false)?;
        }
        // The interface is the guest's: this host is not to speak on it.
        host.sysctl(&format!("net/ipv6/conf/{interface}/disable_ipv6"), "1")?;
        let init = lab.logs().join(format!("{}-init.sh", host.name()));
        std::fs::write(&init, include_str!("init.sh"))?;
        std::fs::set_permissions(&init, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        let mac = host.mac(interface)?;
        let filter = registers::filter()?;
        let mut process = host
            .command(PROGRAM)
            .args(["mem=256M", "rootfstype=hostfs", "ro", "quiet", "con=null", "con0=fd:0,fd:1"])
            .arg(format!("init={}", init.display()))
            // What the kernel does not know becomes the environment of its first program.
            .arg(format!("WITH={with}"))
            // Where it keeps its pid: else in the user's home.
            .arg(format!("uml_dir={}/", lab.logs().display()))
            .arg(format!("umid={}", host.name()))
            .arg(format!("vec0:transport=raw,ifname={interface},depth=128,gro=0,mac={mac}"))
            .args(filter.as_ref().map(|_| registers::WITHOUT_AVX))
            .filtered(filter)
            .piped()
            .spawn()?;
        let (input, output) = process.take_pipes().context("the guest has no console")?;
        let mut console = Console::new(input, output);
        let answer = console.started(START_LIMIT).with_context(|| process.log())?;
        ensure!(
            answer.code == 0,
            "the guest has not what it needs ({with}):\n{}{}",
            answer.output,
            process.log()
        );
        let mut host = KernelHost { process, console, release: String::new() };
        host.release = host.must("uname -r")?.trim().to_owned();
        Ok(host)
    }

    /// The kernel's release, as `uname -r` says it.
    pub fn release(&self) -> &str {
        &self.release
    }

    /// The kernel's process on the machine.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Runs one line of shell inside, as root.
    ///
    /// # Errors
    /// When the guest does not answer; a command that fails is an answer.
    pub fn run(&mut self, line: &str) -> Result<Answer> {
        self.run_within(line, COMMAND_LIMIT)
    }

    /// As [`run`](Self::run), for what may take longer.
    ///
    /// # Errors
    /// When the guest does not answer within `limit`.
    pub fn run_within(&mut self, line: &str, limit: Duration) -> Result<Answer> {
        self.console.run(line, limit)
    }

    /// Writes a text file inside, piece by piece, because the console takes no long lines. Nothing
    /// but `/run` and `/tmp` can be written to, and what is there is the guest's alone.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, path: &str, text: &str) -> Result<()> {
        self.must(&format!(": > {path}"))?;
        let mut part = String::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            part.push_str(&format!(" '{}'", line.replace('\'', "'\\''")));
            if part.len() >= BYTES_AT_A_TIME || lines.peek().is_none() {
                self.must(&format!("printf '%s\\n'{part} >> {path}"))?;
                part.clear();
            }
        }
        Ok(())
    }

    /// Shows a folder of the machine at `at` inside, read-only: for one that is hidden there, such as
    /// what is in `/tmp`.
    ///
    /// # Errors
    /// When it cannot be mounted.
    pub fn show(&mut self, folder: &Path, at: &str) -> Result<()> {
        let folder = folder.display();
        self.must(&format!("mkdir -p {at} && mount -t hostfs -o ro,{folder} none {at}")).map(drop)
    }

    /// As [`run`](Self::run), for what must succeed: returns its output.
    ///
    /// # Errors
    /// Also when the command's exit code is not 0.
    pub fn must(&mut self, line: &str) -> Result<String> {
        let answer = self.run(line)?;
        if answer.code != 0 {
            bail!("in the guest, {line}: exit code {}: {}", answer.code, answer.output.trim());
        }
        Ok(answer.output)
    }

    /// Runs a command that reads `lines`, each without quotes, from its standard input; as often as
    /// it takes, because the console takes no long lines. Output and exit code are of all together.
    ///
    /// # Errors
    /// When the guest does not answer.
    pub fn feed(&mut self, command: &str, lines: &[String]) -> Result<Answer> {
        let mut all = Answer { output: String::new(), code: 0 };
        let mut part = String::new();
        for (index, line) in lines.iter().enumerate() {
            part.push_str(&format!(" '{line}'"));
            if part.len() >= BYTES_AT_A_TIME || index + 1 == lines.len() {
                let answer = self.run(&format!("printf '%s\\n' {part} | {command}"))?;
                all.output.push_str(&answer.output);
                all.code = all.code.max(answer.code);
                part.clear();
            }
        }
        Ok(all)
    }

    /// Runs commands of `ip`, each without the word itself.
    ///
    /// # Errors
    /// When one of them fails.
    pub fn ip(&mut self, commands: &[String]) -> Result<()> {
        let answer = self.feed("ip -batch -", commands)?;
        ensure!(answer.code == 0, "in the guest, ip: {}", answer.output.trim());
        Ok(())
    }

    /// Adds an address ("192.0.2.1/24") to the guest's interface, usable at once.
    ///
    /// # Errors
    /// When it is there already.
    pub fn add_address(&mut self, address: &str) -> Result<()> {
        let nodad = if address.contains(':') { " nodad" } else { "" };
        self.must(&format!("ip address add {address} dev {}{nodad}", Self::INTERFACE)).map(drop)
    }

    /// Writes a kernel setting: `sysctl("net.ipv4.vs.sloppy_tcp", "1")`.
    ///
    /// # Errors
    /// When there is none of that name, or it refuses the value.
    pub fn sysctl(&mut self, key: &str, value: &str) -> Result<()> {
        let path = key.replace('.', "/");
        self.must(&format!("echo {value} > /proc/sys/{path}")).map(drop)
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// When it does not end.
    pub fn halt(mut self) -> Result<()> {
        self.console.send("0 halt -f -p -d\n")?;
        let ended = self.process.wait(HALT_LIMIT)?;
        ensure!(ended.is_some(), "the guest does not halt");
        Ok(())
    }
}

impl Drop for KernelHost {
    fn drop(&mut self) {
        // By its own pid; after `halt` there is nobody to end any more. An error has nowhere to
        // go, and the lab stops what is left of it.
        let _ = self.process.stop();
    }
}
