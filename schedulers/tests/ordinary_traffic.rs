//! What a load bias must not harm: many short connections over servers of different weights.
//!
//! A thousand connections a second over ten servers of weights 1 to 10, in virtual time; each is
//! active for up to half a second and closing for ten more. Nobody tells of handshakes, so that a
//! connection is in progress while it is young and active.

use schedulers::{Bias, Change, Key, Options, Server, ServerId, create};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

const SECONDS: u64 = 30;
const A_SECOND: u64 = 1000;

/// How many connections the servers of weights 1..=10 got; and the most that were active on each.
fn shares(name: &str, bias: Bias, window: Duration) -> [u64; 10] {
    let options = Options { bias, bias_window: window, ..Options::default() };
    let mut scheduler = create(name, &options).unwrap();
    let server = |weight| {
        let id = ServerId(weight as u64);
        Arc::new(Server::new(id, [10, 0, 0, weight as u8].into(), 80, weight))
    };
    let list: Vec<_> = (1..=10).map(server).collect();
    scheduler.changed(&list, Change::Bound).unwrap();
    let mut shares = [0; 10];
    // When what ends on which server: the activity first, then the connection.
    let mut ends = BinaryHeap::new();
    let mut random = 1_u64;
    for number in 0..SECONDS * A_SECOND {
        let now = number * 1_000_000 / A_SECOND;
        while let Some(Reverse((end, was_active, index))) = ends.pop() {
            if end > now {
                ends.push(Reverse((end, was_active, index)));
                break;
            }
            let server: &Arc<Server> = &list[index];
            if was_active {
                server.connection_moved(false);
                ends.push(Reverse((end + 10_000_000, false, index)));
            } else {
                server.connection_closed(false);
            }
        }
        let index = scheduler.choose(&list, &key(), Duration::from_micros(now)).unwrap();
        list[index].connection_opened();
        list[index].connection_moved(true);
        shares[index] += 1;
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ends.push(Reverse((now + 20_000 + (random >> 33) % 480_000, true, index)));
    }
    shares
}

fn key() -> Key {
    Key {
        protocol: 6,
        source: [198, 51, 100, 7].into(),
        source_port: 40_000,
        destination: [192, 0, 2, 10].into(),
        destination_port: 80,
        name: None,
    }
}

const BIASES: [Bias; 4] = [Bias::None, Bias::Ilb(2), Bias::Ilb(8), Bias::Linear(200)];
const WINDOW: Duration = Duration::from_secs(5);

/// How far a share is from another, as a part of that.
fn off(share: u64, from: f64) -> f64 {
    (share as f64 - from).abs() / from
}

#[test]
fn shares_follow_weights_within_a_few_percent() {
    for (name, bias) in ["wlc", "sed"].into_iter().flat_map(|name| BIASES.map(|bias| (name, bias)))
    {
        for window in [WINDOW, Duration::from_millis(200), Duration::ZERO] {
            let shares = shares(name, bias, window);
            for (share, weight) in shares.into_iter().zip(1..) {
                let due = (SECONDS * A_SECOND * weight) as f64 / 55.0;
                // The light ones have five connections at once, or ten: one is a large part of them.
                let most = if weight < 3 { 0.15 } else { 0.04 };
                let off = off(share, due);
                assert!(off < most, "{name} {bias:?} {window:?}: {weight} is off by {off:.3}");
            }
        }
    }
}

#[test]
fn wlc_with_a_bias_deals_out_the_shares_that_it_deals_out_without() {
    let without = shares("wlc", Bias::None, WINDOW);
    for bias in BIASES {
        let with = shares("wlc", bias, WINDOW);
        for (with, without) in with.into_iter().zip(without) {
            assert!(off(with, without as f64) < 0.01, "{bias:?}: {with}, without {without}");
        }
        assert_eq!(
            shares("wlc", bias, Duration::ZERO),
            without,
            "nothing is known to be in progress"
        );
    }
}
