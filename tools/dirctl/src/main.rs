//! dirctl: the operator's command for the Switchyard director.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use dirctl::clean::clean;
use dirctl::nlb::old_words::{self, Said};
use dirctl::nlb::verdict;
use dirctl::nlb::way::{NoAnswer, Way};
use dirctl::nlb::{self, Nlb};
use dirctl::paint::Paint;
use dirctl::settings::{self, Assignment};
use dirctl::{events, local_time, servers, status};
use director::control::api::RefusalKind;
use director::control::client::Client;
use director::control::nlb::{NlbReply, NlbRequest};
use director::control::operations::Command;
use director::control::{ClientError, DEFAULT_SOCKET};

/// Asks the director how it is, and commands the nodes of a cluster without one. Services and servers
/// are managed with ipvsadm.
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
    /// Show how the real servers are: state, weights, connections, and why
    #[command(after_help = SERVERS_HELP)]
    Servers {
        /// Only servers of this service: 192.0.2.10:80/tcp, 192.0.2.10, or a firewall mark
        #[arg(value_name = "SERVICE")]
        service: Option<String>,
        /// Print what the control API answers, as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what has happened to real servers, one line each, in local time
    #[command(after_help = EVENTS_HELP)]
    Events {
        /// Go on with events as they come, until interrupted
        #[arg(long, short)]
        follow: bool,
        /// Only events with larger numbers (JSON shows them)
        #[arg(long, value_name = "N", default_value_t = 0)]
        after: u64,
        /// Print what the control API answers, a JSON object to a line
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
    /// Ask and command the nodes of a cluster in mode nlb
    ///
    /// Without --host the node that runs here; --host all asks the others through it. With --cluster and
    /// --key-file over the network, from a machine that runs no node.
    #[command(after_help = NLB_HELP)]
    Nlb(Nlb),
}

const NLB_HELP: &str = "\
Examples:
  dirctl nlb query                          # the cluster, as this host sees it
  dirctl nlb drainstop --deadline 10m       # take this host out, gently
  dirctl nlb start                          # and in again
  dirctl nlb filter tcp 203.0.113.7:40000 192.0.2.10:80 --host all
  dirctl nlb map --dry-run --without 3      # what if host 3 went?
  dirctl nlb query --cluster 192.0.2.10 --key-file cluster.key

Exit codes:
  0   done; a host takes the packet that was asked about; nothing to warn of
  1   a host refused, or warns (query); none of the hosts asked takes the packet
  2   the node is not running
  3   a host cannot be asked, or did not answer
  4   the hosts disagree about a packet
  64  wrong usage of this command, or a request that the node refuses";

const SERVERS_HELP: &str = "\
States:
  up         it gets connections by its weight
  draining   it gets no new ones, and keeps those that it has
  down       it has failed: its connections end as `teardown` of the service says
  unchecked  nobody watches it: the service has no `check` and no `agent`

Weights are those asked for; 100 -> 60 means that schedulers go by 60, because of health or
feedback. Under agent stands how realserver-agent is reached, the round trip, and the load that it
reports. Lines below a server say why it is so.

Examples:
  dirctl servers                       # all
  dirctl servers 192.0.2.10:80/tcp     # those of one service
  dirctl servers --json | jq -r '.[] | select(.state == \"down\") | .address'

Exit codes:
  0   all are up, or nobody watches them
  1   some are draining or down
  2   the director is not running
  3   the director cannot be asked: no permission, no answer, another version
  64  wrong usage of this command, or no such service";

const EVENTS_HELP: &str = "\
The director remembers the last 4096 events since it started. If there were more between the last
line and the next, a line says how many are forgotten.

Events:
  server_up, server_draining, server_down
  weight_changed                     the effective weight: feedback, or an operator
  direction_lost, direction_back     an agent is not heard any more; it is heard again
  direction_mode                     it is reached another way: UDP, TCP
  server_restarted                   its connections are dead, though it can be reached
  all_down, some_up                  of a service
  agent_refused, check_unable        something is set up wrong

Examples:
  dirctl events                        # what has happened
  dirctl events --follow               # and what happens from now on
  dirctl events --json --follow | while read -r event; do ...; done

Exit codes:
  0   done
  2   the director is not running
  3   the director cannot be asked, or has ended while it was followed
  64  wrong usage of this command";

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
    let mut words = std::env::args_os();
    let own = words.next().unwrap_or_default();
    let own = Path::new(&own).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if own == "nlb" || own == "wlbs" {
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        return speak_old(own, &words);
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // clap's own code for wrong usage would be 2, which here means that nobody is there.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    let socket = socket(arguments.socket);
    if let Subcommands::Nlb(words) = &arguments.command {
        return ExitCode::from(ask_nodes(&socket, words));
    }
    let outcome = match arguments.command {
        Subcommands::Nlb(_) => Ok(0),
        Subcommands::Status { json } => show_status(&socket, json),
        Subcommands::Servers { service, json } => show_servers(&socket, service.as_deref(), json),
        Subcommands::Events { follow, after, json } => show_events(&socket, after, follow, json),
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
        pretty(socket, serde_json::to_string_pretty(&status))?
    } else {
        status::text(&status, paint())
    };
    print(&text);
    Ok(if status.warnings.is_empty() { 0 } else { WARNINGS })
}

/// JSON as a text of its own.
fn pretty(socket: &Path, text: serde_json::Result<String>) -> Result<String, ClientError> {
    let text = text.map_err(io::Error::from);
    let text = text.map_err(|error| ClientError::System { path: socket.to_path_buf(), error })?;
    Ok(text + "\n")
}

fn show_servers(socket: &Path, service: Option<&str>, json: bool) -> Result<u8, ClientError> {
    let mut servers = Client::connect(socket)?.servers()?;
    if let Some(word) = service {
        servers.retain(|server| servers::is_meant(&server.service, word));
        if servers.is_empty() {
            let word = clean(word);
            let _ = writeln!(io::stderr(), "dirctl: no service {word:?} with servers is there");
            return Ok(USAGE);
        }
    }
    let text = if json {
        pretty(socket, serde_json::to_string_pretty(&servers))?
    } else {
        servers::text(&servers, paint())
    };
    print(&text);
    Ok(if servers::are_all_up(&servers) { 0 } else { WARNINGS })
}

fn show_events(socket: &Path, after: u64, follow: bool, json: bool) -> Result<u8, ClientError> {
    let (zone, paint) = (local_time::here(), paint());
    let mut output = io::stdout();
    Client::connect(socket)?.events(after, follow, |told| {
        let line = if json { events::json(&told) } else { events::line(&told, &zone, paint) };
        let written = output.write_all(line.as_bytes()).and_then(|()| output.flush());
        // A reader that has left wants no more.
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(0)
}

/// `dirctl nlb ...`
fn ask_nodes(socket: &Path, words: &Nlb) -> u8 {
    let command = match words.command.command() {
        Ok(command) => command,
        Err(problem) => {
            let _ = writeln!(io::stderr(), "dirctl: {problem}");
            return USAGE;
        }
    };
    let way = match (words.cluster, &words.key_file) {
        (Some(to), Some(key)) => Way::over_network(to, key),
        _ => Ok(Way::Socket(socket.to_owned())),
    };
    let request = NlbRequest { command, hosts: words.host.clone() };
    let outcome = nlb::local(&request).map_or_else(
        || {
            let way = way?;
            let reply = way.ask(&request)?;
            if nlb::waits(words, &reply) {
                nlb::progress::watch(&way, words.host.as_deref(), &mut io::stdout())
            } else {
                Ok(reply)
            }
        },
        Ok,
    );
    match outcome {
        Ok(reply) => {
            print(&nlb::show(words, &reply, paint()));
            verdict::code(&reply)
        }
        Err(error) => complain("dirctl", &error),
    }
}

/// `nlb ...` and `wlbs ...`
fn speak_old(own: &str, words: &[String]) -> ExitCode {
    let said = match old_words::parse(words) {
        Ok(said) => said,
        Err(problem) => {
            let _ = writeln!(io::stderr(), "{own}: {problem}");
            return ExitCode::from(USAGE);
        }
    };
    let Some(said) = said else {
        print(&old_words::help(own));
        return ExitCode::from(0);
    };
    for note in &said.notes {
        let _ = writeln!(io::stderr(), "{own}: {note}");
    }
    ExitCode::from(match ask_in_old_words(&said) {
        Ok(reply) => {
            print(&old_words::text(&said, &reply));
            verdict::code(&reply)
        }
        Err(error) => complain(own, &error),
    })
}

fn ask_in_old_words(said: &Said) -> Result<NlbReply, NoAnswer> {
    if let Some(reply) = nlb::local(&said.request) {
        return Ok(reply);
    }
    let way = match (said.cluster, &said.key_file) {
        (Some(to), Some(key)) => Way::over_network(to, key)?,
        _ => Way::Socket(socket(None)),
    };
    if let (Some(cluster), Way::Socket(_)) = (said.cluster, &way) {
        way.is_of(cluster)?;
    }
    way.ask(&said.request)
}

/// Says why there is no answer, and gives the exit code for it.
fn complain(own: &str, error: &NoAnswer) -> u8 {
    let remedy = match error {
        NoAnswer::Client(error) => error.remedy(),
        NoAnswer::Network(..) | NoAnswer::Key(..) | NoAnswer::OtherCluster { .. } => None,
    };
    let remedy = remedy.map(|remedy| format!("{remedy}\n")).unwrap_or_default();
    let _ = write!(io::stderr(), "{own}: {error}\n{remedy}");
    match error {
        NoAnswer::Client(ClientError::NotRunning { .. }) => NOT_RUNNING,
        NoAnswer::Client(ClientError::Refused { refusal, .. })
            if matches!(refusal.error, RefusalKind::Invalid | RefusalKind::BadRequest) =>
        {
            USAGE
        }
        NoAnswer::Key(..) | NoAnswer::OtherCluster { .. } => USAGE,
        _ => CANNOT_ASK,
    }
}
