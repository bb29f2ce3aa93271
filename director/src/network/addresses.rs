//! The addresses on the interfaces, and which of them a packet of our own leaves with.

use std::net::{IpAddr, Ipv6Addr};

use hashbrown::HashMap;

use super::change::{Address, Effect};
use super::prefix_map::bits;

/// Scopes as in `ip address`.
const LINK: u8 = 253;

/// All addresses in the kernel's order, which is the order of preference for IPv4.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses {
    all: Vec<Address>,
    /// On which interfaces an address is: workers ask this of packets.
    hosts: HashMap<IpAddr, Vec<u32>, foldhash::quality::RandomState>,
}

impl Addresses {
    /// Puts an address in, or changes what is known of it.
    pub(super) fn add(&mut self, address: Address) -> Effect {
        match self.all.iter_mut().find(|known| same(known, &address)) {
            Some(known) if *known == address => return Effect::Invisible,
            Some(known) => *known = address,
            None => {
                self.all.push(address);
                let interfaces = self.hosts.entry(address.address).or_default();
                interfaces.push(address.interface);
            }
        }
        Effect::Visible
    }

    /// Takes an address out. With an IPv4 address the kernel may silently flush routes that had it
    /// as their source, and another address may become the first of its subnet.
    pub(super) fn remove(&mut self, address: &Address) -> Effect {
        if !self.retain(|known| !same(known, address)) {
            Effect::Invisible
        } else if address.address.is_ipv4() {
            Effect::Doubtful
        } else {
            Effect::Visible
        }
    }

    /// Takes out all addresses of an interface that is gone.
    pub(super) fn forget(&mut self, interface: u32) {
        self.retain(|known| known.interface != interface);
    }

    /// Keeps those that `keep` says; whether one has gone.
    fn retain(&mut self, keep: impl Fn(&Address) -> bool) -> bool {
        let hosts = &mut self.hosts;
        let before = self.all.len();
        self.all.retain(|known| {
            let stays = keep(known);
            if !stays && let Some(interfaces) = hosts.get_mut(&known.address) {
                if let Some(place) = interfaces.iter().position(|it| *it == known.interface) {
                    interfaces.swap_remove(place);
                }
                if interfaces.is_empty() {
                    hosts.remove(&known.address);
                }
            }
            stays
        });
        self.all.len() != before
    }

    /// The interfaces that have an address.
    pub(super) fn interfaces_of(&self, address: IpAddr) -> &[u32] {
        self.hosts.get(&address).map_or(&[], Vec::as_slice)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Address> {
        self.all.iter()
    }

    /// The address that a packet to `destination` leaves `interface` with, when its route names
    /// none. `next` is the router's address, or the destination's where there is none; `scope` is
    /// the route's.
    pub(super) fn source(
        &self,
        interface: u32,
        destination: IpAddr,
        next: IpAddr,
        scope: u8,
    ) -> Option<IpAddr> {
        match destination {
            IpAddr::V4(_) => self.source_v4(interface, next, scope),
            IpAddr::V6(v6) => self.source_v6(interface, v6),
        }
    }

    /// As `inet_select_addr()`: the first primary address whose subnet holds the next hop, else
    /// the first primary one of the interface, else of any interface that is not bound to a link.
    fn source_v4(&self, interface: u32, next: IpAddr, scope: u8) -> Option<IpAddr> {
        let candidates = || {
            self.all.iter().filter(move |known| {
                known.address.is_ipv4() && !known.secondary && known.scope <= scope
            })
        };
        let here = || candidates().filter(|known| known.interface == interface);
        here()
            .find(|known| known.subnet.contains(&next))
            .or_else(|| here().next())
            .or_else(|| candidates().find(|known| known.scope != LINK))
            .map(|known| known.address)
    }

    /// The rules of RFC 6724 §5 that matter without mobility and labels: the destination itself,
    /// scope, deprecated, outgoing interface, public before temporary, longest matching prefix.
    fn source_v6(&self, interface: u32, destination: Ipv6Addr) -> Option<IpAddr> {
        let link_local = destination.is_unicast_link_local();
        self.all
            .iter()
            .rev()
            .filter_map(|known| match known.address {
                IpAddr::V6(address) if !known.tentative && !address.is_loopback() => {
                    Some((known, address))
                }
                _ => None,
            })
            .filter(|(known, address)| {
                let here = known.interface == interface;
                if address.is_unicast_link_local() || link_local {
                    // A link-local address means nothing on another link.
                    here
                } else {
                    true
                }
            })
            .max_by_key(|(known, address)| {
                let common = (bits((*address).into()) ^ bits(destination.into())).leading_zeros();
                (
                    *address == destination,
                    address.is_unicast_link_local() == link_local,
                    !known.deprecated,
                    known.interface == interface,
                    !known.secondary,
                    common.min(u32::from(known.subnet.prefix_len())),
                )
            })
            .map(|(known, _)| known.address)
    }
}

/// Whether two records are about one address: the kernel tells them apart by interface, address
/// and, for IPv4, subnet.
fn same(a: &Address, b: &Address) -> bool {
    a.interface == b.interface
        && a.address == b.address
        && (a.address.is_ipv6() || a.subnet == b.subnet)
}
