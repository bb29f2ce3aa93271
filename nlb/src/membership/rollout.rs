//! A new configuration on a running cluster: it waits until every member has it, then all switch.

use std::time::Duration;

use crate::heartbeat::{Digest, Heartbeat};
use crate::host::{HostId, HostSet};

use super::settings::{Plan, carried};
use super::slots::SlotState;
use super::{Cause, Event, Membership, Standing};

impl Membership {
    /// A new configuration. Where only weights, priorities or operator states differ it is in force
    /// with the next convergence. Else it waits until every member has it too, and all switch at
    /// once; what is served of groups that stay goes on.
    pub fn reload(&mut self, plan: Plan, now: Duration) {
        self.advance(now);
        let plan = plan.clip();
        if plan.digest == self.plan.digest || self.standing != Standing::Member {
            self.next_plan = None;
            self.install(plan);
        } else {
            self.next_plan = Some(plan);
            self.journal.note(Event::PlanWaits(self.without_plan()));
        }
        self.evaluate();
    }

    /// The configuration this host is heading for.
    pub(super) fn heading(&self) -> Digest {
        self.next_plan.as_ref().unwrap_or(&self.plan).digest
    }

    /// Members that do not have the configuration that waits here.
    pub(super) fn without_plan(&self) -> HostSet {
        let heading = self.heading();
        let has_not = |host: &HostId| self.last(*host).is_none_or(|last| last.next != heading);
        self.members().filter(has_not).collect()
    }

    /// At commitment: all have said that they have it.
    pub(super) fn switch_if_all_have_it(&mut self) {
        if self.next_plan.is_some() && self.without_plan().is_empty() {
            self.switch();
        }
    }

    /// One of them has switched, so all have agreed to.
    pub(super) fn switch_after_others(&mut self) {
        let heading = self.heading();
        let switched =
            |host| self.last(host).is_some_and(|last: &Heartbeat| last.digest == heading);
        if self.next_plan.is_some()
            && self.without_plan().is_empty()
            && self.members().any(switched)
        {
            self.switch();
        }
    }

    fn switch(&mut self) {
        if let Some(plan) = self.next_plan.take() {
            self.install(plan);
            self.journal.note(Event::PlanSwitched);
            self.converge(Cause::TermsChanged(self.settings.host));
        }
    }

    /// Puts a plan in force. Slots that stay keep what they serve.
    pub(super) fn install(&mut self, plan: Plan) {
        let before = std::mem::take(&mut self.slots);
        let states = carried(&self.plan.slots, &plan.slots).into_iter().zip(&plan.slots);
        let kept = |place: Option<usize>| before.get(place?).cloned();
        self.slots = states
            .map(|(at, slot)| kept(at).unwrap_or_else(|| SlotState::uncounted(slot.group)))
            .collect();
        self.plan = plan;
        self.want_flows();
        self.maps_version += 1;
        self.told.forget();
    }
}
