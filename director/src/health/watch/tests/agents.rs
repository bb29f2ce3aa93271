//! Agents on the loopback: up, killed, restarted, deaf to UDP, of another version, forged.

use std::net::SocketAddr;
use std::time::Duration;

use HealthState::{Down, Draining, Unchecked, Up};
use realserver_agent::protocol::{Answer, Key, State};

use super::fake::{House, SECOND, Told, pass, server, service, states};
use super::fake_agent::FakeAgent;
use crate::control::events::EventKind;
use crate::control::health::HealthState;
use crate::health::plan::{AgentWatch, AllDown, Feedback, ServiceHealth};
use crate::health::watch::Watch;

fn asking(agent: &FakeAgent) -> ServiceHealth {
    let watch = AgentWatch { port: agent.address.port(), ..AgentWatch::default() };
    ServiceHealth { agent: Some(watch), all_down: AllDown::Drop, ..ServiceHealth::default() }
}

/// One server with an agent in one service.
async fn one() -> (House, FakeAgent, Watch) {
    let (house, agent) = (House::new(), FakeAgent::start(1).await);
    house.pool(service(1), &[server(1)]);
    let watch = house.begin(&[(service(1), asking(&agent))]);
    (house, agent, watch)
}

fn mode(watch: &Watch) -> String {
    watch.views()[0].direction.as_ref().unwrap().mode.clone()
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_asked_each_second_for_all_services_of_its_host_and_what_it_says_counts() {
    let house = House::new();
    let agent = FakeAgent::start(1).await;
    let beside = SocketAddr::new(server(1).ip(), 443);
    house.pool(service(1), &[server(1)]);
    house.pool(service(2), &[beside]);
    let watch = house.begin(&[(service(1), asking(&agent)), (service(2), asking(&agent))]);
    pass(SECOND * 30).await;
    assert_eq!(states(&watch.views(), service(1)), [Up]);
    assert_eq!((mode(&watch).as_str(), house.events()), ("udp", vec![]));
    let [udp, tcp] = agent.asked();
    assert!((28..=33).contains(&udp) && tcp == 0, "{udp} by UDP, {tcp} by TCP");

    agent.set(|manner| manner.state = State::Draining);
    pass(SECOND * 2).await;
    for (service, server) in [(service(1), server(1)), (service(2), beside)] {
        assert_eq!(states(&watch.views(), service), [Draining]);
        assert_eq!(house.table.news(service), [Told::Stand(server, false, 1000)]);
    }
    agent.set(|manner| manner.state = State::Down);
    pass(SECOND * 2).await;
    assert_eq!(states(&watch.views(), service(1)), [Down]);
    assert_eq!(house.table.news(service(1)), [Told::Lose(server(1), false)]);
    assert_eq!(watch.views()[0].reason, "its agent says: down");
    agent.set(|manner| manner.state = State::Up);
    pass(SECOND * 2).await;
    assert_eq!(states(&watch.views(), service(2)), [Up]);
}

#[tokio::test(start_paused = true)]
async fn a_host_whose_agent_is_gone_is_lost_in_five_seconds_and_back_as_another() {
    let (house, mut agent, watch) = one().await;
    pass(SECOND * 10).await;
    agent.kill().await;
    pass(SECOND * 39 / 10).await;
    assert_eq!(states(&watch.views(), service(1)), [Up], "four seconds are not the timeout");
    pass(SECOND * 12 / 10).await;
    assert_eq!((states(&watch.views(), service(1)), mode(&watch)), (vec![Down], "lost".to_owned()));
    let told = [Told::Stand(server(1), false, 1000), Told::Lose(server(1), false)];
    assert_eq!(house.table.news(service(1)), told);
    let events = [EventKind::DirectionLost, EventKind::ServerDown, EventKind::AllDown];
    assert_eq!(house.events(), events);
    let reason = watch.views()[0].reason.clone();
    assert_eq!(reason, "no answer from its agent for 5s (TCP: connection refused)");

    agent.set(|manner| manner.boot = 2);
    agent.restart().await;
    pass(SECOND * 3).await;
    assert_eq!((states(&watch.views(), service(1)), mode(&watch)), (vec![Up], "udp".to_owned()));
    let told = [Told::Lose(server(1), true), Told::Stand(server(1), true, 1000)];
    assert_eq!(house.table.news(service(1)), told);
    let events = [
        EventKind::ServerRestarted,
        EventKind::DirectionBack,
        EventKind::ServerUp,
        EventKind::SomeUp,
    ];
    assert_eq!(house.events(), events);
    assert_eq!(watch.views()[0].direction.as_ref().unwrap().incarnation, 2);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_started_anew_unnoticed_loses_its_connections_and_stays_up() {
    let (house, agent, watch) = one().await;
    pass(SECOND * 10).await;
    agent.set(|manner| manner.boot = 7);
    pass(SECOND * 2).await;
    assert_eq!(states(&watch.views(), service(1)), [Up]);
    assert_eq!(house.table.news(service(1)), [Told::Lose(server(1), true)]);
    assert_eq!(house.events(), [EventKind::ServerRestarted]);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_deaf_to_udp_is_asked_by_tcp_and_stays_up() {
    for deaf_from in [0, 10] {
        let (house, agent, watch) = one().await;
        agent.set(|manner| manner.hears_udp = deaf_from > 0);
        pass(SECOND * deaf_from).await;
        agent.set(|manner| manner.hears_udp = false);
        pass(SECOND * 60).await;
        let found = (states(&watch.views(), service(1)), mode(&watch));
        assert_eq!(found, (vec![Up], "tcp".to_owned()), "deaf from {deaf_from} s");
        assert_eq!(house.table.news(service(1)), []);
        assert_eq!(house.events(), [EventKind::DirectionMode]);
        assert!(agent.asked()[1] > 40, "{:?}", agent.asked());
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_of_another_version_is_told_of_once_and_is_as_none() {
    let (house, agent, watch) = one().await;
    agent.set(|manner| manner.version = Some(2));
    pass(SECOND * 4).await;
    assert_eq!(states(&watch.views(), service(1)), [Unchecked], "still taken for up");
    pass(SECOND * 10).await;
    assert_eq!(states(&watch.views(), service(1)), [Down]);
    let refused = house.events().into_iter().filter(|kind| *kind == EventKind::AgentRefused);
    assert_eq!(refused.count(), 1);
    let view = watch.views().remove(0).direction.unwrap();
    assert!(view.refused > 4, "{view:?}");
    let told = house.journal.after(0);
    assert!(told[0].reason.contains("version 2"), "{}", told[0].reason);
    assert_eq!(told[0].server, Some(SocketAddr::new(server(1).ip(), 0)));
}

#[tokio::test(start_paused = true)]
async fn who_knows_neither_challenge_nor_key_changes_nothing() {
    let house = House::new();
    let agent = FakeAgent::start(1).await;
    let file = house.directory.path().join("key");
    std::fs::write(&file, "secret of the agents\n").unwrap();
    agent.set(|manner| manner.key = Key::new(b"secret of the agents"));
    house.pool(service(1), &[server(1)]);
    let mut plan = asking(&agent);
    plan.agent.as_mut().unwrap().key_file = Some(file.clone());
    let watch = house.begin(&[(service(1), plan.clone())]);
    pass(SECOND * 10).await;
    assert_eq!(states(&watch.views(), service(1)), [Up]);
    // From the agent's own host and, the agent being gone, its own port: all but challenge and key.
    let port = watch.inner.wire_port();
    let mut agent = agent;
    agent.kill().await;
    let forger = std::net::UdpSocket::bind(agent.address).unwrap();
    let stranger = std::net::UdpSocket::bind((server(2).ip(), 0)).unwrap();
    let to = SocketAddr::new(server(1).ip(), port);
    let forged = Answer {
        challenge: 1,
        boot: 666,
        state: State::Down,
        load: Some(9999),
        connections: 0,
        queue: 0,
    };
    for _ in 0..3 {
        for key in [None, Key::new(b"guess"), Key::new(b"secret of the agents")] {
            forger.send_to(&forged.encode(key.as_ref()), to).unwrap();
            stranger.send_to(&forged.encode(key.as_ref()), to).unwrap();
        }
        pass(Duration::from_millis(300)).await;
    }
    let view = watch.views().remove(0);
    let direction = view.direction.unwrap();
    assert_eq!((view.state, direction.boot.as_deref()), (Up, Some("0000000000000001")));
    assert_eq!(direction.refused, 9, "those of the stranger are not looked at");
    assert_eq!(house.events(), [EventKind::AgentRefused; 3], "unsigned, forged, not asked");
    // A key that is gone does not take the link with it.
    std::fs::remove_file(&file).unwrap();
    drop(forger);
    agent.restart().await;
    watch.reload(vec![(service(1), plan)]);
    pass(SECOND * 30).await;
    assert_eq!((states(&watch.views(), service(1)), mode(&watch)), (vec![Up], "udp".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_key_cannot_be_read_is_not_asked_and_its_server_not_down() {
    let (house, agent) = (House::new(), FakeAgent::start(1).await);
    house.pool(service(1), &[server(1)]);
    let mut plan = asking(&agent);
    plan.agent.as_mut().unwrap().key_file = Some("/nowhere/key".into());
    let watch = house.begin(&[(service(1), plan)]);
    pass(SECOND * 20).await;
    assert_eq!(states(&watch.views(), service(1)), [Unchecked]);
    assert_eq!((house.events(), agent.asked()), (vec![EventKind::CheckUnable], [0, 0]));
}

#[tokio::test(start_paused = true)]
async fn a_load_becomes_weight_in_steps_and_is_forgotten_when_it_is_old() {
    let (house, agent) = (House::new(), FakeAgent::start(1).await);
    house.pool(service(1), &[server(1)]);
    let mut plan = asking(&agent);
    plan.feedback = Some(Feedback::default());
    plan.all_down = AllDown::Keep;
    agent.set(|manner| manner.load = Some(5000));
    let watch = house.begin(&[(service(1), plan)]);
    pass(SECOND * 5).await;
    let stand = |permille| Told::Stand(server(1), true, permille);
    assert_eq!(house.table.news(service(1)), [stand(800), stand(600), stand(500)]);
    let load = || house.table.loads.lock().unwrap()[&(service(1), server(1))];
    assert_eq!((load(), watch.views()[0].effective_weight), (Some(5000), 50));
    // Answers without a load: nothing is known, and the weight is the configured one again.
    agent.set(|manner| manner.load = None);
    pass(SECOND * 5).await;
    assert_eq!(house.table.news(service(1)), [stand(700)], "at once");
    assert_eq!(load(), None);
    for _ in 0..4 {
        watch.reconcile();
    }
    assert_eq!(house.table.news(service(1)), [stand(900), stand(1000)]);
    // The agent is gone.
    agent.set(|manner| manner.load = Some(2000));
    pass(SECOND * 5).await;
    assert_eq!((house.table.news(service(1)), load()), (vec![stand(800)], Some(2000)));
    let mut agent = agent;
    agent.kill().await;
    pass(SECOND * 6).await;
    watch.reconcile();
    watch.reconcile();
    assert_eq!((house.table.news(service(1)), load()), (vec![stand(1000)], None));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_down_before_a_restart_needs_rise_answers() {
    let (house, mut agent, watch) = one().await;
    pass(SECOND * 2).await;
    agent.kill().await;
    pass(SECOND * 7).await;
    drop(watch);
    agent.restart().await;
    house.table.standings.lock().unwrap().clear();
    house.table.news(service(1));
    let watch = house.begin(&[(service(1), asking(&agent))]);
    pass(SECOND / 2).await;
    assert_eq!((states(&watch.views(), service(1)), mode(&watch)), (vec![Down], "udp".to_owned()));
    pass(SECOND).await;
    assert_eq!(states(&watch.views(), service(1)), [Up]);
}
