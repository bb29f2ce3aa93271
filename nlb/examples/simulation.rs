//! Prints the table of the simulated cluster: `cargo run --release -p nlb --example simulation`.
//! Arguments: how many seeds (3), the first seed (1), and part of a case's name.

use std::process::ExitCode;

use nlb::simulation::cases::CASES;
use nlb::simulation::table::{HEADER, line};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| match arguments.next().map(|text| text.parse()) {
        Some(Ok(number)) => number,
        Some(Err(_)) | None => default,
    };
    let (count, first) = (number(3), number(1));
    let wanted = arguments.next().unwrap_or_default();
    println!("seeds {first} to {}; seconds, the worst of all seeds\n{HEADER}", first + count - 1);
    let mut failed = false;
    for case in CASES.iter().filter(|case| case.name.contains(&wanted)) {
        for &nodes in case.nodes {
            let row = line(case, nodes, first..first + count);
            println!("{row}");
            for (seed, fault) in &row.faults {
                failed = true;
                println!("    seed {seed}: {fault}");
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
