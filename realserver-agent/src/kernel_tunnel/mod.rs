//! The kernel's own devices for tunnels, where it has them.
//!
//! ```text
//!    what the director sends      to an IPv4 address of ours     to an IPv6 one
//!    ipip, IPv4 inside            ipip                           ip6tnl (any protocol)
//!    ipip, IPv6 inside            sit                            ip6tnl
//!    gue                          a port of fou, and the above   a port of fou, and the above
//!    gre                          gre                            ip6gre
//! ```
//!
//! A device takes what comes from anybody to its address. It cannot look at the sender's network or
//! at the VIP inside, as `decapsulation` does: who restricts senders has them unpacked there.
//!
//! A device of somebody else's that unpacks the same packets already is used as it is, and stays.
//!
//! When the agent unpacks, devices are made as well where the kernel's modules are loaded: else the
//! kernel, whose modules know of no device for a packet, would refuse it ("port unreachable"), beside
//! the agent that has its copy. What comes out of those is dropped.

mod device;
mod devices;
mod fou;
mod leftover;

use std::net::IpAddr;

use anyhow::{Result, bail};
use rtnetlink::Handle;

use crate::kind::Kind;
use device::Type;
pub use devices::Devices;
use devices::Failed;
use fou::Port;
pub(crate) use leftover::sweep;

/// What the names of our devices begin with; a number follows.
pub const PREFIX: &str = "swtun";

/// Who unpacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// The kernel where it can, else the agent.
    #[default]
    Auto,
    /// The kernel, or nobody.
    Kernel,
    /// The agent.
    Own,
}

/// What is to be unpacked.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// What may be around the packets.
    pub kinds: &'a [Kind],
    /// Our addresses that it comes to.
    pub own: &'a [IpAddr],
    /// The addresses that are inside: their families are looked at.
    pub vips: &'a [IpAddr],
}

/// What became of the wish.
#[derive(Debug)]
pub enum Made {
    /// The kernel unpacks.
    Devices(Devices),
    /// It does not, and why.
    No(String),
}

/// Makes the devices that these tunnels need to these addresses of ours: all, or none.
///
/// # Errors
/// When the kernel refuses one although it has that type.
pub async fn make(netlink: &Handle, wanted: Wanted<'_>) -> Result<Made> {
    if let Some(why) = impossible(wanted) {
        return Ok(Made::No(why));
    }
    let mut devices = Devices::default();
    match devices.make(netlink, &types(wanted), &ports(wanted)).await {
        Ok(()) => Ok(Made::Devices(devices)),
        Err(failed) => {
            devices.remove(netlink).await;
            match failed {
                Failed::Absent(what) => Ok(Made::No(what)),
                Failed::Other(error) => Err(error),
            }
        }
    }
}

/// Makes them as `by` wants it; `None` = the agent unpacks. Senders are restricted when
/// `restricted`.
///
/// # Errors
/// When the kernel is to unpack, and cannot.
pub async fn choose(
    by: By,
    netlink: &Handle,
    wanted: Wanted<'_>,
    restricted: bool,
) -> Result<Option<Devices>> {
    let made = match by {
        By::Own => return Ok(None),
        By::Auto | By::Kernel if restricted => {
            Ok(Made::No("its devices take what comes from anybody (from)".to_owned()))
        }
        By::Auto | By::Kernel => make(netlink, wanted).await,
    };
    match (made, by) {
        (Ok(Made::Devices(devices)), _) => Ok(Some(devices)),
        (Ok(Made::No(why)), By::Kernel) => {
            bail!("the kernel cannot unpack this tunnel: {why} (--tunnel-by own would do it)")
        }
        (Err(error), By::Kernel) => Err(error),
        (Ok(Made::No(why)), _) => {
            tracing::info!("the agent unpacks by itself, not the kernel: {why}");
            Ok(None)
        }
        (Err(error), _) => {
            tracing::warn!("the agent unpacks by itself, the kernel does not: {error:#}");
            Ok(None)
        }
    }
}

/// Makes devices that take the tunnels' packets away from the kernel's modules, as far as those are
/// loaded: the agent has its copies, and nobody is to be told that they were not wanted. What comes
/// out of them must be dropped.
pub async fn hush(netlink: &Handle, wanted: Wanted<'_>) -> Devices {
    // GUE comes to a socket like any other.
    let kinds = wanted.kinds.iter().copied().filter(|kind| !matches!(kind, Kind::Gue { .. }));
    let kinds: Vec<_> = kinds.collect();
    Devices::hush(netlink, &types(Wanted { kinds: &kinds, ..wanted })).await
}

/// What no kernel can do, and why.
fn impossible(wanted: Wanted<'_>) -> Option<String> {
    if wanted.own.is_empty() {
        return Some("which address of ours the tunnel leads to is not known".to_owned());
    }
    let mut gre = wanted.kinds.iter().filter_map(|kind| match kind {
        Kind::Gre { checksum } => Some(*checksum),
        _ => None,
    });
    let first = gre.next()?;
    match first {
        None => Some(
            "its gre takes either what has checksums or what has none, and which comes is not said \
             (gre:csum, gre:nocsum)"
                .to_owned(),
        ),
        Some(_) => gre.any(|other| other != first).then(|| {
            "its gre takes either what has checksums or what has none, and both are to come"
                .to_owned()
        }),
    }
}

/// The devices that these need.
fn types(wanted: Wanted<'_>) -> Vec<(Type, IpAddr)> {
    let mut needed = Vec::new();
    let [v4, v6] = [IpAddr::is_ipv4, IpAddr::is_ipv6].map(|of| wanted.vips.iter().any(of));
    for local in wanted.own {
        for kind in wanted.kinds {
            let types: &[(bool, Type)] = match (*kind, local) {
                (Kind::Ipip | Kind::Gue { .. }, IpAddr::V4(_)) => {
                    &[(v4, Type::Ipip), (v6, Type::Sit)]
                }
                (Kind::Ipip | Kind::Gue { .. }, IpAddr::V6(_)) => &[(v4 || v6, Type::Ip6tnl)],
                (Kind::Gre { checksum }, IpAddr::V4(_)) => {
                    &[(true, Type::Gre { checksum: checksum == Some(true) })]
                }
                (Kind::Gre { checksum }, IpAddr::V6(_)) => {
                    &[(true, Type::Ip6gre { checksum: checksum == Some(true) })]
                }
            };
            for (_, of) in types.iter().filter(|(inside, _)| *inside) {
                if !needed.contains(&(*of, *local)) {
                    needed.push((*of, *local));
                }
            }
        }
    }
    needed
}

/// The ports that these need.
fn ports(wanted: Wanted<'_>) -> Vec<Port> {
    let mut needed = Vec::new();
    for kind in wanted.kinds {
        let Kind::Gue { port: number } = *kind else { continue };
        for is_v4 in wanted.own.iter().map(IpAddr::is_ipv4) {
            let port = Port { number, is_v4 };
            if !needed.contains(&port) {
                needed.push(port);
            }
        }
    }
    needed
}

#[cfg(test)]
mod tests;
