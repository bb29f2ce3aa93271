//! What a host says about itself when asked.

use std::fmt;
use std::time::Duration;

use crate::heartbeat::{Digest, Phase, View};
use crate::host::{HostId, HostSet};

use super::{Membership, Misfit, Standing};

/// Where a host stands, in the operator's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Locked; not a member.
    Suspended,
    /// Not a member.
    Stopped,
    /// The link is down.
    Disconnected,
    /// A member whose view is not agreed yet.
    Converging,
    /// Agreed.
    Converged,
    /// Agreed, and the host that takes what no rule covers.
    ConvergedDefault,
    /// Leaving.
    Draining,
    /// Does not fit the others.
    Quarantined,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Suspended => "suspended",
            State::Stopped => "stopped",
            State::Disconnected => "disconnected",
            State::Converging => "converging",
            State::Converged => "converged",
            State::ConvergedDefault => "converged as DEFAULT",
            State::Draining => "draining",
            State::Quarantined => "quarantined",
        })
    }
}

/// What the filter is told about this host as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Its maps count.
    Active,
    /// It serves nothing.
    Stopped,
    /// It serves nothing since it does not fit.
    Quarantined,
}

/// Progress of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draining {
    /// When it began.
    pub since: Duration,
    /// When it ends at the latest.
    pub deadline: Option<Duration>,
    /// Flows at the beginning.
    pub flows_at_start: u64,
    /// Flows left.
    pub flows_left: u64,
}

/// This host at a glance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Where it stands.
    pub state: State,
    /// Its view.
    pub view: View,
    /// How many times the cluster has converged.
    pub epoch: u64,
    /// Why it is in quarantine.
    pub quarantine: Option<Misfit>,
    /// Its drain.
    pub drain: Option<Draining>,
    /// The others leave it out, since when.
    pub left_out_since: Option<Duration>,
    /// Hosts with which it cannot talk in both directions.
    pub one_way: HostSet,
    /// Hosts heard that do not fit.
    pub misfits: HostSet,
    /// Members that a new configuration here waits for; `None` when none waits.
    pub plan_waits_for: Option<HostSet>,
}

/// Another host, as its last heartbeat told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its id.
    pub host: HostId,
    /// Its name.
    pub name: &'a str,
    /// Where it stands.
    pub phase: Phase,
    /// Whether it leaves.
    pub draining: bool,
    /// When it was heard last.
    pub heard_at: Duration,
    /// Whether it is believed to be alive.
    pub heard: bool,
    /// Its dedicated addresses.
    pub addresses: &'a [std::net::IpAddr],
    /// Its configuration.
    pub digest: Digest,
    /// Its view.
    pub view: View,
    /// Its flows.
    pub flows: u64,
}

impl Membership {
    /// This host.
    pub fn host(&self) -> HostId {
        self.settings.host
    }

    /// Where this host stands.
    pub fn state(&self) -> State {
        match self.standing {
            Standing::Suspended => State::Suspended,
            Standing::Stopped => State::Stopped,
            Standing::Member if !self.link => State::Disconnected,
            Standing::Member if self.quarantine.is_some() => State::Quarantined,
            Standing::Member if self.drain.is_some() => State::Draining,
            Standing::Member if !self.converged => State::Converging,
            Standing::Member if self.view.hosts.first() == Some(self.settings.host) => {
                State::ConvergedDefault
            }
            Standing::Member => State::Converged,
        }
    }

    /// What the filter is told about this host.
    pub fn service(&self) -> Service {
        match self.state() {
            State::Suspended | State::Stopped | State::Disconnected => Service::Stopped,
            State::Quarantined => Service::Quarantined,
            _ => Service::Active,
        }
    }

    /// This host at a glance.
    pub fn status(&self) -> Status {
        Status {
            state: self.state(),
            view: self.view,
            epoch: self.epoch,
            quarantine: self.quarantine.clone(),
            drain: self.drain.map(|drain| Draining {
                since: drain.since,
                deadline: drain.deadline,
                flows_at_start: drain.flows_at_start,
                flows_left: self.flow_count(),
            }),
            left_out_since: self.left_out_since,
            one_way: self.one_way,
            misfits: self.misfits,
            plan_waits_for: self.next_plan.as_ref().map(|_| self.without_plan()),
        }
    }

    /// The other hosts heard since the beginning.
    pub fn others(&self) -> impl Iterator<Item = Member<'_>> {
        let fresh = self.fresh();
        self.peers.iter().flatten().map(move |peer| Member {
            host: peer.last.host,
            name: &peer.last.name,
            phase: peer.last.phase,
            draining: peer.last.draining,
            heard_at: peer.heard_at,
            heard: fresh.contains(peer.last.host),
            addresses: &peer.last.addresses,
            digest: peer.last.digest,
            view: peer.last.view,
            flows: peer.last.slots.iter().map(|(_, report)| u64::from(report.flows)).sum(),
        })
    }
}
