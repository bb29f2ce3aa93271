//! What this host tells the others.
//!
//! A receiver may combine what it was told of a slot in several heartbeats of one *revision*: within
//! it claims and pins only shrink, so what is old is at worst too careful. When one grows, the
//! revision rises, and everything told before is void.

use crate::buckets::BucketSet;
use crate::heartbeat::{
    Detail, Extent, Heartbeat, MAX_MARKS, Phase, Room, SlotReport, SlotTerms, Subject,
};

use crate::slot::Slot;

use super::misfit::marks;
use super::{Membership, SlotState};

/// How often news of a slot is told before it only takes its turn: one heartbeat may be lost.
const TELL: u8 = 2;

/// What was told last, slot by slot.
#[derive(Debug, Default)]
pub(super) struct Told {
    revision: u32,
    phase: Option<Phase>,
    slots: Vec<Said>,
    /// The slot whose turn is next when there is no news.
    turn: usize,
}

#[derive(Clone, Debug, Default)]
struct Said {
    claim: BucketSet,
    pins: BucketSet,
    /// How often claim and pins are still news.
    news: [u8; 2],
}

impl Told {
    /// Everything told is void.
    pub(super) fn forget(&mut self) {
        self.phase = None;
    }

    /// Takes over what is said now; a new revision where something has grown.
    fn say(&mut self, phase: Phase, mut slots: Vec<Said>) {
        let grown = |(now, before): (&Said, &Said)| {
            !now.claim.is_subset(&before.claim) || !now.pins.is_subset(&before.pins)
        };
        let same = self.phase == Some(phase) && self.slots.len() == slots.len();
        if same && !slots.iter().zip(&self.slots).any(grown) {
            for (now, before) in slots.iter_mut().zip(&self.slots) {
                let news = |changed: bool, before: u8| if changed { TELL } else { before };
                now.news = [
                    news(now.claim != before.claim, before.news[0]),
                    news(now.pins != before.pins, before.news[1]),
                ];
            }
        } else {
            self.revision = self.revision.wrapping_add(1);
            for now in &mut slots {
                now.news = [TELL; 2];
            }
        }
        self.phase = Some(phase);
        self.slots = slots;
    }
}

impl Membership {
    pub(super) fn announce(&mut self) -> Heartbeat {
        let phase = self.phase();
        let said = self.slots.iter().map(|state| self.said(phase, state)).collect();
        self.told.say(phase, said);
        self.sequence += 1;
        let slots = self.plan.terms().zip(&self.slots).zip(&self.told.slots);
        let settings = &self.settings;
        let mut heartbeat = Heartbeat {
            cluster: settings.cluster,
            host: settings.host,
            nonce: settings.nonce,
            sequence: self.sequence,
            phase,
            agreed: self.agreed,
            draining: self.drain.is_some(),
            epoch: self.epoch,
            view: self.view,
            heard: self.heard(),
            lost: self.lost(),
            digest: self.plan.digest,
            next: self.heading(),
            generation: self.plan.generation,
            interval: self.interval(),
            revision: self.told.revision,
            addresses: settings.addresses.clone(),
            name: settings.name.chars().filter(|letter| !letter.is_control()).collect(),
            marks_total: self.plan.marks.len().min(u8::MAX.into()) as u8,
            marks: marks(&self.plan, MAX_MARKS),
            slots: slots.map(|((terms, state), said)| report(terms, state, said)).collect(),
            details: Vec::new(),
        };
        self.add_details(&mut heartbeat);
        heartbeat
    }

    fn said(&self, phase: Phase, state: &SlotState) -> Said {
        let (claim, pins) = match phase {
            Phase::Converging => (state.serving.clone(), state.pins()),
            Phase::Converged => (state.extras(), state.pins()),
            Phase::Quarantined | Phase::Goodbye => Default::default(),
        };
        Said { claim, pins, news: [0; 2] }
    }

    /// News first, then one slot after the other, as far as there is room.
    fn add_details(&mut self, heartbeat: &mut Heartbeat) {
        let mut room = Room::of(heartbeat);
        let turn = self.told.turn;
        let mut some: Vec<(Subject, Slot)> = self
            .slots_in_order()
            .flat_map(|slot| [(Subject::Claim, slot), (Subject::Pins, slot)])
            .filter(|&(subject, slot)| {
                extent(self.told.slots[slot.index()].set(subject)) == Extent::Some
            })
            .collect();
        let news = |told: &Told, (subject, slot): (Subject, Slot)| {
            told.slots[slot.index()].news[subject as usize]
        };
        some.sort_by_key(|&(subject, slot)| {
            (news(&self.told, (subject, slot)) == 0, slot.index() < turn, slot)
        });
        for &(subject, slot) in &some {
            let said = &mut self.told.slots[slot.index()];
            let detail = Detail { slot, subject, buckets: said.set(subject).clone() };
            if !room.take(&detail) {
                break;
            }
            said.news[subject as usize] = said.news[subject as usize].saturating_sub(1);
            self.told.turn = slot.index() + 1;
            heartbeat.details.push(detail);
        }
        if self.told.turn >= self.told.slots.len() {
            self.told.turn = 0;
        }
        if some.iter().any(|&detail| news(&self.told, detail) > 0) {
            self.pulse.go_on(self.now);
        }
    }
}

impl Said {
    fn set(&self, subject: Subject) -> &BucketSet {
        match subject {
            Subject::Claim => &self.claim,
            Subject::Pins => &self.pins,
        }
    }
}

fn report(terms: SlotTerms, state: &SlotState, said: &Said) -> (SlotTerms, SlotReport) {
    let report = SlotReport {
        opened: state.opened(),
        flows: state.flow_count,
        claim: extent(&said.claim),
        pins: extent(&said.pins),
    };
    (terms, report)
}

fn extent(buckets: &BucketSet) -> Extent {
    if buckets.is_empty() {
        Extent::None
    } else if *buckets == BucketSet::ALL {
        Extent::All
    } else {
        Extent::Some
    }
}
