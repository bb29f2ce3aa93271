//! What every member offers for a slot: what the map in force was made of, and what an operator
//! changes in thought to ask for another.

use crate::heartbeat::{Digest, SlotTerms};
use crate::host::HostId;
use crate::slot::Slot;

use super::{Membership, SlotPlan};

/// A member's part in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The member.
    pub host: HostId,
    /// Whether it leaves.
    pub draining: bool,
    /// Its weight, its priority, and what the operator made of the slot there.
    pub terms: SlotTerms,
}

impl Membership {
    /// The slots as they are in force on this host, by [`Slot::index`]: what the configuration says
    /// and what operators made of it since.
    pub fn slot_plans(&self) -> &[SlotPlan] {
        &self.plan.slots
    }

    /// The configuration in force on this host.
    pub fn digest(&self) -> Digest {
        self.plan.digest
    }

    /// Its generation.
    pub fn generation(&self) -> u64 {
        self.plan.generation
    }

    /// What the members of the view offer for a slot, in order of their ids.
    pub fn offers(&self, slot: Slot) -> Vec<Offer> {
        let of = |host: HostId| {
            if host == self.settings.host {
                let plan = self.plan.slots.get(slot.index())?;
                return Some(Offer { host, draining: self.drain.is_some(), terms: plan.terms() });
            }
            let last = self.last(host)?;
            let (terms, _) = *last.slots.get(slot.index())?;
            Some(Offer { host, draining: last.draining, terms })
        };
        self.view.hosts.iter().filter_map(of).collect()
    }

    /// Flows that this host holds in a slot, and connections it has opened there since the cluster
    /// converged last.
    pub fn slot_flows(&self, slot: Slot) -> (u32, u32) {
        let state = self.slots.get(slot.index());
        state.map_or((0, 0), |state| (state.flow_count, state.opened()))
    }
}
