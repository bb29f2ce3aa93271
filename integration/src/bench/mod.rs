//! Nanoseconds per packet of the pipeline, over the memory port.
//!
//! Each figure has a *floor*: the same frames through the same port and packet memory without a
//! pipeline, measured in turn with it, so that a busy neighbour on the machine slows both. Values
//! are medians of many short rounds. What is timed is the worker's breath; putting frames on the
//! wire and taking them off is not. Nothing here fails because it is slow.

mod director;
mod floor;
mod flows;
mod frames;
mod report;

use std::time::Duration;

use ::director::control::api::Forwarding;
use anyhow::{Result, ensure};

use director::{Director, Setup};
use floor::Floor;
use flows::{Ends, Established, NewConnections};
pub use report::{json, table};

/// Packets in a round: enough to make the clock's own cost vanish, few enough to stay in the cache.
const ROUND: usize = 1024;

/// One figure.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Figure {
    /// What was measured, `method/family/flows` or `new-connection/scheduler/servers`.
    pub name: String,
    /// Median over the rounds.
    pub value: f64,
    /// Of `value` and `floor`.
    pub unit: &'static str,
    /// Median of the same frames through the port alone.
    pub floor: f64,
    /// `value / floor`.
    pub ratio: f64,
}

/// Who answers: on which side of the director the measured packets come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// One thing to measure.
struct Case {
    name: String,
    setup: Setup,
    traffic: Kind,
}

enum Kind {
    Established { flows: usize, side: Side },
    New,
}

/// Everything that is measured, in the order of the report.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let methods = [
        ("nat", Forwarding::Nat, Side::Client),
        ("nat-reply", Forwarding::Nat, Side::Server),
        ("tunnel", Forwarding::Tunnel, Side::Client),
        ("direct", Forwarding::Direct, Side::Client),
    ];
    for (label, forwarding, side) in methods {
        for (family, v4) in [("ipv4", true), ("ipv6", false)] {
            for flows in [1_000, 100_000] {
                cases.push(Case {
                    name: format!("{label}/{family}/{flows}-flows"),
                    setup: Setup { forwarding, v4, scheduler: "rr", servers: 3 },
                    traffic: Kind::Established { flows, side },
                });
            }
        }
    }
    for scheduler in ["rr", "wlc"] {
        for servers in [3, 1_000] {
            cases.push(Case {
                name: format!("new-connection/{scheduler}/{servers}-servers"),
                setup: Setup { forwarding: Forwarding::Nat, v4: true, scheduler, servers },
                traffic: Kind::New,
            });
        }
    }
    cases
}

/// Measures all whose name contains `only`, `rounds` times each; `progress` is told each name.
///
/// # Errors
/// When the director could not be built, or did not send on a packet: then there is nothing to
/// measure.
pub fn run(only: &str, rounds: usize, mut progress: impl FnMut(&str)) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for case in cases().into_iter().filter(|case| case.name.contains(only)) {
        progress(&case.name);
        figures.push(measure(case, rounds.max(1))?);
    }
    ensure!(!figures.is_empty(), "nothing is called like {only:?}");
    Ok(figures)
}

fn measure(case: Case, rounds: usize) -> Result<Figure> {
    let mut director = Director::new(&case.setup)?;
    let mut floor = Floor::new()?;
    let ends = Ends::of(&case.setup);
    let mut traffic: Box<dyn Traffic> = match case.traffic {
        Kind::Established { flows, side } => {
            Box::new(Established::open(&mut director, &ends, &case.setup, flows, side)?)
        }
        Kind::New => Box::new(NewConnections::new(ends)),
    };
    let (mut values, mut floors) = (Vec::new(), Vec::new());
    // One round first whose figures nobody sees.
    for round in 0..=rounds {
        let frames = traffic.round(&mut director)?;
        let (value, bare) = (director.time(frames)?, floor.time(frames)?);
        if round > 0 {
            values.push(value);
            floors.push(bare);
        }
    }
    let (value, floor) = (median(&mut values), median(&mut floors));
    Ok(Figure { name: case.name, value, unit: "ns/packet", floor, ratio: value / floor })
}

/// What is sent in a round.
trait Traffic {
    /// The frames of the next round; what has to happen before them, happens.
    fn round(&mut self, director: &mut Director) -> Result<&[Vec<u8>]>;
}

/// Nanoseconds per packet of a round.
fn median(rounds: &mut [Duration]) -> f64 {
    rounds.sort_unstable();
    rounds[rounds.len() / 2].as_nanos() as f64 / ROUND as f64
}
