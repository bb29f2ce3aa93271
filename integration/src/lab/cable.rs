//! A cable: a veth pair straight from host to host, without a bridge between them. For
//! measurements, where a bridge would cost more than what is measured.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use netlink_packet_route::link::{InfoData, InfoVeth};
use rtnetlink::{LinkUnspec, LinkVeth};

use super::link::{add_address, set_up, shape};
use super::{Host, Lab, Link, Mac, netlink};

impl Lab {
    /// Connects two hosts by a cable of their own: `left` is the interface of the first, `right`
    /// that of the second; both are up. Queues and MTU are the left one's.
    ///
    /// # Errors
    /// When an interface exists, or the hosts are of different labs.
    pub fn cable(&self, hosts: [&Host; 2], left: &Link, right: &Link) -> Result<()> {
        if hosts.iter().any(|host| !Arc::ptr_eq(host.lab(), &self.inner)) {
            bail!("{} or {} is a host of another lab", hosts[0].name(), hosts[1].name());
        }
        let [near, far] = [left, right].map(|link| link.mac.unwrap_or_else(|| self.next_mac()));
        let context = || {
            let [a, b] = hosts.map(Host::name);
            format!("connect {} of {a} and {} of {b}", left.interface, right.interface)
        };
        create(hosts, [left, right], [near, far]).with_context(context)?;
        for (host, link) in hosts.into_iter().zip([left, right]) {
            host.run(|| {
                let index = netlink::index(&link.interface)?;
                netlink::request(async |handle| {
                    set_up(&handle, index, true).await?;
                    for prefix in &link.addresses {
                        add_address(&handle, index, *prefix).await?;
                    }
                    Ok(())
                })
            })?
            .with_context(context)?;
        }
        Ok(())
    }

    fn next_mac(&self) -> Mac {
        let mut state = self.inner.lock();
        state.links += 1;
        Mac::numbered(state.links)
    }
}

/// Each end appears in its own host from the start.
fn create(hosts: [&Host; 2], [left, right]: [&Link; 2], [near, far]: [Mac; 2]) -> Result<()> {
    let other = hosts[1].namespace_file()?;
    hosts[0].run(|| {
        netlink::request(async |handle| {
            let mut peer = LinkUnspec::new_with_name(&right.interface)
                .address(far.0.to_vec())
                .setns_by_fd(other.as_raw_fd())
                .build();
            peer.attributes.extend(shape(left));
            let mut message = LinkVeth::new(&left.interface, &right.interface)
                .address(near.0.to_vec())
                .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
                .build();
            message.attributes.extend(shape(left));
            handle.link().add(message).execute().await.context("create the veth pair")?;
            Ok(())
        })
    })?
}
