//! A packet filter between director and agents that lets no UDP through: TCP says that all is well.

use std::time::Duration;

use director::control::events::EventKind;
use director::control::health::HealthState;
use integration::topology::Kind;

use crate::bed::{Bed, Wanted};
use crate::can_run;
use crate::session::{Found, Session};

/// Six times the timeout, in which a mistake would show.
const AGENT: &str = r#"agent = { period = "200ms", timeout = "1s" }"#;
const LONG: Duration = Duration::from_secs(6);
const PORT: u16 = realserver_agent::protocol::PORT;

fn is_up_by_tcp(bed: &Bed) {
    for number in 1..=3 {
        let in_tcp = bed.wait_until(number, "asked by TCP", LONG, |health| {
            health.direction.as_ref().is_some_and(|direction| direction.mode == "tcp")
        });
        assert_eq!(in_tcp.unwrap().state, HealthState::Up);
    }
    std::thread::sleep(LONG);
    let events = bed.events().unwrap();
    let is_bad = |kind| matches!(kind, EventKind::ServerDown | EventKind::DirectionLost);
    assert!(!events.iter().any(|event| is_bad(event.kind)), "{events:#?}");
    bed.served_by(60, &[1, 2, 3]);
}

#[test]
fn agents_that_udp_never_reached_stay_up_over_tcp() {
    if !can_run() {
        return;
    }
    let mut refusals = Vec::new();
    let wanted = Wanted::new(Kind::Nat, AGENT).with_agents("");
    let bed = Bed::build_after(wanted, |topology| {
        for server in &topology.servers {
            refusals.push(server.refuse_udp("eth0", PORT)?);
        }
        Ok(())
    })
    .unwrap();
    is_up_by_tcp(&bed);
    bed.director.stop().unwrap();
}

#[test]
fn agents_whose_udp_is_cut_off_later_stay_up_once_tcp_has_confirmed_it() {
    if !can_run() {
        return;
    }
    let bed = Bed::build(Wanted::new(Kind::Nat, AGENT).with_agents("")).unwrap();
    bed.wait_until(1, "heard", LONG, |health| {
        health.direction.as_ref().is_some_and(|direction| direction.mode == "udp")
    })
    .unwrap();
    let mut session = Session::open_at(&bed, 1).unwrap();
    let refused: Result<Vec<_>, _> =
        bed.topology.servers.iter().map(|server| server.refuse_udp("eth0", PORT)).collect();
    let refused = refused.unwrap();
    is_up_by_tcp(&bed);
    assert_eq!(session.ask(Duration::from_secs(2)), Found::Answer);
    drop(refused);
    bed.director.stop().unwrap();
}
