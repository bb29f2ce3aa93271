//! The program behind `cargo xtask bench`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use integration::bench;

/// Measures what the director costs, every figure beside its floor: nanoseconds per packet, new
/// connections per second, bytes per connection, throughput and latency on veth pairs,
/// publication of services under load, CPU time at rest, and `ipvsadm` with large tables.
///
/// Figures on veth pairs and of a running director need root and are left out without it. The machine
/// should have nothing else to do. Takes about ten minutes.
#[derive(Parser)]
#[command(name = "bench", bin_name = "cargo xtask bench", version)]
struct Arguments {
    /// Print an array of objects: name, value, unit, floor, ratio, targets...
    #[arg(long)]
    json: bool,
    /// Print tables in Markdown, as in docs/performance.md
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Only what has this in its name, as in "pipeline/nat/1000000"
    #[arg(long, default_value = "", value_name = "TEXT")]
    only: String,
    /// Small sizes and few rounds: shows that everything works, its figures are worth nothing
    #[arg(long)]
    quick: bool,
    /// Rounds of 256 packets for each figure over a memory port (800): more for a profiler
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Have the scheduler put this session before all others meanwhile, on a machine that has
    /// other work (root)
    #[arg(long)]
    prefer: bool,
    /// Also write the figures to FILE as a chart
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Also write the figures to FILE as JSON, for --compare
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Measure nothing: show the figures of FILE again, as a table, --markdown or --svg
    #[arg(long, value_name = "FILE", conflicts_with_all = ["only", "quick", "save"])]
    show: Option<PathBuf>,
    /// Measure nothing: print what has become of the figures of one file in another
    #[arg(long, num_args = 2, value_names = ["A.json", "B.json"], conflicts_with_all = ["only", "quick"])]
    compare: Option<Vec<PathBuf>>,
    /// Bytes per connection by so many connections, in this process; for bench itself
    #[arg(long, hide = true, value_name = "CONNECTIONS")]
    measure_memory: Option<u32>,
    /// Connections over IPv6
    #[arg(long, hide = true, requires = "measure_memory")]
    ipv6: bool,
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
    if let Some(connections) = arguments.measure_memory {
        let bytes = bench::measure_memory(connections, !arguments.ipv6)?;
        println!("{}", serde_json::to_string(&bytes)?);
        return Ok(());
    }
    if let Some([before, after]) = arguments.compare.as_deref() {
        print!("{}", bench::compare(&read(before)?, &read(after)?));
        return Ok(());
    }
    let (figures, machine) = match &arguments.show {
        Some(file) => {
            let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
            (read(file)?, format!("Figures of {name}"))
        }
        None => measure(arguments)?,
    };
    let json = bench::json(&figures)?;
    if let Some(file) = &arguments.save {
        write(file, &json)?;
    }
    if let Some(file) = &arguments.svg {
        write(file, &bench::chart(&figures, &machine))?;
    }
    if arguments.json {
        println!("{json}");
    } else if arguments.markdown {
        print!("{}", bench::markdown(&figures, &machine));
    } else {
        print!("\n{}", bench::table(&figures, &machine));
    }
    Ok(())
}

/// The figures, and the machine as it was before we made it busy.
fn measure(arguments: &Arguments) -> Result<(Vec<bench::Figure>, String)> {
    let machine = bench::describe();
    let _preference = arguments.prefer.then(bench::Preference::ask).transpose()?;
    let Arguments { only, quick, rounds, .. } = arguments;
    let plan = bench::Plan { only: only.clone(), quick: *quick, rounds: *rounds };
    Ok((bench::run(&plan, &mut |what| eprintln!("bench: {what}"))?, machine))
}

fn read(file: &Path) -> Result<Vec<bench::Figure>> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("{}: cannot be read", file.display()))?;
    bench::parse(&text)
        .with_context(|| format!("{}: not what `cargo xtask bench --json` prints", file.display()))
}

fn write(file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text).with_context(|| format!("{}: cannot be written", file.display()))
}
