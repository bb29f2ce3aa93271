//! The program `realserver-agent`: see `realserver-agent run --help`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use realserver_agent::cli::{Cli, USAGE, execute, exit_code};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version are told this way, too.
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    match execute(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}
