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
use super::slots::number;
use super::{Bindings, Connections, SHARDS, Way, hash_bits};
use crate::dispatch::state::State;
use forwarding::Family;
use forwarding::plain::Plain;

/// What a packet is looked for by.
#[derive(Clone, Copy, Debug)]
pub(in crate::dispatch) struct Probe {
    way: Way,
    shard: u8,
    /// The bucket of the index that most likely has it.
    bucket: u32,
    /// The slot that may be its, by its number among all, plus one; 0: none is known.
    slot: u32,
    hash: u64,
}

/// A live connection as it was a moment ago.
#[derive(Clone, Copy)]
pub(in crate::dispatch) struct Sight<'a> {
    pub(in crate::dispatch) way: Way,
    slot: &'a Slot,
    seen: Seen,
}

impl Default for Probe {
    fn default() -> Probe {
        Probe { way: Way::In, shard: 0, bucket: 0, slot: 0, hash: 0 }
    }
}

impl Connections {
    /// What `packet` is looked for by. The index's memory is on its way then.
    #[inline(always)]
    pub(in crate::dispatch) fn probe(&self, packet: &Plain) -> Probe {
        let way = match self.servers.may_have_bits(packet.source) {
            true => Way::Out,
            false => Way::In,
        };
        let mut probe = self.probe_way(packet, way);
        probe.bucket = self.index_of(&probe).prefetch(probe.hash);
        probe
    }

    /// The same of a packet that goes this way.
    #[inline(always)]
    fn probe_way(&self, packet: &Plain, way: Way) -> Probe {
        let hash = |end| hash_bits(&self.hasher, packet.protocol, end);
        let from = hash((packet.source, packet.source_port));
        let to = hash((packet.destination, packet.destination_port));
        let (client, peer) = match way {
            Way::In => (from, to),
            Way::Out => (to, from),
        };
        let shard = (client as usize % SHARDS) as u8;
        Probe { way, shard, bucket: 0, slot: 0, hash: hash_both(client, peer) }
    }

    /// Guesses the slot. Its memory is on its way then.
    #[inline(always)]
    pub(in crate::dispatch) fn locate(&self, probe: &mut Probe) {
        let Some(slot) = self.index_of(probe).guess(probe.hash, probe.bucket) else { return };
        let number = number(probe.shard(), slot) as u32;
        probe.slot = number + 1;
        if let Some(slot) = self.arena.at(number) {
            prefetch(slot);
        }
    }

    /// The connection of `packet`, if it can be seen from here and was guessed right. That of a server's
    /// packet is one of that server if its binding says so.
    #[inline(always)]
    pub(in crate::dispatch) fn see(&self, probe: &Probe, packet: &Plain) -> Option<Sight<'_>> {
        self.look(probe, self.arena.at(probe.slot.checked_sub(1)?)?, packet)
    }

    /// Looks at all slots that may have it; and for a client's packet, too, if a server's was
    /// looked for.
    #[cold]
    pub(in crate::dispatch) fn search(
        &self,
        probe: &Probe,
        packet: &Plain,
        bindings: &Bindings,
    ) -> Option<Sight<'_>> {
        let at = |probe: &Probe| {
            let look = |slot| {
                let sight = self.look(probe, self.arena.get(probe.shard(), slot)?, packet)?;
                let is_it = probe.way == Way::In
                    || bindings.get(sight.binding()).is_some_and(|binding| {
                        let v6 = packet.family == Family::V6;
                        binding.bits == packet.source && binding.address.is_ipv6() == v6
                    });
                is_it.then_some(sight)
            };
            let slot = self.index_of(probe).find(probe.hash, |slot| look(slot).is_some())?;
            look(slot)
        };
        match probe.way {
            Way::In => at(probe),
            Way::Out => at(probe).or_else(|| at(&self.probe_way(packet, Way::In))),
        }
    }

    #[inline(always)]
    fn look<'a>(&self, probe: &Probe, slot: &'a Slot, packet: &Plain) -> Option<Sight<'a>> {
        let seen = slot.look()?;
        let (source, destination) =
            ((packet.source, packet.source_port), (packet.destination, packet.destination_port));
        let v6 = packet.family == Family::V6;
        let is_it = match probe.way {
            Way::In => seen.name.is(&Name::of_bits(v6, packet.protocol, source, destination)),
            Way::Out => {
                let answer = Name::of_bits(v6, packet.protocol, destination, source);
                seen.name.may_be_answered_by(&answer)
            }
        };
        (is_it && !seen.name.is_slow()).then_some(Sight { way: probe.way, slot, seen })
    }

    #[inline(always)]
    fn index_of(&self, probe: &Probe) -> Index<Lane<'_>> {
        self.lanes.of(probe.shard(), probe.way)
    }
}

impl Probe {
    #[inline(always)]
    fn shard(&self) -> usize {
        usize::from(self.shard) % SHARDS
    }
}

impl Sight<'_> {
    /// The number of its binding.
    #[inline(always)]
    pub(in crate::dispatch) fn binding(&self) -> u32 {
        self.seen.binding
    }

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
