//! From a policy to the contents of the maps, and in which order they change.
//!
//! A bucket is given up before another is taken, and it is marked as another host's before it is
//! served: a packet that comes in between is dropped, or passes by what is remembered of its flow,
//! but it never passes by a map that is half old and half new.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netio::bpf::MapError;
use nlb::buckets::BucketSet;
use nlb::filter::{HostState, Owner, Policy, Reason, SlotState};
use nlb::hash::{mask4, mask6};
use nlb::rules::{Affinity, Choice, Found, Kind, Scope};
use nlb::slot::Slot;

use super::layout::{
    ACTIVE, ADDRESS_KEY, ADDRESS_VALUE, BLOCKED, Owned, RANGE, address_key, port_key, slot,
};
use super::maps::{Tables, ranges};

/// Fills new tables, which no program uses yet.
pub(super) fn fill(tables: &Tables, policy: &Policy) -> Result<(), MapError> {
    for (key, value) in addresses(policy) {
        tables.addresses.update(&key, &value)?;
    }
    for entry in policy.rules.entries().iter().filter(|entry| !entry.is_range()) {
        // A rule for an address that is not virtual here covers nothing.
        if let Some(vip) = number(policy, entry.scope) {
            let key = port_key(vip, entry.protocol, entry.first_port);
            tables.ports.update(&key, &slot_number(entry.found).to_ne_bytes())?;
        }
    }
    let entries = ranges(policy);
    let mut value = vec![0; RANGE * entries.len().max(1)];
    for (bytes, entry) in value.chunks_exact_mut(RANGE).zip(entries) {
        let vip = number(policy, entry.scope).unwrap_or(NOBODY);
        bytes[..4].copy_from_slice(&vip.to_ne_bytes());
        bytes[4..8].copy_from_slice(&u32::from(entry.protocol).to_ne_bytes());
        bytes[8..10].copy_from_slice(&entry.first_port.to_ne_bytes());
        bytes[10..12].copy_from_slice(&entry.last_port.to_ne_bytes());
        bytes[12..].copy_from_slice(&slot_number(entry.found).to_ne_bytes());
    }
    tables.ranges.update(&[0; 4], &value)?;
    for number in policy.rules.slots() {
        write_slot(tables, policy, number, &policy.slots[number.index()])?;
    }
    write_state(tables, policy.state)
}

/// Brings tables that are in use from one policy to another that has the same rules and virtual
/// addresses.
pub(super) fn change(tables: &Tables, from: &Policy, to: &Policy) -> Result<(), MapError> {
    if to.state != HostState::Active {
        write_state(tables, to.state)?;
    }
    let (before, after) = (addresses(from), addresses(to));
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        tables.addresses.delete(key)?;
    }
    for (key, value) in &after {
        if before.get(key) != Some(value) {
            tables.addresses.update(key, value)?;
        }
    }
    let changed = |number: &Slot| from.slots[number.index()] != to.slots[number.index()];
    let between = |old: &SlotState, new: &SlotState| SlotState {
        serving: old.serving.intersection(&new.serving),
        tainted: old.tainted.union(&new.tainted),
    };
    for number in to.rules.slots().filter(changed) {
        let (old, new) = (&from.slots[number.index()], &to.slots[number.index()]);
        write_slot(tables, to, number, &between(old, new))?;
    }
    for number in to.rules.slots().filter(changed) {
        write_slot(tables, to, number, &to.slots[number.index()])?;
    }
    write_state(tables, to.state)
}

/// No virtual address has this number.
const NOBODY: u32 = i32::MAX as u32;

/// The number of a virtual address.
pub(super) fn number_of(policy: &Policy, vip: IpAddr) -> u32 {
    number(policy, Scope::Vip(vip)).unwrap_or(NOBODY)
}

/// The number of the addresses a rule is for: 0 for all, else from 1 on.
fn number(policy: &Policy, scope: Scope) -> Option<u32> {
    match scope {
        Scope::All => Some(0),
        Scope::Vip(vip) => {
            policy.vips.iter().position(|other| *other == vip).map(|place| place as u32 + 1)
        }
    }
}

/// Whose every address is: as [`Policy::owner`] says.
fn addresses(policy: &Policy) -> BTreeMap<[u8; ADDRESS_KEY], [u8; ADDRESS_VALUE]> {
    let all = policy.vips.iter().chain(&policy.own).chain(&policy.peers);
    all.filter_map(|address| {
        let owned = match policy.owner(*address)? {
            Owner::Cluster => Owned::Cluster,
            Owner::Own => Owned::Own,
            Owner::Peer => Owned::Peer,
        };
        let vip = number(policy, Scope::Vip(*address)).unwrap_or(0);
        let mut value = [0; ADDRESS_VALUE];
        value[..4].copy_from_slice(&(owned as u32).to_ne_bytes());
        value[4..].copy_from_slice(&vip.to_ne_bytes());
        Some((address_key(*address), value))
    })
    .collect()
}

fn slot_number(found: Found) -> u32 {
    match found {
        Found::Choice(choice) => choice.slot.get().into(),
        Found::Blocked => BLOCKED,
    }
}

/// How packets enter a slot.
fn choice(policy: &Policy, number: Slot) -> Choice {
    let entries = policy.rules.entries().iter();
    let mut found = entries.filter_map(|entry| match entry.found {
        Found::Choice(choice) if choice.slot == number => Some(choice),
        _ => None,
    });
    match number {
        Slot::ECHO => Choice::ECHO,
        _ => found.next().unwrap_or(Choice::DEFAULT),
    }
}

fn write_slot(
    tables: &Tables,
    policy: &Policy,
    number: Slot,
    state: &SlotState,
) -> Result<(), MapError> {
    let index = u32::from(number.get()).to_ne_bytes();
    tables.slots.update(&index, &slot_value(&choice(policy, number), state))
}

fn slot_value(choice: &Choice, state: &SlotState) -> [u8; slot::SIZE] {
    let reason = match choice.kind {
        Kind::Multiple => Reason::OwnBucket,
        Kind::Single => Reason::SingleHostRule,
        Kind::Default => Reason::DefaultHost,
    };
    let mask6 = mask6(choice.affinity);
    let mut value = [0; slot::SIZE];
    let mut put = |at: i16, bytes: &[u8]| {
        let at = at as usize;
        value[at..at + bytes.len()].copy_from_slice(bytes);
    };
    put(slot::GROUP, &choice.group.0.to_ne_bytes());
    put(slot::PORTS, &u32::from(choice.affinity == Affinity::None).to_ne_bytes());
    put(slot::MASK4, &mask4(choice.affinity).to_ne_bytes());
    put(slot::REASON, &u32::from(reason.number()).to_ne_bytes());
    put(slot::MASK6, &((mask6 >> 64) as u64).to_ne_bytes());
    put(slot::MASK6 + 8, &(mask6 as u64).to_ne_bytes());
    let mut buckets = |at: i16, set: &BucketSet| put(at, &set.to_bytes());
    buckets(slot::SERVING, &state.serving);
    buckets(slot::TAINTED, &state.tainted);
    value
}

fn write_state(tables: &Tables, state: HostState) -> Result<(), MapError> {
    let number = match state {
        HostState::Active => ACTIVE,
        HostState::Stopped => Reason::HostStopped.number().into(),
        HostState::Quarantined => Reason::Quarantine.number().into(),
    };
    tables.state.update(&[0; 4], &number.to_ne_bytes())
}
