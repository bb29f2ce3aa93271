//! The table as an established packet sees it: without a lock.
//!
//! In three steps, so that a batch of packets can do each step for all before the next: a
//! [`Probe`] has the hashes, and has asked for the index's memory; [`locate`](Connections::locate)
//! guesses the slot and asks for its memory; [`see`](Connections::see) looks. Only the last one
//! is sure, and when it sees nothing that means nothing: the entry may be just being moved.
//! Then the packet goes the other way, under the lock.

use netio::prefetch;

use super::ends::hash_both;
use super::index::Index;
use super::lanes::Lane;
use super::place::{Place, Seen, Slot};
use super::slot::{Moment, Name};
use super::{Binding, Bindings, Connections, SHARDS, Way, hash_bits};
use crate::dispatch::state::State;
use forwarding::Family;
use forwarding::plain::Plain;

/// What a packet is looked for by.
#[derive(Clone, Copy, Debug)]
pub(in crate::dispatch) struct Probe {
    way: Way,
    hash: u64,
    /// Of both ends: where it comes from, where it goes.
    ends: (u64, u64),
    shard: u8,
    slot: Option<u32>,
}

/// A live connection as it was a moment ago.
pub(in crate::dispatch) struct Sight<'a> {
    pub(in crate::dispatch) way: Way,
    pub(in crate::dispatch) binding: &'a Binding,
    slot: &'a Slot,
    seen: Seen,
}

impl Connections {
    /// What `packet` is looked for by. The index's memory is on its way then.
    #[inline(always)]
    pub(in crate::dispatch) fn probe(&self, packet: &Plain) -> Probe {
        let hash = |end| hash_bits(&self.hasher, packet.protocol, end);
        let from = hash((packet.source, packet.source_port));
        let to = hash((packet.destination, packet.destination_port));
        let way = match self.servers.may_have_bits(packet.source) {
            true => Way::Out,
            false => Way::In,
        };
        Probe::new(way, (from, to)).prefetched(self)
    }

    /// Guesses the slot. Its memory is on its way then.
    #[inline(always)]
    pub(in crate::dispatch) fn locate(&self, probe: &mut Probe) {
        probe.slot = self.index_of(probe).guess(probe.hash);
        if let Some(slot) = probe.slot.and_then(|slot| self.arena.get(probe.shard(), slot)) {
            prefetch(slot);
        }
    }

    /// The connection of `packet`, if it can be seen from here.
    #[inline(always)]
    pub(in crate::dispatch) fn see<'a>(
        &'a self,
        probe: &Probe,
        packet: &Plain,
        bindings: &'a Bindings,
    ) -> Option<Sight<'a>> {
        let found = match probe.slot {
            Some(slot) => self.look(probe, slot, packet, bindings),
            None => None,
        };
        found.or_else(|| self.search(probe, packet, bindings))
    }

    /// Looks at all slots that may have it; and for a client's packet, too, if a server's was
    /// looked for.
    #[cold]
    fn search<'a>(
        &'a self,
        probe: &Probe,
        packet: &Plain,
        bindings: &'a Bindings,
    ) -> Option<Sight<'a>> {
        let at = |probe: &Probe| {
            let is_it = |slot| self.look(probe, slot, packet, bindings).is_some();
            let slot = self.index_of(probe).find(probe.hash, is_it)?;
            self.look(probe, slot, packet, bindings)
        };
        match probe.way {
            Way::In => at(probe),
            Way::Out => at(probe).or_else(|| at(&Probe::new(Way::In, probe.ends))),
        }
    }

    #[inline(always)]
    fn look<'a>(
        &'a self,
        probe: &Probe,
        slot: u32,
        packet: &Plain,
        bindings: &'a Bindings,
    ) -> Option<Sight<'a>> {
        let slot = self.arena.get(probe.shard(), slot)?;
        let seen = slot.look()?;
        let (source, destination) =
            ((packet.source, packet.source_port), (packet.destination, packet.destination_port));
        let v6 = packet.family == Family::V6;
        let binding = &**bindings.get(seen.binding)?;
        let is_it = match probe.way {
            Way::In => seen.name.is(&Name::of_bits(v6, packet.protocol, source, destination)),
            Way::Out => {
                let answer = Name::of_bits(v6, packet.protocol, destination, source);
                seen.name.may_be_answered_by(&answer)
                    && binding.bits == packet.source
                    && binding.address.is_ipv6() == v6
            }
        };
        (is_it && !seen.name.is_slow()).then_some(Sight { way: probe.way, binding, slot, seen })
    }

    #[inline(always)]
    fn index_of(&self, probe: &Probe) -> Index<Lane<'_>> {
        self.lanes.of(probe.shard(), probe.way)
    }
}

impl Probe {
    #[inline(always)]
    fn new(way: Way, ends: (u64, u64)) -> Probe {
        let (client, peer) = match way {
            Way::In => ends,
            Way::Out => (ends.1, ends.0),
        };
        let shard = (client as usize % SHARDS) as u8;
        Probe { way, hash: hash_both(client, peer), ends, shard, slot: None }
    }

    #[inline(always)]
    fn prefetched(self, table: &Connections) -> Probe {
        table.index_of(&self).prefetch(self.hash);
        self
    }

    #[inline(always)]
    fn shard(&self) -> usize {
        usize::from(self.shard) % SHARDS
    }
}

impl Sight<'_> {
    /// Its state.
    #[inline(always)]
    pub(in crate::dispatch) fn state(&self) -> State {
        self.seen.moment.state()
    }

    /// When it expires, in ticks.
    #[inline(always)]
    pub(in crate::dispatch) fn expires(&self) -> u32 {
        self.seen.moment.expires()
    }

    /// The server's port.
    #[inline(always)]
    pub(in crate::dispatch) fn server_port(&self) -> u16 {
        self.seen.name.server_port()
    }

    /// Address, as a number, and port that the client talks to.
    #[inline(always)]
    pub(in crate::dispatch) fn virtual_end(&self) -> (u128, u16) {
        self.seen.name.peer_bits()
    }

    /// One more packet in the same state, after which it expires then. False when the connection
    /// has changed since it was seen: then nothing has been done.
    #[inline(always)]
    pub(in crate::dispatch) fn renew(&self, expires: u32) -> bool {
        let seen: Moment = self.seen.moment;
        self.slot.renew(seen, seen.renewed(expires, self.way == Way::In))
    }
}
