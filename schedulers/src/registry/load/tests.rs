//! Loads as they are reported, and what comes between two reports.

use crate::testing::{Service, load, overload};
use crate::{Bias, Options};
use std::time::Duration;

const WINDOW: Duration = Duration::from_secs(5);

/// Servers of weight 1 that have reported these loads.
fn reporting(bias: Bias, loads: &[Option<u16>]) -> Service {
    let options = Options { bias, bias_window: WINDOW, ..Options::default() };
    let mut service = Service::with_options("load", &vec![1; loads.len()], &options);
    for (id, load) in loads.iter().enumerate() {
        service.server(id as u64).report(*load);
    }
    // Reports are looked through a part of the window later at most.
    service.now += WINDOW;
    service
}

/// Connects so often, and says how often each server was chosen.
fn shares(service: &mut Service, connections: usize) -> Vec<usize> {
    let mut shares = vec![0; service.servers.len()];
    (0..connections).for_each(|_| shares[service.connect().unwrap() as usize] += 1);
    shares
}

#[test]
fn the_lowest_report_wins_and_the_newest_of_equals() {
    let mut service = reporting(Bias::None, &[Some(300), Some(200), Some(200)]);
    assert_eq!(service.next(), Some(1));
    service.server(1).report(Some(301));
    assert_eq!(service.next(), Some(2));
    service.server(0).report(Some(0));
    assert_eq!(service.next(), Some(0));
}

#[test]
fn an_idle_server_is_the_best_for_three_connections_beside_others_at_eight_tenths() {
    let loads: Vec<_> = std::iter::once(0).chain([8000; 20]).map(Some).collect();
    let mut service = reporting(Bias::None, &loads);
    let chosen: Vec<_> = (0..5).map(|_| service.connect().unwrap()).collect();
    assert_eq!(chosen, [0, 0, 0, 1, 2]);
    let mut service = reporting(Bias::Linear(200), &loads);
    assert_eq!(shares(&mut service, 61)[0], 41, "at 40 they are equal, and it is the newest");
}

#[test]
fn a_report_has_in_it_what_came_before() {
    let mut service = reporting(Bias::None, &[Some(0), Some(8000)]);
    assert_eq!(shares(&mut service, 4), [3, 1]);
    service.server(0).report(Some(0));
    assert_eq!(shares(&mut service, 3), [3, 0]);
}

#[test]
fn a_full_server_gets_nothing_while_another_is_not() {
    let mut service = reporting(Bias::None, &[Some(10_000), Some(9999)]);
    assert_eq!(shares(&mut service, 10_000), [0, 10_000]);
    service.server(1).report(Some(10_000));
    load(service.server(0), 3, 0);
    assert_eq!(shares(&mut service, 7), [2, 5], "now both are, and the least biased gets it");
    for bias in [Bias::Linear(10_000), Bias::Linear(200)] {
        let mut service = reporting(bias, &[Some(10_000), Some(9999)]);
        assert_eq!(shares(&mut service, 10_000), [0, 10_000], "{bias:?}");
    }
}

#[test]
fn a_server_that_does_not_report_is_taken_for_the_mean() {
    let mut service = reporting(Bias::None, &[Some(3000), None, Some(1000)]);
    assert_eq!(shares(&mut service, 2), [0, 1, 1], "after one connection 2 stands at 5500");
    let mut service = reporting(Bias::None, &[None, Some(5001)]);
    assert_eq!(service.next(), Some(0), "alone it tells the mean, and the newest wins");
    service.server(1).report(None);
    service.now += WINDOW;
    assert_eq!(shares(&mut service, 10), [5, 5]);
}

#[test]
fn a_newcomer_that_does_not_report_is_not_sent_all_that_others_ever_had() {
    let mut service = reporting(Bias::None, &[None, None]);
    for _ in 0..500 {
        service.now += Duration::from_millis(100);
        let id = service.connect().unwrap();
        service.server(id).connection_closed(true);
    }
    service.add(2, 1).unwrap();
    let chosen: Vec<_> = (0..30).map(|_| service.connect().unwrap()).collect();
    let newcomers = chosen.iter().filter(|id| **id == 2).count();
    assert!((9..=11).contains(&newcomers), "{chosen:?}");
}

#[test]
fn weight_matters_only_as_zero_or_not_and_overload_ends_all() {
    let mut service = reporting(Bias::None, &[Some(0), Some(100), Some(200)]);
    service.set_weight(1, 1000);
    assert_eq!(service.next(), Some(0));
    service.set_weight(0, 0);
    assert_eq!(service.next(), Some(1));
    overload(service.server(1));
    assert_eq!(service.next(), Some(2));
    service.set_weight(2, 0);
    assert_eq!(service.next(), None);
}

#[test]
fn reports_of_a_thousand_servers_are_seen_without_walking_them() {
    let loads: Vec<_> = (0..1000).map(|id| Some(9000 - id)).collect();
    let mut service = reporting(Bias::None, &loads);
    for (id, expected) in [(7, 7), (400, 400)] {
        service.server(id).report(Some(5));
        assert_eq!(service.next(), Some(expected));
        service.server(id).report(None);
        assert_eq!(service.next(), Some(999));
    }
}
