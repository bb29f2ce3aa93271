//! `dirctl doctor`: examines the machine that it runs on, and names what is wrong with the command
//! that remedies it.
//!
//! ```text
//!   facts/     what the kernel, the segment, the director and the agent say     asks, judges nothing
//!   director/  what that means on a director, area by area                      pure
//!   server/    the same on a real server                                        pure
//!   finding    one finding, and why each thing matters
//!   report     findings as text and as JSON
//! ```
//!
//! Nothing is changed, and nobody is sent more than a question: who has the VIP (ARP, neighbour
//! discovery), and how the agent of this machine is.

pub mod director;
pub mod facts;
pub mod finding;
mod gather;
pub mod report;
pub mod server;

use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ::director::control::ClientError;
use ::director::control::client::Client;
use clap::{Args, ValueEnum};
use realserver_agent::settings::Mode;

use crate::clean::clean;
use crate::outlet::{CANNOT_ASK, USAGE, WARNINGS, complain, paint, print};
use report::Report;

/// The file that is looked at where none is named: the director's own default.
const DEFAULT_CONFIG: &str = "/etc/switchyard/switchyard.toml";

/// `dirctl doctor ...`
#[derive(Clone, Debug, Default, Args)]
pub struct Doctor {
    /// Configuration file
    ///
    /// Without this option the running director's own, or on a real server
    /// /etc/switchyard/switchyard.toml.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Which part this machine plays
    ///
    /// Without this option: the director's where one runs, else a real server's where the file names
    /// one of this host's addresses as a server.
    #[arg(long, value_enum)]
    pub side: Option<Side>,
    /// Address of a director, on a real server: where NAT answers must go
    ///
    /// Without this option those who have asked the agent.
    #[arg(long, value_name = "ADDRESS")]
    pub director: Vec<IpAddr>,
    /// Print the findings as JSON, all of them
    #[arg(long)]
    pub json: bool,
    /// Show what is good, too
    #[arg(long, short)]
    pub verbose: bool,
}

/// Which part a machine plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// It forwards.
    Director,
    /// It serves.
    Server,
}

/// What else can be done where no director runs.
const WITHOUT: &str = "What would be wrong says `dirctl doctor --config FILE`; on a real server, \
                       `dirctl doctor --side server`.\n";

/// The end of `dirctl doctor --help`.
pub const HELP: &str = "\
Each finding says what was looked at, what was found, why it matters, and the command that remedies
it, with the machine to run it on when it is another one. Nothing is changed. It takes two seconds:
what grows in one of them is told.

  fault      clients notice it
  warning    some clients notice it, or all will in time
  note       worth knowing

Examples:
  sudo dirctl doctor                          # on the director
  sudo dirctl doctor --config new.toml        # before there is one: what would be wrong
  sudo dirctl doctor --side server            # on a real server, with the director's file there
  sudo dirctl doctor --json | jq -r '.findings[] | select(.severity == \"fault\") | .remedy[]'

Exit codes:
  0   no warnings and no faults
  1   some
  2   the director is not running, and no file was named
  3   the director cannot be asked, or the kernel: no permission, no answer
  64  wrong usage of this command, or a file that does not name this host (--side server)";

/// Carries it out and gives the exit code.
pub fn run(socket: &Path, words: &Doctor) -> u8 {
    let report = match words.side {
        Some(Side::Server) => on_server(words, &words.file()),
        side => match Client::connect(socket) {
            Ok(client) => on_director(socket, words, Some(client)),
            Err(error @ ClientError::NotRunning { .. }) => {
                if side.is_none() && is_server(&words.file()) {
                    on_server(words, &words.file())
                } else if words.config.is_some() {
                    on_director(socket, words, None)
                } else {
                    let code = complain(&error);
                    let _ = io::stderr().write_all(WITHOUT.as_bytes());
                    return code;
                }
            }
            Err(error) => return complain(&error),
        },
    };
    match report {
        Ok(report) => {
            if words.json {
                print(
                    &serde_json::to_string_pretty(&report)
                        .map_or_else(|_| String::new(), |it| it + "\n"),
                );
            } else {
                print(&report.text(words.verbose, paint()));
            }
            if report.is_good() { 0 } else { WARNINGS }
        }
        Err(Trouble::Director(error)) => complain(&error),
        Err(Trouble::Kernel(error)) => say(&error, CANNOT_ASK),
        Err(Trouble::File(error)) => say(&error, USAGE),
    }
}

/// Why there is no examination.
#[derive(Debug)]
enum Trouble {
    /// The director does not answer.
    Director(ClientError),
    /// The kernel does not.
    Kernel(String),
    /// The file does not say what this host is there for.
    File(String),
}

impl Doctor {
    fn file(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_CONFIG))
    }
}

fn on_director(socket: &Path, words: &Doctor, client: Option<Client>) -> Result<Report, Trouble> {
    let facts = gather::director(socket, words.config.as_deref(), client)?;
    Ok(Report::new("director", facts.examine()))
}

fn on_server(words: &Doctor, file: &Path) -> Result<Report, Trouble> {
    let facts = gather::server(file, &words.director)?;
    Ok(Report::new("server", facts.examine()))
}

/// Whether the file makes this host a real server and nothing else.
fn is_server(file: &Path) -> bool {
    gather::role(file).is_ok_and(|(settings, _)| settings.mode == Mode::Dispatcher)
}

fn say(error: &str, code: u8) -> u8 {
    let lines: Vec<String> = error.lines().map(clean).collect();
    let _ = writeln!(io::stderr(), "dirctl: {}", lines.join("\n"));
    code
}
