//! The maps of the filter: what it remembers, for as long as the filter lives, and what it decides
//! by, made anew when port rules or virtual addresses change.

use netio::bpf::{Map, MapError, MapKind};
use nlb::filter::{Policy, Reason};
use nlb::rules::Entry;
use nlb::slot::SLOTS;

use super::layout::{
    ADDRESS_KEY, ADDRESS_VALUE, FLOW_KEY, FLOW_VALUE, FRAGMENT_KEY, FRAGMENT_VALUE, PORT_KEY,
    RANGE, slot,
};

/// How much the filter remembers. When there is more, what was not used for longest is forgotten.
/// All memory is taken at once, about 150 bytes for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Flows pinned here, and as many that were given up.
    pub flows: u32,
    /// Packets of which fragments are on their way.
    pub fragments: u32,
}

impl Default for Capacity {
    /// 262144 flows, the figure of the original; 16384 fragmented packets.
    fn default() -> Capacity {
        Capacity { flows: 1 << 18, fragments: 1 << 14 }
    }
}

/// Most addresses of hosts beside the virtual ones: 32 hosts with 32 addresses each.
pub(super) const HOST_ADDRESSES: usize = 1024;

/// What the filter remembers and counts.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) pins: Map,
    pub(super) retired: Map,
    pub(super) fragments: Map,
    pub(super) counters: Map,
    pub(super) opened: Map,
}

impl Memory {
    pub(super) fn new(capacity: Capacity) -> Result<Memory, MapError> {
        let flows = |name| {
            let (key, value) = (FLOW_KEY as u32, FLOW_VALUE as u32);
            Map::create(MapKind::LruHash, name, key, value, capacity.flows)
        };
        let (key, value) = (FRAGMENT_KEY as u32, FRAGMENT_VALUE as u32);
        let counters =
            |name, count: usize| Map::create(MapKind::PerCpuArray, name, 4, 8, count as u32);
        Ok(Memory {
            pins: flows("nlb_pins")?,
            retired: flows("nlb_retired")?,
            fragments: {
                Map::create(MapKind::LruHash, "nlb_fragments", key, value, capacity.fragments)?
            },
            counters: counters("nlb_reasons", Reason::ALL.len())?,
            opened: counters("nlb_opened", SLOTS)?,
        })
    }
}

/// What the filter decides by.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) addresses: Map,
    pub(super) ports: Map,
    pub(super) ranges: Map,
    pub(super) slots: Map,
    pub(super) state: Map,
}

impl Tables {
    /// Empty tables with room for what the policy has.
    pub(super) fn new(policy: &Policy) -> Result<Tables, MapError> {
        let ranges = policy.rules.entries().iter().filter(|entry| entry.is_range()).count();
        let ports = policy.rules.entries().len() - ranges;
        let addresses = (policy.vips.len() + HOST_ADDRESSES) as u32;
        let (key, value) = (ADDRESS_KEY as u32, ADDRESS_VALUE as u32);
        let array = |name, value: usize, entries| {
            Map::create(MapKind::Array, name, 4, value as u32, entries)
        };
        let hash = |name, key, value, entries| {
            Map::create(MapKind::GrowingHash, name, key, value, entries)
        };
        Ok(Tables {
            addresses: hash("nlb_addresses", key, value, addresses)?,
            ports: hash("nlb_ports", PORT_KEY as u32, 4, ports.max(1) as u32)?,
            ranges: array("nlb_ranges", RANGE * ranges.max(1), 1)?,
            slots: array("nlb_slots", slot::SIZE, SLOTS as u32)?,
            state: array("nlb_state", 4, 1)?,
        })
    }
}

/// The entries with several ports, those of one virtual address first: the order in which the
/// program looks at them.
pub(super) fn ranges(policy: &Policy) -> Vec<&Entry> {
    let mut ranges: Vec<_> =
        policy.rules.entries().iter().filter(|entry| entry.is_range()).collect();
    ranges.sort_by_key(|entry| entry.scope == nlb::rules::Scope::All);
    ranges
}
