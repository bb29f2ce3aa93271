//! What swrr promises, and an oracle that knows only how many turns each server has had.

use super::*;
use crate::testing::{Service, client, overload, servers};
use proptest::prelude::*;

#[test]
fn a_heavy_server_has_its_turns_between_those_of_the_others() {
    let mut service = Service::new("swrr", &[5, 1, 1]);
    let cycle = [0, 0, 1, 0, 2, 0, 0];
    assert_eq!(service.run(7), cycle);
    assert_eq!(service.run(7), cycle);
}

#[test]
fn equal_weights_take_turns_newest_first() {
    let mut service = Service::new("swrr", &[7, 7, 7]);
    assert_eq!(service.run(6), [0, 1, 2, 0, 1, 2]);
}

#[test]
fn the_same_proportions_go_on_where_the_old_weights_had_come_to() {
    let mut service = Service::new("swrr", &[5, 1, 1]);
    assert_eq!(service.run(3), [0, 0, 1]);
    for (id, weight) in [(0, 500), (1, 100), (2, 100)] {
        service.set_weight(id, weight);
    }
    assert_eq!(service.run(8), [0, 2, 0, 0, 0, 0, 1, 0]);
}

#[test]
fn a_server_that_was_the_heaviest_by_far_is_not_starved_when_its_weight_falls() {
    let mut service = Service::new("swrr", &[1000, 1]);
    assert_eq!(service.run(300), vec![0; 300]);
    service.set_weight(0, 1);
    let next = service.run(8);
    assert_eq!(next.iter().filter(|&&id| id == 0).count(), 4, "{next:?}");
}

#[test]
fn a_newcomer_gets_its_share_and_no_run_of_turns() {
    let mut service = Service::new("swrr", &[3, 3]);
    service.run(101);
    service.add(9, 3).unwrap();
    let next = service.run(9);
    assert_eq!(next.iter().filter(|&&id| id == 9).count(), 3, "{next:?}");
    assert!(next.windows(2).all(|pair| pair[0] != pair[1]), "{next:?}");
}

#[test]
fn the_others_keep_their_order_when_a_server_is_removed() {
    let mut service = Service::new("swrr", &[1, 1, 1]);
    assert_eq!(service.run(4), [0, 1, 2, 0]);
    service.remove(0);
    assert_eq!(service.run(4), [1, 2, 1, 2]);
}

#[test]
fn nothing_is_chosen_while_all_are_quiesced_or_overloaded() {
    let mut service = Service::new("swrr", &[0, 0]);
    assert_eq!(service.next(), None);
    service.set_weight(1, 3);
    assert_eq!(service.run(2), [1, 1]);
    overload(service.server(1));
    assert_eq!(service.next(), None);
    service.server(1).set_thresholds(0, 0);
    assert_eq!(service.run(2), [1, 1]);
    assert_eq!(Service::new("swrr", &[]).next(), None);
}

#[test]
fn a_full_server_leaves_its_turns_to_the_others_and_takes_no_more_than_its_own_later() {
    let mut service = Service::new("swrr", &[4, 1, 1]);
    overload(service.server(0));
    assert_eq!(service.run(4), [1, 2, 1, 2]);
    service.server(0).set_thresholds(0, 0);
    let next = service.run(12);
    assert_eq!(next.iter().filter(|&&id| id == 0).count(), 8, "{next:?}");
}

#[test]
fn a_list_that_changed_untold_is_served_all_the_same() {
    let mut scheduler = SmoothRoundRobin::default();
    let mut list = servers(&[2, 2, 2]);
    scheduler.changed(&list, Change::Bound).unwrap();
    let key = client("198.51.100.7", 5000);
    list.truncate(1);
    assert_eq!(scheduler.choose(&list, &key, Duration::ZERO), Some(0));
    list.clear();
    assert_eq!(scheduler.choose(&list, &key, Duration::ZERO), None);
}

/// The server that is furthest behind its share of `made` choices and the one to come, by what it
/// has had: the definition of a smooth sequence, without running sums.
fn furthest_behind(weights: &[i32], had: &[i128], made: i128) -> usize {
    let all: i128 = weights.iter().map(|&weight| i128::from(weight)).sum();
    let behind = |index: usize| i128::from(weights[index]) * (made + 1) - all * had[index];
    let eligible = (0..weights.len()).filter(|&index| weights[index] > 0);
    eligible.reduce(|best, next| if behind(next) > behind(best) { next } else { best }).unwrap()
}

fn weight() -> impl Strategy<Value = i32> {
    prop_oneof![4 => 0..9_i32, 2 => 0..1000_i32, 1 => Just(i32::MAX)]
}

proptest! {
    #[test]
    fn each_choice_is_the_server_furthest_behind_its_share(
        weights in prop::collection::vec(weight(), 1..8),
        count in 1..200_usize,
    ) {
        prop_assume!(weights.iter().any(|&weight| weight > 0));
        let mut service = Service::new("swrr", &weights);
        let mut had = vec![0; weights.len()];
        for made in 0..count {
            let expected = furthest_behind(&weights, &had, made as i128);
            prop_assert_eq!(service.next(), Some(expected as u64));
            had[expected] += 1;
        }
    }

    #[test]
    fn shares_are_exact_over_a_cycle(weights in prop::collection::vec(0..30_i32, 1..8)) {
        let total = weights.iter().sum::<i32>() as usize;
        prop_assume!(total > 0);
        let mut service = Service::new("swrr", &weights);
        for _ in 0..2 {
            let chosen = service.run(total);
            for (id, &weight) in weights.iter().enumerate() {
                let turns = chosen.iter().filter(|&&one| one == id as u64).count();
                prop_assert_eq!(turns, weight as usize);
            }
        }
    }

    /// Whatever the weights become on the way, no server is ever a whole turn ahead of what its
    /// weights have earned it, nor behind by more than the others can have been ahead together.
    #[test]
    fn nobody_gets_a_run_of_turns_because_weights_change(
        weights in prop::collection::vec(1..50_i32, 2..6),
        edits in prop::collection::vec((0..6_usize, 1..50_i32, 1..20_usize), 1..40),
    ) {
        let mut service = Service::new("swrr", &weights);
        let mut weights = weights;
        let mut earned = vec![0.0; weights.len()];
        for (which, weight, count) in edits {
            for _ in 0..count {
                let all: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
                let chosen = service.next().unwrap() as usize;
                for (earned, &weight) in earned.iter_mut().zip(&weights) {
                    *earned += f64::from(weight) / all;
                }
                earned[chosen] -= 1.0;
                for &earned in &earned {
                    let bound = weights.len() as f64 - 1.0;
                    prop_assert!(-1.001 < earned && earned < bound + 0.001, "{earned}");
                }
            }
            let which = which % weights.len();
            weights[which] = weight;
            service.set_weight(which as u64, weight);
        }
    }
}
