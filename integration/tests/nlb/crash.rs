//! A node that dies without a word.

use std::time::{Duration, Instant};

use integration::cluster::crash;

use crate::bed::{Bed, Site};
use crate::can_run;
use crate::load::{Downloads, Requests};
use crate::planned::{INTERVAL, UNANSWERED};
use crate::table::{Row, gap};
use crate::witness::Witness;

const BOTH: &[usize] = &[0, 1];

/// What an operator is promised.
struct Promise {
    noticed: Duration,
    served: Duration,
    /// Until the clients of the dead node know: its last retransmissions get a reset.
    reset: Duration,
}

fn a_node_dies(site: Site, promise: &Promise) {
    let nodes = site.hosts;
    let title = format!("SIGKILL, period {}", site.period);
    let mut bed = Bed::serving("crash", site).unwrap();
    let client = &bed.cluster.client;
    let witness = Witness::start(&bed.cluster).unwrap();
    let downloads = Downloads::start(client, BOTH, 64).unwrap();
    let requests = Requests::start(client, BOTH, INTERVAL);
    std::thread::sleep(Duration::from_millis(200));

    let before = bed.convergences(1).unwrap();
    let start = Instant::now();
    crash(bed.node(2).unwrap()).unwrap();
    let rest: Vec<usize> = (1..=nodes).filter(|&number| number != 2).collect();
    bed.wait_noticed(1, before).unwrap();
    let noticed = start.elapsed();
    bed.wait_converged(&rest, &rest).unwrap();
    bed.settle();
    std::thread::sleep(Duration::from_secs(1));

    let made = requests.finish().unwrap();
    let ended = downloads.finish().unwrap();
    let account = witness.finish().unwrap();
    let (served, gap) = gap(&account.unanswered(UNANSWERED), start, INTERVAL);
    let dead = bed.name(2);
    let broken: Vec<_> =
        ended.iter().filter(|it| it.server != dead && it.broken.is_some()).collect();
    let twice = account.greeted_twice();
    Row {
        case: &title,
        nodes,
        noticed: Some(noticed),
        served,
        gap,
        broken: broken.len(),
        twice: twice.len(),
    }
    .print();
    assert!(broken.is_empty(), "connections of others broke: {broken:#?}");
    assert_eq!(twice, Vec::<String>::new());
    assert!(noticed <= promise.noticed, "noticed after {noticed:?}");
    assert!(served <= promise.served, "served again after {served:?}");

    let of_dead: Vec<_> = ended.iter().filter(|it| it.server == dead).collect();
    assert!(!of_dead.is_empty(), "the dead node had no connection");
    for download in of_dead {
        let why = download.broken.as_deref().unwrap_or("it was whole");
        assert!(why.contains("reset"), "a client of the dead node: {why}");
        let told = download.ended - start;
        assert!(told <= promise.reset, "a client of the dead node knew after {told:?}");
    }
    // Clients that come back are served.
    let late: Vec<_> = made.iter().filter(|it| it.at > start + served).collect();
    assert!(late.len() > 20, "{} requests after all", late.len());
    let unserved: Vec<_> = late.iter().filter(|it| it.outcome.is_err()).collect();
    assert!(unserved.is_empty(), "{unserved:#?}");
    assert!(late.iter().all(|it| it.outcome.as_deref() != Ok(dead)));
    for number in rest {
        bed.stop(number).unwrap();
    }
}

#[test]
fn quick_a_killed_node_is_replaced_within_a_second_at_a_period_of_100_ms() {
    if can_run() {
        let site = Site { period: "100ms", download_seconds: 6, ..Site::new(3) };
        let promise = Promise {
            noticed: Duration::from_millis(700),
            served: Duration::from_secs(1),
            reset: Duration::from_secs(5),
        };
        a_node_dies(site, &promise);
    }
}

#[test]
fn a_killed_node_is_noticed_in_5_s_and_replaced_in_10_at_the_defaults() {
    if can_run() {
        let site = Site { period: "1s", download_seconds: 20, ..Site::new(4) };
        let promise = Promise {
            noticed: Duration::from_secs(5),
            served: Duration::from_secs(10),
            reset: Duration::from_secs(20),
        };
        a_node_dies(site, &promise);
    }
}
