//! The director's command line.

#![forbid(unsafe_code)]

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

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
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Configuration file
    #[arg(long, short, default_value = "/etc/switchyard/switchyard.toml", value_name = "FILE")]
    config: PathBuf,

    /// Check the configuration file, say what it declares, and end
    #[arg(long)]
    check: bool,
}

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
    let config = match director::config::load(&arguments.config) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if arguments.check {
        let servers: usize = config.services.iter().map(|service| service.servers.len()).sum();
        println!(
            "{}: good: {} services, {servers} servers, interfaces {}",
            arguments.config.display(),
            config.services.len(),
            config.interfaces.join(" ")
        );
        return ExitCode::SUCCESS;
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
        Err(error) => {
            eprintln!("director: {error:#}");
            ExitCode::FAILURE
        }
    }
}
