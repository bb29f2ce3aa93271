//! What wrr promises, and a walk-by-walk model that its shortcut is held to.

use super::*;
use crate::testing::{Service, overload, servers};
use crate::{Options, ServerId, create};
use proptest::prelude::*;

#[test]
fn heavy_servers_come_in_runs_as_in_the_kernel() {
    let mut service = Service::new("wrr", &[4, 3, 2]);
    let cycle = [0, 0, 1, 0, 1, 2, 0, 1, 2];
    assert_eq!(service.run(9), cycle);
    assert_eq!(service.run(9), cycle);
}

#[test]
fn a_common_divisor_shortens_the_cycle() {
    let mut service = Service::new("wrr", &[400, 300, 200]);
    assert_eq!(service.run(9), [0, 0, 1, 0, 1, 2, 0, 1, 2]);
}

#[test]
fn shares_are_exact_over_a_cycle() {
    let weights = [7, 0, 3, 12, 1];
    let mut service = Service::new("wrr", &weights);
    let total = weights.iter().sum::<i32>() as usize;
    for _ in 0..3 {
        let chosen = service.run(total);
        for (id, &weight) in weights.iter().enumerate() {
            let turns = chosen.iter().filter(|&&one| one == id as u64).count();
            assert_eq!(turns, weight as usize, "server {id}");
        }
    }
}

#[test]
fn nothing_is_chosen_while_all_are_quiesced_or_overloaded() {
    let mut service = Service::new("wrr", &[0, 0]);
    assert_eq!(service.next(), None);
    service.set_weight(1, 3);
    assert_eq!(service.run(2), [1, 1]);
    overload(service.server(1));
    assert_eq!(service.next(), None);
    assert_eq!(service.next(), None);
    service.server(1).set_thresholds(0, 0);
    assert_eq!(service.run(2), [1, 1]);
    assert_eq!(Service::new("wrr", &[]).next(), None);
}

#[test]
fn an_overloaded_heavy_server_leaves_its_turns_to_the_others() {
    let mut service = Service::new("wrr", &[4, 1, 1]);
    overload(service.server(0));
    assert_eq!(service.run(4), [1, 2, 1, 2]);
}

#[test]
fn a_search_past_a_huge_overloaded_weight_ends_at_once() {
    let mut service = Service::new("wrr", &[i32::MAX, 1]);
    overload(service.server(0));
    assert_eq!(service.run(3), [1, 1, 1]);
    overload(service.server(1));
    assert_eq!(service.next(), None);
}

#[test]
fn a_weight_below_the_step_is_found_before_the_change_is_told() {
    let mut service = Service::new("wrr", &[4, 4]);
    assert_eq!(service.run(2), [0, 1]);
    service.server(0).set_weight(0);
    service.server(1).set_weight(1);
    assert_eq!(service.run(2), [1, 1]);
}

#[test]
fn a_change_keeps_the_bar_and_starts_from_the_head() {
    // After A A B the bar is 3 and C has not been reached; a new light server comes to the head.
    let mut service = Service::new("wrr", &[4, 3, 2]);
    assert_eq!(service.run(3), [0, 0, 1]);
    service.add(9, 2).unwrap();
    assert_eq!(service.run(9), [0, 1, 9, 0, 1, 2, 9, 0, 1]);
}

#[test]
fn a_change_of_the_step_moves_the_bar_to_the_new_residue() {
    // Weights 6 and 4: step 2, bars 5, 3, 1. After one choice the bar is 5 and the cursor on A.
    let mut service = Service::new("wrr", &[6, 4]);
    assert_eq!(service.run(2), [0, 0]);
    // Now 6 and 3: step 3, bars 4, 1. The bar was 3 and becomes 3 / 3 * 3 + 1 = 4.
    service.set_weight(1, 3);
    assert_eq!(service.run(6), [0, 0, 1, 0, 0, 1]);
}

#[test]
fn removing_the_heaviest_lowers_the_bar_to_what_is_left() {
    let mut service = Service::new("wrr", &[100, 2, 1]);
    assert_eq!(service.run(2), [0, 0]);
    service.remove(0);
    assert_eq!(service.run(3), [1, 1, 2]);
}

/// The rule walk by walk, without the shortcut: state and servers as plain numbers.
struct Model {
    cursor: Option<usize>,
    bar: i64,
    top: i64,
    step: i64,
}

impl Model {
    fn choose(&mut self, weights: &[i32], overloaded: &[bool]) -> Option<usize> {
        if self.top == 0 {
            return None;
        }
        let last = self.cursor;
        let (mut lowest, mut restarted, mut stop) = (false, false, None);
        let mut at = last.map_or(0, |index| index + 1);
        loop {
            while at < weights.len() {
                if !overloaded[at] && i64::from(weights[at]) >= self.bar {
                    self.cursor = Some(at);
                    return Some(at);
                }
                if stop == Some(at) {
                    self.cursor = Some(at);
                    return None;
                }
                at += 1;
            }
            at = 0;
            self.bar -= self.step;
            if self.bar <= 0 {
                self.bar = self.top;
                if lowest || last.is_none() {
                    self.cursor = None;
                    return None;
                }
                restarted = true;
            }
            lowest = self.bar <= self.step;
            if lowest && restarted && last.is_some() {
                stop = last;
            }
        }
    }
}

proptest! {
    #[test]
    fn the_shortcut_chooses_what_the_walks_would(
        weights in prop::collection::vec(prop_oneof![0..4_i32, (0..9_i32).prop_map(|w| w * 6)], 1..6),
        overloads in prop::collection::vec(0..32_u8, 1..40),
    ) {
        let list = servers(&weights);
        let mut scheduler = WeightedRoundRobin::default();
        scheduler.changed(&list, Change::Bound).unwrap();
        let mut model = Model {
            cursor: None, bar: scheduler.bar, top: scheduler.top, step: scheduler.step,
        };
        let key = crate::testing::client("198.51.100.7", 5000);
        for mask in overloads {
            let overloaded: Vec<bool> = (0..list.len()).map(|i| mask >> i & 1 == 1).collect();
            for (server, &wanted) in list.iter().zip(&overloaded) {
                server.set_thresholds(u32::from(wanted), 0);
                // A limit counts from the next connection on.
                server.connection_opened();
            }
            let chosen = scheduler.choose(&list, &key, Duration::ZERO);
            prop_assert_eq!(chosen, model.choose(&weights, &overloaded));
            prop_assert_eq!(scheduler.bar, model.bar);
            prop_assert_eq!(scheduler.cursor.map(|c| c.id()), model.cursor.map(|i| list[i].id()));
        }
    }
}

#[test]
fn a_cursor_whose_server_vanished_untold_counts_as_before_the_head() {
    let mut scheduler = create("wrr", &Options::default()).unwrap();
    let mut list = servers(&[2, 2, 2]);
    let key = crate::testing::client("198.51.100.7", 5000);
    scheduler.changed(&list, Change::Bound).unwrap();
    scheduler.choose(&list, &key, Duration::ZERO);
    let gone = list.remove(0);
    assert_eq!(gone.id(), ServerId(0));
    assert_eq!(scheduler.choose(&list, &key, Duration::ZERO), Some(0));
    list.clear();
    assert_eq!(scheduler.choose(&list, &key, Duration::ZERO), None);
}
