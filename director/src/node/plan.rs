//! From the file to what the cluster agrees on: port rules, slots, and digests of all that the
//! hosts must have alike.

use std::net::IpAddr;

use ::nlb::heartbeat::{Digest, Operator};
use ::nlb::host::HostId;
use ::nlb::membership::{Mark, Plan, Share, SlotPlan};
use ::nlb::rules::{Affinity, GroupMode, Protocol, Refused, Rules};
use ::nlb::slot::{GroupId, Slot};
use sha2::{Digest as _, Sha256};

use crate::config::Config;
use crate::config::nlb::Nlb;

/// The virtual addresses: the primary one first, then those of services and rules, each once.
pub(crate) fn vips(config: &Config) -> Vec<IpAddr> {
    use ::nlb::rules::Scope;
    let of_rule = |scope| match scope {
        Scope::Vip(vip) => Some(vip),
        Scope::All => None,
    };
    let rules = config.nlb.rules.iter().filter_map(|rule| of_rule(rule.rule.scope));
    let mut vips: Vec<IpAddr> = Vec::new();
    for vip in config.nlb.primary.into_iter().chain(rules) {
        if !vips.contains(&vip) {
            vips.push(vip);
        }
    }
    vips
}

/// The port rules of the file.
///
/// # Errors
/// When they contradict each other; a file that was read is free of that.
pub(crate) fn rules(config: &Config) -> Result<Rules, Refused> {
    Rules::new(config.nlb.rules.iter().map(|rule| rule.rule.clone()).collect())
}

/// What membership must know of the file, seen from `host`. `generation` rises with each version
/// of the file.
pub(super) fn plan(config: &Config, rules: &Rules, host: HostId, generation: u64) -> Plan {
    let marks = marks(config, rules);
    let whole = marks.iter().fold(Sha256::new(), |all, mark| all.chain_update(mark.digest));
    Plan {
        digest: first_eight(whole),
        generation,
        marks,
        slots: rules.slots().map(|slot| slot_plan(rules, slot, host)).collect(),
    }
}

fn slot_plan(rules: &Rules, slot: Slot, host: HostId) -> SlotPlan {
    let always = SlotPlan {
        group: GroupId::DEFAULT,
        protocol: 0,
        first_port: 0,
        share: Share::DefaultHost,
        hold: false,
        weight: 1,
        priority: 1,
        operator: Operator::Enabled,
    };
    let Some(group) = rules.group(slot) else {
        return match slot {
            Slot::ECHO => SlotPlan { group: GroupId::ECHO, share: Share::Equal, ..always },
            _ => always,
        };
    };
    let number = group.members.iter().find(|(member, _)| *member == host).map_or(0, |it| it.1);
    let protocol = match group.protocol {
        Protocol::Both => 0,
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
    };
    let ports = group.rules.iter().filter_map(|&rule| rules.rules().get(rule));
    let first_port = ports.map(|rule| rule.first_port).min().unwrap_or(0);
    let always = SlotPlan { group: group.id, protocol, first_port, ..always };
    match group.mode {
        GroupMode::Multiple(affinity) => SlotPlan {
            share: Share::Weighted,
            hold: affinity != Affinity::None,
            weight: number,
            ..always
        },
        GroupMode::Single => SlotPlan { share: Share::Priority, priority: number, ..always },
    }
}

/// The parts of the file that all hosts must have alike, each under a name that an operator knows.
fn marks(config: &Config, rules: &Rules) -> Vec<Mark> {
    let nlb = &config.nlb;
    let mark = |name: &str, content: String| Mark {
        name: name.to_owned(),
        digest: first_eight(Sha256::new().chain_update(content)),
    };
    let mut vips = vips(config);
    vips.sort_unstable();
    let mut marks = vec![
        mark("the list of virtual addresses", format!("{:?} {vips:?}", nlb.primary)),
        mark("the list of hosts (nlb.hosts, or the servers)", format!("{:?}", nlb.hosts)),
        mark("nlb.delivery", nlb.delivery.to_string()),
        mark("a time or switch of [nlb]", timers(nlb)),
    ];
    for (rule, digest) in rules.rules().iter().zip(rules.rule_digests()) {
        let digest = digest.0.to_le_bytes();
        marks.push(Mark { name: format!("the rule for {rule}"), digest });
    }
    marks
}

fn timers(nlb: &Nlb) -> String {
    let Nlb { period, tolerance, isolated, handover_timeout, udp_pin, track, echo_by_all, .. } =
        nlb;
    format!(
        "{period:?} {tolerance} {isolated:?} {handover_timeout:?} {udp_pin:?} {track} {echo_by_all}"
    )
}

fn first_eight(hash: Sha256) -> Digest {
    let [a, b, c, d, e, f, g, h, ..]: [u8; 32] = hash.finalize().into();
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        mode = "nlb"
        interfaces = ["eth0"]
        [nlb]
        key = "0123456789abcdef"
        [[service]]
        listen = "192.0.2.10:80/tcp"
            [[service.server]]
            address = "10.0.0.11"
            weight = 30
            [[service.server]]
            address = "10.0.0.12"
            weight = 60
        [[service]]
        listen = "192.0.2.11:22/tcp"
        scheduler = "fo"
            [[service.server]]
            address = "10.0.0.12"
    "#;

    fn planned(file: &str, host: u8) -> Plan {
        let config = crate::config::parse(file, "test.toml").unwrap();
        let rules = rules(&config).unwrap();
        plan(&config, &rules, HostId::new(host).unwrap(), 7)
    }

    #[test]
    fn a_host_offers_the_weight_and_the_place_that_the_file_gives_it() {
        for (host, weight, priority) in [(1, 30, 0), (2, 60, 1)] {
            let slots = planned(FILE, host).slots;
            let shares: Vec<Share> = slots.iter().map(|slot| slot.share).collect();
            assert_eq!(shares[..2], [Share::DefaultHost, Share::Equal]);
            let weighted = slots.iter().find(|slot| slot.share == Share::Weighted).unwrap();
            assert_eq!((weighted.weight, weighted.hold), (weight, false));
            let single = slots.iter().find(|slot| slot.share == Share::Priority).unwrap();
            assert_eq!(single.priority, priority);
        }
    }

    #[test]
    fn weights_are_each_hosts_own_affair_and_everything_else_is_not() {
        let here = planned(FILE, 1);
        assert_eq!(planned(FILE, 2).digest, here.digest);
        assert_eq!(planned(&FILE.replace("= 30", "= 31"), 1).digest, here.digest);
        for (from, to) in [
            ("80/tcp", "81/tcp"),
            ("192.0.2.11", "192.0.2.12"),
            ("10.0.0.12", "10.0.0.13"),
            ("[nlb]", "[nlb]\nperiod = \"2s\""),
            ("[nlb]", "[nlb]\ndelivery = \"multicast\""),
            (
                "weight = 60",
                "weight = 60\n[[service]]\nlisten = \"192.0.2.10:81/tcp\"\n[[service.server]]\naddress = \"10.0.0.11\"",
            ),
        ] {
            let other = planned(&FILE.replace(from, to), 1);
            assert_ne!(other.digest, here.digest, "{from} for {to}");
            assert_ne!(other.marks, here.marks, "{from} for {to}");
        }
    }

    #[test]
    fn the_virtual_addresses_are_those_of_the_services_the_primary_one_first() {
        let config = crate::config::parse(FILE, "test.toml").unwrap();
        let texts: Vec<String> = vips(&config).iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["192.0.2.10", "192.0.2.11"]);
    }
}
