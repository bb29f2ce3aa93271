//! What a newcomer beside 20 loaded servers goes through, bias by bias: prints the table of
//! `docs/load-bias.md`. Run it with `cargo run --release -p schedulers --example black_hole`.

mod simulation;

use schedulers::Bias;
use simulation::{Outcome, Told, run};
use std::time::Duration;

const SEEDS: std::ops::Range<u64> = 1..21;

fn main() {
    let window = |seconds| Told::Window(Duration::from_secs(seconds));
    let reports = |seconds| Told::Reports(Duration::from_secs(seconds));
    println!(
        "| scheduler, bias | in progress | peak on the newcomer | logon, s: mean / 95 % | newcomer, s: mean / longest |"
    );
    println!("|---|---|---|---|---|");
    for (name, shown, bias, told, told_by) in [
        ("wlc", "wlc", Bias::None, Told::Handshakes, "-"),
        ("wlc", "wlc linear:200", Bias::Linear(200), Told::Handshakes, "until logged on"),
        ("wlc", "wlc linear:1000", Bias::Linear(1000), Told::Handshakes, "until logged on"),
        ("wlc", "wlc ilb:2", Bias::Ilb(2), Told::Handshakes, "until logged on"),
        ("wlc", "wlc ilb:4", Bias::Ilb(4), Told::Handshakes, "until logged on"),
        ("wlc", "wlc ilb:8", Bias::Ilb(8), Told::Handshakes, "until logged on"),
        ("wlc", "wlc ilb:2", Bias::Ilb(2), window(5), "for 5 s"),
        ("wlc", "wlc ilb:2", Bias::Ilb(2), window(10), "for 10 s"),
        ("wlc", "wlc ilb:4", Bias::Ilb(4), window(5), "for 5 s"),
        ("wlc", "wlc ilb:4", Bias::Ilb(4), window(15), "for 15 s"),
        ("load", "load ilb:2", Bias::None, reports(5), "until reported, every 5 s"),
        ("load", "load ilb:2", Bias::None, reports(30), "until reported, every 30 s"),
    ] {
        let outcomes: Vec<Outcome> = SEEDS.map(|seed| run(name, bias, told, seed)).collect();
        let mean = |of: &dyn Fn(&Outcome) -> f64| {
            outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64
        };
        println!(
            "| {shown} | {told_by} | {:.1} | {:.1} / {:.1} | {:.1} / {:.1} |",
            mean(&|outcome| outcome.peak as f64),
            mean(&|outcome| Outcome::mean(&outcome.all)),
            mean(&|outcome| Outcome::percentile(&outcome.all, 95)),
            mean(&|outcome| Outcome::mean(&outcome.newcomers)),
            mean(&|outcome| Outcome::percentile(&outcome.newcomers, 100)),
        );
    }
}
