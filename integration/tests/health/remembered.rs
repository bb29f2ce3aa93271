//! What a reload and a restart of the director must not forget, and what they must not invent.

use std::time::Duration;

use director::control::events::EventKind;
use director::control::health::HealthState;
use integration::topology::Kind;

use crate::bed::{Bed, Wanted};
use crate::can_run;
use crate::session::{Found, Session};

const CHECK: &str = r#"check = { type = "http", path = "/health", soft = [], expect = 200, interval = "500ms", timeout = "250ms", rise = 4, fall = 2 }"#;
const SOON: Duration = Duration::from_secs(5);

#[test]
fn a_director_that_starts_again_remembers_who_was_down() {
    if !can_run() {
        return;
    }
    let mut bed = Bed::build(Wanted::new(Kind::Nat, CHECK)).unwrap();
    bed.serve_health(1, false).unwrap();
    bed.wait_for(1, HealthState::Down, SOON).unwrap();
    // It is well again before the next director looks, and must still rise first.
    bed.serve_health(1, true).unwrap();
    bed.succeed().unwrap();
    bed.served_by(30, &[2, 3]);
    let health = bed.health(1).unwrap();
    assert_eq!(health.state, HealthState::Down, "{health:?}");
    bed.wait_for(1, HealthState::Up, SOON).unwrap();
    bed.served_by(30, &[1, 2, 3]);
    bed.director.stop().unwrap();
}

#[test]
fn a_reload_brings_no_failed_server_back_and_marks_none_down() {
    if !can_run() {
        return;
    }
    let bed = Bed::build(Wanted::new(Kind::Nat, CHECK)).unwrap();
    bed.serve_health(1, false).unwrap();
    bed.wait_for(1, HealthState::Down, SOON).unwrap();
    let mut session = Session::open_at(&bed, 2).unwrap();
    let events = bed.events().unwrap().len();
    for round in 0..5 {
        let config = format!("{}\n# {round}\n", bed.wanted.config());
        bed.director.reload(&config).unwrap();
        std::thread::sleep(Duration::from_millis(150));
        assert_eq!(bed.health(1).unwrap().state, HealthState::Down);
        bed.served_by(20, &[2, 3]);
    }
    assert_eq!(session.ask(SOON), Found::Answer);
    let later = bed.events().unwrap().split_off(events);
    let edges = |kind| matches!(kind, EventKind::ServerUp | EventKind::ServerDown);
    assert!(!later.iter().any(|event| edges(event.kind)), "{later:#?}");
    bed.director.stop().unwrap();
}

#[test]
fn a_memory_that_cannot_be_read_is_told_and_is_no_reason_to_fail() {
    if !can_run() {
        return;
    }
    let mut bed = Bed::build(Wanted::new(Kind::Nat, CHECK)).unwrap();
    let memory = bed.director.socket().with_file_name("health.json");
    bed.succeed_after(|| Ok(std::fs::write(&memory, "{ broken")?)).unwrap();
    let log = bed.director.process().log();
    assert!(log.contains("health.json"), "nothing is said of it:\n{log}");
    bed.served_by(30, &[1, 2, 3]);
    bed.director.stop().unwrap();
}
