//! How loaded this host is: 0 nothing, 10000 full.
//!
//! The load is the mean of its parts, weighted as the settings say. A part that is not known is left
//! out; when none is known, neither is the load.

pub mod command;
pub mod processor;
pub mod sockets;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::protocol::FULL;
use crate::role::Served;
use crate::settings::{Full, Weights};
use crate::standing::Standing;
use processor::Processor;
use sockets::Counts;

/// From one measurement to the next.
const PERIOD: Duration = Duration::from_secs(1);
/// Counting sockets may take this part of the time: where there are very many it is done less often.
const SHARE: u32 = 20;

/// What the load is made of, each 0..=10000 when it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// The share of time that the processors were not idle.
    pub cpu: Option<u16>,
    /// The share of memory that is not available.
    pub memory: Option<u16>,
    /// Connections, of what counts as full.
    pub connections: Option<u16>,
    /// Connections waiting to be accepted, of what counts as full.
    pub queue: Option<u16>,
    /// What the operator's command says.
    pub command: Option<u16>,
}

/// What has been measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// All together.
    pub load: Option<u16>,
    /// One by one.
    pub parts: Parts,
    /// Connections of the services.
    pub connections: u32,
    /// Of these, connections that wait to be accepted.
    pub queue: u32,
    /// What is wrong with the command; empty when nothing is.
    pub command: String,
    /// When the connections were counted last.
    pub counted: Option<Instant>,
}

/// What is measured, and how it counts.
#[derive(Clone, Debug)]
pub struct Meter {
    /// How the parts count.
    pub weights: Weights,
    /// What is full.
    pub full: Full,
    /// Where the services listen.
    pub served: Vec<Served>,
    /// A program that prints the load.
    pub command: Option<Vec<String>>,
}

impl Meter {
    /// Measures for ever.
    pub async fn run(&self, standing: &Standing) {
        let latest = command::Latest::default();
        tokio::select! {
            () = self.measure(standing, &latest) => {}
            () = command::follow(self.command.as_deref(), &latest) => {}
        }
    }

    async fn measure(&self, standing: &Standing, command: &command::Latest) {
        let mut processor = Processor::default();
        let mut counts: Option<Counts> = None;
        let mut next_count = Instant::now();
        let mut counted = None;
        let mut ticks = interval_at(Instant::now(), PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let start = Instant::now();
            if start >= next_count {
                counts = count(self.served.clone()).await;
                counted = counts.map(|_| start);
                tracing::trace!(?counts, took = ?start.elapsed(), "counted connections");
                next_count = Instant::now() + start.elapsed() * SHARE;
            }
            let (said, trouble) = command.get();
            let of = |part: u32, full: u32| {
                let load = u64::from(part) * u64::from(FULL) / u64::from(full.max(1));
                u16::try_from(load).unwrap_or(FULL).min(FULL)
            };
            let parts = Parts {
                cpu: processor.sample(),
                memory: processor::memory(),
                connections: counts.map(|it| of(it.connections, self.full.connections)),
                queue: counts.map(|it| of(it.queue, self.full.queue)),
                command: said,
            };
            let Counts { connections, queue } = counts.unwrap_or_default();
            let load = combine(parts, self.weights);
            let command = trouble;
            standing.set_report(Report { load, parts, connections, queue, command, counted });
        }
    }
}

/// Off this thread: it takes a while where there are very many, and others want their answers.
async fn count(served: Vec<Served>) -> Option<Counts> {
    let counted = tokio::task::spawn_blocking(move || sockets::count(&served)).await;
    match counted.map_err(std::io::Error::other).and_then(|counts| counts) {
        Ok(counts) => Some(counts),
        Err(error) => {
            tracing::debug!("cannot count the services' connections: {error}");
            None
        }
    }
}

/// The weighted mean of what is known.
fn combine(parts: Parts, weights: Weights) -> Option<u16> {
    let all = [
        (parts.cpu, weights.cpu),
        (parts.memory, weights.memory),
        (parts.connections, weights.connections),
        (parts.queue, weights.queue),
        (parts.command, weights.command),
    ];
    let known = all.iter().filter_map(|(part, weight)| part.map(|part| (f64::from(part), weight)));
    let (sum, total) = known
        .filter(|(_, weight)| **weight > 0.0)
        .fold((0.0, 0.0), |(sum, total), (part, weight)| (sum + part * weight, total + weight));
    (total > 0.0).then(|| (sum / total).round().clamp(0.0, f64::from(FULL)) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_the_weighted_mean_of_the_parts_that_are_known() {
        let weights = Weights { cpu: 1.0, memory: 3.0, connections: 0.0, queue: 0.0, command: 2.0 };
        let parts = Parts { cpu: Some(8000), memory: Some(4000), ..Parts::default() };
        assert_eq!(combine(parts, weights), Some(5000));
        let parts = Parts { command: Some(10_000), queue: Some(1), ..parts };
        assert_eq!(combine(parts, weights), Some(6667));
        let parts = Parts { queue: Some(5), ..Parts::default() };
        assert_eq!(combine(parts, weights), None, "what has no weight does not count");
    }

    #[tokio::test]
    async fn a_meter_reports_within_a_moment() {
        let meter = Meter {
            weights: Weights { memory: 1.0, ..Weights::default() },
            full: Full::default(),
            served: Vec::new(),
            command: None,
        };
        let standing = Standing::default();
        let reported = async {
            while standing.report().load.is_none() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = meter.run(&standing) => {}
            () = reported => {}
            () = tokio::time::sleep(Duration::from_secs(10)) => panic!("there is no report"),
        }
        let report = standing.report();
        assert!(
            report.parts.memory.is_some_and(|memory| (1..FULL).contains(&memory)),
            "{report:?}"
        );
        assert_eq!(report.parts.connections, Some(0));
    }
}
