//! What a running director costs when no packet comes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::time::{ClockId, clock_gettime};

use super::super::Run;
use super::super::figure::{Better, Figure};
use super::bed::Bed;
use super::middle::{Kind, Running};

pub(super) const NAME: &str = "idle/cpu";

/// How often the floor wakes: as often as a worker looks at its timers.
const TICK: Duration = Duration::from_millis(100);

pub(super) fn run(run: &mut Run<'_>, bed: &Bed) -> Result<()> {
    let length = Duration::from_secs(if run.plan.quick { 1 } else { 10 });
    run.tell(&format!("{NAME}: {} seconds without a packet", length.as_secs()));
    let running = Running::start(Kind::Director, bed)?;
    let Running::Director(director) = &running else { return Ok(()) };
    let process = director.process().id();
    // What starting has left to be done is done.
    std::thread::sleep(length / 10);
    let (before, start) = (cpu_time(process)?, Instant::now());
    let floor = std::thread::spawn(move || -> Result<Duration> {
        while start.elapsed() < length {
            std::thread::sleep(TICK);
        }
        Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
    });
    let floor = floor.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    let elapsed = start.elapsed();
    let used = cpu_time(process)?.saturating_sub(before);
    let (threads, way) = (threads(process)?.len(), running.way().unwrap_or_default());
    running.stop()?;
    let percent = |time: Duration| time.as_secs_f64() / elapsed.as_secs_f64() * 100.0;
    run.add(
        Figure::new(NAME, percent(used), "% of a core", Better::Less)
            .over(percent(floor), "floor: a thread that wakes ten times a second and does nothing")
            .noted(&format!("{way}, {threads} threads, {:.0} s", elapsed.as_secs_f64()))
            .value_target(1.0, " %"),
    );
    Ok(())
}

fn threads(process: u32) -> Result<Vec<String>> {
    let folder = format!("/proc/{process}/task");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("read {folder}"))?;
    Ok(entries.flatten().map(|entry| format!("{}/schedstat", entry.path().display())).collect())
}

/// Time that all threads of a process have been running so far, user and system: the first number
/// of `schedstat`, nanoseconds, where `stat` has hundredths of a second.
fn cpu_time(process: u32) -> Result<Duration> {
    let mut sum = 0;
    for file in threads(process)? {
        let text = std::fs::read_to_string(&file).with_context(|| format!("read {file}"))?;
        let number = text.split_whitespace().next().unwrap_or_default();
        sum += number.parse::<u64>().with_context(|| format!("{file}: {text:?}"))?;
    }
    ensure!(sum > 0, "process {process} has never run");
    Ok(Duration::from_nanos(sum))
}
