//! The rules that set firewall marks, and what steering has to know of them.

use std::collections::HashSet;
use std::sync::Arc;

use super::State;
use super::check::refuse;
use crate::control::api::{Protocol, Refusal, RefusalKind, ServiceKey};
use crate::fwmark::{Classifier, MAX_RULES, Rule};
use crate::steer::MarkedSet;

/// See the module.
#[derive(Default)]
pub(super) struct Marks {
    rules: Vec<Rule>,
    classifier: Arc<Classifier>,
    /// Rules that are no more, for whose marks there are still connections: their packets must
    /// keep coming to us, else the kernel's stack would reset them.
    former: Vec<Rule>,
}

impl Marks {
    pub(super) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub(super) fn classifier(&self) -> Arc<Classifier> {
        self.classifier.clone()
    }

    /// Puts other rules in place of those there are.
    pub(super) fn replace(&mut self, rules: Vec<Rule>) {
        let before = std::mem::replace(&mut self.rules, rules);
        self.former.extend(before);
        self.former.retain(|rule| !self.rules.contains(rule));
        self.classifier = Arc::new(Classifier::new(&self.rules));
    }

    /// Forgets former rules for whose marks there are no connections; whether there were any.
    pub(super) fn sweep(&mut self, busy: &HashSet<u32>) -> bool {
        let before = self.former.len();
        self.former.retain(|rule| busy.contains(&rule.mark));
        self.former.len() != before
    }

    /// Protocols (IP protocol numbers) whose packets may bear `mark`.
    pub(super) fn protocols(&self, mark: u32) -> impl Iterator<Item = u8> + '_ {
        let wanted = move |protocol: &Protocol| {
            let mut rules = self.rules.iter().chain(&self.former);
            rules.any(|rule| rule.mark == mark && rule.protocol.is_none_or(|own| own == *protocol))
        };
        Protocol::ALL.into_iter().filter(wanted).map(Protocol::number)
    }
}

impl State {
    /// Puts other rules in place of those there are.
    pub(super) fn set_marks(&mut self, rules: Vec<Rule>) {
        self.marks.replace(rules);
        self.shown.classify_by(self.marks.classifier());
        self.news.to_show = true;
        // What servers of marks answer with depends on the rules.
        self.news.all_touched = true;
    }

    /// Which packets are ours for their mark: those of services that there are, and of removed
    /// ones as long as they have connections.
    pub(super) fn marked(&self) -> MarkedSet {
        if self.marks.rules.is_empty() && self.marks.former.is_empty() {
            return MarkedSet::default();
        }
        let living = self.services.iter().map(|service| service.key);
        let ours: HashSet<(u32, bool)> = living
            .chain(self.trash.busy_services())
            .filter_map(|key| match key {
                ServiceKey::Fwmark { fwmark, ipv6 } => Some((fwmark, ipv6)),
                ServiceKey::Address { .. } => None,
            })
            .collect();
        // Former rules come last, where they count: no other keeps their packets from us.
        let rules = self.marks.rules.iter().chain(&self.marks.former);
        MarkedSet::new(rules, |mark, ipv6| ours.contains(&(mark, ipv6)))
    }

    /// Marks whose services have connections.
    pub(super) fn busy_marks(&self) -> HashSet<u32> {
        let mark = |key: ServiceKey| match key {
            ServiceKey::Fwmark { fwmark, .. } => Some(fwmark),
            ServiceKey::Address { .. } => None,
        };
        let living = self
            .services
            .iter()
            .filter_map(|service| mark(service.key).filter(|_| service.has_connections()));
        living.chain(self.trash.busy_services().filter_map(mark)).collect()
    }
}

/// Whether a list of rules can be used.
pub(super) fn check(rules: &[Rule]) -> Result<(), Refusal> {
    if rules.len() > MAX_RULES {
        let message = format!("{} rules for marks: there can be {MAX_RULES}", rules.len());
        return Err(refuse(RefusalKind::Invalid, message));
    }
    for (rule, number) in rules.iter().zip(1..) {
        let told = |bad| refuse(RefusalKind::Invalid, format!("rule {number} for marks: {bad}"));
        rule.check().map_err(told)?;
    }
    Ok(())
}
