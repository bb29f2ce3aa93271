//! The developer's commands behind `cargo xtask`: demo, test, parity, pages, package, bench, paper.
//!
//! Knows cargo, packages and privileges. Must not know the product: what the demo shows and the
//! tests try is in `integration/`.

#![forbid(unsafe_code)]

mod cargo;
mod package;
mod packages;
mod paper;
mod privilege;
mod suites;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Builds, shows, tests and measures Switchyard.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Watch a director spread real HTTP traffic by NAT, tunnel and direct routing
    ///
    /// Builds what it needs, makes a small network of its own in network namespaces, sends
    /// requests from a client through the director to three servers, and prints who answered.
    /// Needs Linux 6.6 or newer and root (it asks sudo when you are not root), and nothing else; leaves nothing
    /// behind.
    Demo {
        /// Passed on to the demo; `cargo xtask demo -- --help` lists them
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Run the test suites: lint, unit, lab, nlb, health, dht, operate, parity, golden, package; all of them without a name
    ///
    /// Installs the Debian packages that a suite needs, and says so before. The lab needs root (it
    /// asks sudo when you are not root). Exit code 0 only when every test of every suite passed.
    Test {
        /// Which suites
        suites: Vec<suites::Suite>,
        /// A subset in under three minutes, for every save
        #[arg(long)]
        quick: bool,
    },
    /// See what Switchyard and the kernel's IPVS each make of the same packets, side by side
    ///
    /// Installs the Debian packages that it needs (`user-mode-linux`, `ipvsadm`), and says so
    /// before. Needs root (it asks sudo when you are not root). Exit code 0 only when nothing
    /// differs.
    Parity {
        /// Names of scenarios; without one, and with --list, prints all there are
        scenarios: Vec<String>,
        /// Print the scenarios' names and what they show
        #[arg(long)]
        list: bool,
        /// Print the verdict only
        #[arg(long, short)]
        quiet: bool,
    },
    /// See figures of the papers behind Switchyard beside our own
    ///
    /// Exit code 0 only when ours are what they should be.
    Paper {
        /// Whose figures
        paper: paper::Paper,
        /// Fewer names: a look at whether it works
        #[arg(long)]
        quick: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the manual pages of all programs and their completions for bash, zsh and fish
    ///
    /// Made of the command lines themselves; prints the files' names.
    Pages {
        /// The folder to write to
        #[arg(default_value = "target/pages")]
        folder: std::path::PathBuf,
    },
    /// Build the Debian package: programs, units, manual pages, completions, examples
    ///
    /// Installs cargo-deb into the target folder if it is not there, and says so before. Prints where the package is.
    Package,
    /// Measure what the director costs, every figure beside its floor
    ///
    /// Per packet, per new connection, per connection kept, on veth pairs, while services change, and at
    /// rest. Builds what it needs. `cargo xtask bench --help` lists the options: --json, --only
    /// TEXT, --svg FILE, --compare A.json B.json, --quick... What needs root is left out without it.
    #[command(disable_help_flag = true)]
    Bench {
        /// Passed on to the program that measures
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Demo { arguments } => demo(&arguments),
        Task::Test { suites, quick } => suites::run(&suites, quick),
        Task::Parity { scenarios, list, quiet } => parity(&scenarios, list, quiet),
        Task::Paper { paper, quick, json } => paper::run(paper, quick, json),
        Task::Bench { arguments } => bench(&arguments),
        Task::Pages { folder } => pages(&folder),
        Task::Package => package(),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn demo(arguments: &[String]) -> Result<bool> {
    eprintln!("demo: building (the first time takes a few minutes)");
    let programs = cargo::build_programs()?;
    let mut command = privilege::as_root(&programs.join("demo"), "the demo")?;
    Ok(command.args(arguments).status()?.success())
}

fn parity(scenarios: &[String], list: bool, quiet: bool) -> Result<bool> {
    let programs = cargo::build_programs()?;
    let program = programs.join("parity");
    if list || scenarios.is_empty() {
        return Ok(std::process::Command::new(program).arg("--list").status()?.success());
    }
    packages::install(&packages::PARITY)?;
    let mut command = privilege::as_root(&program, "the comparison")?;
    if quiet {
        command.arg("--quiet");
    }
    Ok(command.args(scenarios).status()?.success())
}

fn pages(folder: &std::path::Path) -> Result<bool> {
    write_pages(&std::path::absolute(folder)?)?;
    Ok(true)
}

/// Writes manual pages and completions into a folder.
fn write_pages(folder: &std::path::Path) -> Result<()> {
    let run = ["run", "--quiet", "--release", "--locked", "--package", "switchyard"];
    let mut command = cargo::cargo(&run);
    command.args(["--bin", "switchyard-pages", "--"]).arg(folder);
    anyhow::ensure!(command.status()?.success(), "the pages could not be written");
    Ok(())
}

fn package() -> Result<bool> {
    let package = package::build()?;
    println!("{}", package.display());
    Ok(true)
}

fn bench(arguments: &[String]) -> Result<bool> {
    eprintln!("bench: building");
    let programs = cargo::build_programs()?;
    let mut command = std::process::Command::new(programs.join("bench"));
    Ok(command.args(arguments).status()?.success())
}
