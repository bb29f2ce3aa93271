//! The program `realserver-agent`: see `realserver-agent run --help`.

#![forbid(unsafe_code)]

use clap::Parser;

fn main() -> anyhow::Result<()> {
    realserver_agent::cli::execute(realserver_agent::cli::Cli::parse())
}
