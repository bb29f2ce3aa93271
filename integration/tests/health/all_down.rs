//! When all servers of a service have failed: keep, drop, or another one.

use std::time::Duration;

use director::control::events::EventKind;
use director::control::health::HealthState;
use integration::topology::Kind;

use crate::bed::{Bed, Wanted, server};
use crate::can_run;
use crate::session::{Found, Session};

/// nginx serves, and its health says it does not: so that one can see who is asked.
const CHECK: &str = r#"check = { type = "http", path = "/health", soft = [], expect = 200, interval = "200ms", timeout = "150ms", rise = 1, fall = 2 }"#;
const SOON: Duration = Duration::from_secs(4);

fn all_fail(lines: &str, servers: usize) -> Bed {
    let wanted = Wanted { servers, ..Wanted::new(Kind::Nat, &format!("{CHECK}\n{lines}")) };
    let bed = Bed::build(wanted).unwrap();
    bed.served_by(30, &(1..=servers).collect::<Vec<_>>());
    (1..=servers).for_each(|number| bed.serve_health(number, false).unwrap());
    for number in 1..=servers {
        bed.wait_for(number, HealthState::Down, SOON).unwrap();
    }
    let kinds: Vec<_> = bed.events().unwrap().into_iter().map(|event| event.kind).collect();
    assert!(kinds.contains(&EventKind::AllDown), "{kinds:?}");
    bed
}

#[test]
fn kept_servers_are_asked_although_all_seem_to_have_failed() {
    if !can_run() {
        return;
    }
    let bed = all_fail("all_down = \"keep\"", 3);
    bed.served_by(60, &[1, 2, 3]);
    assert!(bed.servers().unwrap().iter().all(|server| server.kept));
    bed.serve_health(2, true).unwrap();
    bed.wait_for(2, HealthState::Up, SOON).unwrap();
    bed.served_by(60, &[2]);
    bed.director.stop().unwrap();
}

#[test]
fn clients_are_refused_when_nobody_is_to_be_asked() {
    if !can_run() {
        return;
    }
    let bed = all_fail("all_down = \"drop\"", 2);
    let tally = bed.fetch(10).unwrap();
    assert_eq!((tally.answered(), tally.failed()), (0, 10), "{tally:?}");
    bed.serve_health(1, true).unwrap();
    bed.wait_for(1, HealthState::Up, SOON).unwrap();
    bed.served_by(20, &[1]);
    bed.director.stop().unwrap();
}

#[test]
fn the_fallback_server_is_asked_when_all_have_failed_and_only_then() {
    if !can_run() {
        return;
    }
    let wanted = Wanted::new(Kind::Nat, &format!("{CHECK}\nfallback = \"{}\"", server(3)));
    let bed = Bed::build(Wanted { servers: 2, spare: 1, ..wanted }).unwrap();
    bed.served_by(60, &[1, 2]);
    [1, 2].iter().for_each(|number| bed.serve_health(*number, false).unwrap());
    bed.wait_for(1, HealthState::Down, SOON).unwrap();
    bed.wait_for(2, HealthState::Down, SOON).unwrap();
    bed.served_by(30, &[3]);
    let mut session = Session::open_at(&bed, 3).unwrap();
    bed.serve_health(1, true).unwrap();
    bed.wait_for(1, HealthState::Up, SOON).unwrap();
    bed.served_by(30, &[1]);
    assert_eq!(session.ask(SOON), Found::Answer, "what the fallback has begun it ends");
    bed.director.stop().unwrap();
}
