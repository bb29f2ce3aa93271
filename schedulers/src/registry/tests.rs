//! What every scheduler of the registry owes its caller, whatever happens to the list.

use super::*;
use crate::testing::{client, server};
use crate::{Bias, Change, Flags, Key, Server, ServerId};
use proptest::prelude::*;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// One thing that happens to a service. Numbers pick a server by remainder.
#[derive(Clone, Debug)]
enum Step {
    Add { weight: i32 },
    Remove { which: usize },
    Weigh { which: usize, weight: i32 },
    Limit { which: usize, upper: u32, lower: u32 },
    Open { which: usize, active: bool },
    Close { which: usize, active: bool },
    Wait { seconds: u64 },
    Choose { key: Key },
}

fn weight() -> impl Strategy<Value = i32> {
    prop_oneof![
        2 => Just(0),
        6 => 1..8_i32,
        2 => (1..5_i32).prop_map(|w| w * 100),
        1 => Just(i32::MAX),
    ]
}

fn key() -> impl Strategy<Value = Key> {
    (0..6_u8, 0..4_u16, 0..8_u8, any::<bool>()).prop_map(|(host, port, target, v6)| {
        let destination =
            if v6 { format!("2001:db8::{target}") } else { format!("203.0.113.{target}") };
        Key {
            protocol: [6, 17, 132, 50][usize::from(host % 4)],
            destination: destination.parse().unwrap(),
            ..client(&format!("198.51.100.{host}"), port)
        }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0..64_usize;
    prop_oneof![
        3 => weight().prop_map(|weight| Step::Add { weight }),
        2 => which.clone().prop_map(|which| Step::Remove { which }),
        2 => (which.clone(), weight()).prop_map(|(which, weight)| Step::Weigh { which, weight }),
        2 => (which.clone(), 0..4_u32, 0..4_u32)
            .prop_map(|(which, upper, lower)| Step::Limit { which, upper, lower }),
        4 => (which.clone(), any::<bool>()).prop_map(|(which, active)| Step::Open { which, active }),
        2 => (which, any::<bool>()).prop_map(|(which, active)| Step::Close { which, active }),
        1 => prop_oneof![0..100_u64, 80_000..200_000_u64].prop_map(|seconds| Step::Wait { seconds }),
        12 => key().prop_map(|key| Step::Choose { key }),
    ]
}

/// Which promises a scheduler makes beyond not panicking.
struct Promises {
    /// It finds an eligible server whenever there is one.
    always_finds: bool,
    /// It may choose a server whose overload flag is set.
    may_overload: bool,
}

fn promises(name: &str) -> Promises {
    Promises {
        // The hashing ones have no destination when the slot's server has gone out of service; ovf
        // has none when all are full.
        always_finds: !matches!(name, "dh" | "sh" | "mh" | "ovf"),
        // The server that lblc remembers is not asked for its overload flag.
        may_overload: name == "lblc",
    }
}

fn live(entry: &Entry, options: &Options, steps: &[Step]) -> Result<(), TestCaseError> {
    let Promises { always_finds, may_overload } = promises(entry.name);
    let mut scheduler = (entry.create)(options);
    let mut servers: Vec<Arc<Server>> = Vec::new();
    let mut now = Duration::from_secs(1);
    let mut next_id = 0;
    scheduler.changed(&servers, Change::Bound).unwrap();
    for step in steps {
        let pick = |which: usize| (!servers.is_empty()).then(|| which % servers.len());
        match *step {
            Step::Add { weight } => {
                servers.insert(0, server(next_id, weight));
                next_id += 1;
                scheduler.changed(&servers, Change::Added).unwrap();
            }
            Step::Remove { which } => {
                if let Some(index) = pick(which) {
                    let id = servers.remove(index).id();
                    scheduler.changed(&servers, Change::Removed { index, id }).unwrap();
                }
            }
            Step::Weigh { which, weight } => {
                if let Some(index) = pick(which) {
                    servers[index].set_weight(weight);
                    scheduler.changed(&servers, Change::Edited { index }).unwrap();
                }
            }
            Step::Limit { which, upper, lower } => {
                if let Some(index) = pick(which) {
                    servers[index].set_thresholds(upper, lower.min(upper));
                    scheduler.changed(&servers, Change::Edited { index }).unwrap();
                }
            }
            Step::Open { which, active } => {
                if let Some(index) = pick(which) {
                    servers[index].connection_opened();
                    if active {
                        servers[index].connection_moved(true);
                    }
                }
            }
            Step::Close { which, active } => {
                if let Some(index) = pick(which) {
                    servers[index].connection_closed(active);
                }
            }
            Step::Wait { seconds } => now += Duration::from_secs(seconds),
            Step::Choose { key } => {
                let chosen = scheduler.choose(&servers, &key, now);
                if let Some(index) = chosen {
                    prop_assert!(index < servers.len(), "{} chose {index}", entry.name);
                    let server = &servers[index];
                    prop_assert!(server.weight() > 0, "{} chose a quiesced server", entry.name);
                    prop_assert!(
                        may_overload || !server.is_overloaded(),
                        "{} chose an overloaded server",
                        entry.name
                    );
                } else if always_finds {
                    let missed = servers.iter().any(|server| server.is_eligible());
                    prop_assert!(!missed, "{} missed an eligible server", entry.name);
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_server_whose_counts_begin_anew_is_watched_for_connections_in_progress_as_before() {
    for name in ["lc", "wlc", "sed", "nq", "lblc", "lblcr", "load"] {
        let options = Options { bias: Bias::Ilb(2), ..Options::default() };
        let mut scheduler = create(name, &options).unwrap();
        let mut list = vec![server(1, 1), server(2, 1)];
        scheduler.changed(&list, Change::Bound).unwrap();
        list[1] = server(2, 1);
        scheduler.changed(&list, Change::Replaced { index: 1 }).unwrap();
        list[1].connection_opened();
        list[1].handshake_begun();
        assert_eq!(list[1].in_progress(), 1, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_history_makes_a_scheduler_panic_or_choose_wrongly(
        steps in prop::collection::vec(step(), 1..80),
        flags in prop_oneof![Just(0), Just(0x08), Just(0x10), Just(0x18)],
    ) {
        let options = Options { flags: Flags(flags), seed: 3, ..Options::default() };
        for entry in REGISTRY {
            live(entry, &options, &steps)?;
        }
    }

    #[test]
    fn nor_does_it_with_a_bias(
        steps in prop::collection::vec(step(), 1..80),
        bias in prop_oneof![Just(Bias::Ilb(2)), Just(Bias::Ilb(0)), (0..=u16::MAX).prop_map(Bias::Linear)],
        window in 0..10_000_u64,
    ) {
        let bias_window = Duration::from_millis(window);
        let options = Options { bias, bias_window, seed: 3, ..Options::default() };
        for entry in REGISTRY {
            live(entry, &options, &steps)?;
        }
    }

    #[test]
    fn rr_is_exactly_fair(count in 1..20_usize, rounds in 1..5_usize) {
        let mut service = crate::testing::Service::new("rr", &vec![1; count]);
        let once: Vec<u64> = (0..count as u64).collect();
        prop_assert_eq!(service.run(count * rounds), once.repeat(rounds));
    }

    #[test]
    fn wrr_is_exactly_fair_over_a_cycle(
        weights in prop::collection::vec(0..30_i32, 1..8),
        factor in 1..1000_i32,
    ) {
        let scaled: Vec<i32> = weights.iter().map(|weight| weight * factor).collect();
        let total = weights.iter().sum::<i32>() as usize;
        let mut service = crate::testing::Service::new("wrr", &scaled);
        prop_assume!(total > 0);
        for _ in 0..2 {
            // The weights need not be coprime; so many turns are a whole number of cycles then.
            let chosen = service.run(total);
            for (id, &weight) in weights.iter().enumerate() {
                let turns = chosen.iter().filter(|&&one| one == id as u64).count();
                prop_assert_eq!(turns, weight as usize);
            }
        }
    }
}

#[test]
fn names_are_unique_and_fit_the_sixteen_bytes_of_the_kernels_interface() {
    let names: HashSet<_> = REGISTRY.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), REGISTRY.len());
    assert!(names.iter().all(|name| !name.is_empty() && name.len() < 16));
    let expected = [
        "rr", "wrr", "swrr", "lc", "wlc", "sed", "nq", "fo", "ovf", "twos", "dh", "sh", "mh",
        "dht", "lblc", "lblcr", "load",
    ];
    assert_eq!(names, HashSet::from(expected));
    assert!(REGISTRY.iter().all(|entry| !entry.summary.is_empty()));
}

#[test]
fn what_is_not_in_the_registry_cannot_be_made() {
    assert!(find("").is_none());
    assert!(create("none", &Options::default()).is_none());
}

#[test]
fn a_scheduler_asked_before_it_is_told_of_its_list_stays_in_range() {
    for entry in REGISTRY {
        let servers = [server(1, 1)];
        let mut scheduler = (entry.create)(&Options::default());
        let chosen = scheduler.choose(&servers, &client("198.51.100.1", 1), Duration::MAX);
        assert!(chosen.is_none_or(|index| index == 0), "{}", entry.name);
        let gone = Change::Removed { index: 0, id: ServerId(1) };
        scheduler.changed(&[], gone).unwrap();
        assert_eq!(scheduler.choose(&[], &client("198.51.100.1", 1), Duration::ZERO), None);
    }
}
