//! How long it takes, and how seldom it errs.

use std::time::Duration;

use super::world::{MILLI, Port, SECOND, World};
use crate::health::direction::{Action, Mode};

/// How long after its host has become silent a link is lost, at worst over all phases of a period.
fn detection(period: u32, timeout: u32, silent_tcp: Port, is_strict: bool) -> Duration {
    let mut worst = Duration::ZERO;
    for phase in 0..200 {
        let mut world = World::new(period, timeout);
        world.direction.settings.confirm_tcp = !is_strict;
        world.run(MILLI * period * 10 + MILLI * period * phase / 100);
        assert_eq!(world.mode(), Mode::Udp);
        world.host(Port::Silent);
        world.tcp = silent_tcp;
        let start = world.now;
        world.edges.clear();
        world.run(MILLI * timeout * 4);
        let (at, edge) = world.edges[0];
        assert_eq!(edge, Action::Lost);
        assert!(at - start + MILLI * period * 11 / 10 >= MILLI * timeout, "it is too early");
        worst = worst.max(at - start);
    }
    worst
}

#[test]
fn a_silent_host_is_lost_in_time_in_every_phase() {
    for tcp in [Port::Silent, Port::Refuses] {
        for is_strict in [false, true] {
            let usual = detection(1000, 5000, tcp, is_strict);
            assert!(usual <= MILLI * 5100, "{usual:?} with {tcp:?}");
            let quick = detection(100, 500, tcp, is_strict);
            assert!(quick <= MILLI * 600, "{quick:?} with {tcp:?}");
            let least = detection(1000, 2000, tcp, is_strict);
            assert!(least <= MILLI * 2100, "{least:?} with {tcp:?}");
        }
    }
}

#[test]
fn a_silent_host_in_tcp_mode_is_lost_in_time_too() {
    for phase in 0..100 {
        let mut world = World::new(1000, 5000);
        world.udp = Port::Silent;
        world.run(SECOND * 20 + MILLI * 10 * phase);
        assert_eq!(world.mode(), Mode::Tcp);
        world.host(Port::Silent);
        let start = world.now;
        world.edges.clear();
        world.run(SECOND * 10);
        let (at, edge) = world.edges[0];
        assert_eq!(edge, Action::Lost);
        assert!(at - start <= MILLI * 5100, "{:?}", at - start);
    }
}

#[test]
fn a_host_that_was_never_heard_is_lost_after_the_timeout_and_one_try_over_tcp() {
    for (tcp, tried) in [(Port::Silent, 2000), (Port::Refuses, 2)] {
        let mut world = World::new(1000, 5000);
        world.host(tcp);
        let start = world.now;
        world.run(SECOND * 10);
        let expected = [(5000, Action::Mode), (5000 + tried, Action::Lost)]
            .map(|(ms, a)| (start + MILLI * ms, a));
        assert_eq!(world.edges, expected, "{tcp:?}");
        let reason = world.direction.reason();
        assert!(reason.starts_with("its agent has never answered"), "{reason}");
    }
}

/// Losses within so many hours, such a part of all packets being lost each way.
fn false_alarms(mut world: World, loss: f64, hours: u32) -> usize {
    world.loss = loss;
    world.run(SECOND * 3600 * hours);
    world.news().into_iter().filter(|edge| *edge == Action::Lost).count()
}

#[test]
fn one_packet_in_twenty_lost_is_no_alarm_for_two_hundred_hours() {
    assert_eq!(false_alarms(World::new(1000, 5000), 0.05, 200), 0);
    assert_eq!(false_alarms(World::new(100, 500), 0.05, 10), 0);
    // Over TCP alone a lost SYN costs a second, and there is no other way to ask.
    let mut over_tcp = World::new(1000, 5000);
    over_tcp.udp = Port::Silent;
    assert_eq!(false_alarms(over_tcp, 0.01, 200), 0);
}

#[test]
fn the_loss_that_is_shown_is_that_of_the_wire() {
    let mut world = World::new(1000, 5000);
    world.loss = 0.05;
    let mut shown = 0.0;
    for _ in 0..50 {
        world.run(SECOND * 100);
        shown += world.direction.view().lost / 50.0;
    }
    // A probe is lost if it or its answer is.
    assert!((8.0..12.0).contains(&shown), "{shown} %");
}

#[test]
fn one_packet_in_two_lost_is_an_alarm_where_tcp_is_not_asked() {
    // That the wire of these tests loses anything, and that somebody would notice.
    let mut world = World::new(1000, 5000).strict();
    world.loss = 0.5;
    world.run(SECOND * 3600);
    assert!(world.news().contains(&Action::Lost));
}
