//! Who is alive, and who can talk to whom. A pure function of last heartbeats and the time.
//!
//! * A host is *dead* when more than half of those who could hear it do not: one deaf host or a few
//!   lost heartbeats throw nobody out, and a crash is noticed by all at once.
//! * A pair is *broken* when one of them has not heard the other for twice the patience although
//!   others do. Of broken pairs the host with more of them is left out, else the one with the
//!   higher id; every host sees the same table and names the same ones.
//! * This host is *unheard* when more than half of those it hears do not hear it. It then must not
//!   go on without them: they go on without it.

use std::time::Duration;

use crate::heartbeat::Phase;
use crate::host::{HostId, HostSet, MAX_HOSTS, Nonce};

use super::peer::Peer;

/// Hosts believed, by [`HostId::index`].
pub(super) type Peers = [Option<Box<Peer>>; MAX_HOSTS];

/// What this host sees.
pub(super) struct Sight<'a> {
    pub(super) me: HostId,
    pub(super) nonce: Nonce,
    pub(super) now: Duration,
    pub(super) tolerance: u32,
    pub(super) peers: &'a Peers,
    /// Hosts that do not fit and are left out.
    pub(super) misfits: HostSet,
    /// Hosts this one has given up hearing.
    pub(super) lost: HostSet,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The members, this host always among them.
    pub(super) members: HostSet,
    /// This host must wait: the others do not hear it, or leave it out.
    pub(super) left_out: bool,
    /// Hosts in broken pairs with this one.
    pub(super) one_way: HostSet,
}

impl Sight<'_> {
    pub(super) fn judge(&self) -> Outcome {
        let voters = self.voters();
        let alive: HostSet =
            HostId::all().filter(|&host| self.could_be(host) && self.alive(host, voters)).collect();
        let here = alive.union(self.me.into());
        // Whom I have given up but others hear: they may leave me out for it.
        let table = here.union(self.lost.minus(self.misfits));
        let (sound, one_way) = self.leave_out_broken(table);
        Outcome {
            members: sound.intersection(here).union(self.me.into()),
            left_out: !sound.contains(self.me) || self.unheard(voters),
            one_way,
        }
    }

    fn peer(&self, host: HostId) -> Option<&Peer> {
        self.peers[host.index()].as_deref()
    }

    fn fresh(&self, host: HostId) -> bool {
        self.peer(host).is_some_and(|peer| peer.fresh(self.now, self.tolerance))
    }

    /// Whether a host may be a member at all.
    fn could_be(&self, host: HostId) -> bool {
        self.peer(host)
            .is_some_and(|peer| !matches!(peer.last.phase, Phase::Goodbye | Phase::Quarantined))
            && !self.misfits.contains(host)
    }

    /// Others whose word counts.
    fn voters(&self) -> HostSet {
        HostId::all().filter(|&host| self.could_be(host) && self.fresh(host)).collect()
    }

    fn alive(&self, host: HostId, voters: HostSet) -> bool {
        let Some(nonce) = self.peer(host).map(Peer::nonce) else { return false };
        let others = voters.minus(host.into());
        let missed = others.iter().filter(|&voter| !self.hears(voter, host, nonce)).count()
            + usize::from(!self.fresh(host));
        2 * missed <= others.len() + 1
    }

    fn hears(&self, voter: HostId, host: HostId, nonce: Nonce) -> bool {
        self.peer(voter).is_some_and(|voter| voter.hears(host, nonce))
    }

    fn unheard(&self, voters: HostSet) -> bool {
        let missed = voters.iter().filter(|&voter| !self.hears(voter, self.me, self.nonce)).count();
        2 * missed > voters.len()
    }

    fn lost_by(&self, host: HostId) -> HostSet {
        if host == self.me {
            return self.lost;
        }
        match self.peer(host) {
            Some(peer) if self.fresh(host) => peer.last.lost,
            _ => HostSet::EMPTY,
        }
    }

    fn broken(&self, a: HostId, b: HostId) -> bool {
        self.lost_by(a).contains(b) || self.lost_by(b).contains(a)
    }

    /// The hosts that remain, and those with which this one cannot talk.
    fn leave_out_broken(&self, mut hosts: HostSet) -> (HostSet, HostSet) {
        let breaks = |host: HostId, hosts: HostSet| -> HostSet {
            hosts.iter().filter(|&other| other != host && self.broken(host, other)).collect()
        };
        if hosts.iter().all(|host| self.lost_by(host).is_empty()) {
            return (hosts, HostSet::EMPTY);
        }
        let one_way = breaks(self.me, hosts);
        loop {
            let worst = hosts.iter().max_by_key(|&host| (breaks(host, hosts).len(), host));
            match worst {
                Some(host) if !breaks(host, hosts).is_empty() => hosts.remove(host),
                _ => return (hosts, one_way),
            };
        }
    }
}
