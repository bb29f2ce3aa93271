//! Maglev hashing (mh): the same server for the same client, and little else moves on a change.
//!
//! Follows `ip_vs_mh.c` on 64-bit machines, after Eisenbud et al., "Maglev", NSDI 2016, section
//! 3.4. Each server has its own order of preference over the table's slots, given by the hash of
//! its address and port. In list order and round by round, servers take their next free slots, as
//! many per round as their weight allows, until all slots are taken.
//!
//! Slots go by the *last weight that was not 0*: quiescing a server moves nobody, but without
//! `mh-fallback` its clients then have no destination.
//!
//! With a key of one's own ([`HashBy`]) the lower half of its hash takes the place of the client's
//! address, and `mh-port` does not count.

use crate::address::{client_number, fold_with_port};
use crate::placement::HashBy;
use crate::remembered::Remembered;
use crate::slots::Slots;
use crate::weight::{greatest_common_divisor, weight_words};
use crate::{Change, Entry, Flags, Key, Options, Scheduler, Server, TooManyServers};
use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ENTRY: Entry = Entry {
    name: "mh",
    summary: "Maglev hashing: the same server for the same client, steady under change",
    create: |options| Box::new(MaglevHashing::new(options)),
};

/// The kernel's table index, an option when it is built (`CONFIG_IP_VS_MH_TAB_INDEX`, default).
const TABLE_INDEX: u32 = 12;
/// The prime that goes with the index; also the most servers there can be.
const TABLE_SIZE: u32 = 4093;
/// Each has a slot at least.
pub(super) const MOST_SERVERS: usize = TABLE_SIZE as usize;
/// Weights are scaled down to this many bits.
const TURN_BITS: u32 = TABLE_INDEX / 2;

/// Both key words of the hash that places clients and gives servers their first preference.
const OFFSET_KEY: u64 = 2_654_435_761;
/// Both key words of the hash that gives servers the stride through their preferences.
const SKIP_KEY: u64 = 2_654_446_892;

#[derive(Debug)]
struct MaglevHashing {
    slots: Slots,
    falls_back: bool,
    uses_port: bool,
    by: HashBy,
}

impl MaglevHashing {
    fn new(options: &Options) -> MaglevHashing {
        MaglevHashing {
            slots: Slots::empty(TABLE_SIZE as usize),
            falls_back: options.flags.contains(Flags::FLAG_1),
            uses_port: options.flags.contains(Flags::FLAG_2),
            by: options.key,
        }
    }
}

impl Scheduler for MaglevHashing {
    fn changed(&mut self, servers: &[Arc<Server>], _: Change) -> Result<(), TooManyServers> {
        let limit = MOST_SERVERS;
        if servers.len() > limit {
            // The old table stays in force, as in the kernel.
            return Err(TooManyServers { limit });
        }
        fill(&mut self.slots, servers);
        Ok(())
    }

    fn choose(&mut self, servers: &[Arc<Server>], key: &Key, _: Duration) -> Option<usize> {
        let client = client_number(key, self.by, self.uses_port);
        let own = slot_of(client);
        if self.falls_back {
            let slot_at = |offset| slot_of(client.wrapping_add(offset as u32));
            self.slots.choose_or_fall_back(servers, own, slot_at)
        } else {
            self.slots.choose(servers, own)
        }
    }

    fn fork(&self, _: &[Arc<Server>], _: &Key) -> Box<dyn Scheduler> {
        Box::new(MaglevHashing { slots: self.slots.clone(), ..*self })
    }

    fn figure(&self, _: usize, server: &Server) -> String {
        weight_words(server)
    }

    fn bearings(&self, servers: &[Arc<Server>], key: &Key) -> String {
        let slot = slot_of(client_number(key, self.by, self.uses_port));
        let falls_back = if self.falls_back { ", or the next that can be used" } else { "" };
        format!("{}{falls_back}", self.slots.words(servers, slot))
    }
}

/// A client's slot.
fn slot_of(client: u32) -> usize {
    (hash(client, OFFSET_KEY) % TABLE_SIZE) as usize
}

/// The kernel's `hsiphash` of one 32-bit number on 64-bit machines: the low half of SipHash-1-3
/// over its four bytes, which are in the machine's order (little-endian here, as on x86 and ARM).
fn hash(number: u32, key: u64) -> u32 {
    let mut hasher = SipHasher13::new_with_keys(key, key);
    hasher.write(&number.to_le_bytes());
    hasher.finish() as u32
}

/// One server's walk through its order of preference.
struct Preference {
    owner: Remembered,
    next: u32,
    skip: u32,
    turns: u32,
}

/// Deals out all slots; leaves them empty when no server ever had a weight.
///
/// An IPv6 server of an IPv4 service is placed by all its words; the kernel takes the first only.
fn fill(slots: &mut Slots, servers: &[Arc<Server>]) {
    slots.clear();
    let mut preferences = preferences(servers);
    if preferences.is_empty() {
        return;
    }
    let mut free = TABLE_SIZE;
    loop {
        for preference in &mut preferences {
            for _ in 0..preference.turns {
                // The size is prime, so that every stride comes by every slot.
                while !slots.claim(preference.next as usize, preference.owner) {
                    preference.next = (preference.next + preference.skip) % TABLE_SIZE;
                }
                free -= 1;
                if free == 0 {
                    return;
                }
            }
        }
    }
}

/// The preferences of all servers that get slots, in list order.
fn preferences(servers: &[Arc<Server>]) -> Vec<Preference> {
    let weights: Vec<i32> = servers.iter().map(|server| server.last_weight()).collect();
    let divisor = greatest_common_divisor(weights.iter().copied());
    let heaviest = weights.iter().copied().max().unwrap_or(0);
    let shift = shift(heaviest.max(0).checked_div(divisor).unwrap_or(0));
    let weighted = weights.iter().enumerate().filter(|&(_, &weight)| weight > 0);
    weighted
        .filter_map(|(index, &weight)| {
            let server = &servers[index];
            let number = fold_with_port(server.address(), server.port());
            Some(Preference {
                owner: Remembered::at(servers, index)?,
                next: hash(number, OFFSET_KEY) % TABLE_SIZE,
                skip: hash(number, SKIP_KEY) % (TABLE_SIZE - 1) + 1,
                turns: ((weight / divisor) >> shift).max(1).unsigned_abs(),
            })
        })
        .collect()
}

/// How many bits the largest share must lose to be at most [`TURN_BITS`] long.
fn shift(largest: i32) -> u32 {
    let length = i32::BITS - largest.leading_zeros();
    length.saturating_sub(TURN_BITS)
}

#[cfg(test)]
mod tests;
