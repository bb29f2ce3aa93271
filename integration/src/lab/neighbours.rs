//! What a host knows of its neighbours: the tables of ARP and neighbour discovery.

use std::net::IpAddr;

use anyhow::{Context, Result};
use futures_util::TryStreamExt;
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};

use super::{Host, Mac, netlink};

impl Host {
    /// The MAC address that the host has learned, or been told, for an address on `interface`.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn known_mac(&self, interface: &str, address: IpAddr) -> Result<Option<Mac>> {
        let entries = self.neighbours(interface)?;
        let entry = entries.iter().find(|entry| {
            entry.attributes.iter().any(|attribute| match attribute {
                NeighbourAttribute::Destination(NeighbourAddress::Inet(v4)) => address == *v4,
                NeighbourAttribute::Destination(NeighbourAddress::Inet6(v6)) => address == *v6,
                _ => false,
            })
        });
        let macs = entry.iter().flat_map(|entry| &entry.attributes);
        Ok(macs.into_iter().find_map(|attribute| match attribute {
            NeighbourAttribute::LinkLayerAddress(bytes) => {
                bytes.as_slice().try_into().ok().map(Mac)
            }
            _ => None,
        }))
    }

    /// Makes the host forget who is where on `interface`: it has to ask again.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn forget_neighbours(&self, interface: &str) -> Result<()> {
        let entries = self.neighbours(interface)?;
        self.run(|| {
            netlink::request(async |handle| {
                for entry in entries {
                    // One that has gone by itself in the meantime is gone all the same.
                    let _ = handle.neighbours().del(entry).execute().await;
                }
                Ok(())
            })
        })?
    }

    fn neighbours(&self, interface: &str) -> Result<Vec<NeighbourMessage>> {
        self.run(|| {
            let index = netlink::index(interface)?;
            netlink::request(async |handle| {
                let all = handle.neighbours().get().execute();
                let of_it =
                    all.try_filter(|entry| std::future::ready(entry.header.ifindex == index));
                of_it.try_collect().await.context("list neighbours")
            })
        })?
    }
}
