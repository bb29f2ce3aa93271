//! What becomes of a service whose servers have all failed.

use HealthState::{Down, Draining, Up};

use super::fake::{House, SECOND, Told, checked, failed, pass, server, service, spec, states};
use crate::control::events::EventKind;
use crate::control::health::HealthState;
use crate::health::outcome::Outcome;
use crate::health::plan::{AllDown, ServiceHealth};

fn plan(all_down: AllDown) -> ServiceHealth {
    ServiceHealth { all_down, ..checked() }
}

#[tokio::test(start_paused = true)]
async fn if_all_have_failed_and_are_kept_the_checker_is_not_believed() {
    let house = House::new();
    house.pool(service(1), &[server(1), server(2)]);
    let watch = house.begin(&[(service(1), plan(AllDown::Keep))]);
    pass(SECOND * 2).await;
    house.finds(server(1), failed());
    pass(SECOND * 4).await;
    house.table.news(service(1));
    house.finds(server(2), failed());
    pass(SECOND * 4).await;
    assert_eq!(states(&watch.views(), service(1)), [Down, Down]);
    // The one that was out is in again, and the other one's connections stay.
    assert_eq!(house.table.news(service(1)), [Told::Stand(server(1), true, 1000)]);
    assert_eq!(watch.views().iter().map(|view| view.kept).collect::<Vec<_>>(), [true, true]);
    let events = [EventKind::ServerDown, EventKind::ServerDown, EventKind::AllDown];
    assert_eq!(house.events(), events);
    // One is back: now the other is believed to be down, with all that this means.
    house.finds(server(1), Outcome::PASSED);
    pass(SECOND * 3).await;
    assert_eq!(states(&watch.views(), service(1)), [Up, Down]);
    let told = [Told::Stand(server(2), false, 1000), Told::Lose(server(2), false)];
    assert_eq!(house.table.news(service(1)), told);
    assert_eq!(house.events(), [EventKind::ServerUp, EventKind::SomeUp]);
}

#[tokio::test(start_paused = true)]
async fn who_drains_is_left_alone_unless_there_is_nobody_else() {
    let house = House::new();
    house.pool(service(1), &[server(1), server(2)]);
    let watch = house.begin(&[(service(1), plan(AllDown::Keep))]);
    pass(SECOND * 2).await;
    house.finds(server(1), Outcome::Soft("503".to_owned()));
    house.finds(server(2), failed());
    pass(SECOND * 4).await;
    let kept = |views: &[crate::control::health::ServerHealth]| -> Vec<bool> {
        views.iter().map(|view| view.kept).collect()
    };
    assert_eq!(states(&watch.views(), service(1)), [Draining, Down]);
    assert_eq!(kept(&watch.views()), [false, true]);
    house.finds(server(2), Outcome::Soft("503".to_owned()));
    pass(SECOND * 4).await;
    assert_eq!(states(&watch.views(), service(1)), [Draining, Draining]);
    assert_eq!(kept(&watch.views()), [true, true]);
}

#[tokio::test(start_paused = true)]
async fn a_service_may_drop_or_fall_back_and_a_server_without_weight_does_not_count() {
    let house = House::new();
    for number in [1, 2] {
        house.pool(service(number), &[server(1)]);
        let mut pools = house.table.pools.lock().unwrap();
        pools.get_mut(&service(number)).unwrap().push(spec(server(9), 0));
    }
    let plans = [(service(1), plan(AllDown::Drop)), (service(2), plan(AllDown::Fallback))];
    let watch = house.begin(&plans);
    pass(SECOND * 2).await;
    house.finds(server(1), failed());
    pass(SECOND * 4).await;
    let out = [Told::Stand(server(1), false, 1000), Told::Lose(server(1), false)];
    assert_eq!(house.table.news(service(1)), out);
    let falls_back = [&[Told::FallBack(true)][..], &out].concat();
    assert_eq!(house.table.news(service(2)), falls_back);
    house.finds(server(1), Outcome::PASSED);
    pass(SECOND * 4).await;
    let back = [Told::FallBack(false), Told::Stand(server(1), true, 1000)];
    assert_eq!(house.table.news(service(2)), back);
    assert_eq!(states(&watch.views(), service(2)), [Up, Up]);
}
