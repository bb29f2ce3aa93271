//! Ten thousand services of ten servers each, put into a running director by `ipvsadm -R`, line by
//! line and as a whole, and listed.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::super::Run;
use super::super::figure::{Better, Figure};
use super::super::turns::median;
use super::bed::Bed;
use super::command::Operator;
use super::middle::{Kind, Running};

pub(super) const NAMES: [&str; 3] = ["ipvsadm/restore", "ipvsadm/restore-atomic", "ipvsadm/list"];

/// Seconds that each may take.
const TARGETS: [f64; 3] = [2.0, 2.0, 1.0];

const SERVERS: u64 = 10;

pub(super) fn run(run: &mut Run<'_>, bed: &Bed) -> Result<()> {
    let (services, rounds) = if run.plan.quick { (100, 1) } else { (10_000, 5) };
    run.tell(&format!("ipvsadm: {services} services of {SERVERS} servers, restored and listed"));
    let [rules, listing] = ["rules", "listing"].map(|name| bed.lab.logs().join(name));
    std::fs::write(&rules, text(services)).context("write the rules")?;
    let running = Running::start(Kind::Director, bed)?;
    let Running::Director(director) = &running else { return Ok(()) };
    let operator = Operator::of(director, bed.lab.logs());
    let mut times: [Vec<f64>; 3] = Default::default();
    let mut floors: [Vec<f64>; 3] = Default::default();
    for _ in 0..rounds {
        for (number, options) in [&["-R"][..], &["-R", "--atomic"]].into_iter().enumerate() {
            operator.ipvsadm(&["-C"], None)?;
            let outcome = operator.ipvsadm(options, Some(&rules))?;
            times[number].push(outcome.took.as_secs_f64());
            floors[number].push(operator.cat(&rules)?.took.as_secs_f64());
            times[2].push(listed(&operator, services)?);
            floors[2].push(floor(&operator, &listing)?);
        }
    }
    running.stop()?;
    for (number, name) in NAMES.into_iter().enumerate() {
        let figure = Figure::new(name, median(&times[number]), "s", Better::Less)
            .over(median(&floors[number]), "floor: cat of the same text, through the same pipe")
            .value_target(TARGETS[number], " s")
            .noted(&format!("{services} services x {SERVERS} servers, a running director"));
        run.add(figure);
    }
    Ok(())
}

/// Seconds that listing takes. All must be there.
fn listed(operator: &Operator, services: u64) -> Result<f64> {
    let outcome = operator.ipvsadm(&["-L", "-n"], None)?;
    let (found, wanted) = (outcome.lines, 3 + services * (1 + SERVERS));
    ensure!(found == wanted, "the listing has {found} lines, not {wanted}");
    Ok(outcome.took.as_secs_f64())
}

/// Seconds that copying the same listing takes.
fn floor(operator: &Operator, listing: &Path) -> Result<f64> {
    if !listing.exists() {
        operator.keep(&["-L", "-n"], listing)?;
    }
    Ok(operator.cat(listing)?.took.as_secs_f64())
}

/// The rules, as `ipvsadm -Sn` writes them.
fn text(services: u64) -> String {
    let mut text = String::new();
    for service in 0..services {
        let address = format!("198.18.{}.{}:80", service / 200, service % 200 + 1);
        let _ = writeln!(text, "-A -t {address} -s wlc");
        for server in 1..=SERVERS {
            let _ =
                writeln!(text, "-a -t {address} -r 10.77.{}.{server}:80 -m -w 1", service % 250);
        }
    }
    text
}
