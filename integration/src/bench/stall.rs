//! The longest that a worker is kept from its packets while the table grows to ten million
//! connections, and while a million of them expire at once.
//!
//! One packet at a time, so that a call is what a packet costs with all that falls due meanwhile:
//! memory that is touched for the first time, a bucket that is split, a share of the sweep. In turn
//! with it, the same frames through the floor, which does no work on a table.
//!
//! What interrupts and a virtual machine's host do to a busy thread counts as its own time too, and is
//! longer than anything looked for here. But it hits another call each time. So all is done three times
//! with the same hashes, and of each call the shortest time counts: what is left is what that call
//! takes every time.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nix::time::{ClockId, clock_gettime};

use super::Run;
use super::director::{Director, Setup, Station};
use super::figure::{Better, Figure};
use super::floor::{Floor, lines};
use super::flows::{Flows, NewConnections, while_memory_lasts};
use super::machine::TooLittleMemory;
use super::template::{Frames, ROUND, Side};
use super::turns::{Carrier, Source, pin, put, take};
use ::director::control::api::Forwarding;

const GROWTH: [&str; 2] = ["stall/growth", "stall/growth-wall"];
const EXPIRY: [&str; 2] = ["stall/expiry", "stall/expiry-wall"];

/// No call may take longer.
const LIMIT: Duration = Duration::from_micros(50);

/// Times that all is done.
const RUNS: usize = 3;

/// The floor has a round after so many of the table's.
const FLOOR_EVERY: usize = 4;

/// Established connections that carry packets while the others expire.
const CARRYING: u32 = 10_240;

/// Longer than a connection of which there was but a SYN lives, and shorter than an established one.
const PAUSE: Duration = Duration::from_secs(100);

/// Does it with so many connections, and notes how long each call takes: with the table, and without.
type Measure = fn(u32, &mut [Calls; 2]) -> Result<()>;

pub(super) fn run(run: &mut Run<'_>) -> Result<()> {
    let quick = run.plan.quick;
    let (grown, expired) = if quick { (1_000_000, 100_000) } else { (10_000_000, 1_000_000) };
    let cases: [(_, _, Measure); 2] = [(GROWTH, grown, growth), (EXPIRY, expired, expiry)];
    for (names, count, measure) in cases {
        if !names.iter().any(|name| run.wants(name)) {
            continue;
        }
        run.tell(&format!("{}: {count} connections", names[0]));
        match several(count, measure) {
            Ok(calls) => report(run, names, count, &calls),
            Err(error) if error.is::<TooLittleMemory>() => run.tell(&format!("left out: {error}")),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// In a thread of its own, which may stay on one core without those that are started after it.
fn in_a_thread<R: Send>(work: impl FnOnce() -> Result<R> + Send) -> Result<R> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(work);
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn several(count: u32, measure: fn(u32, &mut [Calls; 2]) -> Result<()>) -> Result<[Calls; 2]> {
    let mut calls = [Calls::default(), Calls::default()];
    for _ in 0..RUNS {
        in_a_thread(|| measure(count, &mut calls))?;
    }
    Ok(calls)
}

fn report(run: &mut Run<'_>, names: [&str; 2], count: u32, [table, floor]: &[Calls; 2]) {
    let figure = |clock: usize| {
        let rate = |calls: &Calls| {
            calls.above[clock] as f64 * 1e6 / (RUNS * calls.shortest.len().max(1)) as f64
        };
        Figure::new(names[clock], table.longest(clock), "us", Better::Less)
            .over(floor.longest(clock), "floor: the same frames, no table")
            .noted(&format!(
                "{count} connections, one packet at a time, of each the shortest time of {RUNS} runs; in \
                 single runs {:.0} of a million calls took more than {} us, of the floor's {:.0}",
                rate(table),
                LIMIT.as_micros(),
                rate(floor)
            ))
    };
    let own = figure(0).value_target(LIMIT.as_micros() as f64, " us");
    run.add(own.noted("the thread's own time: without what other programs took of its core"));
    run.add(figure(1));
}

/// Of each call the shortest time in all runs, nanoseconds: of the thread, and by the clock on the wall.
#[derive(Default)]
struct Calls {
    shortest: Vec<[u32; 2]>,
    /// Calls of one run so far.
    done: usize,
    /// Those above the limit, in all runs.
    above: [u64; 2],
}

impl Calls {
    fn time(&mut self, call: impl FnOnce() -> Result<()>) -> Result<()> {
        let (wall, cpu) = (Instant::now(), thread_time()?);
        call()?;
        let times = [thread_time()? - cpu, wall.elapsed()];
        for (above, time) in self.above.iter_mut().zip(times) {
            *above += u64::from(time > LIMIT);
        }
        let [own, wall] = times.map(|time| time.as_nanos() as u32);
        match self.shortest.get_mut(self.done) {
            Some(before) => *before = [before[0].min(own), before[1].min(wall)],
            None => self.shortest.push([own, wall]),
        }
        self.done += 1;
        Ok(())
    }

    /// Times one frame after the other.
    fn each<C: Carrier>(
        &mut self,
        carrier: &mut C,
        frames: &Frames,
        call: impl Fn(&mut C) -> Result<()>,
    ) -> Result<()> {
        for frame in frames.iter() {
            ensure!(carrier.wire().inject(frame, None), "the wire is full");
            self.time(|| call(carrier))?;
            take(carrier.wire(), 1)?;
        }
        Ok(())
    }

    /// Microseconds of the longest.
    fn longest(&self, clock: usize) -> f64 {
        let longest = self.shortest.iter().map(|times| times[clock]).max();
        f64::from(longest.unwrap_or(0)) / 1e3
    }
}

fn thread_time() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

fn setup() -> Setup {
    Setup { forwarding: Forwarding::Nat, v4: true, scheduler: "rr", servers: 3 }
}

/// SYNs of as many clients.
fn growth(count: u32, calls: &mut [Calls; 2]) -> Result<()> {
    let setup = setup();
    let mut director = Director::repeatable(&setup, count as usize + ROUND)?;
    let mut source = NewConnections::new(&setup);
    alternate(&mut director, &mut source, calls, |director| {
        let opened = director.connections() as u32;
        while_memory_lasts(opened)?;
        Ok(opened < count)
    })?;
    ensure!(director.connections() >= count as usize, "not all connections were opened");
    Ok(())
}

/// Packets of others, while as many connections go.
fn expiry(count: u32, calls: &mut [Calls; 2]) -> Result<()> {
    let setup = setup();
    let room = (count + CARRYING) as usize;
    let mut director = Director::repeatable(&setup, room + room / 8 + ROUND)?;
    let flows = Flows::open(&mut director, &setup, CARRYING, &while_memory_lasts)?;
    let mut source = NewConnections::after(&setup, CARRYING);
    let mut frames = Frames::default();
    while director.connections() < room {
        while_memory_lasts(director.connections() as u32)?;
        source.next(&mut frames);
        director.stations[0].exchange(&frames, |_| ())?;
    }
    director.skip(PAUSE)?;
    let before = director.connections();
    ensure!(before > room / 2, "they were gone before anybody looked");
    let mut visits = flows.visits(Side::Client, 0, 1);
    alternate(&mut director, &mut visits, calls, |director| {
        Ok(director.connections() > CARRYING as usize)
    })?;
    ensure!(director.connections() == CARRYING as usize, "an established connection has gone");
    Ok(())
}

/// Frames through the only worker and, fewer of them, through the floor, in turn, while `goes_on`.
fn alternate(
    director: &mut Director,
    source: &mut impl Source,
    [table, bare]: &mut [Calls; 2],
    goes_on: impl Fn(&Director) -> Result<bool>,
) -> Result<()> {
    pin(0);
    let mut floor = Floor::new(Some(lines(1_000)))?;
    let mut frames = Frames::default();
    // What the first packets touch is not the table's.
    source.next(&mut frames);
    director.stations[0].exchange(&frames, |_| ())?;
    put(floor.wire(), &frames)?;
    floor.carry()?;
    take(floor.wire(), frames.count())?;
    (table.done, bare.done) = (0, 0);
    while goes_on(director)? {
        source.next(&mut frames);
        let is_turn_of_floor = table.done.is_multiple_of(FLOOR_EVERY * ROUND);
        let station: &mut Station = &mut director.stations[0];
        table.each(station, &frames, |station| {
            station.breath()?;
            Ok(())
        })?;
        if is_turn_of_floor {
            bare.each(&mut floor, &frames, |floor| {
                floor.carry()?;
                Ok(())
            })?;
        }
    }
    Ok(())
}
