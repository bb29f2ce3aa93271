//! Commands that change something: to the host, or to port rules.

use std::time::Duration;

use ::nlb::membership::{Answer, Command, SlotCommand};
use ::nlb::rules::{GroupMode, Rule, Rules, Scope};
use ::nlb::slot::Slot;

use super::{NlbAnswer, NlbCommand, NlbResult, Scene, finish, params};
use crate::control::nlb::PortTarget;
use crate::control::nlb::views::{NlbView, RulesView};
use crate::node::host::Host;

/// Carries out a command.
pub(super) fn command(host: &mut Host, command: &NlbCommand, scene: &Scene<'_>) -> NlbAnswer {
    use NlbCommand as C;
    let to_host = match command {
        C::Start => Command::Start,
        C::Stop => Command::Stop,
        C::Drainstop { deadline } => {
            let patience = deadline.map(Duration::from_secs);
            Command::DrainStop(Some(patience.unwrap_or(scene.about.drain_timeout)))
        }
        C::Suspend => Command::Suspend,
        C::Resume => Command::Resume,
        C::Enable { target } => return on_rules(host, target, SlotCommand::Enable, scene),
        C::Disable { target } => return on_rules(host, target, SlotCommand::Disable, scene),
        C::Drain { target } => return on_rules(host, target, SlotCommand::Drain, scene),
        C::Weight { target, weight } => {
            return on_rules(host, target, SlotCommand::Weight(*weight), scene);
        }
        _ => return finish(host, scene, NlbResult::Failed, Some("not a command".into()), None),
    };
    let answer = host.membership.command(to_host, scene.now);
    let message = remedy(answer);
    finish(host, scene, answer.into(), message, None)
}

/// What to do about a refusal.
fn remedy(answer: Answer) -> Option<String> {
    match answer {
        Answer::Suspended => Some("the host is suspended: resume it first".to_owned()),
        Answer::Stopped => Some("the host is stopped: start it first".to_owned()),
        Answer::DrainInterrupted => Some("a drain was cut short".to_owned()),
        Answer::Done | Answer::Already | Answer::NotFound | Answer::BadParameters => None,
    }
}

/// A command to the slots of some rules; rules that share a slot with them follow.
fn on_rules(
    host: &mut Host,
    target: &PortTarget,
    command: SlotCommand,
    scene: &Scene<'_>,
) -> NlbAnswer {
    let weight = matches!(command, SlotCommand::Weight(_));
    let slots = slots(host.rules(), target, weight);
    if slots.is_empty() {
        let what = if weight { "a rule with weights" } else { "a rule with hosts" };
        let message = format!("{target} is no port of {what}: `dirctl nlb params` lists the rules");
        return finish(host, scene, NlbResult::NotFound, Some(message), None);
    }
    let mut result = Answer::Already;
    for &slot in &slots {
        match host.membership.slot_command(Some(slot), command, scene.now) {
            Answer::Already => {}
            Answer::Done => result = Answer::Done,
            refused => {
                let message = match refused {
                    Answer::BadParameters => Some("a weight is 0 to 100".to_owned()),
                    other => remedy(other),
                };
                return finish(host, scene, refused.into(), message, None);
            }
        }
    }
    let rules = params::rules(host, |rule| rule.iter().any(|slot| slots.contains(slot)));
    finish(host, scene, result.into(), None, Some(NlbView::Rules(RulesView { rules })))
}

/// The slots of the rules that a target names, each once; with `weights` only those shared by
/// weight.
fn slots(rules: &Rules, target: &PortTarget, weights: bool) -> Vec<Slot> {
    let groups = rules.groups().iter();
    groups
        .filter(|group| !weights || matches!(group.mode, GroupMode::Multiple(_)))
        .filter(|group| {
            let mut of_group = group.rules.iter().filter_map(|&place| rules.rules().get(place));
            of_group.any(|rule| is_meant(rule, target))
        })
        .map(|group| group.slot)
        .collect()
}

fn is_meant(rule: &Rule, target: &PortTarget) -> bool {
    let of_vip = match (target.vip, rule.scope) {
        (Some(wanted), Scope::Vip(vip)) => wanted == vip,
        (Some(_), Scope::All) => false,
        (None, _) => true,
    };
    of_vip && target.port.is_none_or(|port| (rule.first_port..=rule.last_port).contains(&port))
}

#[cfg(test)]
mod tests {
    use ::nlb::host::HostId;
    use ::nlb::rules::{Affinity, Mode, Protocol};

    use super::*;

    #[test]
    fn a_target_means_the_slots_of_all_rules_that_cover_it_and_weights_only_shared_ones() {
        let hosts = |numbers: [u8; 2]| {
            let host = |id| HostId::new(id).unwrap();
            vec![(host(1), numbers[0]), (host(2), numbers[1])]
        };
        let rule = |vip: &str, first_port, last_port, mode| Rule {
            scope: if vip == "all" { Scope::All } else { Scope::Vip(vip.parse().unwrap()) },
            protocol: Protocol::Tcp,
            first_port,
            last_port,
            mode,
        };
        let shared = Mode::Multiple { affinity: Affinity::SINGLE, weights: hosts([1, 1]) };
        let single = Mode::Single { priorities: hosts([1, 2]) };
        let rules = Rules::new(vec![
            rule("192.0.2.10", 80, 89, shared.clone()),
            rule("192.0.2.11", 80, 80, shared.clone()),
            rule("192.0.2.10", 22, 22, single),
            rule("all", 80, 80, shared),
            rule("192.0.2.10", 99, 99, Mode::Disabled),
        ])
        .unwrap();
        let count = |target: &str, weights| slots(&rules, &target.parse().unwrap(), weights).len();
        for (target, all, weighted) in [
            ("all", 4, 3),
            ("192.0.2.10", 2, 1),
            ("192.0.2.10:85", 1, 1),
            ("192.0.2.10:22", 1, 0),
            ("all:80", 3, 3),
            ("192.0.2.10:99", 0, 0),
            ("192.0.2.12:80", 0, 0),
        ] {
            assert_eq!((count(target, false), count(target, true)), (all, weighted), "{target}");
        }
    }
}
