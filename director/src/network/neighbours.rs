//! The neighbour table: who on a segment has which Ethernet address.

use std::net::IpAddr;

use hashbrown::HashMap;

use super::change::{Effect, Freshness, Neighbour};

/// Neighbours by interface and address. Seeded hashes: whoever is on a segment of ours chooses the
/// addresses in here.
#[derive(Clone, Debug, Default)]
pub(super) struct Neighbours {
    entries: HashMap<(u32, IpAddr), Entry, foldhash::quality::RandomState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    mac: Option<[u8; 6]>,
    freshness: Freshness,
}

impl Entry {
    /// The Ethernet address when it may be used.
    fn usable(self) -> Option<[u8; 6]> {
        self.mac.filter(|_| self.freshness != Freshness::Unknown)
    }
}

impl Neighbours {
    /// Puts an entry in or changes it. The kernel changes states all the time; only a change of the
    /// usable Ethernet address is one that a packet would notice.
    pub(super) fn add(&mut self, neighbour: Neighbour) -> Effect {
        let entry = Entry { mac: neighbour.mac, freshness: neighbour.freshness };
        let key = (neighbour.interface, neighbour.address);
        let before = self.entries.insert(key, entry).and_then(Entry::usable);
        visible(before != entry.usable())
    }

    /// Takes an entry out.
    pub(super) fn remove(&mut self, interface: u32, address: IpAddr) -> Effect {
        let before = self.entries.remove(&(interface, address));
        visible(before.and_then(Entry::usable).is_some())
    }

    /// Takes out all neighbours on an interface that is gone.
    pub(super) fn forget(&mut self, interface: u32) {
        self.entries.retain(|(known, _), _| *known != interface);
    }

    /// The Ethernet address of a neighbour when the kernel knows it.
    pub(super) fn mac(&self, interface: u32, address: IpAddr) -> Option<[u8; 6]> {
        self.entries.get(&(interface, address))?.usable()
    }

    /// How sure the kernel is of a neighbour.
    pub(super) fn freshness(&self, interface: u32, address: IpAddr) -> Freshness {
        self.entries.get(&(interface, address)).map_or(Freshness::Unknown, |entry| entry.freshness)
    }

    /// All entries, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Neighbour> {
        self.entries.iter().map(|(&(interface, address), entry)| Neighbour {
            interface,
            address,
            mac: entry.mac,
            freshness: entry.freshness,
        })
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

fn visible(changed: bool) -> Effect {
    if changed { Effect::Visible } else { Effect::Invisible }
}
