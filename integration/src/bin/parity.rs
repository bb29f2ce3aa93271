//! The program behind `cargo xtask parity`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use integration::parity::{run, scenarios};

/// Gives the same packets and commands to Switchyard and to the kernel's IPVS, and shows what
/// each made of them, next to each other. Lines that differ begin with '#'.
///
/// Exit code 0 only when both did the same in every scenario.
#[derive(Parser)]
#[command(name = "parity", version)]
struct Arguments {
    /// Which scenarios
    scenarios: Vec<String>,
    /// Print their names and what they show
    #[arg(long)]
    list: bool,
    /// Print the verdict only
    #[arg(long, short)]
    quiet: bool,
}

fn main() -> ExitCode {
    match compare(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("parity: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn compare(arguments: &Arguments) -> Result<bool> {
    if arguments.list || arguments.scenarios.is_empty() {
        for scenario in scenarios::all() {
            println!("{:<24} {}", scenario.name, scenario.title);
        }
        return Ok(true);
    }
    integration::lab::supported()?;
    integration::kernel_host::supported()?;
    let mut equal = true;
    for name in &arguments.scenarios {
        let scenario = scenarios::find(name)
            .with_context(|| format!("no scenario {name:?}; --list shows what there is"))?;
        let report = run(&scenario)?;
        if !arguments.quiet {
            println!(
                "{}: {}; left {}, right {}",
                name, scenario.title, report.names[0], report.names[1]
            );
            report.transcript.iter().for_each(|line| println!("{line}"));
        }
        println!("{report}");
        equal &= report.is_equal();
    }
    Ok(equal)
}
