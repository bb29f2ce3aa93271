//! Membership: which hosts are alive, that all of them agree on it, and who serves which bucket
//! meanwhile.
//!
//! Knows heartbeats, hosts and buckets; time is an argument, output is a value. Must not know
//! frames, sockets, a clock, or what a port rule is.
//!
//! ```text
//!            start                    all show one view for 5 half periods,
//!  stopped ---------> converging -------- and all have said so ---------> converged
//!     ^                   ^  serves what it served                            |
//!     |                   '---- a host comes, goes or changes its terms ------'
//!     '-- stop, or the last flow of a drain ended (goodbye)
//! ```
//!
//! At each convergence a host first *releases* what is no longer its share (with affinity: holds it
//! until its flows end), says so at once, and *acquires* a bucket of its share when every member
//! has converged on the same view and none claims it. So a planned change serves nothing twice and
//! leaves new flows of a moved bucket unserved for about one exchange of heartbeats.
//!
//! Driving it: [`receive`](Membership::receive) every heartbeat that arrives, call
//! [`tick`](Membership::tick) at [`next_tick`](Membership::next_tick) at the latest, and after each
//! of them: when [`flows_wanted`](Membership::flows_wanted), report the flows of *every* slot; load
//! the [`maps`](Membership::maps) when [`maps_version`](Membership::maps_version) has moved; send
//! what [`take_heartbeat`](Membership::take_heartbeat) gives until it gives nothing.
//!
//! Where to read: `admit` who is believed, `suspicion` who is alive, `converge` what follows,
//! `slots` one slot's buckets, `handover` how they change hands, `announce` what is told.

use std::time::Duration;

use crate::buckets::BucketSet;
use crate::heartbeat::{Heartbeat, Phase, Refusal, Refusals, View, decode};
use crate::host::{HostId, HostSet, MAX_HOSTS};
use crate::map::Target;
use crate::slot::{GroupId, SLOTS, Slot};

mod admit;
mod announce;
mod command;
mod converge;
mod event;
mod handover;
mod misfit;
mod offers;
mod peer;
mod pulse;
mod query;
mod rollout;
mod settings;
mod slots;
mod suspicion;
mod view;

pub use command::{Answer, Command, SlotCommand};
pub use event::{Cause, Convergence, Event, Misfit, REMEMBERED};
pub use offers::Offer;
pub use query::{Draining, Member, Service, State, Status};
pub use settings::{Initial, Isolated, Mark, Plan, Settings, Share, SlotPlan, carried};

use event::Journal;
use peer::{Peer, patience};
use pulse::Pulse;
use slots::SlotState;
use suspicion::Peers;

/// How many half periods a view must stand still before a host calls it agreed.
pub const STABLE_ROUNDS: u32 = 5;

/// What the operator wants of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Suspended,
    Stopped,
    Member,
}

/// A drain of this host.
#[derive(Clone, Copy, Debug)]
struct Drain {
    since: Duration,
    deadline: Option<Duration>,
    flows_at_start: u64,
}

/// A host's part in its cluster. See the [module](self) for how to drive it.
#[derive(Debug)]
pub struct Membership {
    settings: Settings,
    plan: Plan,
    next_plan: Option<Plan>,
    standing: Standing,
    drain: Option<Drain>,
    link: bool,
    quarantine: Option<Misfit>,
    converged: bool,
    /// A convergence has begun and not ended.
    in_round: bool,
    /// Members of the last convergence, for the history.
    last_members: HostSet,
    /// Members of the last view in force; empty when what was served under it is void.
    committed: HostSet,
    view: View,
    pieces: [u64; MAX_HOSTS],
    left_out_since: Option<Duration>,
    one_way: HostSet,
    stable_since: Option<Duration>,
    agreed: bool,
    epoch: u64,
    peers: Peers,
    contenders: Peers,
    /// Hosts heard when it was looked last.
    heard_before: HostSet,
    /// Since when others hear a host that this one does not.
    unheard_since: [Option<Duration>; MAX_HOSTS],
    misfits: HostSet,
    duplicates: HostSet,
    slots: Vec<SlotState>,
    told: announce::Told,
    pulse: Pulse,
    sequence: u64,
    now: Duration,
    flows_wanted: bool,
    maps_version: u64,
    journal: Journal,
    refusals: Refusals,
    other_key_at: Option<Duration>,
    /// When a heartbeat of this cluster's address under another key came last.
    other_key_heard: Option<Duration>,
}

/// What the filter is told about one slot.
#[derive(Clone, Copy, Debug)]
pub struct SlotMap<'a> {
    /// The slot's number in hashes.
    pub group: GroupId,
    /// Buckets whose new flows this host passes.
    pub serving: &'a BucketSet,
    /// Of those, buckets where another host holds flows: unknown flows are not passed.
    pub tainted: &'a BucketSet,
    /// Whether flows this host holds outside its buckets go on.
    pub pinned_pass: bool,
    /// Who owns which bucket under the view in force.
    pub target: &'a Target,
}

impl Membership {
    /// A host at its beginning. `now` and all later times count from any fixed moment.
    pub fn new(settings: Settings, plan: Plan, now: Duration) -> Membership {
        let plan = plan.clip();
        let mut membership = Membership {
            slots: plan.slots.iter().map(|slot| SlotState::new(slot.group)).collect(),
            plan,
            next_plan: None,
            standing: match settings.initial {
                Initial::Suspended => Standing::Suspended,
                Initial::Started | Initial::Stopped => Standing::Stopped,
            },
            drain: None,
            link: true,
            quarantine: None,
            converged: false,
            in_round: false,
            last_members: HostSet::EMPTY,
            committed: HostSet::EMPTY,
            view: View { hosts: HostSet::EMPTY, roll: 0 },
            pieces: [0; MAX_HOSTS],
            left_out_since: None,
            one_way: HostSet::EMPTY,
            stable_since: None,
            agreed: false,
            epoch: 0,
            peers: Peers::default(),
            contenders: Peers::default(),
            heard_before: HostSet::EMPTY,
            unheard_since: [None; MAX_HOSTS],
            misfits: HostSet::EMPTY,
            duplicates: HostSet::EMPTY,
            told: announce::Told::default(),
            pulse: Pulse::new(settings.period),
            sequence: 0,
            now,
            flows_wanted: false,
            maps_version: 0,
            journal: Journal::default(),
            refusals: Refusals::default(),
            other_key_at: None,
            other_key_heard: None,
            settings,
        };
        if membership.settings.initial == Initial::Started {
            membership.command(Command::Start, now);
        }
        membership
    }

    /// A frame of the heartbeats' type arrived; `payload` is what follows its Ethernet header.
    pub fn receive(&mut self, payload: &[u8], now: Duration) {
        self.advance(now);
        match decode(payload, self.settings.cluster, self.settings.key.seal()) {
            Ok(heartbeat) => self.admit(heartbeat),
            Err(reason) => self.refuse(reason),
        }
        self.evaluate();
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Duration) {
        self.advance(now);
        self.evaluate();
    }

    /// When [`tick`](Self::tick) must be called at the latest; `None` while nothing waits.
    pub fn next_tick(&self) -> Option<Duration> {
        let pulse = self.pulse.next().filter(|_| self.link);
        if self.standing != Standing::Member {
            return pulse;
        }
        let tolerance = self.settings.tolerance;
        let silences = self.peers.iter().flatten().map(|peer| peer.silent_at(tolerance));
        let given_up = self.unheard_since.iter().flatten().map(|&since| since + self.give_up());
        let stable = self.stable_since.map(|since| since + self.stable_time());
        let holds = self.slots.iter().filter_map(SlotState::next_expiry);
        let drain = self.drain.and_then(|drain| drain.deadline);
        silences
            .chain(given_up)
            .chain(stable)
            .chain(holds)
            .chain(drain)
            .filter(|&at| at > self.now)
            .chain(pulse)
            .chain([self.now + self.settings.period])
            .min()
    }

    /// The link of the network card went down or came back. A host without a link serves nothing.
    pub fn link(&mut self, up: bool, now: Duration) {
        self.advance(now);
        if up == self.link {
            return;
        }
        self.link = up;
        self.journal.note(Event::Link(up));
        self.void();
        self.in_round = false;
        if up {
            self.converge(Cause::LinkUp);
        }
        self.evaluate();
    }

    /// The flows of one slot as they are *now*: the buckets they are in, and their number.
    pub fn flows(&mut self, slot: Slot, buckets: &BucketSet, count: u32, now: Duration) {
        self.advance(now);
        let Some(state) = self.slots.get_mut(slot.index()) else { return };
        state.count_flows(buckets, count);
        if slot.index() + 1 == self.slots.len() {
            self.flows_wanted = false;
        }
        self.evaluate();
    }

    /// Connections a slot has opened on this host since it runs.
    pub fn opened(&mut self, slot: Slot, total: u64) {
        if let Some(state) = self.slots.get_mut(slot.index()) {
            state.count_opened(total);
        }
    }

    /// Whether the flows of every slot should be reported now rather than at leisure.
    pub fn flows_wanted(&self) -> bool {
        self.flows_wanted
    }

    /// The next heartbeat to send, if one is due: the payload of a frame of type
    /// [`ETHERTYPE`](crate::heartbeat::ETHERTYPE) to all.
    pub fn take_heartbeat(&mut self, now: Duration) -> Option<Vec<u8>> {
        self.advance(now);
        if !self.link || !self.pulse.take(now, self.interval()) {
            return None;
        }
        let heartbeat = self.announce();
        Some(heartbeat.encode(self.settings.key.seal()))
    }

    /// Buckets move: what is known of their flows is too old.
    fn want_flows(&mut self) {
        self.flows_wanted = !self.slots.is_empty();
        self.journal.note(Event::FlowsWanted);
    }

    /// What the filter is to do, slot by slot in order.
    pub fn maps(&self) -> impl Iterator<Item = SlotMap<'_>> {
        let alive = self.standing == Standing::Member && self.quarantine.is_none();
        self.slots.iter().zip(&self.plan.slots).map(move |(state, plan)| SlotMap {
            group: state.group,
            serving: &state.serving,
            tainted: &state.tainted,
            pinned_pass: alive && plan.operator != crate::heartbeat::Operator::Disabled,
            target: &state.map,
        })
    }

    /// Changes whenever [`maps`](Self::maps) or [`service`](Self::service) may have.
    pub fn maps_version(&self) -> u64 {
        self.maps_version
    }

    /// What happened since the last call, at most [`REMEMBERED`] of it.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.journal.take()
    }

    /// Past convergences, the oldest first.
    pub fn history(&self) -> impl Iterator<Item = &Convergence> {
        self.journal.history()
    }

    /// How many times this host has begun to converge.
    pub fn convergences(&self) -> u64 {
        self.journal.count
    }

    /// Heartbeats that were not believed.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    fn refuse(&mut self, reason: Refusal) {
        self.refusals.count(reason);
        if reason == Refusal::Seal {
            self.other_key_heard = Some(self.now);
        }
        let quiet = Duration::from_secs(60);
        if reason == Refusal::Seal && self.other_key_at.is_none_or(|at| self.now >= at + quiet) {
            self.other_key_at = Some(self.now);
            self.journal.note(Event::OtherKey);
        }
    }

    /// Time never goes back. When it jumped, the others have given this host up meanwhile.
    fn advance(&mut self, now: Duration) {
        let before = self.now;
        self.now = now.max(before);
        let slept = self.now - before >= self.patience();
        if slept && self.standing == Standing::Member && self.link {
            self.journal.note(Event::Slept);
            self.void();
            self.converge(Cause::Slept);
        }
    }

    /// The time within which the next heartbeat follows.
    fn interval(&self) -> Duration {
        if self.converged { self.settings.period } else { self.settings.period / 2 }
    }

    fn patience(&self) -> Duration {
        patience(self.settings.period, self.settings.tolerance)
    }

    /// Silence after which a host that others hear is given up.
    fn give_up(&self) -> Duration {
        2 * self.patience()
    }

    fn stable_time(&self) -> Duration {
        STABLE_ROUNDS * self.settings.period / 2
    }

    fn phase(&self) -> Phase {
        match (self.standing, &self.quarantine, self.converged) {
            (Standing::Member, Some(_), _) => Phase::Quarantined,
            (Standing::Member, None, true) => Phase::Converged,
            (Standing::Member, None, false) => Phase::Converging,
            _ => Phase::Goodbye,
        }
    }

    fn peer(&self, host: HostId) -> Option<&Peer> {
        self.peers[host.index()].as_deref()
    }

    /// Hosts heard now.
    fn fresh(&self) -> HostSet {
        let tolerance = self.settings.tolerance;
        let heard = |host: HostId| self.peer(host).is_some_and(|p| p.fresh(self.now, tolerance));
        HostId::all().filter(|&host| heard(host)).collect()
    }

    fn last(&self, host: HostId) -> Option<&Heartbeat> {
        self.peer(host).map(|peer| &peer.last)
    }
}

const _: () = assert!(SLOTS <= 64);
