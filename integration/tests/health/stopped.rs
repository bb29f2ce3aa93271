//! A server process that stops, and one that says it wants no more.

use std::time::{Duration, SystemTime};

use director::control::events::EventKind;
use director::control::health::HealthState;
use integration::topology::Kind;
use nix::sys::signal::Signal;

use crate::bed::{Bed, Wanted};
use crate::session::{Found, Session};
use crate::{can_run, figure};

/// 200 ms from check to check, three failures, jitter of a tenth.
const CHECK: &str =
    r#"check = { type = "tcp", interval = "200ms", timeout = "100ms", rise = 2, fall = 3 }"#;
const INTERVAL: f64 = 0.2;

fn stops(kind: Kind) {
    let mut bed = Bed::build(Wanted::new(kind, CHECK)).unwrap();
    bed.served_by(30, &[1, 2, 3]);
    let stopped = SystemTime::now();
    bed.web[0].signal(Signal::SIGKILL).unwrap();
    let limit = Duration::from_secs(5);
    let down = bed.wait_for_event(EventKind::ServerDown, 1, stopped, limit).unwrap();
    // The first failure is seen within an interval, and a machine with two cores is late now and then.
    figure(&format!("{kind:?}: stopped process, 3 x 200 ms"), down, INTERVAL * 1.1 * 3.0 + 0.1);
    bed.served_by(300, &[2, 3]);
    let health = bed.health(1).unwrap();
    assert_eq!((health.state, health.weight, health.effective_weight), (HealthState::Down, 1, 0));
    assert!(health.reason.contains("refused"), "{health:?}");

    let started = SystemTime::now();
    bed.start_web(1).unwrap();
    let up = bed.wait_for_event(EventKind::ServerUp, 1, started, limit).unwrap();
    figure(&format!("{kind:?}: process is back, 2 x 200 ms"), up, INTERVAL * 1.1 * 2.0 + 0.3);
    bed.served_by(60, &[1, 2, 3]);
    bed.director.stop().unwrap();
}

#[test]
fn quick_a_stopped_process_is_noticed_in_as_many_intervals_as_failures_are_asked_for() {
    if can_run() {
        stops(Kind::Nat);
    }
}

#[test]
fn a_stopped_process_is_noticed_with_direct_routing_and_tunnels() {
    if can_run() {
        stops(Kind::Direct);
        stops(Kind::Tunnel);
    }
}

#[test]
fn a_server_that_answers_503_keeps_its_connections_and_gets_no_new_ones() {
    if !can_run() {
        return;
    }
    let check = r#"check = { type = "http", path = "/health", interval = "200ms", timeout = "150ms", rise = 2, fall = 2 }"#;
    let bed = Bed::build(Wanted::new(Kind::Nat, check)).unwrap();
    let mut session = Session::open_at(&bed, 1).unwrap();
    bed.serve_health(1, false).unwrap();
    let health = bed.wait_for(1, HealthState::Draining, Duration::from_secs(3)).unwrap();
    assert!(health.reason.contains("503"), "{health:?}");
    bed.served_by(60, &[2, 3]);
    assert_eq!(session.ask(Duration::from_secs(2)), Found::Answer, "the old connection was cut");
    bed.serve_health(1, true).unwrap();
    bed.wait_for(1, HealthState::Up, Duration::from_secs(3)).unwrap();
    bed.served_by(60, &[1, 2, 3]);
    bed.director.stop().unwrap();
}
