//! One tunnel device of the kernel: made, found among all others, taken away.
//!
//! Knows links. Must not know which are wanted.

use std::net::IpAddr;

use anyhow::{Context, Result};
use futures_util::TryStreamExt;
use netlink_packet_route::IpProtocol;
use netlink_packet_route::link::{
    GreIOFlags, InfoData, InfoGre, InfoGre6, InfoIpTunnel, InfoKind, LinkAttribute, LinkFlags,
    LinkInfo, LinkMessage,
};
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec};

/// What unpacks, whoever sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Ipip,
    Sit,
    Ip6tnl,
    /// A device takes either what has checksums or what has none.
    Gre {
        checksum: bool,
    },
    /// The same over IPv6.
    Ip6gre {
        checksum: bool,
    },
}

impl Type {
    /// As `ip link` names it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Type::Ipip => "ipip",
            Type::Sit => "sit",
            Type::Ip6tnl => "ip6tnl",
            Type::Gre { .. } => "gre",
            Type::Ip6gre { .. } => "ip6gre",
        }
    }

    /// Whether its module is loaded: then the kernel looks for a device for each of its packets.
    pub(super) fn is_loaded(self) -> bool {
        let module = match self {
            Type::Ipip => "ipip",
            Type::Sit => "sit",
            Type::Ip6tnl => "ip6_tunnel",
            Type::Gre { .. } => "ip_gre",
            Type::Ip6gre { .. } => "ip6_gre",
        };
        std::path::Path::new("/sys/module").join(module).exists()
    }
}

/// A tunnel device that there is.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) of: Type,
    /// The address that it takes packets to; `None` = all.
    pub(super) local: Option<IpAddr>,
    /// Whether it takes them from anybody.
    pub(super) from_all: bool,
    pub(super) is_up: bool,
    /// What somebody has written on it.
    pub(super) note: String,
}

impl Found {
    /// Whether it takes the same packets as one of this type at `local`, and no fewer.
    pub(super) fn unpacks_as(&self, of: Type, local: IpAddr) -> bool {
        self.of.word() == of.word() && self.local == Some(local) && self.from_all
    }
}

/// Makes a device, down, that takes what comes to `local`, whoever sends it.
pub(super) async fn add(
    netlink: &Handle,
    name: &str,
    of: Type,
    local: IpAddr,
) -> Result<(), rtnetlink::Error> {
    // 0 = any protocol inside: not to be named otherwise.
    let any = InfoIpTunnel::Protocol(IpProtocol::from(0));
    let flags = |checksum| match checksum {
        true => GreIOFlags::Checksum,
        false => GreIOFlags::empty(),
    };
    let (kind, data) = match (of, local) {
        (Type::Ipip, _) => (InfoKind::IpIp, InfoData::IpTunnel(vec![InfoIpTunnel::Local(local)])),
        (Type::Sit, _) => (InfoKind::SitTun, InfoData::IpTunnel(vec![InfoIpTunnel::Local(local)])),
        (Type::Ip6tnl, _) => {
            (InfoKind::Ip6Tnl, InfoData::IpTunnel(vec![InfoIpTunnel::Local(local), any]))
        }
        (Type::Gre { checksum } | Type::Ip6gre { checksum }, IpAddr::V4(local)) => {
            let data = vec![InfoGre::Local(local), InfoGre::IFlags(flags(checksum))];
            (InfoKind::GreTun, InfoData::GreTun(data))
        }
        (Type::Gre { checksum } | Type::Ip6gre { checksum }, IpAddr::V6(local)) => {
            let data = vec![InfoGre6::Local(local), InfoGre6::IFlags(flags(checksum))];
            (InfoKind::GreTun6, InfoData::GreTun6(data))
        }
    };
    let message = LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(kind)
        .name(name)
        .set_info_data(data)
        .build();
    netlink.link().add(message).execute().await
}

/// Writes a note on a device, which `ip link` shows as its alias.
pub(super) async fn write_note(netlink: &Handle, name: &str, note: String) -> Result<()> {
    let index = nix::net::if_::if_nametoindex(name)?;
    let message = LinkUnspec::new_with_index(index).alias(note).build();
    netlink.link().set(message).execute().await.with_context(|| format!("set the alias of {name}"))
}

/// Takes a device away.
pub(super) async fn remove(netlink: &Handle, name: &str) -> Result<()> {
    let index = nix::net::if_::if_nametoindex(name)?;
    Ok(netlink.link().del(index).execute().await?)
}

/// All tunnel devices that there are, whoever made them.
///
/// # Errors
/// When the kernel does not list them.
pub(super) async fn all(netlink: &Handle) -> Result<Vec<Found>> {
    let listed: Vec<LinkMessage> =
        netlink.link().get().execute().try_collect().await.context("list the interfaces")?;
    Ok(listed.iter().filter_map(read).collect())
}

fn read(link: &LinkMessage) -> Option<Found> {
    let (mut name, mut note, mut kind, mut data) = (None, String::new(), None, None);
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(text) => name = Some(text.clone()),
            LinkAttribute::IfAlias(text) => note.clone_from(text),
            LinkAttribute::LinkInfo(infos) => {
                for info in infos {
                    match info {
                        LinkInfo::Kind(is) => kind = Some(is),
                        LinkInfo::Data(is) => data = Some(is),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let (of, ends) = match (kind?, data?) {
        (InfoKind::IpIp, InfoData::IpTunnel(data)) => (Type::Ipip, plain(data)),
        (InfoKind::SitTun, InfoData::IpTunnel(data)) => (Type::Sit, plain(data)),
        (InfoKind::Ip6Tnl, InfoData::IpTunnel(data)) => (Type::Ip6tnl, plain(data)),
        (InfoKind::GreTun, InfoData::GreTun(data)) => {
            let checksum = data.iter().any(
                |it| matches!(it, InfoGre::IFlags(flags) if flags.contains(GreIOFlags::Checksum)),
            );
            let ends = ends(data.iter().filter_map(|it| match it {
                InfoGre::Local(address) => Some((true, IpAddr::V4(*address))),
                InfoGre::Remote(address) => Some((false, IpAddr::V4(*address))),
                _ => None,
            }));
            (Type::Gre { checksum }, ends)
        }
        (InfoKind::GreTun6, InfoData::GreTun6(data)) => {
            let checksum = data.iter().any(
                |it| matches!(it, InfoGre6::IFlags(flags) if flags.contains(GreIOFlags::Checksum)),
            );
            let ends = ends(data.iter().filter_map(|it| match it {
                InfoGre6::Local(address) => Some((true, IpAddr::V6(*address))),
                InfoGre6::Remote(address) => Some((false, IpAddr::V6(*address))),
                _ => None,
            }));
            (Type::Ip6gre { checksum }, ends)
        }
        _ => return None,
    };
    let is_up = link.header.flags.contains(LinkFlags::Up);
    let (local, from_all) = ends;
    Some(Found { name: name?, of, local, from_all, is_up, note })
}

/// Of a device that knows no more than addresses.
fn plain(data: &[InfoIpTunnel]) -> (Option<IpAddr>, bool) {
    ends(data.iter().filter_map(|it| match it {
        InfoIpTunnel::Local(address) => Some((true, *address)),
        InfoIpTunnel::Remote(address) => Some((false, *address)),
        _ => None,
    }))
}

/// The address that it takes packets to, and whether from anybody; the addresses come with a word
/// whether they are local. "Any" is left out by the kernel, or written as zeros.
fn ends(addresses: impl Iterator<Item = (bool, IpAddr)>) -> (Option<IpAddr>, bool) {
    let (mut local, mut from_all) = (None, true);
    for (is_local, address) in addresses.filter(|(_, address)| !address.is_unspecified()) {
        match is_local {
            true => local = Some(address),
            false => from_all = false,
        }
    }
    (local, from_all)
}
