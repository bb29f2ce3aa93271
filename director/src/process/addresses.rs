//! VIPs on an interface, when the configuration asks for it (`own_addresses = true`).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Result;
use arc_swap::ArcSwap;
use tracing::warn;

use super::ports;
use crate::config::Config;
use crate::network::{Network, OwnAddresses};

/// How often a new address is announced, once a second: nothing confirms an announcement, and a
/// switch port that has just come up swallows the first.
const ANNOUNCEMENTS: u32 = 5;

/// See the module.
pub(super) struct Addresses {
    own: Option<OwnAddresses>,
    interfaces: Vec<String>,
    network: Arc<ArcSwap<Network>>,
    /// What is to be announced again: index of the interface, address, how often.
    announcing: Vec<(u32, IpAddr, u32)>,
}

impl Addresses {
    /// Does nothing unless the configuration asks for it.
    pub(super) fn new(config: &Config, network: Arc<ArcSwap<Network>>) -> Result<Addresses> {
        let own = if config.own_addresses { Some(OwnAddresses::new()?) } else { None };
        let interfaces = config.interfaces.clone();
        Ok(Addresses { own, interfaces, network, announcing: Vec::new() })
    }

    /// Has exactly `vips` on the interfaces, and tells the neighbours of new ones. What has
    /// vanished since (with an interface that was switched off) is put there again.
    pub(super) fn follow(&mut self, vips: impl FnOnce() -> Vec<IpAddr>) -> Result<()> {
        let Some(own) = &mut self.own else { return Ok(()) };
        let vips = &vips();
        let added = own.set(&self.network.load(), &self.interfaces, vips)?;
        self.announcing.retain(|(_, vip, _)| vips.contains(vip));
        if !added.is_empty() {
            let new = added.into_iter().map(|(index, vip)| (index, vip, ANNOUNCEMENTS));
            self.announcing.extend(new);
            self.announce_again();
        }
        Ok(())
    }

    /// Announces each new address once more; to be called once a second.
    pub(super) fn announce_again(&mut self) {
        if self.announcing.is_empty() {
            return;
        }
        let mut due: BTreeMap<u32, Vec<IpAddr>> = BTreeMap::new();
        for (index, vip, left) in &mut self.announcing {
            due.entry(*index).or_default().push(*vip);
            *left -= 1;
        }
        self.announcing.retain(|(_, _, left)| *left > 0);
        let network = self.network.load();
        for (index, vips) in due {
            let Some(interface) = network.interface(index) else { continue };
            // On a VLAN device the frame goes out untagged: the kernel adds the tag.
            if let Err(error) = ports::announce(&interface.name, interface.mac, &vips) {
                warn!("{} could not be announced on {}: {error:#}", list(&vips), interface.name);
            }
        }
    }

    /// Takes away what [`follow`](Addresses::follow) has added.
    pub(super) fn remove_all(&mut self) {
        if let Some(own) = &mut self.own {
            own.remove_all();
        }
    }
}

fn list(vips: &[IpAddr]) -> String {
    let texts: Vec<_> = vips.iter().map(ToString::to_string).collect();
    texts.join(" ")
}
