//! Debian packages that the lab tests use as real clients and servers, and the parity tests as a
//! real kernel.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::privilege;

/// A program that a test runs and the package that brings it.
type Needed = (&'static str, &'static str);

/// What the lab suite runs.
pub(crate) const LAB: [Needed; 9] = [
    ("nginx", "nginx-light"),
    ("curl", "curl"),
    ("wrk", "wrk"),
    ("iperf3", "iperf3"),
    ("dnsmasq", "dnsmasq-base"),
    ("vsftpd", "vsftpd"),
    ("dig", "bind9-dnsutils"),
    ("tcpdump", "tcpdump"),
    ("ping", "iputils-ping"),
];

/// What the suite of clusters runs.
pub(crate) const NLB: [Needed; 6] = [
    ("nginx", "nginx-light"),
    ("curl", "curl"),
    ("dnsmasq", "dnsmasq-base"),
    ("dig", "bind9-dnsutils"),
    ("ping", "iputils-ping"),
    ("ip", "iproute2"),
];

/// What the suite of servers that fail runs.
pub(crate) const HEALTH: [Needed; 3] =
    [("nginx", "nginx-light"), ("haproxy", "haproxy"), ("ip", "iproute2")];

/// What the farm of caches runs.
pub(crate) const DHT: [Needed; 2] = [("dnsmasq", "dnsmasq-base"), ("ip", "iproute2")];

/// What the operator's tools are tried with.
pub(crate) const OPERATE: [Needed; 7] = [
    ("nginx", "nginx-light"),
    ("curl", "curl"),
    ("dnsmasq", "dnsmasq-base"),
    ("vsftpd", "vsftpd"),
    ("ip", "iproute2"),
    ("python3", "python3"),
    ("unshare", "util-linux"),
];

/// What the parity suite runs: a Linux kernel as a program, and what is started in it.
pub(crate) const PARITY: [Needed; 5] = [
    ("linux.uml", "user-mode-linux"),
    ("ipvsadm", "ipvsadm"),
    ("modprobe", "kmod"),
    ("iptables-legacy", "iptables"),
    ("ip", "iproute2"),
];

/// What the golden suite runs beside those: who calls `ipvsadm`, and what that watches.
pub(crate) const GOLDEN: [Needed; 3] =
    [("ldirectord", "ldirectord"), ("nginx", "nginx-light"), ("unshare", "util-linux")];

/// What the Debian package is made and tried with.
pub(crate) const PACKAGE: [Needed; 2] = [("dpkg-shlibdeps", "dpkg-dev"), ("unshare", "util-linux")];

/// Services that a package would start on installation are not to run on the developer's
/// machine: this file tells Debian so. It is taken away again if it is ours.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Installs what is missing.
///
/// # Errors
/// When it cannot be installed; says how to do it by hand.
pub(crate) fn install(needed: &[Needed]) -> Result<()> {
    let missing: Vec<&str> = needed
        .iter()
        .filter(|(program, _)| !is_present(program))
        .map(|&(_, package)| package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if !is_present("apt-get") {
        bail!("the tests need these programs, and this is no Debian: install {list}");
    }
    eprintln!("the tests need Debian packages that are not here; installing: {list}");
    let script = format!(
        "set -e; export DEBIAN_FRONTEND=noninteractive; \
         if [ ! -e {POLICY} ]; then \
             printf '#!/bin/sh\\nexit 101\\n' > {POLICY}; chmod 755 {POLICY}; \
             trap 'rm -f {POLICY}' EXIT; \
         fi; \
         apt-get update -qq; apt-get install -y -qq --no-install-recommends {list}"
    );
    let done = privilege::as_root(Path::new("/bin/sh"), "installing packages")?
        .args(["-c", &script])
        .stdout(Stdio::null())
        .status()
        .context("cannot run apt-get")?;
    if !done.success() {
        bail!("installing failed; by hand: apt-get install {list}");
    }
    Ok(())
}

/// Whether a program is there, also in the folders that only root has in its path.
fn is_present(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let all = path.split(':').chain(["/usr/sbin", "/sbin", "/usr/local/sbin"]);
    all.map(|folder| Path::new(folder).join(program)).any(|file| file.is_file())
        || Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok()
}
