//! The command line, and what `check` says. Pages and completions are made of these types.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

use crate::config::{Config, Mode};

/// Where the configuration file is expected.
pub const CONFIG: &str = "/etc/switchyard/switchyard.toml";

/// Services that `check` lists one by one, at most.
const LISTED: usize = 50;

/// A layer-4 load balancer that takes packets from the network card before the kernel's stack
/// sees them, and decides as Linux IPVS decides.
///
/// It needs root, or CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF, CAP_PERFMON and CAP_IPC_LOCK (instead of
/// the last a large enough limit of locked memory: LimitMEMLOCK=infinity). SIGHUP reads the
/// configuration again: only what differs is changed. SIGTERM ends it; the kernel then has the
/// traffic back at once. While it runs, `ipvsadm` and `dirctl status` talk to its control socket.
///
/// Exit codes: 0 ended by a signal, 1 could not start or had to stop, 2 wrong configuration or
/// usage.
#[derive(Debug, Parser)]
#[command(name = "director", version, after_help = EXAMPLES)]
pub struct Arguments {
    /// Configuration file
    #[arg(long, short, default_value = CONFIG, value_name = "FILE")]
    pub config: PathBuf,

    /// Check the configuration file, say what it declares, and end; `director check FILE` does the same
    #[arg(long)]
    pub check: bool,

    /// What to do instead of running
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What is done instead of running.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check a configuration file, say what it declares, and end
    ///
    /// Touches nothing, needs no privilege, and asks no running director. Everything that is wrong is
    /// reported at once, with line, key and remedy.
    #[command(after_help = CHECK_HELP)]
    Check {
        /// The file; without it that of --config
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

impl Arguments {
    /// The file to be checked, if that is what is asked for.
    pub fn checked(&self) -> Option<&Path> {
        match &self.command {
            Some(Command::Check { file }) => Some(file.as_ref().unwrap_or(&self.config)),
            None => self.check.then_some(self.config.as_path()),
        }
    }
}

/// A text of several lines that may quote what somebody else has written: none of it shall steer a
/// terminal.
pub fn printable(text: &str) -> String {
    let steers = |letter: char| letter.is_control() && letter != '\n';
    text.chars().map(|letter| if steers(letter) { ' ' } else { letter }).collect()
}

/// What a file that is right declares.
pub fn declared(path: &Path, config: &Config) -> String {
    let servers: usize = config.services.iter().map(|service| service.servers.len()).sum();
    let mut text = format!(
        "{}: good: {} services, {servers} servers, interfaces {}{}\n",
        printable(&path.display().to_string()),
        config.services.len(),
        config.interfaces.join(" "),
        if config.mode == Mode::Nlb { ", mode nlb" } else { "" },
    );
    for declared in config.services.iter().take(LISTED) {
        let (service, servers) = (&declared.service, declared.servers.len());
        let _ = writeln!(text, "  {} {}, {servers} servers", service.key, service.scheduler);
    }
    if let more @ 1.. = config.services.len().saturating_sub(LISTED) {
        let _ = writeln!(text, "  and {more} more");
    }
    text
}

const EXAMPLES: &str = "\
Examples:
  director                                    # run, with /etc/switchyard/switchyard.toml
  director check                              # is that file right?
  director check new.toml && mv new.toml /etc/switchyard/switchyard.toml && pkill -HUP -x director

SWITCHYARD_LOG=debug shows more.";

const CHECK_HELP: &str = "\
Exit codes:
  0  the file is right
  2  it is wrong, or cannot be read";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn checked(words: &[&str]) -> Option<PathBuf> {
        let words = [&["director"], words].concat();
        Arguments::try_parse_from(words).unwrap().checked().map(Path::to_path_buf)
    }

    #[test]
    fn all_spellings_of_a_check_mean_the_same_file() {
        let file = Some(PathBuf::from("a.toml"));
        assert_eq!(checked(&["check", "a.toml"]), file);
        assert_eq!(checked(&["--config", "a.toml", "check"]), file);
        assert_eq!(checked(&["--check", "--config", "a.toml"]), file);
        assert_eq!(checked(&["check"]), Some(PathBuf::from(CONFIG)));
    }

    #[test]
    fn without_a_check_it_runs() {
        assert_eq!(checked(&[]), None);
        assert_eq!(checked(&["--config", "a.toml"]), None);
    }

    #[test]
    fn a_check_says_what_is_declared() {
        let service = |port| {
            format!(
                "[[service]]\nlisten = \"192.0.2.10:{port}/tcp\"\nforwarding = \"nat\"\n\
                 [[service.server]]\naddress = \"10.0.0.11\"\n"
            )
        };
        let text = |services| {
            let services: String = (1..=services).map(service).collect();
            let config = config::parse(&format!("interfaces = [\"eth0\"]\n{services}"), "x");
            declared(Path::new("x"), &config.unwrap())
        };
        assert_eq!(
            text(1),
            "x: good: 1 services, 1 servers, interfaces eth0\n  192.0.2.10:1/tcp wlc, 1 servers\n"
        );
        assert!(text(LISTED).ends_with("192.0.2.10:50/tcp wlc, 1 servers\n"));
        assert!(text(LISTED + 2).ends_with("  and 2 more\n"));
    }
}
