//! Options of `plan`, `apply`, `confirm` and `revert`, and their help.

use std::path::PathBuf;

use clap::Args;

/// See the module.
#[derive(Debug, Args)]
#[command(after_help = PLAN_HELP)]
pub struct PlanFile {
    /// A configuration file; it is read here, and only its text is sent
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print what the control API answers, as JSON
    #[arg(long)]
    pub json: bool,
}

/// See the module.
#[derive(Debug, Args)]
#[command(after_help = APPLY_HELP)]
pub struct Apply {
    /// A configuration file; it is read here, and only its text is sent
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Roll it back unless `dirctl confirm` comes within this time: 1s to 24h
    #[arg(long, value_name = "TIME", value_parser = super::time)]
    pub confirm: Option<u32>,
    /// Write it over the director's own file, once applied, with --confirm once confirmed
    #[arg(long)]
    pub save: bool,
    /// Apply the rest though keys differ that only a restart follows
    #[arg(long)]
    pub ignore_restart: bool,
    /// Print what the control API answers, as JSON
    #[arg(long)]
    pub json: bool,
}

/// See the module.
#[derive(Debug, Args)]
#[command(after_help = SETTLE_HELP)]
pub struct Settle {
    /// Print what the control API answers, as JSON
    #[arg(long)]
    pub json: bool,
}

const PLAN_HELP: &str = "\
Nothing is changed. What is not told stays as it is: also what ipvsadm has changed at run time,
where the file has not changed. + comes, - goes, ~ changes.

Examples:
  dirctl plan new.toml
  dirctl plan new.toml --json | jq '.services[] | select(.action == \"removed\")'
  dirctl plan /etc/switchyard/switchyard.toml    # has the file been changed since it was read?

Exit codes:
  0   nothing would change
  1   something would, or needs a restart
  2   the director is not running
  3   the director cannot be asked: no permission, no answer, another version; mode nlb
  64  wrong usage of this command, or the file is wrong (as `director check` says it)";

const APPLY_HELP: &str = "\
All of the file is followed at once, or nothing is changed. The director's own file stays as it is
without --save: a restart or a reload (SIGHUP) goes back to it.

With --confirm the director itself rolls back when the time is over, whatever has become of this
command, its terminal and the way to the director. Until then `dirctl status` tells how long is left, and
other files and reloads are refused. Connections that were lost stay lost.

Examples:
  dirctl plan new.toml                           # look first
  dirctl apply new.toml --confirm 60s            # do it; still there?
  dirctl confirm                                 # then keep it
  dirctl apply new.toml --confirm 5m --save      # the same, and keep it over restarts

Exit codes:
  0   applied, or there was nothing to change
  1   refused: keys that need a restart, another file waits to be confirmed; or it could not be saved
  2   the director is not running
  3   the director cannot be asked: no permission, no answer, another version; mode nlb
  64  wrong usage of this command, or the file is wrong (as `director check` says it)";

const SETTLE_HELP: &str = "\
Examples:
  dirctl apply new.toml --confirm 60s
  dirctl confirm                                 # it stays
  dirctl revert                                  # or: as before, at once

Exit codes:
  0   done
  1   nothing waits to be confirmed; or the file could not be saved
  2   the director is not running
  3   the director cannot be asked: no permission, no answer, another version; mode nlb
  64  wrong usage of this command";
