//! The demo: real HTTP through a real director, by every method and over both families; then, with
//! one word changed in its file, without a director, also while a host dies.

mod cluster;
mod report;
mod scenario;

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};

use crate::http::{Plan, Progress, Tally};
use crate::programs;
use crate::running::Director;
use crate::topology::{Options, Topology};
pub use scenario::{METHODS, Method};

/// One row of the closing table: what one scenario came to.
#[derive(Clone, Debug)]
pub struct Row {
    /// NAT, tunnel or direct; or nlb, where nobody forwards.
    pub method: &'static str,
    /// IPv4 or IPv6.
    pub family: &'static str,
    /// Which scheduler chose.
    pub scheduler: &'static str,
    /// Who answered.
    pub tally: Tally,
    /// How many were asked for.
    pub wanted: u64,
}

impl Row {
    /// Whether every request was answered.
    pub fn is_whole(&self) -> bool {
        self.tally.answered() == self.wanted && self.tally.failed() == 0
    }
}

/// Runs all scenarios with `requests` requests each and prints what happens. True when every
/// request was carried.
///
/// # Errors
/// When the lab or a director cannot be set up.
pub fn run(requests: u64) -> Result<bool> {
    crate::lab::supported()?;
    crate::lab::sweep()?;
    let mut rows = Vec::new();
    let mut listings = Vec::new();
    for method in METHODS {
        say(&format!("\n{}: building a client, a director and three servers", method.name));
        let (found, listing) =
            show(method, requests).with_context(|| format!("scenario {}", method.name))?;
        rows.extend(found);
        listings.push((method, listing));
    }
    for (method, listing) in listings {
        println!("\n{}: ipvsadm -L -n --stats\n{}", method.name, listing.trim_end());
    }
    let (without, death) = cluster::show(requests).context("scenario nlb")?;
    rows.extend(without);
    println!("\n{}\n{}", report::table(&rows), death.sentence());
    let whole = rows.iter().filter(|row| row.is_whole()).count();
    println!("demo: {whole} of {} scenarios carried every request", rows.len());
    Ok(whole == rows.len() && death.is_survived())
}

/// One method, both families. Everything it builds is gone when it returns.
fn show(method: &Method, requests: u64) -> Result<(Vec<Row>, String)> {
    let topology = Topology::build(method.kind, &Options::default())?;
    let lab_program = programs::path("switchyard-lab")?;
    let _web = topology.start_web(&lab_program, 80, 512)?;
    let _agents = match method.needs_agents() {
        true => topology.start_agents(&lab_program)?,
        false => Vec::new(),
    };
    let director = Director::start(&topology.lab, &topology.director, &method.config(&topology))?;
    if let Some(line) = director.process().log().lines().find(|line| line.contains("packets:")) {
        say(&format!("  {}", line.split("packets:").nth(1).unwrap_or(line).trim()));
    }
    let mut rows = Vec::new();
    for (family, vip) in scenario::FAMILIES {
        let plan = Plan::new(SocketAddr::new(vip, 80), requests);
        let title = format!("  {family}  {requests} requests to {}", plan.target);
        let tally = topology.fetch(&plan, |progress| show_progress(&title, progress))?;
        finish_progress(&title, &tally);
        rows.push(Row {
            method: method.name,
            family,
            scheduler: method.scheduler,
            tally,
            wanted: requests,
        });
    }
    let listing = director.ipvsadm(&["-L", "-n", "--stats"])?;
    let lost = director.status()?.warnings;
    ensure!(lost.is_empty(), "the director warns: {}", lost.join("; "));
    director.stop()?;
    Ok((rows, listing))
}

fn say(line: &str) {
    eprintln!("{line}");
}

/// A line that is written over while requests go on; nothing when nobody watches.
fn show_progress(title: &str, progress: Progress) {
    let mut err = std::io::stderr();
    if err.is_terminal() && (progress.done.is_multiple_of(20) || progress.done == progress.count) {
        let filled = (progress.done * 30 / progress.count.max(1)) as usize;
        let bar: String = "#".repeat(filled) + &".".repeat(30 - filled);
        // A progress bar that cannot be drawn is no reason to stop.
        let _ = write!(err, "\r{title} [{bar}] {}", progress.done);
        let _ = err.flush();
    }
}

fn finish_progress(title: &str, tally: &Tally) {
    let erase = if std::io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
    say(&format!(
        "{erase}{title}: {} answered, {} failed, {:.1} s",
        tally.answered(),
        tally.failed(),
        tally.seconds
    ));
    for (error, count) in &tally.errors {
        say(&format!("    {count} times: {error}"));
    }
}
