//! What a host is told: who it is, its timers, and its plan of slots.

use std::net::IpAddr;
use std::time::Duration;

use crate::heartbeat::{Digest, Operator, SlotTerms};
use crate::host::{HostId, Nonce};
use crate::key::ClusterKey;
use crate::slot::{GroupId, SLOTS};

/// A host and its timers. All but `host`, `nonce`, `name` and `addresses` are the cluster's and must
/// be part of the plan's digest.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The primary virtual address: names the cluster.
    pub cluster: IpAddr,
    /// The cluster's key.
    pub key: ClusterKey,
    /// This host.
    pub host: HostId,
    /// This boot. Of two hosts with one id that nobody else knows, the one with the smaller nonce
    /// goes on, so the time of the boot belongs in the upper bits.
    pub nonce: Nonce,
    /// Host name, for others' messages.
    pub name: String,
    /// Dedicated addresses, told to the others.
    pub addresses: Vec<IpAddr>,
    /// Time between heartbeats, 100 ms to 10 s; half of it while converging.
    pub period: Duration,
    /// Missed heartbeats until a host is taken for dead, 5 to 100.
    pub tolerance: u32,
    /// How long buckets with affinity may wait for their last flow to end before they move.
    pub handover_timeout: Duration,
    /// What to do alone.
    pub isolated: Isolated,
    /// What to do at the beginning.
    pub initial: Initial,
}

/// What a host does that hears no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolated {
    /// It serves everything: the others are dead, or it is the only one.
    Serve,
    /// It serves nothing: it is cut off.
    Stop,
}

/// State at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initial {
    /// Joins the cluster.
    Started,
    /// Waits for `start`.
    Stopped,
    /// Waits for `resume`.
    Suspended,
}

/// What the configuration says about rules, as far as membership needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Of everything all hosts must have alike. Weights, handling priorities and operator states
    /// are not in it.
    pub digest: Digest,
    /// For people: rises with each version of the file.
    pub generation: u64,
    /// The parts of the digest, so that a misfit can be told what differs.
    pub marks: Vec<Mark>,
    /// The slots, by [`Slot::index`](crate::slot::Slot::index); at most [`SLOTS`], further ones are
    /// left out.
    pub slots: Vec<SlotPlan>,
}

/// A part of the configuration that all hosts must have alike: a rule, the list of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// In the operator's words: `rule 2 (tcp 443)`.
    pub name: String,
    /// Of this part.
    pub digest: Digest,
}

/// A slot: who shares it, and what this host offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotPlan {
    /// Enters the map's hash. Several slots may have one.
    pub group: GroupId,
    /// The IP protocol it is for; 0 = all.
    pub protocol: u8,
    /// The lowest port of its rules, which tells slots of one group apart when the plan changes.
    pub first_port: u16,
    /// How its buckets are shared.
    pub share: Share,
    /// Whether a client's flows must stay together: a lost bucket then waits for its last flow.
    pub hold: bool,
    /// This host's weight, 0 to 100.
    pub weight: u8,
    /// This host's handling priority, 1 to 32.
    pub priority: u8,
    /// What the operator made of it here.
    pub operator: Operator,
}

/// How the buckets of a slot are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// By weight.
    Weighted,
    /// Alike, whatever the weights.
    Equal,
    /// All to the host with the lowest handling priority; ties to the lowest id.
    Priority,
    /// All to the host with the lowest id.
    DefaultHost,
}

impl SlotPlan {
    /// What others are told.
    pub(super) fn terms(&self) -> SlotTerms {
        SlotTerms {
            weight: self.weight.min(100),
            priority: self.priority.min(32),
            operator: self.operator,
        }
    }
}

/// For each slot of `after` the place of the same slot in `before`: one with its group, protocol and
/// lowest port, else the only one that is left of its group and protocol.
pub fn carried(before: &[SlotPlan], after: &[SlotPlan]) -> Vec<Option<usize>> {
    let family = |slot: &SlotPlan| (slot.group, slot.protocol);
    let whole = |slot: &SlotPlan| (family(slot), slot.first_port);
    let mut found: Vec<Option<usize>> = after
        .iter()
        .map(|slot| before.iter().position(|other| whole(other) == whole(slot)))
        .collect();
    for place in 0..after.len() {
        let alike = |slot: &SlotPlan| family(slot) == family(&after[place]);
        let new = (0..after.len()).filter(|&it| found[it].is_none() && alike(&after[it])).count();
        let mut old =
            (0..before.len()).filter(|&it| !found.contains(&Some(it)) && alike(&before[it]));
        if found[place].is_none() && new == 1 {
            let (one, other) = (old.next(), old.next());
            found[place] = one.filter(|_| other.is_none());
        }
    }
    found
}

impl Plan {
    pub(super) fn clip(mut self) -> Plan {
        self.slots.truncate(SLOTS);
        self
    }

    pub(super) fn terms(&self) -> impl Iterator<Item = SlotTerms> {
        self.slots.iter().map(SlotPlan::terms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(group: u32, protocol: u8, first_port: u16) -> SlotPlan {
        let (share, operator) = (Share::Weighted, Operator::Enabled);
        let group = GroupId(group);
        SlotPlan {
            group,
            protocol,
            first_port,
            share,
            hold: false,
            weight: 1,
            priority: 1,
            operator,
        }
    }

    #[test]
    fn a_slot_is_known_again_by_its_port_and_else_by_being_the_only_one_of_its_group() {
        let (web, tls, dns) = (slot(7, 6, 80), slot(7, 6, 443), slot(7, 17, 53));
        let own = slot(0, 0, 0);
        let same = carried(&[own, web, tls, dns], &[own, web, tls, dns]);
        assert_eq!(same, [0, 1, 2, 3].map(Some));
        assert_eq!(carried(&[own, web, tls, dns], &[own, dns, tls]), [Some(0), Some(3), Some(2)]);
        assert_eq!(carried(&[own, tls], &[own, web]), [0, 1].map(Some), "a lower port");
        assert_eq!(carried(&[own, tls], &[own, web, tls]), [Some(0), None, Some(1)], "a rule more");
        assert_eq!(carried(&[tls], &[web, slot(7, 6, 81)]), [None, None], "either may be it");
        assert_eq!(carried(&[web], &[dns]), [None], "another protocol");
    }
}
