//! The test suites. Each closes with `SUITE: N passed, M failed`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::cargo::{build_programs, cargo, test_programs, workspace};
use crate::{packages, privilege};

/// A suite by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// Formatting, clippy and documentation, warnings denied
    Lint,
    /// Unit and property tests of every crate
    Unit,
    /// End to end in network namespaces, with real clients and servers (root)
    Lab,
    /// Clusters without a dispatcher: in virtual time, and in network namespaces (root)
    Nlb,
    /// Servers that fail, drain, come back and lie, with nginx and HAProxy (root)
    Health,
    /// A farm of DNS caches: one name, one cache (root)
    Dht,
    /// The operator's tools on real faults (root)
    Operate,
    /// Switchyard next to the real kernel IPVS, packet by packet; the agent on a kernel with devices
    /// for tunnels (root)
    Parity,
    /// Our ipvsadm next to the real one, byte by byte; the tools that call it (root)
    Golden,
    /// The Debian package installed, removed and purged in a throwaway copy of the system (root)
    Package,
}

/// The test programs that are suites of their own.
const NLB: &str = "nlb";
const HEALTH: &str = "health";
const DHT: &str = "dht";
const OPERATE: &str = "operate";
const PARITY: &str = "parity";
const GOLDEN: &str = "golden";
const PACKAGE: &str = "package";

/// Comparisons that run at a time: each has a lab of its own, and half of its time it waits for a
/// kernel to start or for counters to settle.
const SIDE_BY_SIDE: usize = 2;

impl Suite {
    const ALL: [Suite; 10] = [
        Suite::Lint,
        Suite::Unit,
        Suite::Lab,
        Suite::Nlb,
        Suite::Health,
        Suite::Dht,
        Suite::Operate,
        Suite::Parity,
        Suite::Golden,
        Suite::Package,
    ];

    fn name(self) -> &'static str {
        match self {
            Suite::Lint => "lint",
            Suite::Unit => "unit",
            Suite::Lab => "lab",
            Suite::Nlb => NLB,
            Suite::Health => HEALTH,
            Suite::Dht => DHT,
            Suite::Operate => OPERATE,
            Suite::Parity => PARITY,
            Suite::Golden => GOLDEN,
            Suite::Package => PACKAGE,
        }
    }
}

/// What a suite came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u32,
    failed: u32,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    fn count(&mut self, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }
}

/// Runs suites one after the other, all of them when none is named. False when a test failed.
///
/// # Errors
/// When a suite could not be run at all.
pub(crate) fn run(suites: &[Suite], quick: bool) -> Result<bool> {
    let suites = if suites.is_empty() { &Suite::ALL[..] } else { suites };
    let mut lines = Vec::new();
    let mut good = true;
    for &suite in suites {
        let start = Instant::now();
        eprintln!("== {} ==", suite.name());
        let tally = match suite {
            Suite::Lint => lint()?,
            Suite::Unit => unit(quick)?,
            Suite::Lab => lab(quick)?,
            Suite::Nlb => nlb(quick)?,
            Suite::Health => health(quick)?,
            Suite::Dht => dht(quick)?,
            Suite::Operate => operate(quick)?,
            Suite::Parity => parity(quick)?,
            Suite::Golden => golden(quick)?,
            Suite::Package => package(quick)?,
        };
        good &= tally.failed == 0 && tally.passed > 0;
        let line = format!("{}: {} passed, {} failed", suite.name(), tally.passed, tally.failed);
        eprintln!("({:.0} s)", start.elapsed().as_secs_f64());
        println!("{line}");
        lines.push(line);
    }
    if lines.len() > 1 {
        eprintln!("\nall suites:");
        lines.iter().for_each(|line| eprintln!("  {line}"));
    }
    Ok(good)
}

/// Arguments of cargo, and one environment variable.
type Check<'a> = (&'a [&'a str], Option<(&'a str, &'a str)>);

fn lint() -> Result<Tally> {
    let checks: [Check<'_>; 3] = [
        (&["fmt", "--all", "--check"], None),
        (&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"], None),
        (
            &["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"],
            Some(("RUSTDOCFLAGS", "-D warnings")),
        ),
    ];
    let mut tally = Tally::default();
    for (arguments, environment) in checks {
        let mut command = cargo(arguments);
        command.envs(environment);
        let passed = command.status().context("cannot run cargo")?.success();
        eprintln!("cargo {}: {}", arguments[0], if passed { "ok" } else { "FAILED" });
        tally.count(passed);
    }
    tally.count(every_file_is_formatted()?);
    Ok(tally)
}

/// `cargo fmt` does not see modules that a macro declares (the schedulers), so every file of the
/// repository is looked at by itself as well.
fn every_file_is_formatted() -> Result<bool> {
    let root = workspace();
    let mut files = Vec::new();
    rust_files(&root, &mut files)?;
    let status = Command::new("rustfmt")
        .args(["--edition", "2024", "--check", "--config-path"])
        .arg(root.join("rustfmt.toml"))
        .args(files)
        .status()
        .context("cannot run rustfmt")?;
    eprintln!("rustfmt: {}", if status.success() { "ok" } else { "FAILED" });
    Ok(status.success())
}

/// All Rust files under `folder`, hidden folders and build output left out.
fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let name = name.to_string_lossy();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" {
                rust_files(&path, files)?;
            }
        } else if name.ends_with(".rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// `quick` runs fewer cases of each property.
fn unit(quick: bool) -> Result<Tally> {
    let mut command =
        cargo(&["test", "--workspace", "--exclude", "integration", "--locked", "--no-fail-fast"]);
    if quick {
        command.env("PROPTEST_CASES", "32");
    }
    let mut tally = follow(&mut command)?;
    let mut library = cargo(&["test", "--package", "integration", "--lib", "--locked"]);
    tally.add(follow(&mut library)?);
    Ok(tally)
}

/// Runs the test programs of `integration/` as root.
fn lab(quick: bool) -> Result<Tally> {
    packages::install(&packages::LAB)?;
    build_programs()?;
    let mut programs = test_programs(&["--release", "--package", "integration", "--test", "*"])?;
    programs
        .retain(|(name, _)| ![NLB, HEALTH, DHT, OPERATE, PARITY, GOLDEN].contains(&name.as_str()));
    as_root(&programs, 1, quick)
}

/// Runs simulated clusters, which print a table, and then real ones, whose figures are gathered in a
/// second table.
fn nlb(quick: bool) -> Result<Tally> {
    packages::install(&packages::NLB)?;
    build_programs()?;
    let mut tally = simulation(quick)?;
    if !quick {
        tally.add(owners()?);
    }
    tally.add(with_figures(NLB, quick, || {
        println!("seconds; broken: connections that should have lived\n{FIGURES}");
    })?);
    Ok(tally)
}

/// Runs servers that fail, and closes with a table of what was measured.
fn health(quick: bool) -> Result<Tally> {
    packages::install(&packages::HEALTH)?;
    build_programs()?;
    with_figures(HEALTH, quick, || {
        println!("{:<64} {:>7} {:>7}", "seconds, or what is said", "figure", "allowed");
    })
}

/// Runs the farm of caches, which prints how many questions reached upstream.
fn dht(quick: bool) -> Result<Tally> {
    packages::install(&packages::DHT)?;
    build_programs()?;
    with_figures(DHT, quick, || println!("questions that reached upstream"))
}

/// Runs the operator's tools on real faults.
fn operate(quick: bool) -> Result<Tally> {
    packages::install(&packages::OPERATE)?;
    build_programs()?;
    let program = test_programs(&["--release", "--package", "integration", "--test", OPERATE])?;
    as_root(&program, 1, quick)
}

/// Runs a test program whose tests print figures; `heading` comes before those, at the end.
fn with_figures(name: &str, quick: bool, heading: impl FnOnce()) -> Result<Tally> {
    let mut tally = Tally::default();
    let programs = test_programs(&["--release", "--package", "integration", "--test", name])?;
    let mut figures = Vec::new();
    for (name, program) in programs {
        eprintln!("-- {name}");
        let mut command = privilege::as_root(&program, "the lab")?;
        command.args(["--test-threads", "1", "--nocapture"]);
        if quick {
            command.arg("quick");
        }
        let seen = |line: &str| match line.strip_prefix("figure: ") {
            Some(figure) => figures.push(figure.to_owned()),
            None => println!("{line}"),
        };
        tally.add(follow_lines(&mut command, seen)?);
    }
    heading();
    figures.iter().for_each(|figure| println!("{figure}"));
    Ok(tally)
}

/// The heading of the lab's table; `integration/tests/nlb/table.rs` writes the lines.
const FIGURES: &str = "case                                   nodes  noticed served again    gap  broken answered twice";

/// Runs clusters in virtual time. A line of their table is a test.
fn simulation(quick: bool) -> Result<Tally> {
    eprintln!("-- simulation");
    let mut command = cargo(&["run", "--release", "--locked", "--quiet", "--package", "nlb"]);
    // One seed of each case: the unit tests have more. Arguments: seeds, the first of them, cases.
    command.args(["--example", "simulation", "--", "1", "1"]);
    if quick {
        command.arg("100 ms");
    }
    let mut tally = Tally::default();
    let closed = follow_lines(&mut command, |line| {
        let is_row = !line.starts_with("case ") && !line.starts_with("seeds ");
        if is_row && !line.starts_with(' ') {
            tally.count(!line.ends_with("FAILED"));
        }
        println!("{line}");
    })?;
    // That it ended badly is known already if a line says so.
    tally.failed = tally.failed.max(closed.failed);
    Ok(tally)
}

/// A million packets for each affinity and number of hosts, each of them taken by exactly one. Among
/// the unit tests, which are not optimised, the same test tries fewer.
fn owners() -> Result<Tally> {
    eprintln!("-- owners");
    let mut command = cargo(&["test", "--release", "--locked", "--package", "nlb", "--lib"]);
    command.args(["--", "owners"]);
    follow_lines(&mut command, |line| println!("{line}"))
}

/// Runs the comparison with the kernel's IPVS, and real servers that have that kernel.
fn parity(quick: bool) -> Result<Tally> {
    packages::install(&packages::PARITY)?;
    build_programs()?;
    let program = test_programs(&["--release", "--package", "integration", "--test", PARITY])?;
    as_root(&program, SIDE_BY_SIDE, quick)
}

/// Runs the comparison with the real ipvsadm, and ldirectord and the scripts of ipvsadm's package on
/// ours.
fn golden(quick: bool) -> Result<Tally> {
    packages::install(&packages::PARITY)?;
    packages::install(&packages::GOLDEN)?;
    build_programs()?;
    let program = test_programs(&["--release", "--package", "integration", "--test", GOLDEN])?;
    // One at a time: the comparison fills two processors by itself.
    as_root(&program, 1, quick)
}

/// Builds the Debian package and tries it. Its test is told where the package is.
fn package(quick: bool) -> Result<Tally> {
    packages::install(&packages::PACKAGE)?;
    let package = crate::package::build()?;
    let programs = test_programs(&["--release", "--package", "switchyard", "--test", PACKAGE])?;
    let mut tally = Tally::default();
    for (name, program) in programs {
        eprintln!("-- {name}");
        // By an argument of env, for sudo passes hardly any variable on.
        let mut command = privilege::as_root(Path::new("/usr/bin/env"), "trying the package")?;
        command.arg(format!("SWITCHYARD_DEB={}", package.display())).arg(program);
        if quick {
            command.arg("quick");
        }
        tally.add(follow(&mut command)?);
    }
    Ok(tally)
}

/// Runs test programs one after the other, so many tests of each at a time. `quick` runs those
/// tests only whose names say so.
fn as_root(programs: &[(String, PathBuf)], at_a_time: usize, quick: bool) -> Result<Tally> {
    let mut tally = Tally::default();
    for (name, program) in programs {
        eprintln!("-- {name}");
        let mut command = privilege::as_root(program, "the lab")?;
        command.args(["--test-threads", &at_a_time.to_string()]);
        if quick {
            command.arg("quick");
        }
        tally.add(follow(&mut command)?);
    }
    Ok(tally)
}

/// Runs a test command, shows its output and adds up its closing lines. A command that fails
/// without a failed test (it did not build, or crashed) counts as one failure.
fn follow(command: &mut Command) -> Result<Tally> {
    follow_lines(command, |line| println!("{line}"))
}

/// As [`follow`]; what is not a closing line is given to `seen`.
fn follow_lines(command: &mut Command, mut seen: impl FnMut(&str)) -> Result<Tally> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot run the tests")?;
    let mut tally = Tally::default();
    let output = child.stdout.take().context("the tests have no output")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        match closing_line(&line) {
            Some(found) => tally.add(found),
            None => seen(&line),
        }
    }
    if !child.wait()?.success() && tally.failed == 0 {
        tally.failed = 1;
    }
    Ok(tally)
}

/// Reads `test result: ok. 12 passed; 0 failed; ...`.
fn closing_line(line: &str) -> Option<Tally> {
    let rest = line.strip_prefix("test result: ")?;
    let number = |word: &str| -> Option<u32> {
        let before = rest.split(word).next()?.trim_end();
        before.rsplit([' ', '.']).next()?.parse().ok()
    };
    Some(Tally { passed: number(" passed")?, failed: number(" failed")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_of_a_test_program_is_understood() {
        let line =
            "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(closing_line(line), Some(Tally { passed: 12, failed: 3 }));
        assert_eq!(closing_line("test wheel::tests::it_turns ... ok"), None);
    }
}
