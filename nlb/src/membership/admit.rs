//! Whose heartbeats are believed.
//!
//! A host is believed once a heartbeat of it shows that it hears *this boot* of ours: no recording
//! from before can. Until then it is a *contender*: heard and told so, but it changes nothing. A
//! host that is believed and heard keeps its id against every other boot; when it falls silent or
//! stands in quarantine, a contender takes its place.

use crate::heartbeat::replay::Verdict;
use crate::heartbeat::{Heard, Heartbeat, Phase, Refusal};
use crate::host::{HostId, HostSet};

use super::peer::Peer;
use super::{Event, Membership};

impl Membership {
    /// A heartbeat with a right seal.
    pub(super) fn admit(&mut self, heartbeat: Heartbeat) {
        let host = heartbeat.host;
        if host == self.settings.host {
            if heartbeat.nonce != self.settings.nonce {
                self.contend(heartbeat);
            }
            return;
        }
        let now = self.now;
        match &mut self.peers[host.index()] {
            Some(peer) => match peer.window.judge(heartbeat.nonce, heartbeat.sequence) {
                Verdict::Fresh => {
                    peer.hear(heartbeat, now);
                    self.notice_duplicate(host);
                }
                Verdict::Replay => self.refuse(Refusal::Replay),
                Verdict::OtherBoot => self.contend(heartbeat),
            },
            None => self.contend(heartbeat),
        }
    }

    /// A boot that is not believed yet.
    fn contend(&mut self, heartbeat: Heartbeat) {
        let host = heartbeat.host;
        let place = host.index();
        let taken = host == self.settings.host || self.defends(host);
        let proves = heartbeat.heard.hears(self.settings.host, self.settings.nonce);
        let in_the_way = heartbeat.phase == Phase::Quarantined && self.fresh().contains(host);
        if proves && !taken && !in_the_way {
            return self.believe(heartbeat);
        }
        if taken {
            self.refusals.count(Refusal::DuplicateId);
        }
        let now = self.now;
        match &mut self.contenders[place] {
            Some(known) if known.nonce() == heartbeat.nonce => {
                if known.window.judge(heartbeat.nonce, heartbeat.sequence) == Verdict::Fresh {
                    known.hear(heartbeat, now);
                } else {
                    self.refusals.count(Refusal::Replay);
                }
            }
            place => {
                *place = Some(Box::new(Peer::new(heartbeat, now)));
                self.pulse.soon(now);
            }
        }
    }

    /// Whether the boot we believe keeps its id.
    fn defends(&self, host: HostId) -> bool {
        self.peer(host).is_some_and(|peer| {
            peer.fresh(self.now, self.settings.tolerance) && peer.last.phase != Phase::Quarantined
        })
    }

    fn believe(&mut self, heartbeat: Heartbeat) {
        let place = heartbeat.host.index();
        self.contenders[place] = None;
        let (nonce, sequence) = (heartbeat.nonce, heartbeat.sequence);
        let mut peer = Peer::new(heartbeat, self.now);
        if let Some(before) = self.peers[place].take() {
            peer.window = before.window;
            peer.window.restart(nonce, sequence);
        }
        self.peers[place] = Some(Box::new(peer));
    }

    fn contender(&self, host: HostId) -> Option<&Peer> {
        let contender = self.contenders[host.index()].as_deref()?;
        contender.fresh(self.now, self.settings.tolerance).then_some(contender)
    }

    /// The believed host speaks although a second one with its id was heard since.
    fn notice_duplicate(&mut self, host: HostId) {
        let two = self.contender(host).is_some_and(|other| other.heard_at < self.now);
        if two && self.duplicates.insert(host) {
            self.journal.note(Event::DuplicateId(host));
        } else if !two {
            self.duplicates.remove(host);
        }
    }

    /// A second host with this one's id that is really there, and whether it keeps the id: it is
    /// the one more of the others hear, else the one with the smaller nonce.
    pub(super) fn rival(&self) -> Option<(&Heartbeat, bool)> {
        let me = self.settings.host;
        let rival = self.contender(me)?;
        if rival.last.phase == Phase::Quarantined || !rival.hears(me, self.settings.nonce) {
            return None;
        }
        // Who hears the rival does not show that it hears us: contenders count here.
        let hearing = |nonce| {
            let tolerance = self.settings.tolerance;
            let others = HostId::all().filter(|&host| host != me);
            let heard = |host: HostId| {
                let believed = self.peer(host).filter(|peer| peer.fresh(self.now, tolerance));
                believed.or(self.contender(host)).is_some_and(|peer| peer.hears(me, nonce))
            };
            others.filter(|&host| heard(host)).count()
        };
        let (mine, its) = (hearing(self.settings.nonce), hearing(rival.nonce()));
        let wins = its > mine || (its == mine && rival.nonce() < self.settings.nonce);
        Some((&rival.last, wins))
    }

    /// Whom this host hears, for its heartbeat. Its own id stands for a rival.
    pub(super) fn heard(&self) -> Heard {
        let mut heard = Heard::NOBODY;
        for host in HostId::all() {
            let believed = self.peer(host).filter(|p| p.fresh(self.now, self.settings.tolerance));
            let believed = believed
                .filter(|peer| peer.last.phase != Phase::Quarantined)
                .or(self.contender(host))
                .or(believed);
            if let Some(peer) = believed {
                heard.insert(host, peer.nonce());
            }
        }
        heard
    }

    /// Hosts that are heard and have not shown yet that they hear this one.
    pub(super) fn waiting(&self) -> HostSet {
        HostId::all()
            .filter(|&host| host != self.settings.host && self.contender(host).is_some())
            .collect()
    }
}
