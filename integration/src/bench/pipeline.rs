//! Nanoseconds per packet of established connections, over a port in memory: receive, pipeline,
//! transmit.
//!
//! The same table serves one worker and two, so that "twice as fast" compares like with like: one
//! worker visits all flows, two visit half of them each.

use anyhow::Result;

use super::Run;
use super::director::{Director, Setup};
use super::figure::{Better, Figure, tidy};
use super::floor::{Floor, lines};
use super::flows::{Flows, while_memory_lasts};
use super::machine::TooLittleMemory;
use super::template::Side;
use super::turns::{Carrier, Source, median, turn};
use ::director::control::api::Forwarding;

/// Rounds in a row before the others have their turn.
const TURN: usize = 20;

/// Workers at most.
const WORKERS: usize = 2;

const FLOOR: &str = "floor: same frames and port, headers touched, one random line of 64 bytes per \
                     connection read with prefetch";

/// Connections in the table.
fn sizes(quick: bool) -> &'static [u32] {
    if quick { &[1_000] } else { &[1_000, 1_000_000, 10_000_000] }
}

/// A way that packets take, and the most times the floor that it may cost.
type Way = (&'static str, Side, f64);

/// All ways, by what must be built for them.
fn cases() -> Vec<(Setup, Vec<Way>)> {
    let setup = |forwarding, v4| Setup { forwarding, v4, scheduler: "rr", servers: 3 };
    vec![
        (
            setup(Forwarding::Nat, true),
            vec![("nat", Side::Client, 2.5), ("nat-reply", Side::Server, 2.5)],
        ),
        (setup(Forwarding::Direct, true), vec![("direct", Side::Client, 2.0)]),
        (setup(Forwarding::Tunnel, true), vec![("tunnel", Side::Client, 2.5)]),
        (
            setup(Forwarding::Nat, false),
            vec![("nat-ipv6", Side::Client, 2.5), ("nat-reply-ipv6", Side::Server, 2.5)],
        ),
        (setup(Forwarding::Direct, false), vec![("direct-ipv6", Side::Client, 2.0)]),
        (setup(Forwarding::Tunnel, false), vec![("tunnel-ipv6", Side::Client, 2.5)]),
    ]
}

pub(super) fn run(run: &mut Run<'_>) -> Result<()> {
    for &size in sizes(run.plan.quick) {
        for (setup, mut ways) in cases() {
            ways.retain(|(method, ..)| {
                (1..=WORKERS).any(|workers| run.wants(&name(method, size, workers)))
            });
            if ways.is_empty() {
                continue;
            }
            let methods: Vec<_> = ways.iter().map(|(method, ..)| *method).collect();
            run.tell(&format!("pipeline, {}, {size} connections", methods.join(" and ")));
            match case(run, &setup, &ways, size) {
                Err(error) if error.is::<TooLittleMemory>() => {
                    run.tell(&format!("left out: {error}"));
                }
                outcome => outcome?,
            }
        }
    }
    Ok(())
}

fn name(method: &str, size: u32, workers: usize) -> String {
    format!("pipeline/{method}/{size}/{workers}")
}

fn case(run: &mut Run<'_>, setup: &Setup, ways: &[Way], size: u32) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = WORKERS.min(cores);
    let limit = (size + size / 8).max(1 << 16) as usize;
    while_memory_lasts(0)?;
    let table = lines(size as usize);
    let mut director = Director::new(setup, workers, limit)?;
    let flows = Flows::open(&mut director, setup, size, &while_memory_lasts)?;
    for &(method, side, limit) in ways {
        let visits = |workers| -> Vec<_> {
            (0..workers).map(|worker| flows.visits(side, worker, workers)).collect()
        };
        let floors = (0..workers).map(|_| Floor::new(Some(table.clone())));
        let mut floors = floors.collect::<Result<Vec<_>>>()?;
        let mut ports = [Floor::new(None)?];
        // Each has its own place in the order of visits.
        let mut one = Series::new(visits(1));
        let mut one_floor = Series::new(visits(1));
        let mut port = Series::new(visits(1));
        let mut all = Series::new(visits(workers));
        let mut all_floor = Series::new(visits(workers));
        for _ in 0..run.plan.rounds().div_ceil(TURN) {
            one.turn(&mut director.stations[..1])?;
            one_floor.turn(&mut floors[..1])?;
            port.turn(&mut ports)?;
            if workers > 1 {
                all.turn(&mut director.stations)?;
                all_floor.turn(&mut floors)?;
            }
        }
        let (value, floor) = (one.median(), one_floor.median());
        let note = format!("{FLOOR}; the port alone {:.1} ns", port.median());
        let mut figure = Figure::new(name(method, size, 1), value, "ns/packet", Better::Less)
            .over(floor, &note)
            .ratio_target(limit);
        if size == 1_000_000 {
            figure = figure.value_target(40.0, " ns");
        }
        run.add(figure);
        if workers > 1 {
            let (both, both_floor) = (all.median(), all_floor.median());
            let speedup = tidy(value / both);
            let mut figure = Figure::new(name(method, size, 2), both, "ns/packet", Better::Less)
                .over(both_floor, FLOOR)
                .ratio_target(limit)
                .target(speedup, 1.8, Better::More, " x one worker");
            figure.speedup = Some([speedup, tidy(floor / both_floor)]);
            run.add(figure);
        } else {
            run.tell("left out: two workers, because there is one core");
        }
    }
    Ok(())
}

/// The costs of one kind of carrier, round by round.
struct Series<S> {
    sources: Vec<S>,
    costs: Vec<f64>,
}

impl<S: Source> Series<S> {
    fn new(sources: Vec<S>) -> Series<S> {
        Series { sources, costs: Vec::new() }
    }

    fn turn<C: Carrier>(&mut self, carriers: &mut [C]) -> Result<()> {
        self.costs.extend(turn(carriers, &mut self.sources, TURN)?);
        Ok(())
    }

    fn median(&self) -> f64 {
        median(&self.costs)
    }
}
