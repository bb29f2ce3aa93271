//! Slots: which map of buckets a packet is looked up in, and groups: what enters the hash.
//!
//! Port rules that share everything but their ports share a slot, so that a client is with one
//! host for all of them. Two slots are always there; the others are the groups of the rules.

use std::fmt;

/// Most groups of port rules.
pub const MAX_GROUPS: usize = 32;
/// Number of slots: the default rule, ICMP echo, and the groups.
pub const SLOTS: usize = 2 + MAX_GROUPS;

/// A place in the arrays of serving and tainted buckets, 0 to 33. All hosts with the same rules
/// number the slots alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u8);

impl Slot {
    /// What no port rule covers: all buckets are the default host's.
    pub const DEFAULT: Slot = Slot(0);
    /// ICMP echo: every live host an equal share.
    pub const ECHO: Slot = Slot(1);

    /// The slot with this number; `None` from [`SLOTS`] on.
    pub const fn new(number: u8) -> Option<Slot> {
        if (number as usize) < SLOTS { Some(Slot(number)) } else { None }
    }

    /// The slot of the `place`-th group of rules, counted from 0; `None` from [`MAX_GROUPS`] on.
    pub const fn of_group(place: usize) -> Option<Slot> {
        if place < MAX_GROUPS { Some(Slot(place as u8 + 2)) } else { None }
    }

    /// Its number, 0 to 33.
    #[inline]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Its place in an array by slot.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// All slots, in order.
    pub fn all() -> impl Iterator<Item = Slot> {
        (0..SLOTS as u8).map(Slot)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number by which a slot enters the hashes of packets and of maps. It comes of what the rules
/// of a group have in common, not of the slot's place, so that a new rule moves nobody else's
/// clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

impl GroupId {
    /// Of [`Slot::DEFAULT`].
    pub const DEFAULT: GroupId = GroupId(0);
    /// Of [`Slot::ECHO`].
    pub const ECHO: GroupId = GroupId(1);
}
