//! Rounds of frames, carried in turn by one or several carriers that start together.
//!
//! What is timed is the carrying alone. Making the frames, putting them on the wire and taking
//! them off is not, nor is the first round of each turn: it brings what the last turn has pushed
//! out back into the caches.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use netio::Wire;

use super::template::Frames;

/// Takes the frames that lie on its wire, and sends them on.
pub(super) trait Carrier: Send {
    /// The far end of its port.
    fn wire(&self) -> &Wire;

    /// Carries everything that lies on the wire. Returns how long that took.
    fn carry(&mut self) -> Result<Duration>;
}

/// What is sent.
pub(super) trait Source: Send {
    /// Replaces `frames` by those of the next round.
    fn next(&mut self, frames: &mut Frames);
}

/// Nanoseconds per packet of `rounds` rounds, all carriers at work at the same time, each on a
/// core of its own. With several their rates are added: half the cost for two that do not disturb
/// each other.
pub(super) fn turn<C: Carrier, S: Source>(
    carriers: &mut [C],
    sources: &mut [S],
    rounds: usize,
) -> Result<Vec<f64>> {
    ensure!(carriers.len() == sources.len(), "every carrier needs a source");
    let gate = Gate::new(carriers.len());
    let each = together(carriers.iter_mut().zip(sources), |(carrier, source)| {
        let outcome = rounds_of(carrier, source, rounds, &gate);
        if outcome.is_err() {
            gate.break_up();
        }
        outcome
    })?;
    Ok((0..rounds)
        .map(|round| 1.0 / each.iter().map(|costs| 1.0 / costs[round]).sum::<f64>())
        .collect())
}

fn rounds_of<C: Carrier, S: Source>(
    carrier: &mut C,
    source: &mut S,
    rounds: usize,
    gate: &Gate,
) -> Result<Vec<f64>> {
    let mut frames = Frames::default();
    let mut costs = Vec::with_capacity(rounds);
    for round in 0..=rounds {
        source.next(&mut frames);
        put(carrier.wire(), &frames)?;
        gate.wait()?;
        let took = carrier.carry()?;
        take(carrier.wire(), frames.count())?;
        if round > 0 {
            costs.push(took.as_nanos() as f64 / frames.count() as f64);
        }
    }
    Ok(costs)
}

/// Runs `work` on every one of `parts` at the same time, each on a core of its own as far as there
/// are cores.
pub(super) fn together<T: Send, R: Send>(
    parts: impl Iterator<Item = T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .enumerate()
            .map(|(core, part)| {
                scope.spawn(move || {
                    pin(core);
                    work(part)
                })
            })
            .collect();
        let ends = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        // All have ended before an error is returned, and that is not "another has failed".
        let (good, mut bad): (Vec<_>, Vec<_>) = ends.partition(Result::is_ok);
        bad.sort_by_key(|end| matches!(end, Err(error) if error.is::<Abandoned>()));
        bad.into_iter().chain(good).collect()
    })
}

/// The `number`th of the cores that the calling thread may use, from 0; begins anew after the last.
pub(super) fn core(number: usize) -> Option<usize> {
    use nix::sched::{CpuSet, sched_getaffinity};
    let allowed = sched_getaffinity(nix::unistd::Pid::from_raw(0)).ok()?;
    let cores: Vec<_> =
        (0..CpuSet::count()).filter(|&core| allowed.is_set(core).unwrap_or(false)).collect();
    cores.get(number % cores.len().max(1)).copied()
}

/// Keeps the calling thread on [`core()`] `number`. Not being allowed to makes figures noisier,
/// nothing else.
pub(super) fn pin(number: usize) {
    use nix::sched::{CpuSet, sched_setaffinity};
    let mut one = CpuSet::new();
    if let Some(core) = core(number)
        && one.set(core).is_ok()
    {
        let _ = sched_setaffinity(nix::unistd::Pid::from_raw(0), &one);
    }
}

/// Puts the calling thread before ordinary programs, as the director's workers are: who stands for the
/// network, or for another forwarder, must not be the slower for being less important.
pub(super) fn go_first() {
    // Not being allowed to makes figures noisier, nothing else.
    let _ = netio::set_niceness(-10);
}

/// Puts frames on a wire.
pub(super) fn put(wire: &Wire, frames: &Frames) -> Result<()> {
    for frame in frames.iter() {
        ensure!(wire.inject(frame, None), "the wire holds fewer than {} frames", frames.count());
    }
    Ok(())
}

/// Takes what has come out, which must be as many frames as were put in.
pub(super) fn take(wire: &Wire, expected: usize) -> Result<()> {
    let mut sent = 0;
    while let Some(packet) = wire.collect() {
        wire.recycle(packet);
        sent += 1;
    }
    ensure!(sent == expected, "{sent} of {expected} packets were sent on: nothing to measure");
    Ok(())
}

/// Another one has failed, and said why.
#[derive(Debug)]
struct Abandoned;

impl std::fmt::Display for Abandoned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("another worker has failed")
    }
}

impl std::error::Error for Abandoned {}

/// Where threads wait until all have come. They spin: who sleeps starts late.
#[derive(Debug)]
struct Gate {
    parties: usize,
    arrived: AtomicUsize,
    broken: AtomicBool,
}

impl Gate {
    fn new(parties: usize) -> Gate {
        Gate { parties, arrived: AtomicUsize::new(0), broken: AtomicBool::new(false) }
    }

    /// Nobody is to wait for who will not come.
    fn break_up(&self) {
        self.broken.store(true, Ordering::Release);
    }

    fn wait(&self) -> Result<()> {
        let before = self.arrived.fetch_add(1, Ordering::AcqRel);
        let wanted = (before / self.parties + 1) * self.parties;
        let mut turns = 0_u32;
        while self.arrived.load(Ordering::Acquire) < wanted {
            if self.broken.load(Ordering::Acquire) {
                bail!(Abandoned);
            }
            turns += 1;
            // The core may be needed by the one who is waited for.
            match turns % 4096 {
                0 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
        Ok(())
    }
}

/// The middle one; 0 when there is none.
pub(super) fn median(numbers: &[f64]) -> f64 {
    percentile(numbers, 50.0)
}

/// The smallest number that so many percent of all do not exceed.
pub(super) fn percentile(numbers: &[f64], percent: f64) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() as f64 * percent / 100.0).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_numbers_that_were_measured() {
        let numbers: Vec<f64> = (1..=1000).rev().map(f64::from).collect();
        assert_eq!(median(&numbers), 500.0);
        assert_eq!(percentile(&numbers, 99.9), 999.0);
        assert_eq!(percentile(&[7.0], 99.0), 7.0);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn one_failure_ends_all_and_is_what_is_reported() {
        let gate = Gate::new(2);
        let outcome = together(0..2, |number| {
            if number == 1 {
                gate.break_up();
                bail!("the first cause");
            }
            gate.wait()
        });
        assert_eq!(outcome.unwrap_err().to_string(), "the first cause");
    }
}
