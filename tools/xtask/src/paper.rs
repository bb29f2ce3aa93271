//! Figures of the papers behind the project, beside our own.
//!
//! Knows which program prints them. Must not know how they come about.

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::cargo::cargo;

/// Whose figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Paper {
    /// The distributed hash table: how evenly it spreads names, and how many move
    Dht,
}

/// Prints them. False when one of ours is not what it should be.
///
/// # Errors
/// When cargo cannot be run.
pub(crate) fn run(paper: Paper, quick: bool, json: bool) -> Result<bool> {
    let (package, example) = match paper {
        Paper::Dht => ("schedulers", "paper_dht"),
    };
    let mut command = cargo(&["run", "--quiet", "--release", "--locked", "--package", package]);
    command.args(["--example", example, "--"]);
    command.args(quick.then_some("--quick")).args(json.then_some("--json"));
    Ok(command.status().context("cannot run cargo")?.success())
}
