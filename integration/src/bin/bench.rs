//! The program behind `cargo xtask bench`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Measures nanoseconds per packet of the director's pipeline over the memory port: NAT both ways,
/// tunnel and direct routing over IPv4 and IPv6, and new connections.
///
/// Needs no root and no network. The machine should have nothing else to do; the floor next to
/// each figure says how much of it is the port, and how fast the machine was meanwhile.
#[derive(Parser)]
#[command(name = "bench", version)]
struct Arguments {
    /// Print an array of {name, value, unit, floor, ratio}
    #[arg(long)]
    json: bool,
    /// Only what has this in its name
    #[arg(long, default_value = "", value_name = "TEXT")]
    only: String,
    /// Rounds of 1024 packets for each figure, whose median it is
    #[arg(long, default_value_t = 301)]
    rounds: usize,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let figures = integration::bench::run(&arguments.only, arguments.rounds, |name| {
        eprintln!("bench: {name}");
    })?;
    if arguments.json {
        println!("{}", integration::bench::json(&figures)?);
    } else {
        print!("\n{}", integration::bench::table(&figures));
    }
    Ok(())
}
