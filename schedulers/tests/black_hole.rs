//! A newcomer beside 20 loaded servers is not drowned, where a load bias is asked for; and weights
//! hold with it.

#[path = "../examples/black_hole/simulation.rs"]
mod simulation;

use schedulers::Bias;
use simulation::{Outcome, Told, run};
use std::ops::RangeInclusive;
use std::time::Duration;

const SEEDS: std::ops::Range<u64> = 1..11;

fn outcomes(name: &str, bias: Bias, told: Told) -> Vec<Outcome> {
    SEEDS.map(|seed| run(name, bias, told, seed)).collect()
}

fn peaks(bias: Bias) -> Vec<usize> {
    outcomes("wlc", bias, Told::Handshakes).iter().map(|outcome| outcome.peak).collect()
}

fn assert_within(range: RangeInclusive<usize>, peaks: &[usize]) {
    assert!(peaks.iter().all(|peak| range.contains(peak)), "{peaks:?} not in {range:?}");
}

#[test]
fn least_connection_alone_sends_the_newcomer_all_logons_until_it_has_caught_up() {
    assert_within(78..=86, &peaks(Bias::None));
}

#[test]
fn ilb_lets_no_more_logons_onto_the_newcomer_than_the_formula_says_and_one() {
    for (multiplier, best_for) in [(2, 3), (4, 6), (8, 13), (10, 16)] {
        assert_within(best_for - 2..=best_for + 1, &peaks(Bias::Ilb(multiplier)));
    }
}

#[test]
fn linear_bias_halves_the_trouble_and_no_more() {
    assert_within(24..=30, &peaks(Bias::Linear(200)));
    assert_within(7..=9, &peaks(Bias::Linear(1000)));
}

#[test]
fn the_newcomer_gets_its_share_with_ilb_as_without_but_fast() {
    for seed in SEEDS {
        let plain = run("wlc", Bias::None, Told::Handshakes, seed);
        let biased = run("wlc", Bias::Ilb(2), Told::Handshakes, seed);
        let (without, with) = (plain.newcomers.len(), biased.newcomers.len());
        assert!(with * 10 >= without * 9, "{without} logons without, {with} with it");
        assert!(Outcome::mean(&plain.all) > 15.0 && Outcome::mean(&biased.all) < 4.5);
        assert!(Outcome::percentile(&biased.newcomers, 100) < 7.0);
    }
}

#[test]
fn a_window_does_where_nobody_tells_of_logons_if_it_is_as_long_as_they_take() {
    let told = Told::Window(Duration::from_secs(6));
    let peaks: Vec<_> =
        outcomes("wlc", Bias::Ilb(2), told).iter().map(|outcome| outcome.peak).collect();
    assert_within(2..=5, &peaks);
}

#[test]
fn scheduler_load_keeps_the_newcomer_from_drowning_until_the_next_report() {
    for seconds in [1, 5, 30] {
        let told = Told::Reports(Duration::from_secs(seconds));
        let outcomes = outcomes("load", Bias::None, told);
        let peaks: Vec<_> = outcomes.iter().map(|outcome| outcome.peak).collect();
        assert_within(2..=4, &peaks);
    }
}
