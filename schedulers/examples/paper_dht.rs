//! The paper's table beside ours: how evenly names are spread over the nodes of a cluster, and how many
//! move when a node leaves and returns.
//!
//!     cargo run --release -p schedulers --example paper_dht -- [--quick] [--json]
//!
//! Names are made up, all different, and the same each time. Fails when a number is not reached.

use schedulers::placement::study::{Balance, Moves, Noise, Scheme, balance, moves, names, noise};
use std::process::ExitCode;

const NODES: [u16; 4] = [2, 3, 5, 10];
/// The mean deviation of 5 nodes and 5,000,000 names that the paper reports, in percent.
const PAPER: (u16, f64) = (5, 0.07);

/// How much to try.
struct Plan {
    /// Names of a set.
    names: usize,
    /// In so many steps, each a fifth of them.
    steps: usize,
    /// Sets of names.
    sets: u32,
}

const FULL: Plan = Plan { names: 5_000_000, steps: 5, sets: 8 };
const QUICK: Plan = Plan { names: 250_000, steps: 5, sets: 4 };

/// What one scheme comes to on so many nodes.
struct Row {
    scheme: Scheme,
    nodes: u16,
    /// For each step how many names, the mean over the sets, and the noise of one set.
    steps: Vec<(usize, Balance, Noise)>,
    moves: Moves,
    /// The mean deviation's distance from the noise floor, in standard deviations of that mean.
    sigmas: f64,
    /// In words, what should have been otherwise.
    missed: Vec<String>,
}

fn main() -> ExitCode {
    let mut plan = FULL;
    let mut json = false;
    for argument in std::env::args().skip(1) {
        match &*argument {
            "--quick" => plan = QUICK,
            "--json" => json = true,
            other => {
                eprintln!("{other}: no such option; there are --quick and --json");
                return ExitCode::from(2);
            }
        }
    }
    let rows = measure(&plan);
    if json {
        print_json(&plan, &rows);
    } else {
        print(&plan, &rows);
    }
    let missed: Vec<_> = rows.iter().flat_map(|row| &row.missed).collect();
    missed.iter().for_each(|what| eprintln!("not reached: {what}"));
    if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn measure(plan: &Plan) -> Vec<Row> {
    let counts: Vec<_> = (1..=plan.steps).map(|step| plan.names / plan.steps * step).collect();
    let cases: Vec<_> =
        NODES.iter().flat_map(|&nodes| Scheme::ALL.map(|scheme| (scheme, nodes))).collect();
    let mut sums = vec![vec![(0.0, 0.0); counts.len()]; cases.len()];
    let mut first = Vec::new();
    for set in 0..plan.sets {
        let keys = names(plan.names, set);
        for (&(scheme, nodes), sums) in cases.iter().zip(&mut sums) {
            for (sum, of) in sums.iter_mut().zip(balance(scheme, nodes, &keys, &counts)) {
                *sum = (sum.0 + of.efficiency, sum.1 + of.deviation);
            }
        }
        if set == 0 {
            first = keys;
        }
        eprintln!("set {} of {} spread", set + 1, plan.sets);
    }
    let sets = f64::from(plan.sets);
    let row = |(&(scheme, nodes), sums): (&(Scheme, u16), &Vec<(f64, f64)>)| {
        let steps = counts.iter().zip(sums).map(|(&count, sum)| {
            let mean = Balance { efficiency: sum.0 / sets, deviation: sum.1 / sets };
            (count, mean, noise(nodes, count))
        });
        Row::of(scheme, nodes, steps.collect(), moves(scheme, nodes, &first), plan)
    };
    cases.iter().zip(&sums).map(row).collect()
}

impl Row {
    fn of(
        scheme: Scheme,
        nodes: u16,
        steps: Vec<(usize, Balance, Noise)>,
        moves: Moves,
        plan: &Plan,
    ) -> Row {
        let mut missed = Vec::new();
        let last = steps.last().map(|(_, balance, noise)| {
            (balance.deviation - noise.floor) / noise.sigma * f64::from(plan.sets).sqrt()
        });
        let sigmas = last.unwrap_or(f64::NAN);
        let is_ours = matches!(scheme, Scheme::Dht | Scheme::StickyDht);
        let case = format!("{}, {nodes} nodes", scheme.name());
        // Slots are dealt out in whole numbers, and that shows: not for mh.
        let is_noise = sigmas.abs() < 4.0;
        if scheme != Scheme::Maglev && !is_noise {
            missed.push(format!("{case}: deviation within 4 sigma of the noise ({sigmas:.1})"));
        }
        let expected = scheme.expected_moves(nodes).filter(|_| is_ours);
        if expected.is_some_and(|expected| (moves.on_leave - expected).abs() > 0.002) {
            missed.push(format!("{case}: {expected:?} moved on leave ({})", moves.on_leave));
        }
        if is_ours && moves.after_return != 0.0 {
            missed.push(format!("{case}: the old placement ({} elsewhere)", moves.after_return));
        }
        Row { scheme, nodes, steps, moves, sigmas, missed }
    }
}

fn print(plan: &Plan, rows: &[Row]) {
    println!("{} names, mean of {} sets; efficiency = average / maximum\n", plan.names, plan.sets);
    print!("{:<16} {:>5}", "efficiency", "nodes");
    for (count, ..) in rows.first().map_or(&[][..], |row| &row.steps) {
        print!(" {:>10}", format!("{:.2} M", *count as f64 / 1e6));
    }
    println!();
    for Row { scheme, nodes, steps, .. } in rows {
        print!("{:<16} {nodes:>5}", scheme.name());
        steps.iter().for_each(|(_, balance, _)| print!(" {:>10.5}", balance.efficiency));
        println!();
    }
    println!(
        "\n{:<16} {:>5} {:>8} {:>8} {:>7} {:>8}",
        "deviation, %", "nodes", "ours", "noise", "sigma", "paper"
    );
    for Row { scheme, nodes, steps, sigmas, .. } in rows {
        let Some((_, balance, noise)) = steps.last() else { continue };
        let is_papers = *scheme == Scheme::Dht && *nodes == PAPER.0 && plan.names == FULL.names;
        let paper = if is_papers { format!("{:.2}", PAPER.1) } else { String::new() };
        let (ours, noise) = (balance.deviation * 100.0, noise.floor * 100.0);
        let line = format!("{:<16} {nodes:>5} {ours:>8.4} {noise:>8.4}", scheme.name());
        println!("{}", format!("{line} {sigmas:>7.1} {paper:>8}").trim_end());
    }
    println!(
        "\n{:<16} {:>5} {:>9} {:>9} {:>13} {:>11}",
        "keys moved, part", "nodes", "on leave", "formula", "after return", "to replica"
    );
    for Row { scheme, nodes, moves, .. } in rows {
        let number = |part: Option<f64>| part.map_or("-".into(), |part| format!("{part:.4}"));
        println!(
            "{:<16} {nodes:>5} {:>9.4} {:>9} {:>13.4} {:>11}",
            scheme.name(),
            moves.on_leave,
            number(scheme.expected_moves(*nodes)),
            moves.after_return,
            number(moves.to_replica),
        );
    }
}

fn print_json(plan: &Plan, rows: &[Row]) {
    let number = |part: Option<f64>| part.map_or("null".into(), |part| part.to_string());
    let rows: Vec<_> = rows
        .iter()
        .map(|Row { scheme, nodes, steps, moves, sigmas, missed }| {
            let steps: Vec<_> = steps
                .iter()
                .map(|(count, balance, noise)| {
                    let Balance { efficiency, deviation } = balance;
                    let floor = noise.floor;
                    format!(
                        "{{\"names\":{count},\"efficiency\":{efficiency},\
                         \"deviation\":{deviation},\"noise_floor\":{floor}}}"
                    )
                })
                .collect();
            format!(
                "{{\"scheme\":\"{}\",\"nodes\":{nodes},\"steps\":[{}],\"sigmas\":{sigmas},\
                 \"moved_on_leave\":{},\"expected_on_leave\":{},\"elsewhere_after_return\":{},\
                 \"to_replica\":{},\"reached\":{}}}",
                scheme.name(),
                steps.join(","),
                moves.on_leave,
                number(scheme.expected_moves(*nodes)),
                moves.after_return,
                number(moves.to_replica),
                missed.is_empty(),
            )
        })
        .collect();
    println!(
        "{{\"names\":{},\"sets\":{},\"paper\":{{\"nodes\":{},\"deviation\":{}}},\"rows\":[\n{}\n]}}",
        plan.names,
        plan.sets,
        PAPER.0,
        PAPER.1 / 100.0,
        rows.join(",\n")
    );
}
