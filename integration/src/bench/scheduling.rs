//! New connections per second, by scheduler and number of servers.
//!
//! Every packet is a SYN of a client that has not been there before, by NAT over IPv4, and its
//! connection stays: in the middle round the table holds half of all that are made.

use anyhow::Result;

use super::Run;
use super::director::{Director, Setup};
use super::figure::{Better, Figure};
use super::floor::{Floor, lines};
use super::flows::NewConnections;
use super::template::ROUND;
use super::turns::{median, turn};
use ::director::control::api::Forwarding;

/// Rounds in a row before the floor has its turn.
const TURN: usize = 20;

/// Servers of the service.
const SERVERS: [u16; 2] = [3, 1_000];

const NOTE: &str =
    "floor: same frames and port, headers touched, one of 1,000 lines of 64 bytes read";

/// What is to be reached, in millions per second.
const TARGETS: [(&str, f64); 2] = [("rr", 2.0), ("wlc", 1.0)];

pub(super) fn run(run: &mut Run<'_>) -> Result<()> {
    for entry in schedulers::REGISTRY {
        for servers in SERVERS {
            let name = format!("new/{}/{servers}", entry.name);
            if run.wants(&name) {
                run.tell(&name);
                let figure = measure(entry.name, servers, run.plan.rounds(), &name)?;
                run.add(figure);
            }
        }
    }
    Ok(())
}

fn measure(scheduler: &'static str, servers: u16, rounds: usize, name: &str) -> Result<Figure> {
    let setup = Setup { forwarding: Forwarding::Nat, v4: true, scheduler, servers };
    // Each turn has a round that is not counted.
    let room = (rounds.div_ceil(TURN) * (TURN + 1) * ROUND).max(1 << 20);
    let mut director = Director::new(&setup, 1, room)?;
    let mut floor = [Floor::new(Some(lines(1_000)))?];
    let mut sources = [NewConnections::new(&setup)];
    let mut floor_sources = [NewConnections::new(&setup)];
    let (mut costs, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..rounds.div_ceil(TURN) {
        costs.extend(turn(&mut director.stations, &mut sources, TURN)?);
        floors.extend(turn(&mut floor, &mut floor_sources, TURN)?);
    }
    // Millions per second from nanoseconds each.
    let (rate, bare) = (1000.0 / median(&costs), 1000.0 / median(&floors));
    let figure = Figure::new(name, rate, "M/s", Better::More).over(bare, NOTE);
    Ok(match TARGETS.iter().find(|(name, _)| *name == scheduler) {
        Some((_, least)) => figure.value_target(*least, " M/s"),
        None => figure,
    })
}
