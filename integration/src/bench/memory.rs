//! Bytes per connection, as the kernel counts the memory of a process.
//!
//! Each size is measured in a process of its own: what another measurement has freed would be
//! used again and not be counted.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::Run;
use super::director::{Director, Setup};
use super::figure::{Better, Figure};
use super::floor::lines;
use super::flows::{open, while_memory_lasts};
use super::machine;
use crate::programs;
use ::director::control::api::Forwarding;

/// The most that is wanted, in bytes.
const LIMIT: f64 = 80.0;

/// Connections that are opened first, so that buffers are there before the count.
const WARM: u32 = 1024;

/// What is measured: name, connections, IPv4.
fn cases(quick: bool) -> Vec<(&'static str, u32, bool)> {
    match quick {
        true => vec![("memory/connection", 100_000, true)],
        false => vec![
            ("memory/connection", 10_000_000, true),
            ("memory/connection/1000000", 1_000_000, true),
            ("memory/connection-ipv6/1000000", 1_000_000, false),
        ],
    }
}

pub(super) fn run(run: &mut Run<'_>) -> Result<()> {
    for (name, connections, v4) in cases(run.plan.quick) {
        if !run.wants(name) {
            continue;
        }
        run.tell(&format!("{name}: {connections} connections"));
        let family = if v4 { "IPv4" } else { "IPv6" };
        match in_a_process_of_its_own(connections, v4) {
            Ok([bytes, line]) => run.add(
                Figure::new(name, bytes, "bytes", Better::Less)
                    .over(line, "floor: a table with one line of 64 bytes for each")
                    .noted(&format!("growth of VmRSS by {connections} {family} connections by NAT"))
                    .value_target(LIMIT, " bytes"),
            ),
            Err(error) => run.tell(&format!("left out: {name}: {error:#}")),
        }
    }
    Ok(())
}

fn in_a_process_of_its_own(connections: u32, v4: bool) -> Result<[f64; 2]> {
    let mut command = Command::new(programs::path("bench")?);
    command.args(["--measure-memory", &connections.to_string()]);
    if !v4 {
        command.arg("--ipv6");
    }
    let output = command.stdin(Stdio::null()).output().context("cannot run bench again")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}", output.status, said.trim());
    serde_json::from_slice(&output.stdout).context("bench --measure-memory prints two numbers")
}

/// Bytes by which this process grows for each of so many connections, and for each line of a table
/// of as many lines. For a process that has done nothing else.
///
/// # Errors
/// When there is not enough memory, or the kernel does not tell how much is used.
pub fn measure_here(connections: u32, v4: bool) -> Result<[f64; 2]> {
    ensure!(connections > WARM, "more than {WARM} connections, or there is nothing to measure");
    let setup = Setup { forwarding: Forwarding::Nat, v4, scheduler: "rr", servers: 3 };
    let limit = connections as usize + connections as usize / 8;
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(2);
    let mut director = Director::new(&setup, workers, limit)?;
    open(&mut director, &setup, 0..WARM, false, &while_memory_lasts)?;
    let before = resident()?;
    open(&mut director, &setup, WARM..connections, false, &while_memory_lasts)?;
    let grown = resident()?.saturating_sub(before);
    let bytes = grown as f64 / f64::from(connections - WARM);
    let before = resident()?;
    let table = lines(connections as usize);
    let line = resident()?.saturating_sub(before) as f64 / f64::from(connections);
    drop(table);
    Ok([bytes, line])
}

fn resident() -> Result<u64> {
    machine::resident().context("/proc/self/status has no VmRSS")
}
