//! The node's mind: membership decides, the filter does.
//!
//! Knows the state of both and brings the one to the other. Time is an argument; sockets are the
//! caller's.

use std::net::IpAddr;
use std::time::Duration;

use ::nlb::filter::{Echo, HostState, Policy, SlotState};
use ::nlb::heartbeat::Digest;
use ::nlb::key::ClusterKey;
use ::nlb::membership::{Membership, Plan, Service, State, carried};
use ::nlb::rules::Rules;
use ::nlb::slot::{SLOTS, Slot};
use ::nlb::tuple::Tuple;
use anyhow::Result;
use tracing::{info, warn};

use super::flows::{self, Flows};
use super::sockets::Held;
use crate::filter::{Filter, Idle};

/// See the module.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) membership: Membership,
    pub(super) filter: Filter,
    policy: Policy,
    key: ClusterKey,
    /// What the filter was told last.
    published: Option<(u64, Service)>,
    idle: Idle,
    /// Addresses of the other hosts by the file in force.
    peers: Vec<IpAddr>,
    /// What comes in force with the plan of this digest: rules, and the other hosts' addresses.
    next: Option<(Digest, Rules, Vec<IpAddr>)>,
}

/// How long a pin of TCP waits for a packet where the kernel's table tells of connections: it is there
/// for the handshake alone, and this is past the third repetition of a SYN+ACK.
const HANDSHAKE: Duration = Duration::from_secs(15);

impl Host {
    /// A host whose filter serves nothing yet. Flows that it holds already, from a node that ran
    /// here before, are the kernel's to remember.
    pub(super) fn new(
        membership: Membership,
        filter: Filter,
        policy: Policy,
        key: ClusterKey,
        udp_pin: Duration,
    ) -> Host {
        let mut idle = Idle::default();
        if !udp_pin.is_zero() {
            idle.udp = udp_pin;
        }
        if !policy.track {
            idle.tcp = HANDSHAKE;
        }
        let peers = policy.peers.clone();
        Host { membership, filter, policy, key, published: None, idle, peers, next: None }
    }

    /// Whether this host answers for the virtual addresses.
    pub(super) fn answers(&self) -> bool {
        self.membership.service() == Service::Active
    }

    /// The port rules in force.
    pub(super) fn rules(&self) -> &Rules {
        &self.policy.rules
    }

    /// What the filter decides by.
    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The cluster's keys.
    pub(super) fn key(&self) -> &ClusterKey {
        &self.key
    }

    /// A new configuration: weights are in force with the next convergence, other rules when every
    /// member has them, and `peers` (the other hosts' addresses) with them. Its slots are enabled or not
    /// as the same slots are now.
    pub(super) fn reload(
        &mut self,
        mut plan: Plan,
        rules: Rules,
        peers: Vec<IpAddr>,
        now: Duration,
    ) {
        let before = self.membership.slot_plans();
        let same = carried(before, &plan.slots);
        for (slot, same) in plan.slots.iter_mut().zip(same) {
            slot.operator =
                same.and_then(|at| before.get(at)).map_or(slot.operator, |it| it.operator);
        }
        self.next = Some((plan.digest, rules, peers));
        self.membership.reload(plan, now);
        self.switch();
    }

    /// Rules and slots switch together: a slot means nothing without its rules.
    fn switch(&mut self) {
        let digest = self.membership.digest();
        if let Some((_, rules, peers)) = self.next.take_if(|(wanted, ..)| *wanted == digest) {
            self.policy.rules = rules;
            self.peers = peers;
            self.published = None;
        }
    }

    /// Addresses of this host alone as they are now; those of the others are by the file, and as they
    /// say themselves.
    pub(super) fn set_addresses(&mut self, own: Vec<IpAddr>) {
        let mut peers = self.peers.clone();
        for member in self.membership.others() {
            peers.extend(member.addresses);
        }
        peers.retain(|peer| !own.contains(peer) && !self.policy.vips.contains(peer));
        peers.sort_unstable();
        peers.dedup();
        if (&self.policy.own, &self.policy.peers) != (&own, &peers) {
            (self.policy.own, self.policy.peers) = (own, peers);
            self.published = None;
        }
    }

    /// Takes what the kernel's socket table and the filter's pins say of the flows held here. Those
    /// of a slot that is disabled are given up.
    ///
    /// # Errors
    /// When the kernel refuses to list the pins.
    pub(super) fn take_flows(
        &mut self,
        held: &[Held],
        now: Duration,
        clock: Duration,
    ) -> Result<()> {
        let sockets = held.iter().filter_map(|held| flows::tuple(held, &self.policy.vips));
        let mut tuples: Vec<Tuple> = sockets.collect();
        tuples.sort_unstable();
        let mut pinned = Vec::new();
        for pin in self.filter.pins(clock)?.into_iter().filter(|pin| !pin.closing) {
            // A connection that the kernel tells of needs no pin, which would outlive it.
            if !self.policy.track && tuples.binary_search(&pin.tuple).is_ok() {
                self.filter.unpin(&pin.tuple)?;
            }
            pinned.push(pin.tuple);
        }
        tuples.extend(pinned);
        tuples.sort_unstable();
        tuples.dedup();
        let disabled = self.disabled();
        if !disabled.is_empty() {
            let given_up = |tuple: &Tuple| {
                let place = flows::place(tuple, &self.policy.rules, self.key.hash());
                place.is_some_and(|(slot, _)| disabled.contains(&slot))
            };
            for tuple in tuples.extract_if(.., |tuple| given_up(tuple)) {
                self.filter.retire(&tuple, clock)?;
            }
        }
        let counted = flows::count(tuples, &self.policy.rules, self.key.hash());
        let slots: Vec<Slot> = self.policy.rules.slots().collect();
        for slot in slots {
            let Flows { buckets, count } = &counted[slot.index()];
            self.membership.flows(slot, buckets, *count, now);
        }
        Ok(())
    }

    /// The slots whose flows end here, because the operator has disabled them.
    fn disabled(&self) -> Vec<Slot> {
        let maps = Slot::all().zip(self.membership.maps());
        let takes_part = self.membership.service() == Service::Active;
        maps.filter(|(_, map)| takes_part && !map.pinned_pass).map(|(slot, _)| slot).collect()
    }

    /// Tells membership how many connections have been opened, and forgets idle pins. `clock` is
    /// the time of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn keep_house(&mut self, clock: Duration) -> Result<()> {
        let slots: Vec<Slot> = self.policy.rules.slots().collect();
        for slot in slots {
            let opened = self.filter.opened(slot)?;
            self.membership.opened(slot, opened);
        }
        self.filter.expire(clock, &self.idle)?;
        Ok(())
    }

    /// Brings the filter to where membership is.
    ///
    /// # Errors
    /// When the kernel refuses; the next call tries again.
    pub(super) fn follow(&mut self) -> Result<()> {
        self.switch();
        let now = (self.membership.maps_version(), self.membership.service());
        if self.published == Some(now) {
            return Ok(());
        }
        self.policy.state = match now.1 {
            Service::Active => HostState::Active,
            Service::Stopped => HostState::Stopped,
            Service::Quarantined => HostState::Quarantined,
        };
        let mut slots: Box<[SlotState; SLOTS]> =
            Box::new(std::array::from_fn(|_| SlotState::default()));
        for (state, map) in slots.iter_mut().zip(self.membership.maps()) {
            *state = SlotState { serving: map.serving.clone(), tainted: map.tainted.clone() };
        }
        self.policy.slots = slots;
        self.filter.publish(&self.policy)?;
        self.published = Some(now);
        Ok(())
    }

    /// Puts what has happened into the log.
    pub(super) fn tell(&mut self) {
        use ::nlb::membership::Event as E;
        for event in self.membership.take_events() {
            match event {
                E::MapsChanged | E::FlowsWanted => {}
                E::Converging(cause) => match cause.peer() {
                    Some(host) => info!("converging: {} (host {host})", cause.label()),
                    None => info!("converging: {}", cause.label()),
                },
                E::Converged { epoch, members } => {
                    let default = self.membership.state() == State::ConvergedDefault;
                    let role = if default { " as DEFAULT" } else { "" };
                    info!("converged{role} with hosts {members} (epoch {epoch})");
                }
                E::Stopped => info!("left the cluster"),
                E::DrainStarted => info!("draining: no new connections"),
                E::DrainInterrupted => info!("the drain was cut short"),
                E::Suspended => info!("suspended: waiting for resume"),
                E::Resumed => info!("resumed: stopped, waiting for start"),
                E::SlotChanged(slot) => info!("the rules of slot {slot} have changed here"),
                E::Quarantined(misfit) => warn!("this host serves nothing: {misfit}"),
                E::Fits => info!("this host fits the others again"),
                E::PeerQuarantined(host, misfit) => warn!("host {host} is left out: {misfit}"),
                E::DuplicateId(host) => warn!("two machines say that they are host {host}"),
                E::Overlap(host) => {
                    warn!("host {host} serves the same clients: two parts of the cluster have met");
                }
                E::LeftOut(host) => warn!("host {host} and others went on without this host"),
                E::OneWay(hosts) if hosts.is_empty() => info!("all hosts hear each other"),
                E::OneWay(hosts) => {
                    warn!("heartbeats pass in one direction only between this host and {hosts}");
                }
                E::OtherKey => warn!(
                    "heartbeats with this cluster's address and another key: another cluster has \
                     the same primary address, or a host another nlb.key. A host that is new and hears \
                     no other serves nothing meanwhile"
                ),
                E::Link(true) => info!("the link is up"),
                E::Link(false) => warn!("the link is down: this host serves nothing"),
                E::Slept => warn!("this host did not run for longer than the others wait"),
                E::PlanWaits(hosts) => {
                    info!("the new configuration waits until hosts {hosts} have it too");
                }
                E::PlanSwitched => info!("the new configuration is in force"),
            }
        }
    }
}

/// The policy of a host that serves nothing yet.
pub(super) fn policy(
    identity: &super::identity::Identity,
    cluster_mac: [u8; 6],
    nlb: &crate::config::nlb::Nlb,
    vips: Vec<IpAddr>,
    rules: Rules,
    key: &ClusterKey,
) -> Policy {
    let primary = nlb.primary.unwrap_or(IpAddr::from([0; 4]));
    let mut policy = Policy::new(identity.mac, cluster_mac, primary, rules, key.hash());
    policy.vips = vips;
    policy.own.clone_from(&identity.addresses);
    policy.peers = super::reload::others(identity.host, &nlb.hosts);
    policy.echo = if nlb.echo_by_all { Echo::All } else { Echo::One };
    policy.track = nlb.track;
    policy.udp_pin = !nlb.udp_pin.is_zero();
    policy
}
