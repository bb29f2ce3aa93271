//! The kernel's own devices for tunnels, where it has them.
//!
//! ```text
//!    what the director sends      to an IPv4 address of ours    to an IPv6 one
//!    ipip, IPv4 inside            ipip                          ip6tnl (any protocol)
//!    ipip, IPv6 inside            sit                           ip6tnl
//!    gre                          gre                           ip6gre
//!    gue                          not by the kernel: its fou ports are not used
//! ```
//!
//! A device takes what comes from anybody to its address. It cannot look at the sender's network or
//! at the VIP inside, as `decapsulation` does: who restricts senders has them unpacked there.

use std::io::ErrorKind;
use std::net::IpAddr;

use anyhow::{Context, Result, bail};
use netlink_packet_route::IpProtocol;
use netlink_packet_route::link::{InfoData, InfoGre, InfoGre6, InfoIpTunnel, InfoKind};
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec};

use crate::kind::Kind;

/// What the names of our devices begin with.
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

/// A device to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Ipip,
    Sit,
    Ip6tnl,
    Gre,
    Ip6gre,
}

/// Devices that have been made.
#[derive(Debug, Default)]
pub struct Devices {
    names: Vec<String>,
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
pub async fn make(netlink: &Handle, kinds: &[Kind], own: &[IpAddr]) -> Result<Made> {
    if kinds.iter().any(|kind| matches!(kind, Kind::Gue { .. })) {
        return Ok(Made::No("for gue its fou ports are not used".to_owned()));
    }
    if own.is_empty() {
        return Ok(Made::No("which address of ours the tunnel leads to is not known".to_owned()));
    }
    let mut devices = Devices::default();
    for (of, local) in types(kinds, own) {
        let name = format!("{PREFIX}{}", devices.names.len());
        if let Ok(index) = nix::net::if_::if_nametoindex(name.as_str()) {
            tracing::info!("the device {name} was left by a process that was killed");
            let removed = netlink.link().del(index).execute().await;
            removed.with_context(|| format!("remove the device {name}"))?;
        }
        let made = add(netlink, &name, of, local).await;
        if made.is_ok() {
            devices.names.push(name.clone());
        }
        match made {
            Ok(()) => {}
            Err(rtnetlink::Error::NetlinkError(error))
                if error.to_io().kind() == ErrorKind::Unsupported
                    || error.raw_code() == -nix::libc::EOPNOTSUPP =>
            {
                devices.remove(netlink).await;
                return Ok(Made::No(format!("it has no devices of type {}", of.word())));
            }
            Err(error) => {
                devices.remove(netlink).await;
                let what = format!("make the device {name} of type {} at {local}", of.word());
                return Err(error).context(what);
            }
        }
    }
    Ok(Made::Devices(devices))
}

/// Makes them as `by` wants it; `None` = the agent unpacks. Senders are restricted when
/// `restricted`.
///
/// # Errors
/// When the kernel is to unpack, and cannot.
pub async fn choose(
    by: By,
    netlink: &Handle,
    kinds: &[Kind],
    own: &[IpAddr],
    restricted: bool,
) -> Result<Option<Devices>> {
    let made = match by {
        By::Own => return Ok(None),
        By::Auto | By::Kernel if restricted => {
            Ok(Made::No("its devices take what comes from anybody (from)".to_owned()))
        }
        By::Auto | By::Kernel => make(netlink, kinds, own).await,
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

impl Devices {
    /// Their names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Takes them away.
    pub async fn remove(self, netlink: &Handle) {
        for name in self.names.iter().rev() {
            let removed = match nix::net::if_::if_nametoindex(name.as_str()) {
                Ok(index) => netlink.link().del(index).execute().await.map_err(Into::into),
                Err(error) => Err(anyhow::Error::from(error)),
            };
            if let Err(error) = removed {
                tracing::warn!("cannot remove the device {name}: {error:#}");
            }
        }
    }
}

fn types(kinds: &[Kind], own: &[IpAddr]) -> Vec<(Type, IpAddr)> {
    let mut wanted = Vec::new();
    for local in own {
        for kind in kinds {
            let types: &[Type] = match (kind, local) {
                (Kind::Ipip, IpAddr::V4(_)) => &[Type::Ipip, Type::Sit],
                (Kind::Ipip, IpAddr::V6(_)) => &[Type::Ip6tnl],
                (Kind::Gre, IpAddr::V4(_)) => &[Type::Gre],
                (Kind::Gre, IpAddr::V6(_)) => &[Type::Ip6gre],
                (Kind::Gue { .. }, _) => &[],
            };
            let types = types.iter().map(|of| (*of, *local));
            wanted.extend(types.filter(|it| !wanted.contains(it)).collect::<Vec<_>>());
        }
    }
    wanted
}

impl Type {
    fn word(self) -> &'static str {
        match self {
            Type::Ipip => "ipip",
            Type::Sit => "sit",
            Type::Ip6tnl => "ip6tnl",
            Type::Gre => "gre",
            Type::Ip6gre => "ip6gre",
        }
    }
}

async fn add(
    netlink: &Handle,
    name: &str,
    of: Type,
    local: IpAddr,
) -> Result<(), rtnetlink::Error> {
    // 0 = any protocol inside: not to be named otherwise.
    let any = InfoIpTunnel::Protocol(IpProtocol::from(0));
    let (kind, data) = match (of, local) {
        (Type::Ipip, _) => (InfoKind::IpIp, InfoData::IpTunnel(vec![InfoIpTunnel::Local(local)])),
        (Type::Sit, _) => (InfoKind::SitTun, InfoData::IpTunnel(vec![InfoIpTunnel::Local(local)])),
        (Type::Ip6tnl, _) => {
            (InfoKind::Ip6Tnl, InfoData::IpTunnel(vec![InfoIpTunnel::Local(local), any]))
        }
        (Type::Gre | Type::Ip6gre, IpAddr::V4(local)) => {
            (InfoKind::GreTun, InfoData::GreTun(vec![InfoGre::Local(local)]))
        }
        (Type::Gre | Type::Ip6gre, IpAddr::V6(local)) => {
            (InfoKind::GreTun6, InfoData::GreTun6(vec![InfoGre6::Local(local)]))
        }
    };
    let message = LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(kind)
        .name(name)
        .set_info_data(data)
        .build();
    netlink.link().add(message).execute().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tunnel_has_its_devices_by_the_family_of_the_servers_address() {
        let [v4, v6]: [IpAddr; 2] = ["10.0.0.11", "2001:db8::11"].map(|it| it.parse().unwrap());
        assert_eq!(types(&[Kind::Ipip], &[v4]), [(Type::Ipip, v4), (Type::Sit, v4)]);
        assert_eq!(types(&[Kind::Ipip, Kind::Ipip], &[v6]), [(Type::Ip6tnl, v6)]);
        let both = [(Type::Gre, v4), (Type::Ip6gre, v6)];
        assert_eq!(types(&[Kind::Gre], &[v4, v6]), both);
    }
}
