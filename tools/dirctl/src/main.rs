//! dirctl: the operator's command for the Switchyard director.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use dirctl::arguments::{Arguments, Subcommands};
use dirctl::clean::clean;
use dirctl::nlb::old_words::{self, Said};
use dirctl::nlb::verdict;
use dirctl::nlb::way::{NoAnswer, Way};
use dirctl::nlb::{self, Nlb};
use dirctl::outlet::{
    CANNOT_ASK, NOT_RUNNING, USAGE, WARNINGS, complain, end, paint, pretty, print, wrote,
};
use dirctl::settings::{self, Assignment};
use dirctl::{
    capture, doctor, drops, events, explain, local_time, plan, replay, servers, status, top,
};
use director::control::api::RefusalKind;
use director::control::client::Client;
use director::control::nlb::{NlbReply, NlbRequest};
use director::control::operations::Command;
use director::control::plan::Verdict;
use director::control::{ClientError, DEFAULT_SOCKET};

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
            if error.use_stderr() {
                let _ = error.print();
                return ExitCode::from(USAGE);
            }
            wrote(error.print());
            return end(0);
        }
    };
    let socket = socket(arguments.socket);
    if let Subcommands::Nlb(words) = &arguments.command {
        return end(ask_nodes(&socket, words));
    }
    if let Subcommands::Doctor(words) = &arguments.command {
        return end(doctor::run(&socket, words));
    }
    let outcome = match arguments.command {
        Subcommands::Nlb(_) | Subcommands::Doctor(_) => Ok(0),
        Subcommands::Explain(words) => Ok(explain::run(&socket, &words)),
        Subcommands::Capture(words) => Ok(capture::run(&socket, &words)),
        Subcommands::Drops(words) => drops::run(&socket, &words),
        Subcommands::Replay(words) => Ok(replay::run(&socket, &words)),
        Subcommands::Plan(words) => plan::plan(&socket, &words),
        Subcommands::Apply(words) => plan::apply(&socket, &words),
        Subcommands::Confirm(words) => plan::settle(&socket, Verdict::Confirm, &words),
        Subcommands::Revert(words) => plan::settle(&socket, Verdict::Revert, &words),
        Subcommands::Status { json } => show_status(&socket, json),
        Subcommands::Servers { service, json } => show_servers(&socket, service.as_deref(), json),
        Subcommands::Events { follow, after, json } => show_events(&socket, after, follow, json),
        Subcommands::Top(words) => Ok(top::run(&socket, &words)),
        Subcommands::Settings { assignments } => settle(&socket, assignments),
    };
    end(outcome.unwrap_or_else(|error| complain(&error)))
}

/// Where the director listens: as the option says, else the environment, else as always.
fn socket(option: Option<PathBuf>) -> PathBuf {
    option
        .or_else(|| std::env::var_os("SWITCHYARD_SOCKET").map(PathBuf::from))
        .filter(|path| !path.as_os_str().is_empty())
        .unwrap_or_else(|| PathBuf::from(DEFAULT_SOCKET))
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
        if wrote(written) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
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
        Err(error) => complain_of_nodes("dirctl", &error),
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
        return end(0);
    };
    for note in &said.notes {
        let _ = writeln!(io::stderr(), "{own}: {note}");
    }
    end(match ask_in_old_words(&said) {
        Ok(reply) => {
            print(&old_words::text(&said, &reply));
            verdict::code(&reply)
        }
        Err(error) => complain_of_nodes(own, &error),
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
fn complain_of_nodes(own: &str, error: &NoAnswer) -> u8 {
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
