//! A million connections in a running director, opened by packets through its ports; listed, with
//! the memory that this takes on both sides, and with packets under way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::super::Run;
use super::super::figure::{Better, Figure};
use super::super::machine;
use super::super::turns::{median, percentile};
use super::bed::Bed;
use super::command::{Operator, Outcome};
use super::middle::{Kind, Running};
use super::tester::{Passage, Tester};
use crate::running::Director;

pub(super) const NAMES: [&str; 5] = [
    "ipvsadm/connections",
    "ipvsadm/connections-client-memory",
    "ipvsadm/connections-director-memory",
    "ipvsadm/connections-lost",
    "ipvsadm/connections-longest",
];

/// Seconds that listing may take.
const LIMIT: f64 = 3.0;

/// MiB that the client may have, and that the director may grow by: what programs of this size have
/// anyway, and nowhere near the 80 MiB that the listing and the table are.
const CLIENT_LIMIT: f64 = 16.0;
const DIRECTOR_LIMIT: f64 = 4.0;

const LIST: [&str; 3] = ["-L", "-n", "-c"];

/// Packets whose connections could not be made are sent again so many times.
const ATTEMPTS: usize = 5;

/// Before and after the listing, with packets under way.
const MARGIN: Duration = Duration::from_millis(100);

pub(super) fn run(run: &mut Run<'_>, bed: &Bed) -> Result<()> {
    let (count, rounds, load, length) = match run.plan.quick {
        true => (10_000, 1, 1, Duration::from_millis(500)),
        false => (1_000_000, 5, 3, Duration::from_millis(1500)),
    };
    run.tell(&format!("ipvsadm: {count} connections through a running director, listed"));
    let running = Running::start(Kind::Director, bed)?;
    let Running::Director(director) = &running else { return Ok(()) };
    let operator = Operator::of(director, bed.lab.logs());
    // Nobody is to expire before the end.
    operator.ipvsadm(&["--set", "0", "0", "3600"], None)?;
    let mut tester = Tester::new(bed)?;
    let rate = tester.flood(length / 2)? / 2.0;
    let few = listed(director, &operator)?;
    fill(&mut tester, director, count)?;
    at_rest(run, bed, director, &operator, (count, rounds), few)?;
    tester.listen(bed)?;
    under_load(run, &mut tester, &operator, rate, load, length)?;
    running.stop()
}

/// Opens so many connections, each of a client of its own.
fn fill(tester: &mut Tester, director: &Director, count: u32) -> Result<()> {
    let before = director.status()?.connections;
    for _ in 0..ATTEMPTS {
        tester.crowd(count)?;
        if director.status()?.connections >= before + u64::from(count) {
            return Ok(());
        }
    }
    let found = director.status()?.connections - before;
    anyhow::bail!("{found} of {count} connections are in the director's table")
}

fn at_rest(
    run: &mut Run<'_>,
    bed: &Bed,
    director: &Director,
    operator: &Operator,
    (count, rounds): (u32, usize),
    few: (Outcome, u64),
) -> Result<()> {
    let listing = bed.lab.logs().join("connections");
    operator.keep(&LIST, &listing)?;
    let (mut times, mut floors) = (Vec::new(), Vec::new());
    let (mut client, mut grown) = (0, 0);
    for _ in 0..rounds {
        let (outcome, growth) = listed(director, operator)?;
        ensure!(outcome.lines > u64::from(count), "{} lines are listed", outcome.lines);
        times.push(outcome.took.as_secs_f64());
        client = client.max(outcome.peak);
        grown = grown.max(growth);
        floors.push(operator.cat(&listing)?.took.as_secs_f64());
    }
    std::fs::remove_file(&listing)?;
    let note = format!("{count} connections, a running director");
    run.add(
        Figure::new(NAMES[0], median(&times), "s", Better::Less)
            .over(median(&floors), "floor: cat of the same text, through the same pipe")
            .value_target(LIMIT, " s")
            .noted(&note),
    );
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    run.add(
        Figure::new(NAMES[1], mib(client), "MiB", Better::Less)
            .over(mib(few.0.peak), "floor: the same of 1,000 connections")
            .value_target(CLIENT_LIMIT, " MiB")
            .noted(&note),
    );
    run.add(
        Figure::new(NAMES[2], mib(grown), "MiB", Better::Less)
            .over(mib(few.1), "floor: the same of 1,000 connections")
            .value_target(DIRECTOR_LIMIT, " MiB")
            .noted(&format!("{note}; its most meanwhile less what it had before")),
    );
    Ok(())
}

/// A listing, and how many bytes the director grew by meanwhile.
fn listed(director: &Director, operator: &Operator) -> Result<(Outcome, u64)> {
    let process = director.process().id();
    let before = machine::forget_peak_of(process)?;
    let outcome = operator.ipvsadm(&LIST, None)?;
    let after = machine::peak_of(process).context("the director's memory")?;
    Ok((outcome, after.saturating_sub(before)))
}

/// Listings without a pause while packets flow.
fn under_load(
    run: &mut Run<'_>,
    tester: &mut Tester,
    operator: &Operator,
    rate: f64,
    rounds: usize,
    length: Duration,
) -> Result<()> {
    let (mut quiet, mut busy) = (Vec::new(), Vec::new());
    let (mut sent, mut lost, mut lost_before, mut listings) = (0, 0, 0, 0);
    for round in 1..=rounds {
        run.tell(&format!("ipvsadm: connections listed under load, {round} of {rounds}"));
        tester.pace(rate, length / 4)?;
        let before = tester.pace(rate, length)?;
        lost_before += before.lost;
        quiet.push(percentile(&before.micros, 100.0));
        let (during, listed) = while_listing(tester, operator, rate, length)?;
        sent += during.sent;
        lost += during.lost;
        listings += listed;
        busy.push(percentile(&during.micros, 100.0));
    }
    let note = format!(
        "{listings} listings, {sent} packets meanwhile, {:.0} k/s, half of what the director \
         carries; floor: as long without a listing",
        rate / 1e3
    );
    run.add(
        Figure::new(NAMES[3], lost as f64, "packets", Better::Less)
            .over(lost_before as f64, &note)
            .value_target(0.0, ""),
    );
    run.add(
        Figure::new(NAMES[4], median(&busy) / 1e3, "ms", Better::Less)
            .over(median(&quiet) / 1e3, &note)
            .noted("the longest that a packet took, the middle one of all rounds"),
    );
    Ok(())
}

/// Packets during listings that follow each other for `length`, and how many those were.
fn while_listing(
    tester: &mut Tester,
    operator: &Operator,
    rate: f64,
    length: Duration,
) -> Result<(Passage, u32)> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let listing = scope.spawn(|| {
            std::thread::sleep(MARGIN);
            let start = std::time::Instant::now();
            let mut listings = 0;
            let mut outcome = Ok(());
            while outcome.is_ok() && (listings == 0 || start.elapsed() < length) {
                outcome = operator.ipvsadm(&LIST, None).map(drop);
                listings += 1;
            }
            done.store(true, Ordering::Release);
            outcome.map(|()| listings)
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
        let listings = listing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((passage?, listings?))
    })
}
