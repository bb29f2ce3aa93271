//! A host of the lab: what an operator would type on it, as functions.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rtnetlink::{Handle, RouteMessageBuilder};

use super::namespace::Namespace;
use super::{Command, Inner, Mac, Prefix, link, netlink, readiness};

/// A host: one network namespace. Cheap to clone; useless once its lab has been dropped.
#[derive(Clone, Debug)]
pub struct Host {
    lab: Arc<Inner>,
    name: String,
    namespace: Namespace,
}

/// Settings of every new host. A new namespace inherits the machine's IPv4 settings, so those
/// that tests depend on are written, whatever the machine has.
const SETTINGS: &[(&str, &str)] = &[
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    ("net.ipv4.conf.all.arp_ignore", "0"),
    ("net.ipv4.conf.default.arp_ignore", "0"),
    ("net.ipv4.conf.all.arp_announce", "0"),
    ("net.ipv4.conf.default.arp_announce", "0"),
    ("net.ipv4.ip_forward", "0"),
    ("net.ipv4.ping_group_range", "0 0"),
    // Addresses are ready at once: no duplicate address detection.
    ("net.ipv6.conf.all.accept_dad", "0"),
    ("net.ipv6.conf.default.accept_dad", "0"),
    ("net.ipv6.conf.default.dad_transmits", "0"),
    // Nobody speaks unless a test makes him.
    ("net.ipv6.conf.all.accept_ra", "0"),
    ("net.ipv6.conf.default.accept_ra", "0"),
    ("net.ipv6.conf.default.router_solicitations", "0"),
];

impl Host {
    pub(super) fn new(lab: Arc<Inner>, name: &str, namespace: Namespace) -> Host {
        Host { lab, name: name.to_owned(), namespace }
    }

    pub(super) fn lab(&self) -> &Arc<Inner> {
        &self.lab
    }

    /// The first settings of a new namespace, and `lo` up.
    pub(super) fn prepare(&self) -> Result<()> {
        self.run(|| {
            for (key, value) in SETTINGS {
                write_sysctl(key, value)?;
            }
            let index = netlink::index("lo")?;
            netlink::request(async |handle| link::set_up(&handle, index, true).await)
        })?
        .with_context(|| format!("prepare host {}", self.name))
    }

    /// The name given to [`Lab::host`](super::Lab::host).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace's full name, for `ip netns exec`.
    pub fn namespace(&self) -> &str {
        self.namespace.name()
    }

    pub(super) fn namespace_file(&self) -> Result<File> {
        File::open(Path::new("/run/netns").join(self.namespace()))
            .with_context(|| format!("host {}: has its lab been dropped?", self.name))
    }

    /// Runs `work` on a thread inside the host and waits for it. Sockets opened in `work` stay in
    /// the host, also when they are returned. A panic in `work` continues in the caller.
    ///
    /// Inside, `/proc/sys` and `/sys/class/net` are the host's; for `/proc/net` write
    /// `/proc/thread-self/net`.
    ///
    /// # Errors
    /// When the host is gone.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        self.namespace.run(work)
    }

    /// A program to start inside the host.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        Command::new(self.clone(), program.as_ref())
    }

    /// Writes a kernel setting of the host: `sysctl("net.ipv4.ip_forward", "1")`. For an
    /// interface with a dot in its name write slashes between the words instead of dots.
    ///
    /// # Errors
    /// When there is no such setting or it refuses the value.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<()> {
        self.run(|| write_sysctl(key, value))?
    }

    /// Reads a kernel setting of the host.
    ///
    /// # Errors
    /// When there is no such setting.
    pub fn read_sysctl(&self, key: &str) -> Result<String> {
        self.run(|| {
            std::fs::read_to_string(sysctl_path(key))
                .map(|value| value.trim().to_owned())
                .with_context(|| format!("read {key}"))
        })?
    }

    /// Adds an address ("192.0.2.10/32"; IPv6 ones can be used at once).
    ///
    /// # Errors
    /// When it is there already.
    pub fn add_address(&self, interface: &str, address: &str) -> Result<()> {
        let prefix: Prefix = address.parse()?;
        self.on_interface(interface, async |handle, index| {
            link::add_address(&handle, index, prefix).await?;
            readiness::wait_for_address(interface, prefix.address)
        })
    }

    /// Removes an address.
    ///
    /// # Errors
    /// When it is not there.
    pub fn remove_address(&self, interface: &str, address: &str) -> Result<()> {
        let prefix: Prefix = address.parse()?;
        self.on_interface(interface, async |handle, index| {
            let mut like_it = handle.address().add(index, prefix.address, prefix.length);
            let message = like_it.message_mut().clone();
            handle.address().del(message).execute().await?;
            Ok(())
        })
        .with_context(|| format!("remove address {prefix}"))
    }

    /// Adds a route by way of a gateway: `route("0.0.0.0/0", "10.77.0.1")`.
    ///
    /// # Errors
    /// When it exists, or the gateway cannot be reached directly.
    pub fn route(&self, destination: &str, gateway: &str) -> Result<()> {
        let prefix: Prefix = destination.parse()?;
        let gateway: IpAddr =
            gateway.parse().with_context(|| format!("gateway {gateway:?} is not an address"))?;
        self.run(|| {
            netlink::request(async |handle| {
                let request = match (prefix.address, gateway) {
                    (IpAddr::V4(address), IpAddr::V4(gateway)) => {
                        RouteMessageBuilder::<Ipv4Addr>::new()
                            .destination_prefix(address, prefix.length)
                            .gateway(gateway)
                            .build()
                    }
                    (IpAddr::V6(address), IpAddr::V6(gateway)) => {
                        RouteMessageBuilder::<Ipv6Addr>::new()
                            .destination_prefix(address, prefix.length)
                            .gateway(gateway)
                            .build()
                    }
                    _ => bail!("destination and gateway are of different families"),
                };
                handle.route().add(request).execute().await?;
                Ok(())
            })
        })?
        .with_context(|| format!("{}: add the route {prefix} via {gateway}", self.name))
    }

    /// Adds a route to a network whose hosts are on the interface's segment:
    /// `route_on_link("192.0.2.0/24", "eth0")`.
    ///
    /// # Errors
    /// When it exists.
    pub fn route_on_link(&self, destination: &str, interface: &str) -> Result<()> {
        let prefix: Prefix = destination.parse()?;
        self.on_interface(interface, async |handle, index| {
            use netlink_packet_route::route::RouteScope;
            let request = match prefix.address {
                IpAddr::V4(address) => RouteMessageBuilder::<Ipv4Addr>::new()
                    .destination_prefix(address, prefix.length)
                    .output_interface(index)
                    .scope(RouteScope::Link)
                    .build(),
                IpAddr::V6(address) => RouteMessageBuilder::<Ipv6Addr>::new()
                    .destination_prefix(address, prefix.length)
                    .output_interface(index)
                    .build(),
            };
            handle.route().add(request).execute().await?;
            Ok(())
        })
        .with_context(|| format!("{}: add the route {prefix} dev {interface}", self.name))
    }

    /// Writes a permanent neighbour entry.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn neighbour(&self, interface: &str, address: IpAddr, mac: Mac) -> Result<()> {
        self.on_interface(interface, async |handle, index| {
            handle
                .neighbours()
                .add(index, address)
                .link_layer_address(&mac.0)
                .replace()
                .execute()
                .await?;
            Ok(())
        })
        .with_context(|| format!("{}: add the neighbour {address}", self.name))
    }

    /// Sets an interface up or down: pulls its cable, or plugs it in again.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn set_up(&self, interface: &str, up: bool) -> Result<()> {
        self.on_interface(interface, async |handle, index| link::set_up(&handle, index, up).await)
    }

    /// Removes an interface, and with it the other end of its cable.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn remove_interface(&self, interface: &str) -> Result<()> {
        self.on_interface(interface, async |handle, index| {
            handle.link().del(index).execute().await?;
            Ok(())
        })
    }

    /// Switches an offload of an interface, as `ethtool -K` does. With
    /// [`TxChecksum`](netio::ethtool::Offload::TxChecksum) off the host sends complete checksums;
    /// on, as it is at first, only the pseudo-header's.
    ///
    /// # Errors
    /// When there is no such interface or offload.
    pub fn offload(
        &self,
        interface: &str,
        offload: netio::ethtool::Offload,
        on: bool,
    ) -> Result<()> {
        self.run(|| netio::ethtool::set_offload(interface, offload, on))?
            .with_context(|| format!("switch {offload:?} of {interface} on {}", self.name))
    }

    /// The MAC address of an interface.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn mac(&self, interface: &str) -> Result<Mac> {
        self.run(|| {
            std::fs::read_to_string(format!("/sys/class/net/{interface}/address"))
                .with_context(|| format!("no interface {interface}"))?
                .parse()
        })?
    }

    fn on_interface<T: Send>(
        &self,
        interface: &str,
        work: impl AsyncFnOnce(Handle, u32) -> Result<T> + Send,
    ) -> Result<T> {
        self.run(|| {
            let index = netlink::index(interface)?;
            netlink::request(async |handle| work(handle, index).await)
        })?
    }
}

fn sysctl_path(key: &str) -> std::path::PathBuf {
    let relative = if key.contains('/') { key.to_owned() } else { key.replace('.', "/") };
    Path::new("/proc/sys").join(relative)
}

fn write_sysctl(key: &str, value: &str) -> Result<()> {
    std::fs::write(sysctl_path(key), value).with_context(|| format!("set {key} = {value}"))
}
