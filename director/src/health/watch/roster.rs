//! Who is watched, and how: brings together what the file asks for and the servers that there are.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use super::super::feedback::Factor;
use super::super::judge::{self, Before, Situation};
use super::super::memory::Remembered;
use super::super::plan::{Check, ServiceHealth};
use super::super::servers::Standing;
use super::super::tally::Tally;
use super::agents::Agents;
use super::{Inner, Task, runner, unix_seconds};
use crate::control::api::{ServerSpec, ServiceKey};
use crate::control::events::{Event, EventKind};
use crate::control::health::{HealthState, ServerHealth};

/// Servers at most that are remembered although they are not there.
const MOST_REMEMBERED: usize = 10_000;

/// All that is known.
pub(super) struct State {
    pub(super) services: BTreeMap<ServiceKey, Watched>,
    pub(super) agents: Agents,
    /// Servers that were not up before the start, and have not been met since.
    remembered: HashMap<(ServiceKey, SocketAddr), Remembered>,
    /// Lists that were made of who is not up.
    lists: u64,
}

/// A service.
pub(super) struct Watched {
    pub(super) plan: ServiceHealth,
    /// Those of the plan. A check that is the same after a reload is the same one here.
    checks: Vec<Arc<Check>>,
    pub(super) members: BTreeMap<SocketAddr, Member>,
    pub(super) situation: Situation,
}

/// A server of a service.
pub(super) struct Member {
    pub(super) spec: ServerSpec,
    pub(super) checks: Vec<Checked>,
    /// The link to its agent, by number.
    pub(super) agent: Option<u64>,
    /// It should be asked, and cannot be.
    pub(super) is_unasked: bool,
    pub(super) before: Option<Before>,
    pub(super) state: HealthState,
    pub(super) reason: String,
    /// Seconds since 1970-01-01 UTC.
    pub(super) since: u64,
    /// What the table was told.
    pub(super) standing: Standing,
    /// Its connections were given up since it is down.
    pub(super) is_lost: bool,
    pub(super) factor: Option<Factor>,
}

/// A check of a server.
pub(super) struct Checked {
    pub(super) check: Arc<Check>,
    pub(super) tally: Tally,
    /// Share of its weight that the server asked for with the last pass.
    pub(super) percent: Option<u16>,
    task: Task,
}

impl State {
    pub(super) fn new(remembered: Vec<Remembered>) -> State {
        let remembered = remembered.into_iter().map(|one| ((one.service, one.server), one));
        State {
            services: BTreeMap::new(),
            agents: Agents::default(),
            remembered: remembered.collect(),
            lists: 0,
        }
    }

    /// See [`Watch::remember`](super::Watch::remember).
    pub(super) fn remember(&mut self, servers: Vec<Remembered>) {
        for one in servers {
            let watched = self.services.get(&one.service);
            let is_known = watched.is_some_and(|it| it.members.contains_key(&one.server));
            if !is_known && self.remembered.len() < MOST_REMEMBERED {
                self.remembered.insert((one.service, one.server), one);
            }
        }
    }

    /// Who is not up, and which such list this is.
    pub(super) fn not_up(&mut self) -> (u64, Vec<Remembered>) {
        self.lists += 1;
        let mut list = Vec::new();
        for (service, watched) in &self.services {
            for (server, member) in &watched.members {
                if !judge::serves(member.state) {
                    list.push(member.remember(*service, *server));
                }
            }
        }
        (self.lists, list)
    }
}

impl Inner {
    /// Has the services be watched as `plans` say.
    pub(super) fn follow(self: &Arc<Inner>, plans: Vec<(ServiceKey, ServiceHealth)>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut plans: BTreeMap<ServiceKey, ServiceHealth> =
            plans.into_iter().filter(|(_, plan)| plan.is_watched()).collect();
        let gone: Vec<ServiceKey> =
            state.services.keys().filter(|key| !plans.contains_key(key)).copied().collect();
        for key in gone {
            self.leave_alone(state, key);
        }
        state.agents.read_keys();
        for (key, watched) in &mut state.services {
            if let Some(plan) = plans.remove(key)
                && plan != watched.plan
            {
                watched.checks = same_or_new(&watched.checks, &plan.checks);
                watched.plan = plan;
                for (address, member) in &mut watched.members {
                    if !judge::serves(member.state) {
                        let (state, reason) = (member.state, member.reason.clone());
                        member.before = Some(Before { state, reason });
                    }
                    self.equip(*key, *address, member, &watched.plan, &watched.checks);
                    self.link(*key, *address, member, &watched.plan, &mut state.agents);
                }
            }
        }
        for (key, plan) in plans {
            let checks = same_or_new(&[], &plan.checks);
            let (members, situation) = (BTreeMap::new(), Situation::default());
            state.services.insert(key, Watched { plan, checks, members, situation });
        }
        self.meet(state);
        let keys: Vec<ServiceKey> = state.services.keys().copied().collect();
        for key in keys {
            self.rule_all(state, key);
        }
        self.agents_changed.notify_one();
    }

    /// Nobody watches the service any more: its servers stand as configured.
    fn leave_alone(&self, state: &mut State, key: ServiceKey) {
        let Some(watched) = state.services.remove(&key) else { return };
        for (address, member) in watched.members {
            if let Some(agent) = member.agent {
                state.agents.leave(agent, (key, address));
                self.servers.report(&key, address, None);
            }
            if member.standing != Standing::UNCHECKED {
                self.servers.stand(&key, address, Standing::UNCHECKED);
            }
        }
        if watched.situation.falls_back {
            self.servers.fall_back(&key, false);
        }
        self.must_remember.notify_one();
    }

    /// Finds the servers that have come or gone, or were changed. Services of whose servers that is
    /// true.
    pub(super) fn meet(self: &Arc<Inner>, state: &mut State) -> Vec<ServiceKey> {
        let mut changed = Vec::new();
        let State { services, agents, remembered, .. } = state;
        for (key, watched) in services {
            let pool = self.servers.pool(key).map(|pool| pool.servers).unwrap_or_default();
            let there: HashMap<SocketAddr, ServerSpec> =
                pool.into_iter().map(|spec| (spec.address, spec)).collect();
            let mut is_changed = false;
            watched.members.retain(|address, member| {
                let stays = there.contains_key(address);
                if !stays && let Some(agent) = member.agent {
                    agents.leave(agent, (*key, *address));
                }
                // It may be added again, and is no better for that.
                if !stays && !judge::serves(member.state) && remembered.len() < MOST_REMEMBERED {
                    remembered.insert((*key, *address), member.remember(*key, *address));
                }
                is_changed |= !stays;
                stays
            });
            for (address, spec) in there {
                if let Some(member) = watched.members.get_mut(&address) {
                    is_changed |= member.spec != spec;
                    member.spec = spec;
                    continue;
                }
                is_changed = true;
                // What the table still knows of one that comes back was said of its time before.
                self.servers.stand(key, address, Standing::UNCHECKED);
                let mut member = Member::new(spec, remembered.remove(&(*key, address)));
                self.equip(*key, address, &mut member, &watched.plan, &watched.checks);
                self.link(*key, address, &mut member, &watched.plan, agents);
                watched.members.insert(address, member);
            }
            if is_changed {
                changed.push(*key);
            }
        }
        if !changed.is_empty() {
            self.must_remember.notify_one();
            self.agents_changed.notify_one();
        }
        changed
    }

    /// Gives a server the checks of its service's plan. What has been counted of one that asks the
    /// same goes on.
    fn equip(
        self: &Arc<Inner>,
        service: ServiceKey,
        address: SocketAddr,
        member: &mut Member,
        plan: &ServiceHealth,
        checks: &[Arc<Check>],
    ) {
        let mut old = std::mem::take(&mut member.checks);
        let is_cautious = member.before.is_some();
        for check in checks {
            if let Some(same) = old.iter().position(|one| Arc::ptr_eq(&one.check, check)) {
                member.checks.push(old.remove(same));
                continue;
            }
            let alike = old.iter().position(|one| asks_the_same(&one.check, check));
            let (tally, percent) = match alike.map(|place| old.remove(place)) {
                Some(mut one) => {
                    one.tally.count_by(check);
                    (one.tally, one.percent)
                }
                None => (Tally::new(check, is_cautious), None),
            };
            let task = runner::begin(self.clone(), service, address, check.clone());
            member.checks.push(Checked { check: check.clone(), tally, percent, task });
        }
        member.factor = plan.feedback.map(|settings| match member.factor.take() {
            Some(mut factor) => {
                factor.follow(settings);
                factor
            }
            None => Factor::new(settings),
        });
    }

    /// Joins a server to the link to its agent, if it has one.
    fn link(
        &self,
        service: ServiceKey,
        address: SocketAddr,
        member: &mut Member,
        plan: &ServiceHealth,
        agents: &mut Agents,
    ) {
        let old = member.agent;
        if let (Some(old), Some(asked)) = (old, &plan.agent)
            && agents.is(old, asked)
        {
            return;
        }
        let new = plan.agent.as_ref().map(|settings| {
            let agent = SocketAddr::new(address.ip(), settings.port);
            agents.join(agent, settings, (service, address), self.now())
        });
        if let Some(Err(why)) = &new {
            // The link that there is tells more than none.
            let so = if old.is_some() { "is asked as before" } else { "is not asked" };
            let event = Event::of(service, address, format!("its agent {so}: {why}"));
            self.journal.note(EventKind::CheckUnable, event);
            member.is_unasked = old.is_none();
            return;
        }
        member.is_unasked = false;
        member.agent = new.and_then(Result::ok);
        if let Some(old) = old {
            agents.leave(old, (service, address));
            self.servers.report(&service, address, None);
        }
    }

    /// See [`Watch::reconcile`](super::Watch::reconcile).
    pub(super) fn reconcile(self: &Arc<Inner>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        for key in self.meet(state) {
            self.rule_all(state, key);
        }
        self.forget_old_reports(state);
        for (key, watched) in &mut state.services {
            for (address, member) in &mut watched.members {
                // A server that was removed and is there again stands as configured.
                if member.standing != Standing::UNCHECKED {
                    self.servers.stand(key, *address, member.standing);
                }
                for one in &mut member.checks {
                    if one.task.0.is_finished() {
                        one.task = runner::begin(self.clone(), *key, *address, one.check.clone());
                    }
                }
            }
            if watched.situation.falls_back {
                self.servers.fall_back(key, true);
            }
        }
    }
}

impl Member {
    fn new(spec: ServerSpec, remembered: Option<Remembered>) -> Member {
        let (state, reason, since) = match &remembered {
            Some(one) => (one.state, one.reason.clone(), one.since),
            None => (HealthState::Unchecked, String::new(), unix_seconds()),
        };
        Member {
            spec,
            checks: Vec::new(),
            agent: None,
            is_unasked: false,
            before: remembered.map(|_| Before { state, reason: reason.clone() }),
            state,
            reason,
            since,
            standing: Standing::UNCHECKED,
            // It has none yet.
            is_lost: state == HealthState::Down,
            factor: None,
        }
    }

    /// What is remembered of it.
    fn remember(&self, service: ServiceKey, server: SocketAddr) -> Remembered {
        let (state, reason, since) = (self.state, self.reason.clone(), self.since);
        Remembered { service, server, state, reason, since }
    }

    /// Whether it gets connections although it does not serve.
    pub(super) fn is_kept(&self) -> bool {
        self.standing.is_admitted && !judge::serves(self.state)
    }

    /// As the control API shows it.
    pub(super) fn view(&self, service: ServiceKey, agents: &Agents, now: u64) -> ServerHealth {
        ServerHealth {
            service,
            address: self.spec.address,
            weight: self.spec.weight,
            effective_weight: self.standing.effective(self.spec.weight),
            state: self.state,
            since: now.saturating_sub(self.since),
            reason: self.reason.clone(),
            kept: self.is_kept(),
            active: 0,
            inactive: 0,
            checks: self.checks.iter().map(|one| one.tally.view(one.check.kind.word())).collect(),
            direction: self.agent.and_then(|agent| agents.view(agent)),
        }
    }
}

/// The checks of a plan; those that were there before are the same ones.
fn same_or_new(before: &[Arc<Check>], wanted: &[Check]) -> Vec<Arc<Check>> {
    let mut before = before.to_vec();
    let find = |check: &Check| match before.iter().position(|one| **one == *check) {
        Some(place) => before.swap_remove(place),
        None => Arc::new(check.clone()),
    };
    wanted.iter().map(find).collect()
}

/// Whether two checks differ only in how often they ask and how they count.
fn asks_the_same(one: &Check, other: &Check) -> bool {
    one.kind == other.kind && one.port == other.port && one.via == other.via
}
