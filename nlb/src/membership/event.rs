//! What happened, as values: for the log, for metrics, for `history`.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use crate::host::{HostId, HostSet};

/// Most convergences remembered, and most events waiting to be taken: older ones go first.
pub const REMEMBERED: usize = 256;

/// Something an operator may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The cluster began to converge.
    Converging(Cause),
    /// It has converged, on these members. The lowest is the default host.
    Converged {
        /// Number of the convergence.
        epoch: u64,
        /// The members.
        members: HostSet,
    },
    /// What this host serves has changed: take the maps.
    MapsChanged,
    /// This host's flows must be reported now: buckets are on the move.
    FlowsWanted,
    /// Left the cluster, by command or because a drain ended.
    Stopped,
    /// The drain began.
    DrainStarted,
    /// The drain was ended by another command.
    DrainInterrupted,
    /// Control is locked until `resume`.
    Suspended,
    /// Control is open again; the host is stopped.
    Resumed,
    /// Rules of a slot were enabled, disabled or drained, or their weight changed.
    SlotChanged(u8),
    /// This host serves nothing, because.
    Quarantined(Misfit),
    /// It fits again.
    Fits,
    /// Another host does not fit and is left out.
    PeerQuarantined(HostId, Misfit),
    /// Two hosts claim one id; this is not one of them.
    DuplicateId(HostId),
    /// Two parts of a cluster have met; this host gave up buckets that this host serves too.
    Overlap(HostId),
    /// The others went on without this host; it stopped serving.
    LeftOut(HostId),
    /// This host hears these others and they do not hear it, or the other way round; none of them
    /// any more when the set is empty.
    OneWay(HostSet),
    /// Heartbeats with this cluster's address and another key.
    OtherKey,
    /// The network card's link went down or came back.
    Link(bool),
    /// This host did not run for longer than the others wait; it serves nothing until converged.
    Slept,
    /// A new configuration waits until all hosts have it; these have not.
    PlanWaits(HostSet),
    /// The new configuration is in force.
    PlanSwitched,
}

/// Why a host serves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// Its configuration differs from that of more hosts, or of those that were there before. What
    /// differs, in the operator's words.
    Configuration(String),
    /// Its id belongs to another host, of this name.
    DuplicateId(String),
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::Configuration(what) => {
                write!(f, "its configuration differs from the cluster's: {what}")
            }
            Misfit::DuplicateId(name) => {
                write!(f, "its host id is also that of {name}: give one of them another place")
            }
        }
    }
}

/// Why the cluster converges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// This host started.
    Started,
    /// A host came.
    NewMember(HostId),
    /// A host went silent.
    MemberLost(HostId),
    /// A host said goodbye.
    MemberLeft(HostId),
    /// A host came back before it was missed.
    MemberRestarted(HostId),
    /// A host does not fit and is left out.
    MemberMisfits(HostId),
    /// Weights, operator states or a drain changed.
    TermsChanged(HostId),
    /// A host sees another cluster than this one.
    Contradiction(HostId),
    /// This host fits again.
    Fits,
    /// The link came back.
    LinkUp,
    /// This host did not run for a while.
    Slept,
    /// The others went on without it.
    LeftOut(HostId),
}

impl Cause {
    /// A word for counters and history.
    pub const fn label(self) -> &'static str {
        match self {
            Cause::Started => "started",
            Cause::NewMember(_) => "new-member",
            Cause::MemberLost(_) => "member-lost",
            Cause::MemberLeft(_) => "member-left",
            Cause::MemberRestarted(_) => "member-restarted",
            Cause::MemberMisfits(_) => "member-misfits",
            Cause::TermsChanged(_) => "terms-changed",
            Cause::Contradiction(_) => "contradiction",
            Cause::Fits => "fits",
            Cause::LinkUp => "link-up",
            Cause::Slept => "slept",
            Cause::LeftOut(_) => "left-out",
        }
    }

    /// The host it is about.
    pub const fn peer(self) -> Option<HostId> {
        match self {
            Cause::NewMember(host)
            | Cause::MemberLost(host)
            | Cause::MemberLeft(host)
            | Cause::MemberRestarted(host)
            | Cause::MemberMisfits(host)
            | Cause::TermsChanged(host)
            | Cause::Contradiction(host)
            | Cause::LeftOut(host) => Some(host),
            Cause::Started | Cause::Fits | Cause::LinkUp | Cause::Slept => None,
        }
    }
}

/// A line of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convergence {
    /// When it began.
    pub began: Duration,
    /// When it ended; `None` while it lasts or when another took its place.
    pub ended: Option<Duration>,
    /// Members before.
    pub from: HostSet,
    /// Members after.
    pub to: HostSet,
    /// Why.
    pub cause: Cause,
}

/// Events not taken yet, and past convergences.
#[derive(Debug, Default)]
pub(super) struct Journal {
    events: VecDeque<Event>,
    history: VecDeque<Convergence>,
    pub(super) count: u64,
}

impl Journal {
    pub(super) fn note(&mut self, event: Event) {
        if self.events.back() == Some(&event) {
            return;
        }
        if self.events.len() == REMEMBERED {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    pub(super) fn take(&mut self) -> Vec<Event> {
        self.events.drain(..).collect()
    }

    pub(super) fn converging(&mut self, now: Duration, from: HostSet, cause: Cause) {
        self.note(Event::Converging(cause));
        self.count += 1;
        if self.history.len() == REMEMBERED {
            self.history.pop_front();
        }
        let to = HostSet::EMPTY;
        self.history.push_back(Convergence { began: now, ended: None, from, to, cause });
    }

    pub(super) fn converged(&mut self, now: Duration, epoch: u64, members: HostSet) {
        self.note(Event::Converged { epoch, members });
        if let Some(last) = self.history.back_mut() {
            last.ended = Some(now);
            last.to = members;
        }
    }

    pub(super) fn history(&self) -> impl Iterator<Item = &Convergence> {
        self.history.iter()
    }
}
