//! What this host tells the others.
//!
//! A receiver may combine what it was told of a slot in several heartbeats of one *revision*: within
//! it claims and pins only shrink, so what is old is at worst too careful. When one grows, the
//! revision rises, and everything told before is void.

use crate::buckets::BucketSet;
use crate::heartbeat::{
    Detail, Extent, Heartbeat, MAX_MARKS, Phase, Room, SlotReport, SlotTerms, Subject,
};

use super::misfit::marks;
use super::{Membership, SlotState};

/// What was told last, slot by slot.
#[derive(Debug, Default)]
pub(super) struct Told {
    revision: u32,
    phase: Option<Phase>,
    slots: Vec<Said>,
    /// The detail that is first the next time: they take turns.
    turn: usize,
}

#[derive(Clone, Debug, Default)]
struct Said {
    claim: BucketSet,
    pins: BucketSet,
}

impl Told {
    /// Everything told is void.
    pub(super) fn forget(&mut self) {
        self.phase = None;
    }

    /// Takes over what is said now; a new revision where something has grown.
    fn say(&mut self, phase: Phase, slots: Vec<Said>) {
        let grown = |(now, before): (&Said, &Said)| {
            !now.claim.is_subset(&before.claim) || !now.pins.is_subset(&before.pins)
        };
        let same = self.phase == Some(phase) && self.slots.len() == slots.len();
        if !same || slots.iter().zip(&self.slots).any(grown) {
            self.revision = self.revision.wrapping_add(1);
            self.turn = 0;
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
        match phase {
            Phase::Converging => Said { claim: state.serving.clone(), pins: state.pins() },
            Phase::Converged => Said { claim: state.extras(), pins: state.pins() },
            Phase::Quarantined | Phase::Goodbye => Said::default(),
        }
    }

    fn add_details(&mut self, heartbeat: &mut Heartbeat) {
        let mut room = Room::of(heartbeat);
        let details: Vec<Detail> = self
            .slots_in_order()
            .zip(&self.told.slots)
            .flat_map(|(slot, said)| {
                [(Subject::Claim, &said.claim), (Subject::Pins, &said.pins)]
                    .into_iter()
                    .filter(|(_, buckets)| extent(buckets) == Extent::Some)
                    .map(move |(subject, buckets)| Detail {
                        slot,
                        subject,
                        buckets: buckets.clone(),
                    })
            })
            .collect();
        let Some(turn) = self.told.turn.checked_rem(details.len()) else { return };
        let (later, first) = details.split_at(turn);
        let fitting = first.iter().chain(later).take_while(|detail| room.take(detail));
        heartbeat.details = fitting.cloned().collect();
        self.told.turn = turn + heartbeat.details.len();
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
