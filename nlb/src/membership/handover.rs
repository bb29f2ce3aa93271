//! How buckets change hands: release, acquire, taint, and what happens when two parts of a cluster
//! meet.
//!
//! *Overlap.* Two hosts that converged apart may serve the same buckets. While they converge
//! together, of two that claim a bucket the one gives it up that has opened fewer connections in
//! this slot since it last converged; among equals the one with the higher id. Both compare numbers
//! that stand still during the convergence, so exactly one gives up.

use crate::buckets::BucketSet;
use crate::heartbeat::{Operator, Phase};
use crate::map::{Target, target};
use crate::slot::Slot;

use super::settings::Share;
use super::slots::SlotState;
use super::view::members;
use super::{Event, Membership};

impl Membership {
    /// At commitment: new shares; what is lost is given up or held.
    pub(super) fn release(&mut self) {
        let until = self.now + self.settings.handover_timeout;
        for index in 0..self.slots.len() {
            self.compute_map(index);
            let plan = &self.plan.slots[index];
            let share = self.slots[index].map.of(self.settings.host);
            // A host that leaves or drains the slot on purpose hands its clients over at once: their
            // flows are pinned, and what is new must not wait for what is old.
            let hold = plan.hold && plan.operator == Operator::Enabled && self.drain.is_none();
            self.slots[index].commit(share, hold.then_some(until));
        }
        self.want_flows();
        self.maps_version += 1;
    }

    fn compute_map(&mut self, index: usize) {
        let plan = self.plan.slots[index];
        let Some(slot) = Slot::new(index as u8) else { return };
        let offers = self.offers(slot).into_iter();
        let offers = offers.map(|offer| (offer.host, offer.draining, offer.terms));
        let members = members(plan.share, offers);
        if self.slots[index].is_map_of(&members) {
            return;
        }
        let map = match (plan.share, members.as_slice()) {
            (_, []) => Target::nobody(),
            (Share::DefaultHost | Share::Priority, &[(host, _), ..]) => Target::everything(host),
            _ => target(self.settings.key.map(), plan.group, &members),
        };
        self.slots[index].set_map(map, members);
    }

    /// Whatever may change hands now. While the cluster converges nobody acquires, so what is held
    /// is not released then.
    pub(super) fn hand_over(&mut self) {
        let (mut released, mut expired) = (false, false);
        for slot in self.slots.iter_mut().filter(|_| self.converged) {
            released |= slot.release_idle();
            if slot.expire(self.now) {
                released = true;
                expired = true;
            }
        }
        let changed = if self.converged { self.acquire() } else { self.yield_overlaps() };
        let tainted = self.taint();
        if expired {
            self.want_flows();
        }
        if released {
            self.pulse.prompt(self.now);
        }
        if released || changed || tainted {
            self.maps_version += 1;
            self.journal.note(Event::MapsChanged);
        }
    }

    /// Takes of its share what no member claims, once all members have converged on this view.
    fn acquire(&mut self) -> bool {
        let together = self.members().all(|host| {
            self.last(host).is_some_and(|l| l.phase == Phase::Converged && l.view == self.view)
        });
        let wants = |state: &SlotState| !state.target.is_subset(&state.serving);
        if !together || !self.slots.iter().any(wants) {
            return false;
        }
        let mut changed = false;
        for slot in self.slots_in_order() {
            let state = &self.slots[slot.index()];
            if !wants(state) {
                continue;
            }
            let claimed = self.members().fold(BucketSet::EMPTY, |all, host| {
                let claim = self.peer(host).and_then(|peer| peer.claim(slot));
                all.union(&claim.unwrap_or(BucketSet::ALL))
            });
            let taken = state.target.minus(&state.serving).minus(&claimed);
            if !taken.is_empty() {
                let state = &mut self.slots[slot.index()];
                state.serving = state.serving.union(&taken);
                changed = true;
            }
        }
        changed
    }

    /// Gives up what another host claims too, where this one is the one to give up.
    fn yield_overlaps(&mut self) -> bool {
        let me = self.settings.host;
        let mut changed = false;
        for host in self.members() {
            for slot in self.slots_in_order() {
                let Some(peer) = self.peer(host) else { continue };
                let claims =
                    peer.last.phase == Phase::Converging && peer.last.digest == self.plan.digest;
                let Some(theirs) = peer.claim(slot).filter(|_| claims) else { continue };
                let state = &self.slots[slot.index()];
                let overlap = state.serving.intersection(&theirs);
                let Some((_, report)) = peer.last.slots.get(slot.index()) else { continue };
                let (mine, its) = (state.opened(), report.opened);
                if !overlap.is_empty() && (its > mine || (its == mine && host < me)) {
                    self.slots[slot.index()].give_up(&overlap);
                    self.journal.note(Event::Overlap(host));
                    self.want_flows();
                    self.pulse.prompt(self.now);
                    changed = true;
                }
            }
        }
        changed
    }

    /// Marks served buckets in which other hosts hold flows. Whether a mark has changed.
    fn taint(&mut self) -> bool {
        let fresh = self.fresh();
        let mut changed = false;
        for slot in self.slots_in_order() {
            let mut tainted = BucketSet::EMPTY;
            let others = fresh.minus(self.misfits);
            for peer in others.iter().filter_map(|host| self.peer(host)) {
                if peer.last.digest != self.plan.digest {
                    // One of the two has switched to the next configuration and the other is about to:
                    // what it says of its slots is not about these. It may hold flows in any bucket.
                    tainted = BucketSet::ALL;
                    break;
                }
                if let Some(pins) = peer.pins(slot) {
                    tainted = tainted.union(&pins);
                }
                // Who is left out has not said yet what becomes of the flows it serves.
                let left_out = peer.last.phase == Phase::Converging
                    && !self.view.hosts.contains(peer.last.host);
                if left_out {
                    tainted = tainted.union(&peer.claim(slot).unwrap_or(BucketSet::ALL));
                }
            }
            let state = &mut self.slots[slot.index()];
            tainted = tainted.intersection(&state.serving);
            changed |= tainted != state.tainted;
            state.tainted = tainted;
        }
        changed
    }

    pub(super) fn slots_in_order(&self) -> impl Iterator<Item = Slot> + use<> {
        let count = self.slots.len();
        Slot::all().take(count)
    }
}
