//! What outcomes of checks do.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use HealthState::{Down, Draining, Up};

use super::fake::{House, SECOND, Told, checked, failed, pass, server, service, states};
use crate::control::events::EventKind;
use crate::control::health::HealthState;
use crate::health::outcome::{Advice, Outcome};
use crate::health::plan::Feedback;

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_is_out_after_fall_and_in_after_rise() {
    let house = House::new();
    house.pool(service(1), &[server(1), server(2)]);
    let watch = house.begin(&[(service(1), checked())]);
    pass(SECOND * 3).await;
    assert_eq!(states(&watch.views(), service(1)), [Up, Up]);
    assert_eq!((house.table.news(service(1)), house.events()), (vec![], vec![]));

    house.finds(server(2), failed());
    pass(SECOND * 17 / 10).await;
    assert_eq!(states(&watch.views(), service(1)), [Up, Up], "two failures are not `fall`");
    pass(SECOND * 18 / 10).await;
    assert_eq!(states(&watch.views(), service(1)), [Up, Down]);
    let told = [Told::Stand(server(2), false, 1000), Told::Lose(server(2), false)];
    assert_eq!(house.table.news(service(1)), told);
    assert_eq!(house.events(), [EventKind::ServerDown]);
    let view = watch.views().remove(1);
    assert_eq!((view.weight, view.effective_weight, view.kept), (100, 0, false));
    assert_eq!(view.reason, "tcp: connection refused");
    let check = &view.checks[0];
    assert!(check.kind == "tcp" && (3..=4).contains(&check.in_a_row), "{check:?}");

    house.finds(server(2), Outcome::PASSED);
    pass(SECOND * 23 / 10).await;
    assert_eq!(states(&watch.views(), service(1)), [Up, Up]);
    assert_eq!(house.table.news(service(1)), [Told::Stand(server(2), true, 1000)]);
    assert_eq!(house.events(), [EventKind::ServerUp]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_softly_keeps_its_connections() {
    let house = House::new();
    house.pool(service(1), &[server(1), server(2)]);
    let watch = house.begin(&[(service(1), checked())]);
    pass(SECOND * 3).await;
    house.finds(server(1), Outcome::Soft("503".to_owned()));
    pass(SECOND * 4).await;
    assert_eq!(states(&watch.views(), service(1)), [Draining, Up]);
    assert_eq!(house.table.news(service(1)), [Told::Stand(server(1), false, 1000)]);
    assert_eq!(house.events(), [EventKind::ServerDraining]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_checked_here_is_told_once_and_marks_nobody_down() {
    let house = House::new();
    house.pool(service(1), &[server(1)]);
    house.finds(server(1), Outcome::Unable("too many open files".to_owned()));
    let watch = house.begin(&[(service(1), checked())]);
    pass(SECOND * 60).await;
    assert_eq!(states(&watch.views(), service(1)), [HealthState::Unchecked]);
    assert_eq!(house.table.news(service(1)), []);
    assert_eq!(house.events(), [EventKind::CheckUnable]);
}

#[tokio::test(start_paused = true)]
async fn a_share_that_a_server_asks_for_becomes_its_weight_in_steps_and_is_forgotten() {
    let house = House::new();
    house.pool(service(1), &[server(1)]);
    let mut plan = checked();
    plan.feedback = Some(Feedback { step: 300, ..Feedback::default() });
    let watch = house.begin(&[(service(1), plan)]);
    let share = |percent| Outcome::Passed(Advice { percent });
    house.finds(server(1), share(Some(50)));
    pass(SECOND * 3).await;
    let stand = |permille| Told::Stand(server(1), true, permille);
    assert_eq!(house.table.news(service(1)), [stand(700), stand(500)]);
    assert_eq!(watch.views()[0].effective_weight, 50);
    let events = house.journal.after(0);
    assert_eq!((events[0].kind, events[0].before), (EventKind::WeightChanged, Some(100)));
    assert_eq!((events[0].after, events.len()), (Some(70), 2));
    house.finds(server(1), share(None));
    for _ in 0..4 {
        pass(SECOND).await;
        watch.reconcile();
    }
    assert_eq!(house.table.news(service(1)), [stand(800), stand(1000)]);
}

#[tokio::test(start_paused = true)]
async fn checks_are_spread_over_the_interval_and_their_number_at_once_is_bounded() {
    let house = House::new();
    let servers = (0..4).flat_map(|port| {
        (0..=255).map(move |number| std::net::SocketAddr::new(server(number).ip(), 80 + port))
    });
    let servers: Vec<_> = servers.collect();
    house.pool(service(1), &servers);
    *house.finder.takes.lock().unwrap() = Duration::from_millis(10);
    let watch = house.begin(&[(service(1), checked())]);
    pass(SECOND * 10).await;
    let (made, most) = (house.finder.made.load(Relaxed), house.finder.most.load(Relaxed));
    assert!((9 * 1024..=11 * 1024).contains(&made), "each once a second: {made}");
    assert!(most < 100, "not all at once: {most}");

    // They take longer than there is time for: beats are skipped, and nothing piles up.
    *house.finder.takes.lock().unwrap() = SECOND * 3;
    pass(SECOND * 60).await;
    assert_eq!(house.finder.most.load(Relaxed), 256);
    let before = house.finder.made.load(Relaxed);
    *house.finder.takes.lock().unwrap() = Duration::from_millis(10);
    pass(SECOND * 4).await;
    let made = house.finder.made.load(Relaxed) - before;
    assert!(made < 5 * 1024, "late checks are not made up for: {made}");
    assert_eq!(watch.views().len(), 1024);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_running_when_it_is_dropped() {
    let house = House::new();
    house.pool(service(1), &[server(1), server(2)]);
    let watch = house.begin(&[(service(1), checked())]);
    pass(SECOND * 3).await;
    let inner = Arc::downgrade(&watch.inner);
    drop(watch);
    let made = house.finder.made.load(Relaxed);
    pass(SECOND * 10).await;
    assert_eq!(house.finder.made.load(Relaxed), made);
    assert_eq!(inner.strong_count(), 0);
}
