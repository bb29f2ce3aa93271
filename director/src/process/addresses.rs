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

/// See the module.
pub(super) struct Addresses {
    own: Option<OwnAddresses>,
    interfaces: Vec<String>,
    network: Arc<ArcSwap<Network>>,
}

impl Addresses {
    /// Does nothing unless the configuration asks for it.
    pub(super) fn new(config: &Config, network: Arc<ArcSwap<Network>>) -> Result<Addresses> {
        let own = if config.own_addresses { Some(OwnAddresses::new()?) } else { None };
        Ok(Addresses { own, interfaces: config.interfaces.clone(), network })
    }

    /// Has exactly `vips` on the interfaces, and tells the neighbours of new ones.
    pub(super) fn follow(&mut self, vips: &[IpAddr]) -> Result<()> {
        let Some(own) = &mut self.own else { return Ok(()) };
        let network = self.network.load();
        let mut new: BTreeMap<u32, Vec<IpAddr>> = BTreeMap::new();
        for (index, vip) in own.set(&network, &self.interfaces, vips)? {
            new.entry(index).or_default().push(vip);
        }
        for (index, vips) in new {
            let Some(interface) = network.interface(index) else { continue };
            if let Err(error) = ports::announce(&interface.name, interface.mac, &vips) {
                warn!("{} could not be announced on {}: {error:#}", list(&vips), interface.name);
            }
        }
        Ok(())
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
