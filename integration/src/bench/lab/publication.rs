//! The director is told of a thousand services more, by its file and SIGHUP, while packets flow at
//! half of what it carries.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::super::Run;
use super::super::figure::{Better, Figure};
use super::super::publish::{SERVERS as EACH, SERVICES};
use super::super::turns::{median, percentile};
use super::bed::Bed;
use super::middle::{Kind, Running};
use super::tester::{Passage, Tester};
use crate::running::Director;

/// Servers of each service.
pub(super) const SERVERS: u8 = EACH;

pub(super) const NAMES: [&str; 3] = ["publish/lab-lost", "publish/lab-longest", "publish/lab-time"];

/// After the packets have begun.
const BEFORE: Duration = Duration::from_millis(100);

/// How long a reload may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn run(run: &mut Run<'_>, bed: &Bed) -> Result<()> {
    let (rounds, length) = match run.plan.quick {
        true => (1, Duration::from_millis(500)),
        false => (5, Duration::from_millis(1500)),
    };
    let mut tester = Tester::new(bed)?;
    let running = Running::start(Kind::Director, bed)?;
    tester.flood(length / 4)?;
    let rate = tester.flood(length / 2)? / 2.0;
    ensure!(rate > 0.0, "nothing came through");
    tester.listen(bed)?;
    let way = running.way().unwrap_or_default();
    running.stop()?;
    let larger = with_services(bed.config());
    let (mut quiet, mut busy, mut times) = (Vec::new(), Vec::new(), Vec::new());
    let (mut sent, mut lost, mut lost_before) = (0, 0, 0);
    for round in 1..=rounds {
        run.tell(&format!(
            "publish: 1,000 services of 10 servers, a running director, {round} of {rounds}"
        ));
        let Running::Director(director) = Running::start(Kind::Director, bed)? else { continue };
        tester.pace(rate, length / 4)?;
        let before = tester.pace(rate, length)?;
        lost_before += before.lost;
        quiet.push(longest(&before));
        let (during, took) = during_reload(&mut tester, &director, &larger, rate, length)?;
        times.push(took.as_secs_f64() * 1e3);
        busy.push(longest(&during));
        sent += during.sent;
        lost += during.lost;
        let services = director.services()?.len();
        ensure!(services == usize::from(SERVICES) + 1, "{services} services after the reload");
        director.stop()?;
    }
    let note = format!(
        "{way}, veth; {rounds} reloads of {SERVICES} services x {SERVERS} servers, {sent} packets \
         meanwhile, {:.0} k/s; floor: the same without a reload",
        rate / 1e3
    );
    run.add(
        Figure::new(NAMES[0], lost as f64, "packets", Better::Less)
            .over(lost_before as f64, &note)
            .value_target(0.0, ""),
    );
    run.add(
        Figure::new(NAMES[1], median(&busy) / 1e3, "ms", Better::Less)
            .over(median(&quiet) / 1e3, &note)
            .noted("the longest that a packet took, the middle one of all reloads"),
    );
    run.add(
        Figure::new(NAMES[2], median(&times), "ms", Better::Less)
            .noted("from SIGHUP until the director says that it has reloaded"),
    );
    Ok(())
}

/// Packets until the director has reloaded, and how long that took.
fn during_reload(
    tester: &mut Tester,
    director: &Director,
    config: &str,
    rate: f64,
    length: Duration,
) -> Result<(Passage, Duration)> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let operator = scope.spawn(|| {
            std::thread::sleep(BEFORE);
            let start = Instant::now();
            let outcome = director
                .reload(config)
                .and_then(|()| director.process().wait_for_log("reloaded:", PATIENCE));
            done.store(true, Ordering::Release);
            outcome.map(|()| start.elapsed())
        });
        let mut passage = tester.pace(rate, length);
        while let Ok(all) = &mut passage
            && !done.load(Ordering::Acquire)
        {
            match tester.pace(rate, length / 4) {
                Ok(more) => all.append(more),
                Err(error) => passage = Err(error),
            }
        }
        let took = operator.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((passage?, took?))
    })
}

fn longest(passage: &Passage) -> f64 {
    percentile(&passage.micros, 100.0)
}

fn with_services(mut config: String) -> String {
    for number in 0..SERVICES {
        let [high, low] = number.to_be_bytes();
        let _ = write!(
            config,
            "\n[[service]]\nlisten = \"198.51.{}.{low}:80/tcp\"\nscheduler = \"wlc\"\n\
             forwarding = \"direct\"\n",
            100 + high
        );
        for server in 1..=SERVERS {
            let _ = write!(config, "  [[service.server]]\n  address = \"10.77.1.{server}:80\"\n");
        }
    }
    config
}
