//! Restarts, reloads, and servers that come and go.

use std::time::Duration;

use HealthState::{Down, Unchecked, Up};

use super::fake::{House, SECOND, Told, checked, failed, pass, server, service, states};
use crate::control::events::EventKind;
use crate::control::health::HealthState;
use crate::health::outcome::Outcome;
use crate::health::plan::{AgentWatch, Check, CheckKind, ServiceHealth};

#[tokio::test(start_paused = true)]
async fn a_server_that_was_down_before_a_restart_has_no_weight_until_it_rose() {
    let house = House::new();
    house.pool(service(1), &[server(1), server(2)]);
    let watch = house.begin(&[(service(1), checked())]);
    pass(SECOND * 2).await;
    house.finds(server(1), failed());
    pass(SECOND * 5).await;
    let file = house.directory.path().join("health.json");
    let text = std::fs::read_to_string(&file).expect("it is written while it runs");
    assert!(text.contains("connection refused"), "{text}");
    drop(watch);

    // The next director. Nothing has run yet, and the weight is 0.
    house.table.standings.lock().unwrap().clear();
    house.table.news(service(1));
    house.events();
    let watch = house.begin(&[(service(1), checked())]);
    assert_eq!(house.table.news(service(1)), [Told::Stand(server(1), false, 1000)]);
    assert_eq!(states(&watch.views(), service(1)), [Down, Unchecked]);
    assert_eq!(watch.views()[0].reason, "tcp: connection refused");
    house.finds(server(1), Outcome::PASSED);
    pass(SECOND * 85 / 100).await;
    assert_eq!(watch.views()[0].state, Down, "one pass is not `rise`");
    pass(SECOND * 14 / 10).await;
    assert_eq!(states(&watch.views(), service(1)), [Up, Up]);
    assert_eq!(house.table.news(service(1)), [Told::Stand(server(1), true, 1000)]);
    assert_eq!(house.events(), [EventKind::ServerUp]);
    drop(watch);
    assert!(!std::fs::read_to_string(&file).unwrap().contains("refused"), "written at the end");
}

#[tokio::test(start_paused = true)]
async fn a_broken_memory_is_no_reason_not_to_start() {
    let house = House::new();
    house.pool(service(1), &[server(1)]);
    std::fs::write(house.directory.path().join("health.json"), "{broken").unwrap();
    let watch = house.begin(&[(service(1), checked())]);
    assert_eq!(states(&watch.views(), service(1)), [Unchecked]);
    assert_eq!(house.table.news(service(1)), []);
}

#[tokio::test(start_paused = true)]
async fn a_reload_forgets_nothing_and_marks_nobody_down() {
    let house = House::new();
    house.pool(service(1), &[server(1), server(2)]);
    let watch = house.begin(&[(service(1), checked())]);
    pass(SECOND * 2).await;
    house.finds(server(1), failed());
    pass(SECOND * 5).await;
    let (told, made) = (house.table.news(service(1)).len(), |watch: &super::super::Watch| {
        watch.views().iter().map(|view| view.checks[0].made).collect::<Vec<_>>()
    });
    assert_eq!(told, 2);
    house.events();
    // The same again.
    let before = made(&watch);
    watch.reload(vec![(service(1), checked())]);
    assert_eq!(
        (states(&watch.views(), service(1)), made(&watch)),
        (vec![Down, Up], before.clone())
    );
    // Slower.
    let mut slower = checked();
    slower.checks[0].interval = SECOND * 10;
    watch.reload(vec![(service(1), slower.clone())]);
    assert_eq!((states(&watch.views(), service(1)), made(&watch)), (vec![Down, Up], before));
    // Another check beside it, which nobody has made yet.
    let dns =
        Check { kind: CheckKind::Icmp, interval: SECOND, timeout: SECOND / 2, ..Check::default() };
    slower.checks = vec![dns];
    watch.reload(vec![(service(1), slower.clone())]);
    assert_eq!(states(&watch.views(), service(1)), [Down, Unchecked], "down until it is found up");
    assert_eq!((house.table.news(service(1)), house.events()), (vec![], vec![]));
    house.finds(server(1), Outcome::PASSED);
    pass(SECOND * 22 / 10).await;
    assert_eq!(states(&watch.views(), service(1)), [Up, Up]);
    assert_eq!(house.table.news(service(1)), [Told::Stand(server(1), true, 1000)]);
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_agent_cannot_be_asked_any_more_is_what_it_was() {
    let house = House::new();
    house.pool(service(1), &[server(1)]);
    let watch = house.begin(&[(service(1), checked())]);
    house.finds(server(1), failed());
    pass(SECOND * 5).await;
    assert_eq!(states(&watch.views(), service(1)), [Down]);
    let key_file = Some(house.directory.path().join("no-such-key"));
    let agent = Some(AgentWatch { key_file, ..AgentWatch::default() });
    watch.reload(vec![(service(1), ServiceHealth { agent, ..ServiceHealth::default() })]);
    pass(SECOND * 20).await;
    assert_eq!(states(&watch.views(), service(1)), [Down], "nobody has found it up");
    assert!(house.events().contains(&EventKind::CheckUnable));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_watched_no_more_stands_as_configured() {
    let house = House::new();
    house.pool(service(1), &[server(1), server(2)]);
    let watch = house.begin(&[(service(1), checked())]);
    house.finds(server(1), failed());
    pass(SECOND * 5).await;
    house.table.news(service(1));
    watch.reload(vec![(service(1), ServiceHealth::default())]);
    assert_eq!(house.table.news(service(1)), [Told::Stand(server(1), true, 1000)]);
    assert_eq!(watch.views(), []);
}

#[tokio::test(start_paused = true)]
async fn a_trial_without_checks_that_is_taken_back_does_not_bring_a_failed_server_back() {
    let house = House::new();
    house.pool(service(1), &[server(1), server(2)]);
    let watch = house.begin(&[(service(1), checked())]);
    house.finds(server(1), failed());
    pass(SECOND * 5).await;
    let not_up = watch.not_up();
    watch.reload(vec![]);
    watch.remember(not_up);
    house.table.news(service(1));
    watch.reload(vec![(service(1), checked())]);
    assert_eq!(states(&watch.views(), service(1)), [Down, Unchecked]);
    assert_eq!(house.table.news(service(1)).last(), Some(&Told::Stand(server(1), false, 1000)));
    // What is watched all the time is not remembered besides: it may have been up when it left.
    house.finds(server(1), Outcome::PASSED);
    let not_up = watch.not_up();
    watch.remember(not_up);
    pass(SECOND * 5).await;
    house.pool(service(1), &[server(2)]);
    watch.reconcile();
    house.pool(service(1), &[server(1), server(2)]);
    watch.reconcile();
    assert_eq!(states(&watch.views(), service(1)), [Unchecked, Up]);
}

#[tokio::test(start_paused = true)]
async fn servers_that_come_and_go_at_run_time_are_watched_and_forgotten() {
    let house = House::new();
    house.pool(service(1), &[server(1)]);
    let watch = house.begin(&[(service(1), checked())]);
    pass(SECOND * 2).await;
    house.pool(service(1), &[server(1), server(2)]);
    house.finds(server(2), failed());
    watch.reconcile();
    pass(SECOND * 5).await;
    assert_eq!(states(&watch.views(), service(1)), [Up, Down]);
    // It is removed and added between two looks: the table has forgotten how it stands.
    house.table.standings.lock().unwrap().clear();
    house.table.news(service(1));
    watch.reconcile();
    assert_eq!(house.table.news(service(1)), [Told::Stand(server(2), false, 1000)]);
    house.pool(service(1), &[server(1)]);
    watch.reconcile();
    assert_eq!(states(&watch.views(), service(1)), [Up]);
    // And is there again: no better for that, whatever the table knows of it.
    house.pool(service(1), &[server(1), server(2)]);
    watch.reconcile();
    assert_eq!(states(&watch.views(), service(1)), [Up, Down]);
    house.finds(server(2), Outcome::PASSED);
    pass(SECOND * 5).await;
    assert_eq!(states(&watch.views(), service(1)), [Up, Up]);
    assert_eq!(house.table.news(service(1)).last(), Some(&Told::Stand(server(2), true, 1000)));
    house.table.pools.lock().unwrap().clear();
    watch.reconcile();
    assert_eq!(watch.views(), []);
    pass(Duration::from_secs(3)).await;
}
