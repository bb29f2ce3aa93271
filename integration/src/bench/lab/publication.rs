//! The director is told of a thousand services more, by its file and SIGHUP, while packets flow at
//! half of what it carries.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::super::Run;
use super::super::figure::{Better, Figure};
use super::super::publish::{SERVERS as EACH, SERVICES};
use super::super::turns::{median, percentile};
use super::bed::Bed;
use super::middle::{Kind, Running};
use super::tester::{Passage, Tester};

/// Servers of each service.
pub(super) const SERVERS: u8 = EACH;

pub(super) const NAMES: [&str; 2] = ["publish/lab-lost", "publish/lab-longest"];

/// After the packets have begun.
const BEFORE: Duration = Duration::from_millis(100);

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
    let (mut quiet, mut busy) = (Vec::new(), Vec::new());
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
        let (during, reloaded) = std::thread::scope(|scope| {
            let operator = scope.spawn(|| {
                std::thread::sleep(BEFORE);
                director.reload(&larger)
            });
            let during = tester.pace(rate, length);
            (during, operator.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let during = during?;
        reloaded?;
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
    Ok(())
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
