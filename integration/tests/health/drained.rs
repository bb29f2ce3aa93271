//! A server that is taken out gently: by its operator's word, or by a signal.

use std::time::{Duration, Instant};

use director::control::events::EventKind;
use director::control::health::HealthState;
use integration::topology::Kind;
use nix::sys::signal::Signal;

use crate::bed::{Bed, Wanted};
use crate::can_run;
use crate::session::{Found, Session};

const AGENT: &str = r#"agent = { period = "100ms", timeout = "500ms" }"#;
const SOON: Duration = Duration::from_secs(3);

#[test]
fn quick_a_server_that_drains_keeps_its_connections_and_gets_no_new_ones_until_it_is_told() {
    if !can_run() {
        return;
    }
    let bed = Bed::build(Wanted::new(Kind::Nat, AGENT).with_agents("")).unwrap();
    let mut session = Session::open_at(&bed, 2).unwrap();
    bed.agent(2, &["drain"]).unwrap();
    bed.wait_for(2, HealthState::Draining, SOON).unwrap();
    bed.served_by(60, &[1, 3]);
    assert_eq!(session.ask(SOON), Found::Answer);
    let status = bed.agent(2, &["status"]).unwrap();
    assert!(status.contains("draining"), "{status}");
    bed.agent(2, &["undrain"]).unwrap();
    bed.wait_for(2, HealthState::Up, SOON).unwrap();
    bed.served_by(60, &[1, 2, 3]);
    let kinds: Vec<_> = bed.events().unwrap().into_iter().map(|event| event.kind).collect();
    assert!(kinds.contains(&EventKind::ServerDraining) && !kinds.contains(&EventKind::ServerDown));
    bed.director.stop().unwrap();
}

#[test]
fn an_agent_that_is_told_to_end_drains_first_and_undoes_its_work_at_the_deadline() {
    if !can_run() {
        return;
    }
    let wanted = Wanted::new(Kind::Tunnel, AGENT).with_agents("drain_deadline = \"4s\"");
    let bed = Bed::build(wanted).unwrap();
    let mut session = Session::open_at(&bed, 1).unwrap();
    let told = Instant::now();
    bed.agents[0].signal(Signal::SIGTERM).unwrap();
    bed.wait_for(1, HealthState::Draining, SOON).unwrap();
    bed.served_by(60, &[2, 3]);
    // It still unpacks for those that it has.
    assert_eq!(session.ask(Duration::from_secs(1)), Found::Answer);
    let status = bed.agents[0].wait(Duration::from_secs(8)).unwrap();
    assert_eq!(status.and_then(|status| status.code()), Some(0));
    let took = told.elapsed();
    assert!((3.5..6.0).contains(&took.as_secs_f64()), "ended after {took:?}");
    bed.director.stop().unwrap();
}

#[test]
fn an_agent_that_is_told_to_end_and_has_no_connections_ends_at_once() {
    if !can_run() {
        return;
    }
    let wanted = Wanted::new(Kind::Direct, AGENT).with_agents("drain_deadline = \"60s\"");
    let bed = Bed::build(wanted).unwrap();
    bed.agents[0].signal(Signal::SIGTERM).unwrap();
    let status = bed.agents[0].wait(Duration::from_secs(8)).unwrap();
    assert_eq!(status.and_then(|status| status.code()), Some(0), "{}", bed.agents[0].log());
    bed.director.stop().unwrap();
}

#[test]
fn a_server_whose_local_check_fails_says_so_itself() {
    if !can_run() {
        return;
    }
    let check =
        r#"check = { type = "http", path = "/health", interval = "200ms", rise = 1, fall = 2 }"#;
    let bed = Bed::build(Wanted::new(Kind::Nat, AGENT).with_agents(check)).unwrap();
    bed.serve_health(3, false).unwrap();
    let health = bed.wait_for(3, HealthState::Down, SOON).unwrap();
    assert!(health.reason.contains("agent"), "{health:?}");
    bed.served_by(60, &[1, 2]);
    bed.serve_health(3, true).unwrap();
    bed.wait_for(3, HealthState::Up, SOON).unwrap();
    bed.director.stop().unwrap();
}
