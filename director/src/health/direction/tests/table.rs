//! What happens in which state.

use realserver_agent::protocol::{Answer, Key, Probe, Refused, State};

use super::world::{MILLI, Port, SECOND, World};
use crate::health::direction::{Action, Mode, Refusal, Way};

#[test]
fn the_first_answer_makes_it_known_and_says_how_the_host_is() {
    let mut world = World::new(1000, 5000);
    assert_eq!(world.mode(), Mode::Unknown);
    world.state = State::Draining;
    world.run(SECOND / 10);
    assert_eq!((world.mode(), world.news()), (Mode::Udp, vec![Action::Mode]));
    let view = world.direction.view();
    assert_eq!((view.mode.as_str(), view.agent_state.as_str()), ("udp", "draining"));
    assert_eq!((view.load, view.connections, view.queue), (Some(5000), 7, 1));
    assert_eq!((view.boot.as_deref(), view.round_trip), (Some("0000000000000001"), 2.0));
    world.run(SECOND * 600);
    assert_eq!(world.news(), []);
    assert!((595..=640).contains(&world.sent[0]), "each period: {:?}", world.sent);
    assert_eq!(world.sent[1], 0, "there is no need of TCP");
}

#[test]
fn a_host_whose_udp_is_filtered_from_the_start_is_up_over_tcp() {
    let mut world = World::new(1000, 5000);
    world.udp = Port::Silent;
    world.run(SECOND * 4);
    assert_eq!((world.mode(), world.sent[1]), (Mode::Unknown, 0));
    world.run(SECOND * 600);
    assert_eq!((world.mode(), world.news()), (Mode::Tcp, vec![Action::Mode]));
    assert!(world.sent[0] < 20, "UDP is asked once a minute: {:?}", world.sent);
    assert!(world.sent[1] > 500, "TCP each period: {:?}", world.sent);
    world.udp = Port::Answers;
    world.run(SECOND * 61);
    assert_eq!((world.mode(), world.news()), (Mode::Udp, vec![Action::Mode]));
    let asked = world.sent[1];
    world.run(SECOND * 61);
    assert_eq!(world.sent[1], asked, "the stream is closed");
}

#[test]
fn a_host_whose_udp_is_filtered_later_stays_up_if_tcp_says_so_and_fails_if_nobody_asks_it() {
    let mut world = World::new(1000, 5000);
    world.run(SECOND * 10);
    world.udp = Port::Silent;
    world.news();
    world.run(SECOND * 600);
    assert_eq!((world.mode(), world.news()), (Mode::Tcp, vec![Action::Mode]));

    let mut world = World::new(1000, 5000).strict();
    world.run(SECOND * 10);
    world.udp = Port::Silent;
    world.news();
    world.run(SECOND * 600);
    assert_eq!((world.mode(), world.news()), (Mode::Tcp, vec![Action::Lost, Action::Back]));
}

#[test]
fn a_stream_that_is_refused_or_silent_is_a_lost_host_in_tcp_mode() {
    for port in [Port::Refuses, Port::Silent] {
        let mut world = World::new(1000, 5000);
        world.udp = Port::Silent;
        world.run(SECOND * 20);
        world.news();
        world.host(port);
        // The host is another one when it is there again: the open stream ends.
        world.boot = 2;
        if port == Port::Refuses {
            world.direction.stream_ended("reset");
            world.act_close();
        }
        world.run(SECOND * 6);
        assert_eq!((world.mode(), world.news()), (Mode::Lost, vec![Action::Lost]), "{port:?}");
        assert!(world.direction.reason().contains("over TCP"), "{}", world.direction.reason());
    }
}

#[test]
fn a_host_whose_agent_says_what_does_not_count_is_there_over_tcp_and_lost_when_it_says_nothing() {
    let mut world = World::new(1000, 5000);
    world.udp = Port::Silent;
    world.run(SECOND * 6);
    assert_eq!(world.mode(), Mode::Tcp);
    world.host(Port::Silent);
    world.news();
    for second in 0..60 {
        world.run(SECOND);
        let now = world.now;
        match second % 2 {
            0 => world.direction.stream_closed("it was closed", now),
            _ => {
                let noise = world.direction.heard(Way::Tcp, b"noise", None, now, &mut Vec::new());
                assert!(noise.is_err());
            }
        }
    }
    assert_eq!((world.mode(), world.news()), (Mode::Tcp, vec![]));
    world.run(SECOND * 6);
    assert_eq!((world.mode(), world.news()), (Mode::Lost, vec![Action::Lost]));
    // Such words do not bring it back.
    for _ in 0..20 {
        world.run(SECOND);
        let now = world.now;
        world.direction.stream_closed("it was closed", now);
    }
    assert_eq!(world.mode(), Mode::Lost);
}

#[test]
fn a_lost_host_is_back_after_rise_answers_in_a_row_by_the_way_that_answers() {
    for (udp, mode) in [(Port::Answers, Mode::Udp), (Port::Silent, Mode::Tcp)] {
        let mut world = World::new(1000, 5000);
        world.run(SECOND * 10);
        world.host(Port::Silent);
        world.run(SECOND * 20);
        world.news();
        assert_eq!(world.mode(), Mode::Lost);
        world.host(Port::Answers);
        world.udp = udp;
        world.run(SECOND * 9 / 10);
        assert_eq!(world.mode(), Mode::Lost, "one answer is not `rise`");
        // A connection to a host that was silent is tried anew after 2 s.
        world.run(SECOND * 4);
        assert_eq!((world.mode(), world.news()), (mode, vec![Action::Back]), "{udp:?}");
        assert_eq!(world.direction.view().incarnation, 1);
        assert_eq!(world.direction.reason(), "");
    }
}

#[test]
fn answers_of_a_lost_host_that_are_not_in_a_row_do_not_bring_it_back() {
    let mut world = World::new(1000, 5000).strict();
    world.run(SECOND * 10);
    world.host(Port::Silent);
    world.run(SECOND * 10);
    world.news();
    for _ in 0..50 {
        // At most one beat in each second falls into this.
        world.udp = Port::Answers;
        world.run(SECOND * 9 / 10);
        world.udp = Port::Silent;
        world.run(SECOND * 22 / 10);
    }
    assert_eq!((world.mode(), world.news()), (Mode::Lost, vec![]));
}

#[test]
fn another_boot_nonce_is_a_restart_in_every_state() {
    let mut udp = World::new(1000, 5000);
    udp.run(SECOND * 10);
    let mut tcp = World::new(1000, 5000);
    tcp.udp = Port::Silent;
    tcp.run(SECOND * 10);
    for (mut world, mode) in [(udp, Mode::Udp), (tcp, Mode::Tcp)] {
        world.news();
        world.boot = 2;
        world.run(SECOND * 10);
        assert_eq!((world.mode(), world.news()), (mode, vec![Action::Restarted]));
        assert_eq!(world.direction.view().incarnation, 1);
        world.host(Port::Silent);
        world.run(SECOND * 10);
        world.boot = 3;
        world.host(Port::Answers);
        world.run(SECOND * 10);
        assert_eq!(world.news(), [Action::Lost, Action::Restarted, Action::Back]);
        assert_eq!(world.direction.view().incarnation, 3);
    }
}

#[test]
fn an_answer_that_was_overtaken_does_not_bring_an_old_boot_nonce_back() {
    let mut world = World::new(1000, 5000);
    world.run(SECOND);
    world.host(Port::Silent);
    world.run(SECOND * 11 / 10);
    let (first, old) = (world.challenge, world.answer(world.challenge));
    world.run(SECOND * 11 / 10);
    world.boot = 2;
    let new = world.answer(world.challenge);
    assert_ne!(first, world.challenge);
    world.news();
    let mut actions = Vec::new();
    for answer in [new, old] {
        let bytes = answer.encode(None);
        world.direction.heard(Way::Udp, &bytes, None, world.now, &mut actions).unwrap();
    }
    assert_eq!(actions, [Action::Restarted]);
}

#[test]
fn what_is_forged_replayed_of_another_version_or_nonsense_changes_nothing_and_is_counted() {
    let key = Key::new(b"secret").unwrap();
    let mut world = World::new(1000, 5000);
    world.run(SECOND);
    world.udp = Port::Silent;
    world.run(SECOND * 11 / 10);
    let good = Answer { boot: 9, state: State::Down, ..world.answer(world.challenge) };
    let guess = Answer { challenge: world.challenge ^ 1, ..good };
    let mut version = good.encode(None);
    version[4] = 2;
    let mut nonsense = good.encode(None);
    nonsense[24] = 77;
    let question = Probe { challenge: world.challenge }.encode(None);
    let before = format!("{:?}", world.direction.report());
    let signed = good.encode(Some(&key));
    let (direction, now) = (&mut world.direction, world.now);
    let mut actions = Vec::new();
    for (bytes, way, refusal) in [
        (&guess.encode(None)[..], Way::Udp, Refusal::Unasked),
        (&good.encode(None), Way::Tcp, Refusal::Unasked),
        (&version, Way::Udp, Refused::Version { theirs: 2 }.into()),
        (&nonsense, Way::Udp, Refused::Nonsense.into()),
        (&question, Way::Udp, Refused::Kind.into()),
        (&signed, Way::Udp, Refused::NoKey.into()),
        (b"SYRA", Way::Udp, Refused::Foreign.into()),
        (&[0xff; 2000], Way::Udp, Refused::Foreign.into()),
    ] {
        let heard = direction.heard(way, bytes, None, now, &mut actions);
        assert_eq!(heard.map_err(|(refusal, _)| refusal), Err(refusal));
    }
    let heard = direction.heard(Way::Udp, &good.encode(None), Some(&key), now, &mut actions);
    assert_eq!(heard, Err((Refused::Unsigned.into(), true)));
    assert_eq!((actions.len(), direction.view().refused), (0, 9));
    assert_eq!(format!("{:?}", direction.report()), before);
    assert_eq!(direction.view().incarnation, 0);
    // The question is still open, and the right answer still counts. Once.
    assert_eq!(direction.heard(Way::Udp, &signed, Some(&key), now, &mut actions), Ok(()));
    assert_eq!(actions, [Action::Restarted]);
    let again = direction.heard(Way::Udp, &signed, Some(&key), now, &mut actions);
    assert_eq!(again.map_err(|(refusal, _)| refusal), Err(Refusal::Unasked));
}

#[test]
fn a_host_that_comes_and_goes_is_held_lost_and_says_so() {
    let mut world = World::new(100, 500);
    for _ in 0..3 {
        world.host(Port::Answers);
        world.run(SECOND * 3);
        assert_eq!(world.mode(), Mode::Udp);
        world.host(Port::Silent);
        world.run(SECOND);
        assert_eq!(world.mode(), Mode::Lost);
    }
    assert!(world.direction.reason().contains("held for 30 s"), "{}", world.direction.reason());
    world.host(Port::Answers);
    world.run(SECOND * 28);
    assert_eq!(world.mode(), Mode::Lost, "held");
    world.run(SECOND * 3);
    assert_eq!(world.mode(), Mode::Udp);
}

#[test]
fn time_when_nobody_looked_is_not_held_against_a_host() {
    for udp in [Port::Answers, Port::Silent] {
        let mut world = World::new(1000, 5000);
        world.udp = udp;
        world.run(SECOND * 20);
        world.news();
        // The director stands still, and all that was on its way is lost.
        world.forget();
        world.now += SECOND * 60;
        world.run(SECOND * 60);
        assert_eq!(world.news(), [], "{udp:?}");
        world.host(Port::Silent);
        world.run(SECOND * 51 / 10);
        assert_eq!(world.mode(), Mode::Lost, "it is still looked at");
    }
    let mut world = World::new(1000, 5000);
    world.run(SECOND * 20);
    world.host(Port::Silent);
    for _ in 0..100 {
        world.run(SECOND);
        world.direction.could_not_ask(world.now);
    }
    assert_eq!(world.mode(), Mode::Udp, "who could not ask knows nothing");
    world.run(SECOND * 5 + MILLI);
    assert_eq!(world.mode(), Mode::Lost);
}
