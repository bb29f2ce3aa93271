//! A host that falls silent: nothing it sends or is sent arrives any more, and nobody refuses anything.

use std::time::{Duration, SystemTime};

use director::control::events::EventKind;
use director::control::health::HealthState;
use integration::topology::Kind;

use crate::bed::{Bed, Wanted};
use crate::session::{Found, Session};
use crate::{can_run, figure};

/// Default times; and those of someone in a hurry.
const DEFAULT: (&str, f64) = ("agent = true", 5.1);
const HURRY: (&str, f64) = (r#"agent = { period = "100ms", timeout = "500ms" }"#, 0.6);

fn falls_silent(kind: Kind, (agent, allowed): (&str, f64)) {
    let bed = Bed::build(Wanted::new(kind, agent).with_agents("")).unwrap();
    bed.wait_until(1, "heard", Duration::from_secs(5), |health| {
        health.direction.as_ref().is_some_and(|direction| direction.mode == "udp")
    })
    .unwrap();
    let mut sessions: Vec<_> = (1..=3).map(|n| Session::open_at(&bed, n).unwrap()).collect();
    let silent = SystemTime::now();
    bed.cut_off(1, true).unwrap();
    let limit = Duration::from_secs(10);
    let down = bed.wait_for_event(EventKind::ServerDown, 1, silent, limit).unwrap();
    figure(&format!("{kind:?}: silent host, {agent}"), down, allowed);
    // On its next packet, not fifteen minutes later.
    let reset = sessions[0].is_reset();
    figure(&format!("{kind:?}: reset of an established connection"), reset, 0.5);
    for session in &mut sessions[1..] {
        assert_eq!(session.ask(Duration::from_secs(2)), Found::Answer, "another one was cut");
    }
    bed.served_by(60, &[2, 3]);
    assert!(bed.director.verdicts("server_lost").unwrap() > 0, "the reset has no name");

    let back = SystemTime::now();
    bed.cut_off(1, false).unwrap();
    bed.wait_for_event(EventKind::DirectionBack, 1, back, limit).unwrap();
    bed.wait_for(1, HealthState::Up, limit).unwrap();
    bed.served_by(60, &[1, 2, 3]);
    bed.director.stop().unwrap();
}

#[test]
fn quick_a_silent_host_is_noticed_within_six_tenths_of_a_second_by_nat() {
    if can_run() {
        falls_silent(Kind::Nat, HURRY);
    }
}

#[test]
fn a_silent_host_is_noticed_by_default_within_five_seconds_by_nat() {
    if can_run() {
        falls_silent(Kind::Nat, DEFAULT);
    }
}

#[test]
fn a_silent_host_is_noticed_with_direct_routing_of_which_the_director_sees_one_half() {
    if can_run() {
        falls_silent(Kind::Direct, HURRY);
        falls_silent(Kind::Direct, DEFAULT);
    }
}

#[test]
fn a_silent_host_behind_a_tunnel_is_noticed() {
    if can_run() {
        falls_silent(Kind::Tunnel, HURRY);
        falls_silent(Kind::Tunnel, DEFAULT);
    }
}

#[test]
fn a_client_that_only_listens_is_roused_to_hear_that_its_server_is_gone() {
    if !can_run() {
        return;
    }
    for kind in [Kind::Nat, Kind::Direct] {
        let lines = format!("{}\nteardown = \"eager\"", HURRY.0);
        let bed = Bed::build(Wanted::new(kind, &lines).with_agents("")).unwrap();
        let mut session = Session::open_at(&bed, 1).unwrap();
        let mut other = Session::open_at(&bed, 2).unwrap();
        let silent = SystemTime::now();
        bed.cut_off(1, true).unwrap();
        assert_eq!(session.listen(Duration::from_secs(5)), Found::Reset, "{kind:?}");
        let seconds = silent.elapsed().unwrap().as_secs_f64();
        figure(&format!("{kind:?}: eager, a listening client is reset"), seconds, HURRY.1 + 2.0);
        assert_eq!(other.ask(Duration::from_secs(2)), Found::Answer);
        bed.director.stop().unwrap();
    }
}

#[test]
fn without_teardown_the_connections_of_a_silent_host_wait_for_it() {
    if !can_run() {
        return;
    }
    let lines = format!("{}\nteardown = \"none\"", HURRY.0);
    let bed = Bed::build(Wanted::new(Kind::Nat, &lines).with_agents("")).unwrap();
    let mut session = Session::open_at(&bed, 1).unwrap();
    bed.cut_off(1, true).unwrap();
    bed.wait_for(1, HealthState::Down, Duration::from_secs(5)).unwrap();
    bed.served_by(30, &[2, 3]);
    bed.cut_off(1, false).unwrap();
    bed.wait_for(1, HealthState::Up, Duration::from_secs(10)).unwrap();
    assert_eq!(session.ask(Duration::from_secs(5)), Found::Answer);
    bed.director.stop().unwrap();
}
