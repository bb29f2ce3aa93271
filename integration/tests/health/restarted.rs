//! A host that starts anew: it is reachable, and knows nothing of its connections.

use std::time::{Duration, SystemTime};

use director::control::events::EventKind;
use integration::topology::Kind;
use nix::sys::signal::Signal;

use crate::bed::{Bed, Wanted};
use crate::session::{Found, Session};
use crate::{can_run, figure};

const AGENT: &str = r#"agent = { period = "200ms", timeout = "3s" }"#;

#[test]
fn connections_of_a_host_that_has_started_anew_are_reset_though_it_answers() {
    if !can_run() {
        return;
    }
    let mut bed = Bed::build(Wanted::new(Kind::Nat, AGENT).with_agents("")).unwrap();
    let mut session = Session::open_at(&bed, 1).unwrap();
    let mut other = Session::open_at(&bed, 2).unwrap();

    // The agent alone: the host is the same, and so are its connections.
    bed.agents[0].signal(Signal::SIGKILL).unwrap();
    bed.start_agent(1, &[]).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(session.ask(Duration::from_secs(2)), Found::Answer, "the agent alone was started");

    let restarted = SystemTime::now();
    bed.agents[0].signal(Signal::SIGKILL).unwrap();
    bed.start_agent(1, &["--boot-nonce", "4711"]).unwrap();
    let limit = Duration::from_secs(5);
    let seconds = bed.wait_for_event(EventKind::ServerRestarted, 1, restarted, limit).unwrap();
    figure("a host that started anew is noticed, 200 ms", seconds, 1.5);
    session.is_reset();
    assert_eq!(other.ask(Duration::from_secs(2)), Found::Answer);
    bed.served_by(60, &[1, 2, 3]);
    let direction = bed.health(1).unwrap().direction.unwrap();
    assert_eq!(direction.incarnation, 1, "{direction:?}");
    bed.director.stop().unwrap();
}
