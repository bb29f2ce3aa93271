//! The director: checks its configuration file, or runs.

#![forbid(unsafe_code)]

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use director::cli::{self, Arguments};
use director::config::ConfigError;
use tracing_subscriber::EnvFilter;

/// Exit code for a file that is wrong.
const WRONG_FILE: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter =
        EnvFilter::try_from_env("SWITCHYARD_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
    if let Some(file) = arguments.checked() {
        return check(file);
    }
    // What operators list and order is done by threads of its own, after packets and housekeeping.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_start(|| drop(netio::set_niceness(0)))
        .build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(director::process::run(arguments.config)),
        Err(error) => Err(error.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<ConfigError>() => {
            eprintln!("{}", cli::printable(&error.to_string()));
            ExitCode::from(WRONG_FILE)
        }
        Err(error) => {
            eprintln!("director: {}", cli::printable(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

fn check(file: &Path) -> ExitCode {
    match director::config::load(file) {
        Ok(config) => {
            // A reader that has left is no concern of ours.
            let _ = std::io::stdout().write_all(cli::declared(file, &config).as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}", cli::printable(&error.to_string()));
            ExitCode::from(WRONG_FILE)
        }
    }
}
