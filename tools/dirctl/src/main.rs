//! dirctl: the operator's command for the Switchyard director.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use dirctl::paint::Paint;
use dirctl::settings::{self, Assignment};
use dirctl::status;
use director::control::api::RefusalKind;
use director::control::client::Client;
use director::control::operations::Command;
use director::control::{ClientError, DEFAULT_SOCKET};

/// Asks the director how it is. Services and servers are managed with ipvsadm.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
struct Arguments {
    /// Control socket of the director
    ///
    /// Without this option it is what SWITCHYARD_SOCKET says, or /run/director/control.sock.
    #[arg(long, global = true, value_name = "PATH")]
    socket: Option<PathBuf>,
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// Show version, ports, connections, packet counters and warnings
    #[command(after_help = EXIT_CODES)]
    Status {
        /// Print what the control API answers, as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the settings that kernel IPVS has as sysctls, or change some of them
    ///
    /// What is changed here holds until the director ends or its configuration file says otherwise.
    #[command(after_help = EXIT_CODES)]
    Settings {
        /// New values; all of them are set or none
        #[arg(value_name = "NAME=VALUE")]
        assignments: Vec<Assignment>,
    },
}

const EXIT_CODES: &str = "\
Exit codes:
  0   all is well
  1   the director runs, and has warnings
  2   the director is not running
  3   the director cannot be asked: no permission, no answer, another version
  64  wrong usage of this command, or a setting that the director refuses";

const WARNINGS: u8 = 1;
const NOT_RUNNING: u8 = 2;
const CANNOT_ASK: u8 = 3;
const USAGE: u8 = 64;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // clap's own code for wrong usage would be 2, which here means that nobody is there.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    let socket = socket(arguments.socket);
    let outcome = match arguments.command {
        Subcommands::Status { json } => show_status(&socket, json),
        Subcommands::Settings { assignments } => settle(&socket, assignments),
    };
    ExitCode::from(match outcome {
        Ok(code) => code,
        Err(error) => {
            let remedy = error.remedy().map(|remedy| format!("{remedy}\n"));
            // `eprintln!` panics when standard error is closed; then nobody is there to be told.
            let _ = write!(io::stderr(), "dirctl: {error}\n{}", remedy.unwrap_or_default());
            match error {
                ClientError::NotRunning { .. } => NOT_RUNNING,
                ClientError::Refused { refusal, .. } if refusal.error == RefusalKind::Invalid => {
                    USAGE
                }
                _ => CANNOT_ASK,
            }
        }
    })
}

/// Where the director listens: as the option says, else the environment, else as always.
fn socket(option: Option<PathBuf>) -> PathBuf {
    option
        .or_else(|| std::env::var_os("SWITCHYARD_SOCKET").map(PathBuf::from))
        .filter(|path| !path.as_os_str().is_empty())
        .unwrap_or_else(|| PathBuf::from(DEFAULT_SOCKET))
}

/// How to write to standard output.
fn paint() -> Paint {
    let variable = |name| std::env::var(name).ok();
    let (no_color, term) = (variable("NO_COLOR"), variable("TERM"));
    Paint::new(io::stdout().is_terminal(), no_color.as_deref(), term.as_deref())
}

/// A reader that has left is no concern of ours.
fn print(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

fn settle(socket: &Path, assignments: Vec<Assignment>) -> Result<u8, ClientError> {
    let mut client = Client::connect(socket)?;
    if assignments.is_empty() {
        print(&settings::text(&client.settings()?, paint()));
        return Ok(0);
    }
    let settings = assignments.into_iter().map(|one| (one.name, one.value)).collect();
    client.apply(&[Command::SetSettings { settings }])?;
    Ok(0)
}

fn show_status(socket: &Path, json: bool) -> Result<u8, ClientError> {
    let status = Client::connect(socket)?.status()?;
    let text = if json {
        let text = serde_json::to_string_pretty(&status).map_err(io::Error::from);
        text.map_err(|error| ClientError::System { path: socket.to_path_buf(), error })? + "\n"
    } else {
        status::text(&status, paint())
    };
    print(&text);
    Ok(if status.warnings.is_empty() { 0 } else { WARNINGS })
}
