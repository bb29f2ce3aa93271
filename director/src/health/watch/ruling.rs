//! What outcomes and answers mean for a server and its service: the judgement is made, the table and
//! the journal hear of it.

use std::net::SocketAddr;
use std::time::Duration;

use super::super::feedback::{Factor, Report};
use super::super::judge::{self, Link};
use super::super::outcome::Outcome;
use super::super::plan::Check;
use super::super::servers::Standing;
use super::roster::{Member, State, Watched};
use super::{Inner, unix_seconds};
use crate::control::api::ServiceKey;
use crate::control::events::{Event, EventKind};
use crate::control::health::HealthState;

impl Inner {
    /// A check has been made. Whether it is still wanted.
    pub(super) fn checked(
        &self,
        (service, address): (ServiceKey, SocketAddr),
        check: &Check,
        outcome: &Outcome,
        took: Duration,
    ) -> bool {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(member) = member(state, service, address) else { return false };
        let mut checks = member.checks.iter_mut();
        let Some(one) = checks.find(|one| std::ptr::eq(&*one.check, check)) else { return false };
        let change = one.tally.note(outcome, took);
        let mut is_report = false;
        if let Outcome::Passed(advice) = outcome {
            let before = std::mem::replace(&mut one.percent, advice.percent);
            is_report = before.or(advice.percent).is_some();
        }
        if let Some(why) = change.unable {
            let reason = format!("{}: {why}", check.kind.word());
            self.journal.note(EventKind::CheckUnable, Event::of(service, address, reason));
        }
        if change.is_another_state {
            self.rule(state, service, address);
        }
        if is_report {
            self.weigh(state, service, address);
        }
        true
    }

    /// Judges one server anew, and what follows for its service.
    pub(super) fn rule(&self, state: &mut State, service: ServiceKey, address: SocketAddr) {
        if self.judge(state, service, address) {
            self.settle(state, service);
        }
    }

    /// Judges all servers of a service anew.
    pub(super) fn rule_all(&self, state: &mut State, service: ServiceKey) {
        let Some(watched) = state.services.get(&service) else { return };
        let addresses: Vec<SocketAddr> = watched.members.keys().copied().collect();
        for address in addresses {
            self.judge(state, service, address);
        }
        self.settle(state, service);
    }

    /// Whether the server is now in another state.
    fn judge(&self, state: &mut State, service: ServiceKey, address: SocketAddr) -> bool {
        let State { services, agents, .. } = state;
        let watched = services.get_mut(&service);
        let Some(member) = watched.and_then(|watched| watched.members.get_mut(&address)) else {
            return false;
        };
        // After it was not up, an agent is believed when it has answered often enough.
        let is_cautious = member.before.is_some();
        let agent = member.agent.and_then(|number| agents.get(number));
        let link = agent.map(|agent| {
            let direction = &agent.direction;
            let enough = if is_cautious { u64::from(agent.settings.rise) } else { 1 };
            let said = direction.report().map(|(report, _)| report.state);
            Link {
                mode: direction.mode(),
                reason: direction.reason(),
                said: said.filter(|_| direction.answers() >= enough),
            }
        });
        let named = member.checks.iter().map(|one| (one.check.kind.word(), &one.tally));
        let verdict = judge::server(named, link, member.before.as_ref());
        if judge::is_complete(member.checks.iter().map(|one| &one.tally), link) {
            member.before = None;
        }
        if verdict.state == member.state {
            member.reason = verdict.reason;
            return false;
        }
        let old = std::mem::replace(&mut member.state, verdict.state);
        member.reason = verdict.reason;
        member.since = unix_seconds();
        let kind = match member.state {
            HealthState::Down => Some(EventKind::ServerDown),
            HealthState::Draining => Some(EventKind::ServerDraining),
            // That a server that was taken for up is up is no news.
            HealthState::Up | HealthState::Unchecked if judge::serves(old) => None,
            HealthState::Up | HealthState::Unchecked => Some(EventKind::ServerUp),
        };
        if let Some(kind) = kind {
            self.journal.note(kind, Event::of(service, address, member.reason.clone()));
            self.must_remember.notify_one();
        }
        true
    }

    /// Judges a service anew: which of its servers get connections, and whose are given up.
    fn settle(&self, state: &mut State, service: ServiceKey) {
        let Some(watched) = state.services.get_mut(&service) else { return };
        let with_weight = watched.members.values().filter(|member| member.spec.weight > 0);
        let states = with_weight.map(|member| member.state);
        let situation = judge::service(states, watched.plan.all_down);
        let before = std::mem::replace(&mut watched.situation, situation);
        if before.are_all_down != situation.are_all_down {
            self.tell_of_service(service, watched);
        }
        if before.falls_back != situation.falls_back {
            self.servers.fall_back(&service, situation.falls_back);
        }
        for (address, member) in &mut watched.members {
            self.place(service, *address, member, situation.kept);
            if member.state != HealthState::Down {
                member.is_lost = false;
            } else if !member.is_lost && !member.standing.is_admitted {
                member.is_lost = true;
                self.servers.lose(&service, *address, false, self.now());
            }
        }
    }

    fn tell_of_service(&self, service: ServiceKey, watched: &Watched) {
        use super::super::plan::AllDown;
        let (kind, reason) = match (watched.situation.are_all_down, watched.plan.all_down) {
            (false, _) => (EventKind::SomeUp, ""),
            (true, AllDown::Keep) => (EventKind::AllDown, "all are taken for up"),
            (true, AllDown::Drop) => (EventKind::AllDown, "nobody is sent anywhere"),
            (true, AllDown::Fallback) => {
                (EventKind::AllDown, "new connections go to the fallback server")
            }
        };
        let reason = reason.to_owned();
        self.journal.note(kind, Event { service: Some(service), reason, ..Event::default() });
    }

    /// Tells the table how a server stands, if that is news. The weights before and after.
    fn place(
        &self,
        service: ServiceKey,
        address: SocketAddr,
        member: &mut Member,
        kept: Option<HealthState>,
    ) -> Option<(i32, i32)> {
        let is_admitted = judge::serves(member.state) || kept == Some(member.state);
        let permille = member.factor.as_ref().map_or(1000, Factor::permille);
        let standing = Standing { is_admitted, permille };
        if standing == member.standing {
            return None;
        }
        member.standing = standing;
        self.servers.stand(&service, address, standing)
    }

    /// A server has reported: its factor follows.
    pub(super) fn weigh(&self, state: &mut State, service: ServiceKey, address: SocketAddr) {
        let now = self.now();
        let State { services, agents, .. } = state;
        let Some(watched) = services.get_mut(&service) else { return };
        let kept = watched.situation.kept;
        let Some(member) = watched.members.get_mut(&address) else { return };
        let Some(factor) = &mut member.factor else { return };
        let agent = member.agent.and_then(|number| agents.get(number));
        let report = Report {
            load: agent.and_then(|agent| agent.load(now)),
            percent: member.checks.iter().filter_map(|one| one.percent).min(),
        };
        let why = match report {
            Report { load: None, percent: None } => {
                factor.forget();
                "nothing is reported any more".to_owned()
            }
            Report { load: Some(load), percent: None } => format!("load {load} of 10000"),
            Report { load: None, percent: Some(percent) } => format!("it asks for {percent} %"),
            Report { load: Some(load), percent: Some(percent) } => {
                format!("load {load} of 10000, and it asks for {percent} %")
            }
        };
        factor.report(report);
        if let Some((before, after)) = self.place(service, address, member, kept)
            && before != after
        {
            let mut event = Event::of(service, address, why);
            (event.before, event.after) = (Some(before), Some(after));
            self.journal.note(EventKind::WeightChanged, event);
        }
    }

    /// Loads that are older than their link's timeout are known no more.
    pub(super) fn forget_old_reports(&self, state: &mut State) {
        let old = state.agents.forget_old_loads(self.now());
        for (service, address) in old {
            self.servers.report(&service, address, None);
        }
        let silent = |state: &State| -> Vec<(ServiceKey, SocketAddr)> {
            let now = self.now();
            let members = state.services.iter().flat_map(|(key, watched)| {
                watched.members.iter().map(move |(address, member)| (*key, *address, member))
            });
            let is_silent = |member: &Member| {
                let is_changed = member.factor.as_ref().is_some_and(|f| f.permille() != 1000);
                let agent = member.agent.and_then(|number| state.agents.get(number));
                let reports = agent.is_some_and(|agent| agent.load(now).is_some())
                    || member.checks.iter().any(|one| one.percent.is_some());
                is_changed && !reports
            };
            members.filter(|(.., member)| is_silent(member)).map(|(k, a, _)| (k, a)).collect()
        };
        for (service, address) in silent(state) {
            self.weigh(state, service, address);
        }
    }
}

fn member(state: &mut State, service: ServiceKey, address: SocketAddr) -> Option<&mut Member> {
    state.services.get_mut(&service)?.members.get_mut(&address)
}
