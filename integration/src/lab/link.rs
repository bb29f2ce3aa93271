//! Interfaces: veth pairs and the bridges they lead to.

use std::os::fd::AsRawFd;

use anyhow::{Context, Result, ensure};
use netlink_packet_route::address::{AddressAttribute, AddressFlags};
use netlink_packet_route::link::{BridgeStpState, InfoData, InfoVeth, LinkAttribute};
use rtnetlink::{Handle, LinkBridge, LinkUnspec, LinkVeth};

use super::{BRIDGE, Host, Mac, Prefix, netlink, readiness};

/// The longest name of an interface that the kernel takes.
const LONGEST_NAME: usize = 15;

/// What a host's interface on a segment is to be like.
///
/// ```
/// # fn main() -> anyhow::Result<()> {
/// use integration::lab::Link;
/// let link = Link::new("eth0").addresses(&["192.0.2.1/24"])?.queues(2).mtu(3500);
/// # let _ = link;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Link {
    pub(super) interface: String,
    pub(super) mac: Option<Mac>,
    pub(super) addresses: Vec<Prefix>,
    queues: u32,
    mtu: Option<u32>,
}

impl Link {
    /// An interface without addresses, one queue in each direction, MTU 1500, and the next free
    /// MAC address of the lab.
    pub fn new(interface: &str) -> Link {
        Link {
            interface: interface.to_owned(),
            mac: None,
            addresses: Vec::new(),
            queues: 1,
            mtu: None,
        }
    }

    /// Adds addresses, each with its prefix length.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn addresses(mut self, addresses: &[&str]) -> Result<Link> {
        for address in addresses {
            self.addresses.push(address.parse()?);
        }
        Ok(self)
    }

    /// Receive and transmit queues of both ends of the veth pair. At least 1.
    #[must_use]
    pub fn queues(mut self, queues: u32) -> Link {
        self.queues = queues.max(1);
        self
    }

    /// MTU in bytes, of both ends. A bridge takes the smallest MTU of its ports.
    #[must_use]
    pub fn mtu(mut self, mtu: u32) -> Link {
        self.mtu = Some(mtu);
        self
    }

    /// The interface's MAC address.
    #[must_use]
    pub fn mac(mut self, mac: Mac) -> Link {
        self.mac = Some(mac);
        self
    }
}

/// Creates the pair: one end in `host`, the other, `port`, in the segment's namespace and
/// enslaved to its bridge.
pub(super) fn connect(
    host: &Host,
    segment: &Host,
    port: &str,
    link: &Link,
    mac: Mac,
) -> Result<()> {
    ensure!(
        port.len() <= LONGEST_NAME,
        "{port:?} is too long for an interface's name ({LONGEST_NAME} bytes): take a shorter host name"
    );
    // The segment's namespace, for the kernel to put the far end there from the start: an
    // interface never appears in a namespace where it does not belong.
    let far = segment.namespace_file()?;
    host.run(|| {
        netlink::request(async |handle| {
            let mut peer = LinkUnspec::new_with_name(port).setns_by_fd(far.as_raw_fd()).build();
            peer.attributes.extend(shape(link));
            let mut message = LinkVeth::new(&link.interface, port)
                .address(mac.0.to_vec())
                .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
                .build();
            message.attributes.extend(shape(link));
            handle
                .link()
                .add(message)
                .execute()
                .await
                .with_context(|| format!("create the veth pair {}, {port}", link.interface))
        })
    })??;
    segment.run(|| {
        let bridge = netlink::index(BRIDGE)?;
        netlink::request(async |handle| {
            let port = LinkUnspec::new_with_name(port).controller(bridge).up();
            handle.link().set(port.build()).execute().await?;
            Ok(())
        })
    })??;
    host.run(|| {
        let index = netlink::index(&link.interface)?;
        netlink::request(async |handle| {
            set_up(&handle, index, true).await?;
            for prefix in &link.addresses {
                add_address(&handle, index, *prefix).await?;
            }
            Ok(())
        })?;
        link.addresses
            .iter()
            .try_for_each(|prefix| readiness::wait_for_address(&link.interface, prefix.address))
    })??;
    readiness::wait_for_port(segment, port)
}

/// Queues and MTU, the same for both ends.
pub(super) fn shape(link: &Link) -> Vec<LinkAttribute> {
    let mut attributes =
        vec![LinkAttribute::NumTxQueues(link.queues), LinkAttribute::NumRxQueues(link.queues)];
    attributes.extend(link.mtu.map(LinkAttribute::Mtu));
    attributes
}

/// Creates the bridge of a segment in the namespace of the calling thread.
pub(super) fn create_bridge(name: &str) -> Result<()> {
    netlink::request(async |handle| {
        let bridge = LinkBridge::new(name)
            .stp_state(BridgeStpState::Disabled)
            .forward_delay(0)
            .mcast_snooping(false);
        handle.link().add(bridge.build()).execute().await?;
        Ok(())
    })
}

/// Sets an interface up or down.
pub(super) async fn set_up(handle: &Handle, index: u32, up: bool) -> Result<()> {
    let link = LinkUnspec::new_with_index(index);
    let link = if up { link.up() } else { link.down() };
    handle.link().set(link.build()).execute().await.context("set an interface up or down")
}

/// Adds an address, IPv6 ones without duplicate address detection.
pub(super) async fn add_address(handle: &Handle, index: u32, prefix: Prefix) -> Result<()> {
    let mut request = handle.address().add(index, prefix.address, prefix.length);
    if prefix.address.is_ipv6() {
        request.message_mut().attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
    }
    request.execute().await.with_context(|| format!("add address {prefix}"))
}
