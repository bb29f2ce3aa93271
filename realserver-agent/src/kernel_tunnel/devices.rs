//! The devices and ports that an agent has made, and how they come and go.
//!
//! Knows how to make them, and what is somebody else's. Must not know which tunnels need which.

use std::io::{self, ErrorKind};
use std::net::IpAddr;

use anyhow::{Context, Result, ensure};
use rtnetlink::Handle;

use super::device::{self, Found, Type};
use super::fou::{Fou, Port};
use super::{PREFIX, leftover};

/// Devices and ports that have been made.
#[derive(Debug, Default)]
pub struct Devices {
    names: Vec<String>,
    others: Vec<String>,
    ports: Vec<Port>,
}

/// Why a step of making came to nothing.
pub(super) enum Failed {
    /// The kernel has no such thing.
    Absent(String),
    Other(anyhow::Error),
}

impl Devices {
    /// Those that keep the kernel's modules from refusing what the agent takes: of the types whose
    /// modules are loaded. One of somebody else's is told of.
    pub(super) async fn hush(netlink: &Handle, needed: &[(Type, IpAddr)]) -> Devices {
        let mut devices = Devices::default();
        let found = device::all(netlink).await.unwrap_or_default();
        for (of, local) in needed {
            // The first device of a type comes with its module.
            if !found.iter().any(|it| it.of.word() == of.word()) && !of.is_loaded() {
                continue;
            }
            let name = devices.free_name();
            match device::add(netlink, &name, *of, *local).await {
                Ok(()) => devices.names.push(name),
                Err(error) if is(&error, nix::libc::EEXIST) => {
                    let same = found.iter().find(|it| it.unpacks_as(*of, *local));
                    let (name, is_up) = same.map_or(("?", true), |it| (&it.name, it.is_up));
                    let then = match is_up {
                        true => "each arrives twice",
                        false => "the kernel refuses each, although the agent takes it",
                    };
                    tracing::warn!(
                        "the device {name}, not ours, is for the same packets as the agent: {then} \
                         (ip link del {name})"
                    );
                }
                Err(error) => tracing::warn!(
                    "the kernel refuses the director's packets to {local}, although the agent takes \
                     them: its module for {} is loaded, and a device cannot be made: {error}",
                    of.word()
                ),
            }
        }
        devices
    }

    /// The names of those that were made here.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The names of those that somebody else has made: they are used, and not changed.
    pub fn others(&self) -> &[String] {
        &self.others
    }

    /// Makes what is needed, or some of it: then the rest is to be removed.
    pub(super) async fn make(
        &mut self,
        netlink: &Handle,
        needed: &[(Type, IpAddr)],
        ports: &[Port],
    ) -> Result<(), Failed> {
        for (of, local) in needed.iter().copied() {
            let name = self.free_name();
            match device::add(netlink, &name, of, local).await {
                Ok(()) => self.names.push(name),
                Err(error) if is(&error, nix::libc::EEXIST) => {
                    let other = other(netlink, of, local).await.map_err(Failed::Other)?;
                    tracing::info!(
                        "{} of somebody else's unpacks what comes to {local}, and is left as it is",
                        other.name
                    );
                    self.others.push(other.name);
                }
                // There is no such type, and no module to be loaded that would bring it.
                Err(error) if is(&error, nix::libc::EOPNOTSUPP) => {
                    let why = format!("it has no devices of type {}", of.word());
                    return Err(Failed::Absent(why));
                }
                Err(error) => {
                    let what = format!("make the device {name} of type {} at {local}", of.word());
                    return Err(Failed::Other(anyhow::Error::from(error).context(what)));
                }
            }
        }
        if !ports.is_empty() {
            self.open(ports).await?;
            if let Some(name) = self.names.first() {
                let note = leftover::note(&self.ports);
                device::write_note(netlink, name, note).await.map_err(Failed::Other)?;
            }
        }
        Ok(())
    }

    /// A name for the next one. What has such a name already is not ours: those were swept away.
    fn free_name(&self) -> String {
        let names = (0u16..).map(|number| format!("{PREFIX}{number}"));
        let mut free = names.filter(|name| nix::net::if_::if_nametoindex(name.as_str()).is_err());
        free.next().unwrap_or_default()
    }

    async fn open(&mut self, ports: &[Port]) -> Result<(), Failed> {
        let absent = || Failed::Absent("it has no fou, which would unpack gue".to_owned());
        let fou = Fou::load().await.context("ask the kernel for fou").map_err(Failed::Other)?;
        let fou = fou.ok_or_else(absent)?;
        for port in ports {
            match fou.add(*port) {
                Ok(()) => self.ports.push(*port),
                Err(error) if error.raw_os_error() == Some(nix::libc::EAFNOSUPPORT) => {
                    return Err(absent());
                }
                Err(error) => {
                    let what = match error.kind() {
                        ErrorKind::AddrInUse => " (it must be free: ss -lun, ip fou show)",
                        _ => "",
                    };
                    let what = format!("have the kernel take GUE on UDP port {port}{what}");
                    return Err(Failed::Other(anyhow::Error::from(error).context(what)));
                }
            }
        }
        Ok(())
    }

    /// Takes away what was made here.
    pub async fn remove(self, netlink: &Handle) {
        if let Err(error) = close(&self.ports) {
            let ports: Vec<_> = self.ports.iter().map(Port::to_string).collect();
            tracing::warn!("cannot close the ports for gue {ports:?} (ip fou del): {error}");
        }
        for name in self.names.iter().rev() {
            if let Err(error) = device::remove(netlink, name).await {
                tracing::warn!("cannot remove the device {name}: {error:#}");
            }
        }
    }
}

/// Whether this is what the kernel has said.
fn is(error: &rtnetlink::Error, code: i32) -> bool {
    matches!(error, rtnetlink::Error::NetlinkError(error) if error.raw_code() == -code)
}

/// Closes ports, all of them; the first error is told.
pub(super) fn close(ports: &[Port]) -> io::Result<()> {
    if ports.is_empty() {
        return Ok(());
    }
    let Some(fou) = Fou::open()? else { return Ok(()) };
    let closed: Vec<_> = ports.iter().map(|port| fou.remove(*port)).collect();
    closed.into_iter().collect()
}

/// The device that is in the way of another one with the same ends.
async fn other(netlink: &Handle, of: Type, local: IpAddr) -> Result<Found> {
    let found = device::all(netlink).await?;
    let found = found.into_iter().find(|it| it.unpacks_as(of, local)).with_context(|| {
        format!("there is a device of type {} at {local} already, and it is not shown", of.word())
    })?;
    let name = &found.name;
    ensure!(
        found.is_up,
        "the device {name}, not ours, takes what comes to {local} and is down: ip link set {name} \
         up, or ip link del {name}"
    );
    ensure!(
        found.of == of,
        "the device {name}, not ours, takes what comes to {local}, but not with the checksums that \
         the director's file says: ip link del {name}"
    );
    Ok(found)
}
