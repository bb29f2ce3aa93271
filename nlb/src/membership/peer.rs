//! What is known of another host: its last heartbeat, when it came, and the buckets it told of.

use std::time::Duration;

use crate::buckets::BucketSet;
use crate::heartbeat::replay::Window;
use crate::heartbeat::{Extent, Heartbeat, Phase, Subject};
use crate::host::{HostId, Nonce};
use crate::slot::Slot;

use super::view::piece;

/// A host we hear.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) window: Window,
    pub(super) heard_at: Duration,
    /// Its last heartbeat, without details.
    pub(super) last: Heartbeat,
    /// Digest of what it brings into a view.
    pub(super) piece: u64,
    known: Vec<Known>,
}

/// Buckets of a slot that a host told of under its present revision.
#[derive(Clone, Debug, Default)]
struct Known {
    claim: Option<BucketSet>,
    pins: Option<BucketSet>,
}

/// Silence that ends belief in a host: its tolerance less an eighth of one interval, so that what
/// follows (asking the others) is within the tolerance too.
pub(super) fn patience(interval: Duration, tolerance: u32) -> Duration {
    interval * tolerance - interval / 8
}

impl Peer {
    pub(super) fn new(heartbeat: Heartbeat, now: Duration) -> Peer {
        let window = Window::new(heartbeat.nonce, heartbeat.sequence);
        let mut peer =
            Peer { window, heard_at: now, piece: 0, known: Vec::new(), last: heartbeat.clone() };
        peer.hear(heartbeat, now);
        peer
    }

    /// A fresh heartbeat of the boot we believe.
    pub(super) fn hear(&mut self, mut heartbeat: Heartbeat, now: Duration) {
        if heartbeat.revision != self.last.revision || heartbeat.slots.len() != self.known.len() {
            self.known = vec![Known::default(); heartbeat.slots.len()];
        }
        for detail in heartbeat.details.drain(..) {
            if let Some(known) = self.known.get_mut(detail.slot.index()) {
                match detail.subject {
                    Subject::Claim => known.claim = Some(detail.buckets),
                    Subject::Pins => known.pins = Some(detail.buckets),
                }
            }
        }
        self.piece = piece(
            heartbeat.nonce,
            heartbeat.next,
            heartbeat.draining,
            heartbeat.slots.iter().map(|&(terms, _)| terms),
        );
        self.heard_at = now;
        self.last = heartbeat;
    }

    pub(super) fn nonce(&self) -> Nonce {
        self.window.nonce()
    }

    /// When we stop hearing it, if nothing comes.
    pub(super) fn silent_at(&self, tolerance: u32) -> Duration {
        self.heard_at + patience(self.last.interval, tolerance)
    }

    /// Whether we hear it now.
    pub(super) fn fresh(&self, now: Duration, tolerance: u32) -> bool {
        now < self.silent_at(tolerance) && self.last.phase != Phase::Goodbye
    }

    /// Whether it hears this boot of a host.
    pub(super) fn hears(&self, host: HostId, nonce: Nonce) -> bool {
        self.last.heard.hears(host, nonce)
    }

    /// The buckets it claims in a slot. `None` when it did not say which yet.
    pub(super) fn claim(&self, slot: Slot) -> Option<BucketSet> {
        let (_, report) = self.last.slots.get(slot.index())?;
        told(report.claim, self.known.get(slot.index())?.claim.as_ref())
    }

    /// The buckets it holds flows in without serving them; all when it did not say which yet,
    /// `None` when there are none.
    pub(super) fn pins(&self, slot: Slot) -> Option<BucketSet> {
        let (_, report) = self.last.slots.get(slot.index())?;
        let known = self.known.get(slot.index()).and_then(|known| known.pins.as_ref());
        match report.pins {
            Extent::None => None,
            extent => Some(told(extent, known).unwrap_or(BucketSet::ALL)),
        }
    }
}

fn told(extent: Extent, detail: Option<&BucketSet>) -> Option<BucketSet> {
    match extent {
        Extent::None => Some(BucketSet::EMPTY),
        Extent::All => Some(BucketSet::ALL),
        Extent::Some => detail.cloned(),
    }
}
