//! What this host runs with: settings, addresses, port rules, counters.

use ::nlb::filter::Reason;
use ::nlb::heartbeat::Operator;
use ::nlb::host::HostId;
use ::nlb::rules::{Affinity, Mode, Protocol, Rule, Scope};
use ::nlb::slot::Slot;

use super::Scene;
use crate::control::VERSION;
use crate::control::api::VerdictCount;
use crate::control::nlb::views::{ParamsView, RuleView, show_mac};
use crate::node::host::Host;

/// All of it.
pub(super) fn params(host: &Host, scene: &Scene<'_>) -> ParamsView {
    let policy = host.policy();
    let hex = |digest: [u8; 8]| format!("{:016x}", u64::from_be_bytes(digest));
    ParamsView {
        version: VERSION.to_owned(),
        config: scene.about.config.display().to_string(),
        generation: host.membership.generation(),
        digest: hex(host.membership.digest()),
        settings: scene.about.settings.clone(),
        vips: policy.vips.clone(),
        addresses: scene.about.addresses.clone(),
        interface: scene.about.interface.clone(),
        mac: show_mac(policy.own_mac),
        cluster_mac: show_mac(policy.cluster_mac),
        rules: rules(host, |_| true),
        frames: frames(host),
        refused_heartbeats: host
            .membership
            .refusals()
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| counted(reason.label(), reason.explanation(), count))
            .collect(),
        refused_commands: scene.about.refused_commands(),
    }
}

/// Frames by reason, those that occurred; none while the kernel does not tell.
pub(in crate::node) fn frames(host: &Host) -> Vec<VerdictCount> {
    let counters: Vec<(Reason, u64)> = host.filter.counters().unwrap_or_default();
    let occurred = counters.into_iter().filter(|(_, count)| *count > 0);
    occurred
        .map(|(reason, count)| VerdictCount {
            verdict: if reason.passes() { "passed" } else { "dropped" }.to_owned(),
            ..counted(reason.label(), reason.explanation(), count)
        })
        .collect()
}

fn counted(reason: &str, meaning: &str, packets: u64) -> VerdictCount {
    VerdictCount {
        verdict: String::new(),
        reason: reason.to_owned(),
        meaning: meaning.to_owned(),
        packets,
    }
}

/// The port rules whose slots are `wanted`, in the order of the file.
pub(super) fn rules(host: &Host, wanted: impl Fn(&[Slot]) -> bool) -> Vec<RuleView> {
    let rules = host.rules();
    let slots_of = |place: usize| -> Vec<Slot> {
        let groups = rules.groups().iter().filter(|group| group.rules.contains(&place));
        groups.map(|group| group.slot).collect()
    };
    let each = rules.rules().iter().enumerate().map(|(place, rule)| (rule, slots_of(place)));
    each.filter(|(_, slots)| wanted(slots)).map(|(rule, slots)| one(host, rule, &slots)).collect()
}

fn one(host: &Host, rule: &Rule, slots: &[Slot]) -> RuleView {
    let plans = host.membership.slot_plans();
    let plan = slots.first().and_then(|slot| plans.get(slot.index()));
    let flows = |slot: &Slot| host.membership.slot_flows(*slot);
    let served =
        |slot: &Slot| host.membership.maps().nth(slot.index()).map_or(0, |map| map.serving.len());
    RuleView {
        rule: rule.to_string(),
        vip: match rule.scope {
            Scope::Vip(vip) => Some(vip),
            Scope::All => None,
        },
        protocol: match rule.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Both => "both",
        }
        .to_owned(),
        first_port: rule.first_port,
        last_port: rule.last_port,
        filter: match rule.mode {
            Mode::Multiple { .. } => "multiple",
            Mode::Single { .. } => "single",
            Mode::Disabled => "disabled",
        }
        .to_owned(),
        affinity: match rule.mode {
            Mode::Multiple { affinity, .. } => word(affinity),
            Mode::Single { .. } | Mode::Disabled => "none".to_owned(),
        },
        slots: slots.iter().map(|slot| slot.get()).collect(),
        state: plan.map_or("disabled", |plan| operator(plan.operator)).to_owned(),
        number: match rule.mode {
            Mode::Multiple { .. } => plan.map_or(0, |plan| plan.weight),
            Mode::Single { .. } => plan.map_or(0, |plan| plan.priority),
            Mode::Disabled => 0,
        },
        buckets: slots.first().map_or(0, served),
        flows: slots.iter().map(|slot| u64::from(flows(slot).0)).sum(),
        opened: slots.iter().map(|slot| u64::from(flows(slot).1)).sum(),
    }
}

fn word(affinity: Affinity) -> String {
    match affinity {
        Affinity::None => "none".to_owned(),
        Affinity::SINGLE => "single".to_owned(),
        Affinity::NETWORK => "network".to_owned(),
        Affinity::Prefix { ipv4, ipv6 } => format!("{ipv4}/{ipv6}"),
    }
}

fn operator(operator: Operator) -> &'static str {
    match operator {
        Operator::Enabled => "enabled",
        Operator::Disabled => "disabled",
        Operator::Draining => "draining",
    }
}

/// A host id of a request.
pub(super) fn host_id(id: u8) -> Result<HostId, super::Refused> {
    HostId::new(id).map_err(|error| super::Refused::bad(error.to_string()))
}
