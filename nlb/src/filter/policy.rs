//! Everything the node tells the filter.

use std::net::IpAddr;

use forwarding::wire::{ethernet, protocol};

use crate::buckets::{Bucket, BucketSet};
use crate::hash;
use crate::key::HashKey;
use crate::rules::{Choice, Found, Rules};
use crate::slot::{SLOTS, Slot};
use crate::tuple::{PPTP, Tuple};

/// What the filter decides by. It is replaced as a whole or, in the kernel, map by map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The MAC address of the interface.
    pub own_mac: ethernet::Address,
    /// The MAC address that all hosts receive ([`delivery`](crate::delivery)).
    pub cluster_mac: ethernet::Address,
    /// Whether this host takes part.
    pub state: HostState,
    /// The virtual addresses.
    pub vips: Vec<IpAddr>,
    /// The virtual address that stands for the cluster: remote control goes to it.
    pub primary: IpAddr,
    /// Addresses of this host alone.
    pub own: Vec<IpAddr>,
    /// Addresses of the other hosts.
    pub peers: Vec<IpAddr>,
    /// The port rules.
    pub rules: Rules,
    /// What this host serves, by [`Slot::index`].
    pub slots: Box<[SlotState; SLOTS]>,
    /// Puts packets into buckets.
    pub hash: HashKey,
    /// Who answers a ping of a virtual address.
    pub echo: Echo,
    /// Whether every TCP flow is pinned: needed where its sockets are not in the namespace of the
    /// interface (containers), so that asking the kernel for a socket finds nothing.
    pub track: bool,
    /// Whether UDP flows are pinned, for as long as the node keeps pins.
    pub udp_pin: bool,
}

/// Whether a host takes part in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostState {
    /// It passes what it serves and what it holds; draining hosts too, which serve nothing.
    Active,
    /// It passes nothing that is balanced.
    Stopped,
    /// Its configuration does not fit to the others': it passes nothing that is balanced.
    Quarantined,
}

/// Who answers ICMP echo requests to a virtual address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Echo {
    /// The host that serves the client's bucket of [`Slot::ECHO`].
    One,
    /// Every host.
    All,
}

/// The buckets of one slot on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotState {
    /// New flows in these are passed.
    pub serving: BucketSet,
    /// Another host still holds flows in these: of them this host passes only beginnings.
    pub tainted: BucketSet,
}

/// Whose an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// All hosts': a virtual address.
    Cluster,
    /// This host's alone.
    Own,
    /// Another host's.
    Peer,
}

impl Policy {
    /// A host that has only just started: it serves nothing.
    pub fn new(
        own_mac: ethernet::Address,
        cluster_mac: ethernet::Address,
        primary: IpAddr,
        rules: Rules,
        hash: HashKey,
    ) -> Policy {
        Policy {
            own_mac,
            cluster_mac,
            state: HostState::Stopped,
            vips: vec![primary],
            primary,
            own: vec![],
            peers: vec![],
            rules,
            slots: Box::new(std::array::from_fn(|_| SlotState::default())),
            hash,
            echo: Echo::One,
            track: false,
            udp_pin: false,
        }
    }

    /// Whose an address is; `None` when it is unknown. A virtual address is one even if a host
    /// names it as its own.
    pub fn owner(&self, address: IpAddr) -> Option<Owner> {
        [(&self.vips, Owner::Cluster), (&self.own, Owner::Own), (&self.peers, Owner::Peer)]
            .into_iter()
            .find_map(|(addresses, owner)| addresses.contains(&address).then_some(owner))
    }

    /// By which map and in which bucket of it a flow goes, of TCP, UDP or GRE; `None` when a disabled
    /// rule covers it. GRE goes with the control connection of PPTP, in TCP port 1723.
    pub fn place(&self, tuple: &Tuple) -> Option<(Choice, Bucket)> {
        let found = if tuple.protocol == protocol::GRE {
            self.rules.lookup(tuple.vip, protocol::TCP, PPTP)
        } else {
            self.rules.lookup(tuple.vip, tuple.protocol, tuple.vip_port)
        };
        let Found::Choice(choice) = found else { return None };
        Some((choice, hash::bucket(self.hash, choice.group, choice.affinity, tuple)))
    }

    /// Whether this host passes new flows of a bucket.
    pub fn serves(&self, slot: Slot, bucket: Bucket) -> bool {
        self.slots[slot.index()].serving.contains(bucket)
    }

    /// Whether another host still holds flows of a bucket.
    pub fn is_tainted(&self, slot: Slot, bucket: Bucket) -> bool {
        self.slots[slot.index()].tainted.contains(bucket)
    }
}
