//! Keeps what has been made as it was made.

use std::net::IpAddr;

use anyhow::{Context, Result};
use futures_util::TryStreamExt;
use netlink_packet_route::address::AddressMessage;
use rtnetlink::LinkUnspec;

use super::{Change, Preparation, index, put, write};
use crate::leftover;

impl Preparation {
    /// Makes again what somebody else has undone: settings first, for a VIP must not be heard of.
    /// What was found in place and left so at the start is not kept: it is not ours.
    ///
    /// Each thing is logged once, and every time counted ([`restored`](Preparation::restored)).
    pub async fn keep(&mut self) {
        let mut again = Vec::new();
        for change in &self.changes {
            if let Change::Setting { path, value, .. } = change
                && std::fs::read_to_string(path).is_ok_and(|now| now.trim() != value)
            {
                let key = path.display();
                again.push((format!("{key} = {value}"), write(path, value)));
            }
        }
        match self.missing().await {
            Ok(missing) => {
                for (vip, label) in missing {
                    again.push((format!("{vip} on lo"), self.bring_back(vip, label).await));
                }
            }
            Err(error) => tracing::debug!("cannot see whether the VIPs are there: {error:#}"),
        }
        for (what, made) in again {
            let first = self.told.insert(what.clone());
            match made {
                Ok(()) => {
                    self.restored += 1;
                    if first {
                        tracing::warn!(
                            "somebody has undone {what}: made again (more often is only counted)"
                        );
                    }
                }
                Err(error) if first => tracing::warn!("cannot make {what} again: {error:#}"),
                Err(_) => {}
            }
        }
    }

    /// How often something had to be made again.
    pub fn restored(&self) -> u64 {
        self.restored
    }

    /// The VIPs that should be on `lo`, and are not.
    async fn missing(&self) -> Result<Vec<(IpAddr, Option<String>)>> {
        let mut missing: Vec<_> = self
            .changes
            .iter()
            .filter_map(|change| match change {
                Change::Address { vip, label } => Some((*vip, label.clone())),
                Change::Setting { .. } => None,
            })
            .collect();
        if missing.is_empty() {
            return Ok(missing);
        }
        let listed = self.netlink.address().get().set_link_index_filter(index("lo")?).execute();
        let there: Vec<AddressMessage> = listed.try_collect().await.context("list lo")?;
        missing.retain(|(vip, _)| there.iter().all(|it| leftover::address(it) != Some(*vip)));
        Ok(missing)
    }

    async fn bring_back(&self, vip: IpAddr, label: Option<String>) -> Result<()> {
        let lo = index("lo")?;
        // IPv6 addresses go when the interface does.
        let up = LinkUnspec::new_with_index(lo).up().build();
        self.netlink.link().set(up).execute().await.context("set lo up")?;
        Ok(put(&self.netlink, lo, vip, label.as_ref()).await?)
    }
}
