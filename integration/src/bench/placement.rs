//! Nanoseconds per look-up in the table of the scheduler dht: a key's hash given, its owner wanted.
//!
//! The floor is the least that a table needs: one number, picked by the upper half of the hash, out of
//! as many as the table has places.

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::Instant;

use anyhow::{Result, ensure};
use schedulers::placement::{Member, PlacementOptions, Table, study};

use super::Run;
use super::figure::{Better, Figure};
use super::turns::{median, together};

/// Members, and the nanoseconds that a look-up may take.
const SIZES: [(u32, f64); 2] = [(10, 3.0), (1_000, 5.0)];

/// All weights equal, or 1..=100.
const WEIGHTS: [(&str, i32); 2] = [("equal", 1), ("weighted", 100)];

/// Keys of a round.
const ROUND: usize = 4096;
/// Rounds in a row before the floor has its turn.
const TURN: usize = 16;
/// Different keys.
const KEYS: usize = ROUND * TURN;

const NOTE: &str = "floor: one 16-bit number out of as many as the table has places";

pub(super) fn run(run: &mut Run<'_>) -> Result<()> {
    for (members, limit) in SIZES {
        for (word, heaviest) in WEIGHTS {
            let name = format!("dht/lookup-{members}/{word}");
            if run.wants(&name) {
                run.tell(&name);
                let rounds = run.plan.rounds();
                // On a thread of its own, which stays on one core.
                let alone = std::iter::once(());
                let figures = together(alone, |()| measure(&name, members, heaviest, rounds))?;
                figures.into_iter().for_each(|it| run.add(it.value_target(limit, " ns")));
            }
        }
    }
    Ok(())
}

fn measure(name: &str, members: u32, heaviest: i32, rounds: usize) -> Result<Figure> {
    let list: Vec<_> = (0..members)
        .map(|host| {
            // 7919 is prime: weights in no order, each as often as the other.
            let weight = 1 + (host * 7919 % heaviest as u32) as i32;
            Member::new(Ipv4Addr::from_bits(0x0a00_0001 + host).into(), 53, weight)
        })
        .collect();
    let options = PlacementOptions::default();
    let Ok(table) = Table::build(&list, options) else {
        anyhow::bail!("the table does not hold {members} members");
    };
    let keys = study::names(KEYS, 0);
    ensure!(keys.iter().all(|&key| table.owner(key).is_some()), "a key has no owner");
    let places = vec![1_u16; members as usize * usize::from(options.variants)];
    let place = |key: u64| (((key >> 32) * places.len() as u64) >> 32) as usize;
    let (mut costs, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..rounds.div_ceil(TURN) {
        costs.extend(turn(&keys, |key| table.owner(key).unwrap_or(0)));
        floors.extend(turn(&keys, |key| usize::from(places[place(key)])));
    }
    let figure = Figure::new(name, median(&costs), "ns", Better::Less);
    Ok(figure.over(median(&floors), NOTE))
}

/// Nanoseconds per look-up in the rounds of a turn. All keys have been looked up once before: it brings
/// what the last turn has pushed out back into the caches.
fn turn(keys: &[u64], look_up: impl Fn(u64) -> usize) -> Vec<f64> {
    timed(keys, &look_up);
    keys.chunks(ROUND).map(|keys| timed(keys, &look_up)).collect()
}

/// Nanoseconds for each of `keys`.
fn timed(keys: &[u64], look_up: impl Fn(u64) -> usize) -> f64 {
    let start = Instant::now();
    let sum = keys.iter().fold(0_usize, |sum, &key| sum.wrapping_add(look_up(key)));
    let took = start.elapsed();
    black_box(sum);
    took.as_nanos() as f64 / keys.len() as f64
}
