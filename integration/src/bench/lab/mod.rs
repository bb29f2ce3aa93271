//! Through real sockets: the director as the process that operators run, on veth pairs, beside a
//! bare AF_XDP forwarder and a plain Linux router on the same pairs.
//!
//! ```text
//!   source               middle                sink
//!    eth0 ---- veth ---- eth0 eth1 ---- veth ---- eth0
//!   one thread (core 1)   director, bare       the same thread (latency), or a program that
//!   sends                 or router (core 0)   counts and drops (throughput)
//! ```
//!
//! A veth pair is no card: both its ends cost CPU time of this machine, and the sender and what is
//! measured share it. What counts is how the three compare; packet rates are those of this set-up
//! and of nothing else.

mod bed;
mod command;
mod crowd;
mod idle;
mod middle;
mod publication;
mod rules;
mod tester;

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Run;
use super::figure::{Better, Figure, tidy};
use super::turns::{median, percentile};
use bed::Bed;
use middle::{Kind, Running};
use tester::Tester;

/// Everything that needs the lab, by what must be measured for it.
const NAMES: [&str; 2] = ["lab/throughput", "lab/router"];
const PERCENTILES: [(&str, f64); 3] = [("p50", 50.0), ("p99", 99.0), ("p99.9", 99.9)];

/// How often all three have their turn, and how long throughput is measured in each.
const ROUNDS: usize = 5;
const LENGTH: Duration = Duration::from_millis(800);

/// Latency is measured in so many windows of each turn, and the calmest of all is reported: what
/// other programs do to a packet's way only makes it longer, and what the director does to it by
/// itself (its timers, ten times a second) is in every window.
const WINDOWS: usize = 4;
const WINDOW: Duration = Duration::from_millis(100);

/// A lost packet counts as one that took a second, in microseconds: who drops what is late is not
/// faster for it.
const LOST: f64 = 1e6;

/// When a bare forwarder's 99th percentile is above this, in microseconds, even the calmest window
/// was not calm: nothing can be said of the director then.
const CALM: f64 = 100.0;

pub(super) fn run(run: &mut Run<'_>) -> Result<()> {
    let latencies = PERCENTILES.iter().flat_map(|(percent, _)| {
        [format!("lab/latency-{percent}"), format!("lab/router-latency-{percent}")]
    });
    let traffic = NAMES.map(String::from).into_iter().chain(latencies);
    let traffic = traffic.collect::<Vec<_>>().iter().any(|name| run.wants(name));
    let publication = publication::NAMES.iter().any(|name| run.wants(name));
    let idle = run.wants(idle::NAME);
    let rules = rules::NAMES.iter().any(|name| run.wants(name));
    let crowd = crowd::NAMES.iter().any(|name| run.wants(name));
    if !(traffic || publication || idle || rules || crowd) {
        return Ok(());
    }
    if let Err(missing) = crate::lab::supported() {
        run.tell(&format!(
            "left out: lab/..., publish/lab-..., ipvsadm/..., {}: {missing:#}",
            idle::NAME
        ));
        return Ok(());
    }
    let bed = Bed::build()?;
    if traffic {
        compare(run, &bed).context("lab")?;
    }
    if publication {
        publication::run(run, &bed).context("publication in the lab")?;
    }
    if rules {
        rules::run(run, &bed).context("ipvsadm and rules")?;
    }
    if crowd {
        crowd::run(run, &bed).context("ipvsadm and connections")?;
    }
    if idle {
        idle::run(run, &bed).context("idle")?;
    }
    Ok(())
}

/// The three in turn: how much each carries, and how long packets take at half of what the director
/// carries.
fn compare(run: &mut Run<'_>, bed: &Bed) -> Result<()> {
    let (rounds, windows, length) = match run.plan.quick {
        true => (1, 1, Duration::from_millis(200)),
        false => (ROUNDS, WINDOWS, LENGTH),
    };
    let mut tester = Tester::new(bed)?;
    let mut way = String::new();
    let mut rates: [Vec<f64>; 3] = Default::default();
    for round in 1..=rounds {
        run.tell(&format!("lab: throughput, {round} of {rounds}"));
        for (kind, rates) in Kind::ALL.into_iter().zip(&mut rates) {
            let running = Running::start(kind, bed)?;
            tester.flood(length / 4)?;
            rates.push(tester.flood(length)?);
            if let Some(line) = running.way() {
                way = line;
            }
            running.stop()?;
        }
    }
    let [bare, director, router] = rates.map(|rates| median(&rates));
    ensure!(director > 0.0 && bare > 0.0, "nothing came through: {bare} and {director} per second");
    let rate = director / 2.0;
    tester.listen(bed)?;
    let mut calmest = [[f64::INFINITY; 3]; 3];
    let mut lost = [0; 3];
    for round in 1..=rounds {
        run.tell(&format!("lab: latency, {round} of {rounds}"));
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            let running = Running::start(kind, bed)?;
            tester.pace(rate, WINDOW)?;
            for _ in 0..windows {
                let tester::Passage { mut micros, lost: gone, .. } = tester.pace(rate, WINDOW)?;
                ensure!(!micros.is_empty(), "{kind}: nothing came through");
                lost[number] += gone;
                micros.extend((0..gone).map(|_| LOST));
                let found = PERCENTILES.map(|(_, percent)| percentile(&micros, percent));
                // By the 99th percentile.
                if found[1] < calmest[number][1] {
                    calmest[number] = found;
                }
            }
            running.stop()?;
        }
    }
    let note = format!(
        "floor: bare AF_XDP forwarder, copy mode, on the same veth pairs; director: {way}; a veth's \
         rate, no card's"
    );
    let unit = "k/s on veth";
    run.add(
        Figure::new(NAMES[0], director / 1e3, unit, Better::More)
            .over(bare / 1e3, &note)
            .ratio_target(0.9),
    );
    let note = "Linux router (ip_forward, RPS to a core of its own, no XDP) over the same floor";
    run.add(Figure::new(NAMES[1], router / 1e3, unit, Better::More).over(bare / 1e3, note));
    for (number, (percent, _)) in PERCENTILES.into_iter().enumerate() {
        let [bare, director, router] = calmest.map(|percentiles| percentiles[number]);
        let note = format!(
            "half the director's load, {:.0} k/s; floor as for throughput; the calmest of {} \
             tenths of a second; lost in all of them: bare {}, director {}, router {}",
            rate / 1e3,
            rounds * windows,
            lost[0],
            lost[1],
            lost[2]
        );
        let latency =
            |name: &str, value: f64| Figure::new(name, value, "us", Better::Less).over(bare, &note);
        let mut figure = latency(&format!("lab/latency-{percent}"), director);
        if percent == "p99" {
            let added = if bare <= CALM { tidy(director - bare) } else { f64::INFINITY };
            figure = figure.target(added, 20.0, Better::Less, " us added");
            if bare > CALM {
                figure = figure.noted("the machine was too busy to tell");
            }
        }
        run.add(figure);
        run.add(latency(&format!("lab/router-latency-{percent}"), router));
    }
    Ok(())
}
