//! Who has how many buckets, and who would have if hosts came, left, or had other weights. Maps are
//! a pure function of members and weights, so what is shown is what would be.

use std::collections::BTreeMap;

use ::nlb::heartbeat::Operator;
use ::nlb::host::HostId;
use ::nlb::key::MapKey;
use ::nlb::map::{Member, Target};
use ::nlb::rules::{GroupMode, Rules};
use ::nlb::slot::Slot;

use super::{Refused, params};
use crate::control::nlb::WhatIf;
use crate::control::nlb::views::{MapView, SlotView};
use crate::node::host::Host;

/// Slot by slot.
pub(super) fn map(host: &Host, what_if: &WhatIf) -> Result<MapView, Refused> {
    for id in what_if.with.iter().chain(&what_if.without).chain(what_if.weights.keys()) {
        params::host_id(*id)?;
    }
    if let Some((id, weight)) = what_if.weights.iter().find(|(_, weight)| **weight > 100) {
        return Err(Refused::bad(format!("weight {weight} of host {id}: a weight is 0 to 100")));
    }
    let rules = host.rules();
    let key = host.key().map();
    let slots = rules.slots().map(|slot| {
        let members = members(host, slot);
        one(rules, key, slot, &members, what_if)
    });
    Ok(MapView { slots: slots.collect() })
}

/// The members of a slot now, with weights or priorities; 0 takes nothing.
fn members(host: &Host, slot: Slot) -> Vec<Member> {
    let single = is_single(host.rules(), slot);
    let offers = host.membership.offers(slot).into_iter();
    offers
        .map(|offer| {
            let terms = offer.terms;
            let willing = !offer.draining && terms.operator == Operator::Enabled;
            let number = if single { terms.priority } else { terms.weight };
            (offer.host, if willing { number } else { 0 })
        })
        .collect()
}

fn is_single(rules: &Rules, slot: Slot) -> bool {
    rules.group(slot).is_some_and(|group| group.mode == GroupMode::Single)
}

fn one(rules: &Rules, key: MapKey, slot: Slot, now: &[Member], what_if: &WhatIf) -> SlotView {
    let single = is_single(rules, slot);
    let mut then: BTreeMap<HostId, u8> = now.iter().copied().collect();
    for id in what_if.with.iter().filter_map(|id| HostId::new(*id).ok()) {
        then.entry(id).or_insert_with(|| declared(rules, slot, id));
    }
    // Weights are not asked for where there are none: default, echo, single-host rules.
    if !single && rules.group(slot).is_some() {
        for (id, weight) in &what_if.weights {
            if let Some(number) = HostId::new(*id).ok().and_then(|id| then.get_mut(&id)) {
                *number = *weight;
            }
        }
    }
    then.retain(|host, _| !what_if.without.contains(&host.get()));
    let then: Vec<Member> = then.into_iter().collect();
    let (before, after) = (rules.target(key, slot, now), rules.target(key, slot, &then));
    SlotView {
        slot: slot.get(),
        rules: names(rules, slot),
        now: shares(&before),
        then: shares(&after),
        moved: before.moved(&after),
    }
}

/// What the file gives a host that is not there.
fn declared(rules: &Rules, slot: Slot, host: HostId) -> u8 {
    match rules.members(slot) {
        None => 1,
        Some(members) => members.iter().find(|(member, _)| *member == host).map_or(0, |it| it.1),
    }
}

fn names(rules: &Rules, slot: Slot) -> Vec<String> {
    match (slot, rules.group(slot)) {
        (Slot::DEFAULT, _) => vec!["what no rule covers".to_owned()],
        (Slot::ECHO, _) => vec!["ping".to_owned()],
        (_, Some(group)) => {
            let of_group = group.rules.iter().filter_map(|&place| rules.rules().get(place));
            of_group.map(ToString::to_string).collect()
        }
        (_, None) => vec![],
    }
}

fn shares(target: &Target) -> BTreeMap<u8, usize> {
    let shares = HostId::all().map(|host| (host.get(), target.share(host)));
    shares.filter(|(_, share)| *share > 0).collect()
}

#[cfg(test)]
mod tests {
    use ::nlb::key::ClusterKey;
    use ::nlb::rules::{Affinity, Mode, Protocol, Rule, Scope};

    use super::*;

    #[test]
    fn a_leaving_host_a_coming_one_and_a_weight_move_what_they_must() {
        let host = |id| HostId::new(id).unwrap();
        let rules = Rules::new(vec![Rule {
            scope: Scope::All,
            protocol: Protocol::Tcp,
            first_port: 80,
            last_port: 80,
            mode: Mode::Multiple {
                affinity: Affinity::SINGLE,
                weights: vec![(host(1), 50), (host(2), 50), (host(3), 50), (host(4), 50)],
            },
        }])
        .unwrap();
        let key = ClusterKey::new(&[7; 32]).unwrap().map();
        let slot = Slot::of_group(0).unwrap();
        let now = [(host(1), 50), (host(2), 50)];
        let ask = |what_if| one(&rules, key, slot, &now, &what_if);
        let same = ask(WhatIf::default());
        assert_eq!((same.moved, &same.now, &same.then), (0, &same.then, &same.now));
        assert_eq!(same.now, [(1, 2048), (2, 2048)].into());
        let without = ask(WhatIf { without: vec![2], ..WhatIf::default() });
        assert_eq!((without.moved, without.then), (2048, [(1, 4096)].into()));
        let with = ask(WhatIf { with: vec![3, 4], ..WhatIf::default() });
        assert_eq!(with.then, [(1, 1024), (2, 1024), (3, 1024), (4, 1024)].into());
        let weight = ask(WhatIf { weights: [(2, 0)].into(), ..WhatIf::default() });
        assert_eq!(weight.then, [(1, 4096)].into());
        let echo = one(
            &rules,
            key,
            Slot::ECHO,
            &[(host(1), 1), (host(2), 1)],
            &WhatIf { weights: [(2, 0)].into(), ..WhatIf::default() },
        );
        assert_eq!(echo.moved, 0, "a ping knows no weights");
    }
}
