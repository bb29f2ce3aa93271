//! From what is seen to a view that all agree on.
//!
//! | seen | done |
//! |---|---|
//! | a host comes, goes, changes its terms | converge |
//! | a member shows another view, or starts over | converge |
//! | all members show this view for [`STABLE_ROUNDS`](super::STABLE_ROUNDS) half periods | say *agreed* |
//! | all members have said *agreed* | the view comes in force: epoch, maps, release |
//! | a member has converged without this host | what it serves under the old view is void |
//! | this host does not fit, or its id is another's | quarantine |

use crate::heartbeat::{Heartbeat, Phase, View};
use crate::host::{HostId, HostSet};

use super::misfit::{Candidate, difference, misfits};
use super::settings::Isolated;
use super::suspicion::{Outcome, Sight};
use super::view::{piece, roll};
use super::{Cause, Event, Membership, Misfit, Standing};

impl Membership {
    /// What follows from all that is known now. Called after everything that may have changed it.
    pub(super) fn evaluate(&mut self) {
        if self.standing != Standing::Member || !self.link {
            return;
        }
        self.note_silent();
        self.note_lost();
        self.quarantine_misfits();
        if self.quarantine.is_none() {
            let outcome = self.sight().judge();
            self.note_one_way(&outcome);
            self.switch_after_others();
            self.look(outcome);
            self.void_if_left_out();
            self.settle();
            self.hand_over();
        }
        self.advance_drain();
    }

    /// Says at once when a host falls silent: the others wait for this word to drop it.
    fn note_silent(&mut self) {
        let fresh = self.fresh();
        if !self.heard_before.is_subset(fresh) {
            self.pulse.prompt(self.now);
        }
        self.heard_before = fresh;
    }

    /// Since when others hear whom this host does not.
    fn note_lost(&mut self) {
        let fresh = self.fresh();
        let told = fresh
            .iter()
            .filter_map(|host| self.last(host).map(|last| (host, last)))
            .filter(|(_, last)| last.phase != Phase::Quarantined)
            .fold(HostSet::EMPTY, |all, (host, last)| {
                let mut heard = last.heard.hosts();
                heard.remove(host);
                all.union(heard)
            });
        for host in HostId::all() {
            let missing =
                told.contains(host) && !fresh.contains(host) && host != self.settings.host;
            let silent = self.peer(host).map_or(self.now, |peer| peer.heard_at);
            let since = &mut self.unheard_since[host.index()];
            *since = if missing { since.or(Some(silent)) } else { None };
        }
    }

    pub(super) fn lost(&self) -> HostSet {
        let given_up = |host: &HostId| {
            self.unheard_since[host.index()].is_some_and(|since| since + self.give_up() <= self.now)
        };
        HostId::all().filter(given_up).collect()
    }

    fn sight(&self) -> Sight<'_> {
        Sight {
            me: self.settings.host,
            nonce: self.settings.nonce,
            now: self.now,
            tolerance: self.settings.tolerance,
            peers: &self.peers,
            misfits: self.misfits,
            lost: self.lost(),
        }
    }

    fn note_one_way(&mut self, outcome: &Outcome) {
        self.left_out_since = outcome.left_out.then(|| self.left_out_since.unwrap_or(self.now));
        let lasting = self.left_out_since.is_some_and(|at| at + self.give_up() <= self.now);
        let deaf_to_us = if lasting { self.fresh() } else { HostSet::EMPTY };
        let one_way = outcome.one_way.union(deaf_to_us);
        if one_way != self.one_way {
            self.one_way = one_way;
            self.journal.note(Event::OneWay(one_way));
        }
    }

    /// Who does not fit, this host included.
    fn quarantine_misfits(&mut self) {
        let digests = |last: &Heartbeat| Candidate {
            host: last.host,
            digest: last.digest,
            next: last.next,
            established: last.epoch > 0,
        };
        let mut candidates: Vec<Candidate> =
            self.fresh().iter().filter_map(|host| self.last(host)).map(digests).collect();
        candidates.push(Candidate {
            host: self.settings.host,
            digest: self.plan.digest,
            next: self.heading(),
            established: self.epoch > 0,
        });
        candidates.sort_by_key(|candidate| candidate.host);
        let (misfits, champion) = misfits(&candidates);
        for host in misfits.minus(self.misfits).iter() {
            if host != self.settings.host
                && let Some(last) = self.last(host)
            {
                let why = Misfit::Configuration(difference(&self.plan, last));
                self.journal.note(Event::PeerQuarantined(host, why));
            }
        }
        self.misfits = misfits;
        let rival = self.rival().filter(|&(_, wins)| wins).map(|(rival, _)| {
            let place = if rival.name.is_empty() { "another node" } else { &rival.name };
            Misfit::DuplicateId(place.to_owned())
        });
        let differs = champion
            .filter(|_| misfits.contains(self.settings.host))
            .and_then(|champion| self.last(champion))
            .map(|champion| Misfit::Configuration(difference(&self.plan, champion)));
        self.set_quarantine(rival.or(differs));
    }

    fn set_quarantine(&mut self, reason: Option<Misfit>) {
        if reason == self.quarantine {
            return;
        }
        let fits = reason.is_none();
        if let Some(reason) = &reason {
            self.journal.note(Event::Quarantined(reason.clone()));
        }
        let before = std::mem::replace(&mut self.quarantine, reason);
        if fits {
            self.journal.note(Event::Fits);
            self.converge(Cause::Fits);
        } else if before.is_none() {
            self.void();
            self.in_round = false;
            self.pulse.prompt(self.now);
        }
    }

    /// Takes over what is seen; a change starts a convergence.
    fn look(&mut self, outcome: Outcome) {
        let mut pieces = self.pieces;
        for host in outcome.members.iter() {
            pieces[host.index()] = match self.peer(host) {
                Some(peer) => peer.piece,
                None => self.own_piece(),
            };
        }
        let hosts = outcome.members;
        let view = View { hosts, roll: roll(hosts.iter().map(|h| (h, pieces[h.index()]))) };
        if view != self.view {
            let cause = self.cause(hosts, &pieces);
            self.view = view;
            self.pieces = pieces;
            self.stable_since = None;
            self.agreed = false;
            self.converge(cause);
            if hosts == self.settings.host.into() && self.settings.isolated == Isolated::Stop {
                self.void();
            }
            return;
        }
        if self.converged
            && let Some(host) = self.contradicting()
        {
            self.converge(Cause::Contradiction(host));
        }
    }

    pub(super) fn own_piece(&self) -> u64 {
        let terms = self.plan.terms();
        piece(self.settings.nonce, self.heading(), self.drain.is_some(), terms)
    }

    fn cause(&self, hosts: HostSet, pieces: &[u64]) -> Cause {
        let (came, went) = (hosts.minus(self.view.hosts), self.view.hosts.minus(hosts));
        if let Some(host) = went.first() {
            return match self.last(host).map(|last| last.phase) {
                _ if self.misfits.contains(host) => Cause::MemberMisfits(host),
                Some(Phase::Goodbye) => Cause::MemberLeft(host),
                Some(Phase::Quarantined) => Cause::MemberMisfits(host),
                _ => Cause::MemberLost(host),
            };
        }
        if let Some(host) = came.iter().find(|&host| host != self.settings.host) {
            return Cause::NewMember(host);
        }
        let changed = |host: &HostId| pieces[host.index()] != self.pieces[host.index()];
        match hosts.iter().find(changed) {
            Some(host) if self.last(host).is_some_and(|last| last.epoch == 0) => {
                Cause::MemberRestarted(host)
            }
            Some(host) => Cause::TermsChanged(host),
            None => Cause::Started,
        }
    }

    /// A member that does not see what this host has converged on.
    fn contradicting(&self) -> Option<HostId> {
        self.members().find(|&host| {
            self.last(host).is_some_and(|last| {
                let starts_over = last.phase == Phase::Converging && !last.agreed;
                last.view != self.view || starts_over
            })
        })
    }

    /// The other members of the view.
    pub(super) fn members(&self) -> impl Iterator<Item = HostId> + use<> {
        self.view.hosts.minus(self.settings.host.into()).iter()
    }

    /// Starts a convergence, or starts it over.
    pub(super) fn converge(&mut self, cause: Cause) {
        if !self.in_round {
            self.in_round = true;
            self.journal.converging(self.now, self.last_members, cause);
        }
        for slot in &mut self.slots {
            slot.freeze_opened();
        }
        self.converged = false;
        self.stable_since = None;
        self.agreed = false;
        self.pulse.prompt(self.now);
    }

    /// What was served under the last view is served no more.
    pub(super) fn void(&mut self) {
        self.committed = HostSet::EMPTY;
        self.converged = false;
        self.agreed = false;
        self.stable_since = None;
        for slot in &mut self.slots {
            slot.give_up(&crate::buckets::BucketSet::ALL);
        }
        self.maps_version += 1;
    }

    /// Whoever shared the view in force and went on without this host serves its buckets from now
    /// on. When the others have left it out for a while, their agreement is enough: their serving
    /// begins with the next exchange of heartbeats.
    fn void_if_left_out(&mut self) {
        let (me, tolerance) = (self.settings.host, self.settings.tolerance);
        let while_ago = self.now.saturating_sub(self.settings.period / 2);
        let lasting = self.left_out_since.is_some_and(|since| since <= while_ago);
        let without_me = self.committed.iter().find(|&host| {
            self.peer(host).filter(|peer| peer.fresh(self.now, tolerance)).is_some_and(|peer| {
                let settled = peer.last.phase == Phase::Converged || (lasting && peer.last.agreed);
                settled && !peer.last.view.hosts.contains(me)
            })
        });
        if let Some(host) = without_me {
            self.journal.note(Event::LeftOut(host));
            self.void();
            self.converge(Cause::LeftOut(host));
        }
    }

    /// Agreement and commitment.
    fn settle(&mut self) {
        if self.converged {
            let same = |last: &&Heartbeat| last.phase == Phase::Converged && last.view == self.view;
            let epochs = self.members().filter_map(|host| self.last(host)).filter(same);
            self.epoch = epochs.map(|last| last.epoch).fold(self.epoch, u64::max);
            return;
        }
        if self.may_agree() {
            self.stable_since.get_or_insert(self.now);
        } else {
            self.stable_since = None;
        }
        let agreed = self.stable_since.is_some_and(|at| at + self.stable_time() <= self.now);
        if agreed && !self.agreed {
            self.pulse.prompt(self.now);
        }
        self.agreed = agreed;
        if agreed && self.all_members(|last| last.agreed || last.phase == Phase::Converged) {
            self.commit();
        }
    }

    /// Whether every member shows this host's view and nothing speaks against going on.
    fn may_agree(&self) -> bool {
        let alone = self.view.hosts == self.settings.host.into();
        let heard_in_vain = alone && !self.waiting().is_empty();
        let cut_off = alone && self.settings.isolated == Isolated::Stop;
        // A newcomer that hears only hosts with another key has the wrong one, as far as it can tell:
        // serving alone it would answer their clients too. Who has converged before goes on, so that
        // nobody without the key can stop a cluster.
        let stranger = alone && self.epoch == 0 && self.hears_another_key();
        !stranger
            && self.left_out_since.is_none()
            && !heard_in_vain
            && !cut_off
            && self.all_members(|last| last.view == self.view && last.digest == self.plan.digest)
    }

    fn hears_another_key(&self) -> bool {
        self.other_key_heard.is_some_and(|at| at + self.patience() > self.now)
    }

    fn all_members(&self, holds: impl Fn(&Heartbeat) -> bool) -> bool {
        self.members().all(|host| self.last(host).is_some_and(&holds))
    }

    /// The view comes in force.
    fn commit(&mut self) {
        let standing = |last: &&Heartbeat| last.phase == Phase::Converged;
        let known: Vec<&Heartbeat> = self.members().filter_map(|host| self.last(host)).collect();
        let ahead = known.iter().copied().filter(standing).map(|last| last.epoch).max();
        let highest = known.iter().map(|last| last.epoch).fold(self.epoch, u64::max);
        self.epoch = ahead.filter(|&epoch| epoch > self.epoch).unwrap_or(highest + 1);
        self.converged = true;
        self.agreed = false;
        self.stable_since = None;
        self.in_round = false;
        self.committed = self.view.hosts;
        self.last_members = self.view.hosts;
        self.journal.converged(self.now, self.epoch, self.view.hosts);
        self.release();
        self.pulse.prompt(self.now);
        self.switch_if_all_have_it();
    }
}
