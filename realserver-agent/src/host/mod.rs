//! Prepares the host for the VIPs and puts everything back.
//!
//! The *ARP problem*: a real server has the VIP, but only the director may answer for it on the
//! segment. So the VIP goes on `lo`, and
//!
//! * `arp_ignore=1`: ARP is answered only for addresses of the interface that is asked, which
//!   leaves out those on `lo`;
//! * `arp_announce=2`: our own ARP requests never carry the VIP as sender;
//! * IPv6 needs neither: neighbour discovery looks an address up on the interface that was asked,
//!   and takes a packet's source into a solicitation only if the outgoing interface has it.
//!
//! For tunnels the packet that comes out of the tunnel has a source that is routed elsewhere, so
//! the reverse path filter must not run: `rp_filter=0`.
//!
//! What was made here is also kept so ([`Preparation::keep`]): whoever takes a VIP away or sets a
//! setting back finds it as it was two seconds later.

mod keep;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use anyhow::{Context, Result};
use netlink_packet_route::address::{AddressAttribute, AddressFlags};
use rtnetlink::{AddressMessageBuilder, Handle, LinkUnspec};

use crate::leftover;

/// Settings that keep quiet about IPv4 VIPs: path under `/proc/sys`, and value.
pub const QUIET: [(&str, &str); 2] =
    [("net/ipv4/conf/all/arp_ignore", "1"), ("net/ipv4/conf/all/arp_announce", "2")];
/// "File exists", as netlink says it.
const EXISTS: i32 = nix::libc::EEXIST;

/// One change and how to take it back.
#[derive(Debug)]
enum Change {
    Setting { path: PathBuf, value: String, before: String },
    Address { vip: IpAddr, label: Option<String> },
}

/// What has been changed on this host. Call [`undo`](Preparation::undo) at the end.
#[derive(Debug)]
pub struct Preparation {
    netlink: Handle,
    /// To be made before the VIPs come: key and value.
    settings: Vec<(String, &'static str)>,
    changes: Vec<Change>,
    /// How often something had to be made again.
    restored: u64,
    /// What has been told of that already.
    told: BTreeSet<String>,
}

impl Preparation {
    /// Nothing changed yet. Needs a tokio runtime, on which it leaves a netlink connection.
    ///
    /// # Errors
    /// When netlink cannot be opened.
    pub fn new() -> Result<Preparation> {
        let (connection, netlink, _) =
            rtnetlink::new_connection().context("open a netlink socket")?;
        tokio::spawn(connection);
        let (settings, changes) = (Vec::new(), Vec::new());
        Ok(Preparation { netlink, settings, changes, restored: 0, told: BTreeSet::new() })
    }

    /// The connection to the kernel, for others that change the host.
    pub(crate) fn netlink(&self) -> &Handle {
        &self.netlink
    }

    /// The VIPs that have been put on `lo` here.
    pub fn vips(&self) -> Vec<IpAddr> {
        let vip = |change: &Change| match change {
            Change::Address { vip, .. } => Some(*vip),
            Change::Setting { .. } => None,
        };
        self.changes.iter().filter_map(vip).collect()
    }

    /// The settings that have been changed here: path under `/proc/sys`, and value.
    pub fn settings(&self) -> Vec<(String, String)> {
        let setting = |change: &Change| match change {
            Change::Setting { path, value, .. } => {
                let key = path.strip_prefix("/proc/sys").unwrap_or(path);
                Some((key.display().to_string(), value.clone()))
            }
            Change::Address { .. } => None,
        };
        self.changes.iter().filter_map(setting).collect()
    }

    /// For VIPs at a multicast Ethernet address: what comes to it on `interface` is taken only when
    /// a filter has given it to this host. Without a filter (its process was killed) the stack would
    /// answer every ping and datagram, beside the others. To be called before the VIPs are added.
    pub fn take_nothing_of_groups(&mut self, interface: &str) {
        for family in ["ipv4", "ipv6"] {
            let key = format!("net/{family}/conf/{interface}/drop_unicast_in_l2_multicast");
            // Absent where IPv6 is off.
            if setting(&key).exists() {
                self.settings.push((key, "1"));
            }
        }
    }

    /// Puts the VIPs on `lo`, silently. One that is there already stays there also at the end,
    /// unless a process that was killed has left it: then it goes at the end, and the settings
    /// become what they were before that process.
    ///
    /// # Errors
    /// When `CAP_NET_ADMIN` is missing or `/proc/sys` cannot be written. What was done before the
    /// error can still be undone.
    pub async fn add_vips(&mut self, vips: &[IpAddr]) -> Result<()> {
        if vips.is_empty() && self.settings.is_empty() {
            // A server behind NAT need not be allowed to change its host.
            return Ok(());
        }
        let lo = index("lo")?;
        let mut left = leftover::find(&self.netlink, lo).await?;
        left.retain(|leftover| vips.contains(&leftover.vip));
        // Quiet first: between the two the neighbours would hear of the VIP.
        let mut settings = std::mem::take(&mut self.settings);
        if vips.iter().any(IpAddr::is_ipv4) {
            let quiet = QUIET.map(|(key, value)| (key.to_owned(), value));
            settings.splice(..0, quiet);
        }
        let before = left.iter().find_map(|leftover| leftover.before.clone()).unwrap_or_default();
        for (place, (key, value)) in settings.iter().enumerate() {
            match before.get(place) {
                Some(before) => self.inherit(key, value, before)?,
                None => self.set(key, value)?,
            }
        }
        let before: Vec<&str> =
            settings.iter().map(|(key, value)| self.before(key).unwrap_or(value)).collect();
        let label = leftover::label(&before);
        let up = LinkUnspec::new_with_index(lo).up().build();
        self.netlink.link().set(up).execute().await.context("set lo up")?;
        for vip in vips {
            let label = label.clone().filter(|_| vip.is_ipv4());
            match put(&self.netlink, lo, *vip, label.as_ref()).await {
                Ok(()) => self.changes.push(Change::Address { vip: *vip, label }),
                Err(rtnetlink::Error::NetlinkError(error))
                    if error.raw_code() == -EXISTS && left.iter().any(|it| it.vip == *vip) =>
                {
                    tracing::info!(%vip, "was left on lo by a process that was killed");
                    self.changes.push(Change::Address { vip: *vip, label });
                }
                Err(rtnetlink::Error::NetlinkError(error)) if error.raw_code() == -EXISTS => {
                    tracing::info!(%vip, "is on lo already, and will stay there");
                }
                Err(error) => {
                    return Err(error).with_context(|| {
                        format!("put {vip} on lo: CAP_NET_ADMIN is needed (and IPv6 enabled)")
                    });
                }
            }
        }
        Ok(())
    }

    /// Brings the tunnel's device up, and lets it take packets from everywhere. Its own settings
    /// go away with the device.
    ///
    /// # Errors
    /// As for [`add_vips`](Preparation::add_vips).
    pub async fn open_device(&mut self, device: &str) -> Result<()> {
        // The kernel takes the larger of the two, `all` and the device's.
        self.set("net/ipv4/conf/all/rp_filter", "0")?;
        write(&setting(&format!("net/ipv4/conf/{device}/rp_filter")), "0")?;
        // Nobody listens on the other side of the device: no link-local address, so no router
        // solicitations. Absent where IPv6 is off.
        let addresses = setting(&format!("net/ipv6/conf/{device}/addr_gen_mode"));
        if addresses.exists() {
            write(&addresses, "1")?;
        }
        let up = LinkUnspec::new_with_index(index(device)?).up().build();
        self.netlink.link().set(up).execute().await.with_context(|| format!("set {device} up"))
    }

    /// Brings a device up that takes packets and lets none of them in: for no source is routed by it.
    ///
    /// # Errors
    /// As for [`add_vips`](Preparation::add_vips).
    pub async fn hush_device(&mut self, device: &str) -> Result<()> {
        write(&setting(&format!("net/ipv4/conf/{device}/rp_filter")), "1")?;
        let without_ipv6 = setting(&format!("net/ipv6/conf/{device}/disable_ipv6"));
        // Absent where IPv6 is off.
        if without_ipv6.exists() {
            write(&without_ipv6, "1")?;
        }
        let up = LinkUnspec::new_with_index(index(device)?).up().build();
        self.netlink.link().set(up).execute().await.with_context(|| format!("set {device} up"))
    }

    /// Takes these VIPs from `lo`, of those that have been put there here.
    pub async fn remove_vips(&mut self, vips: &[IpAddr]) {
        let mut kept = Vec::new();
        for change in std::mem::take(&mut self.changes) {
            match &change {
                Change::Address { vip, .. } if vips.contains(vip) => {
                    if let Err(error) = remove_vip(&self.netlink, *vip).await {
                        tracing::warn!("cannot take {vip} from lo: {error:#}");
                    }
                }
                _ => kept.push(change),
            }
        }
        self.changes = kept;
    }

    /// Takes every change back, the last first. An error does not keep the rest from being done.
    pub async fn undo(self) {
        for change in self.changes.into_iter().rev() {
            let undone = match &change {
                Change::Setting { path, before, .. } => write(path, before),
                Change::Address { vip, .. } => remove_vip(&self.netlink, *vip).await,
            };
            if let Err(error) = undone {
                tracing::warn!("cannot take back {change:?}: {error:#}");
            }
        }
    }

    /// A setting that a process that was killed has made; it was `before` then.
    fn inherit(&mut self, key: &str, value: &str, before: &str) -> Result<()> {
        let path = setting(key);
        write(&path, value)?;
        if before != value {
            let (value, before) = (value.to_owned(), before.to_owned());
            self.changes.push(Change::Setting { path, value, before });
        }
        Ok(())
    }

    /// What a setting was before, if it has been changed.
    fn before(&self, key: &str) -> Option<&str> {
        let wanted = setting(key);
        self.changes.iter().find_map(|change| match change {
            Change::Setting { path, before, .. } if *path == wanted => Some(before.as_str()),
            _ => None,
        })
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let path = setting(key);
        let before = std::fs::read_to_string(&path)
            .with_context(|| format!("read {}", path.display()))?
            .trim()
            .to_owned();
        if before != value {
            write(&path, value)?;
            self.changes.push(Change::Setting { path, value: value.to_owned(), before });
        }
        Ok(())
    }
}

async fn put(
    netlink: &Handle,
    lo: u32,
    vip: IpAddr,
    label: Option<&String>,
) -> Result<(), rtnetlink::Error> {
    let prefix = if vip.is_ipv4() { 32 } else { 128 };
    let mut request = netlink.address().add(lo, vip, prefix);
    if vip.is_ipv6() {
        let flags = AddressAttribute::Flags(AddressFlags::Nodad);
        request.message_mut().attributes.push(flags);
    }
    leftover::mark(request.message_mut(), label);
    request.execute().await
}

async fn remove_vip(netlink: &Handle, vip: IpAddr) -> Result<()> {
    let lo = index("lo")?;
    let message = match vip {
        IpAddr::V4(vip) => {
            AddressMessageBuilder::<Ipv4Addr>::new().index(lo).address(vip, 32).build()
        }
        IpAddr::V6(vip) => {
            AddressMessageBuilder::<Ipv6Addr>::new().index(lo).address(vip, 128).build()
        }
    };
    netlink.address().del(message).execute().await.with_context(|| format!("remove {vip} from lo"))
}

fn setting(key: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(key)
}

fn write(path: &std::path::Path, value: &str) -> Result<()> {
    std::fs::write(path, value).with_context(|| {
        format!("write {value} to {}: root, and a writable /proc/sys, are needed", path.display())
    })
}

fn index(interface: &str) -> Result<u32> {
    nix::net::if_::if_nametoindex(interface).with_context(|| format!("no interface {interface}"))
}
