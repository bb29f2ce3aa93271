//! The lab's own programs: traffic servers and clients that run inside hosts of a lab (the demo
//! and the tests start this binary there), and a way to hold a topology open for a look inside.

use std::io::{IsTerminal, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use integration::{http, lab, logons, ping, topology, udp};

/// Builds networks of namespaces for Switchyard's tests, and makes traffic in them.
#[derive(Debug, Parser)]
#[command(name = "switchyard-lab", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the standard topology and hold it until Ctrl-C
    Hold {
        /// How the director will forward
        #[arg(value_enum)]
        kind: topology::Kind,
    },
    /// Remove what killed labs have left behind
    Sweep,
    /// Serve HTTP: every answer names the server
    ServeHttp {
        /// The name in the header X-Server and in the body
        #[arg(long)]
        name: String,
        /// Address and port to listen on; may be given several times
        #[arg(long, required = true)]
        listen: Vec<SocketAddr>,
        /// Bytes of body (at least the name)
        #[arg(long, default_value_t = 0)]
        body_bytes: usize,
    },
    /// Fetch many times, each on a new connection, and count who answered
    Get {
        /// Where to: an address, an address with a port (IPv6 in brackets), or an http URL of such
        target: String,
        /// How many requests
        #[arg(long, default_value_t = 1)]
        count: u64,
        /// How many at the same time
        #[arg(long, default_value_t = 8)]
        concurrency: usize,
        /// The address to come from
        #[arg(long)]
        from: Option<IpAddr>,
        /// Seconds that one request may take
        #[arg(long, default_value_t = 5.0)]
        request_seconds: f64,
        /// Seconds that all may take
        #[arg(long, default_value_t = 60.0)]
        total_seconds: f64,
        /// Print the tally as JSON
        #[arg(long)]
        json: bool,
    },
    /// Serve sessions that begin with work; a model, for newcomers among busy servers
    ServeLogons {
        /// Address and port
        #[arg(long)]
        listen: SocketAddr,
        /// Seconds of a core that a logon needs
        #[arg(long, default_value_t = 4.0)]
        work: f64,
        /// Cores that logons share
        #[arg(long, default_value_t = 2.0)]
        cores: f64,
    },
    /// Echo UDP datagrams with the server's name before them
    ServeUdpEcho {
        /// The name put before every datagram
        #[arg(long)]
        name: String,
        /// Address and port; not a wildcard, for answers must come from the address asked
        #[arg(long)]
        listen: SocketAddr,
    },
    /// Send UDP datagrams to echo servers, each from a new port, and count who answered
    SendUdp {
        /// Address and port
        target: SocketAddr,
        /// How many datagrams
        #[arg(long, default_value_t = 1)]
        count: u64,
        /// Bytes in each (at least 8)
        #[arg(long, default_value_t = 64)]
        size: usize,
        /// Send all from the same port
        #[arg(long)]
        same_port: bool,
        /// Print the tally as JSON
        #[arg(long)]
        json: bool,
    },
    /// Be the realserver-agent, for a lab that has only this program
    #[command(hide = true)]
    RealserverAgent(realserver_agent::cli::Cli),
    /// Send one ICMP echo request and wait for the reply
    Ping {
        /// Whom to ask
        target: IpAddr,
        /// Bytes of data
        #[arg(long, default_value_t = 56)]
        size: usize,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Hold { kind } => hold(kind),
        Command::Sweep => {
            for tag in lab::sweep()? {
                println!("removed lab {tag}");
            }
            Ok(())
        }
        Command::ServeHttp { name, listen, body_bytes } => {
            let answer = http::Answer::new(&name, body_bytes)?;
            runtime()?.block_on(http::serve(answer, &listen, || {
                eprintln!("{name} serves HTTP on {listen:?}");
            }))
        }
        Command::Get { target, count, concurrency, from, request_seconds, total_seconds, json } => {
            let plan = http::Plan {
                target: http_target(&target)?,
                source: from,
                count,
                concurrency,
                request_limit: Duration::try_from_secs_f64(request_seconds)?,
                total_limit: Duration::try_from_secs_f64(total_seconds)?,
            };
            let tally = runtime()?.block_on(http::fetch_many(&plan, show_progress()));
            if json {
                println!("{}", serde_json::to_string(&tally)?);
            } else {
                print_counts(&tally.by_server);
                print_counts(&tally.errors);
            }
            exit_if(tally.failed() > 0)
        }
        Command::ServeLogons { listen, work, cores } => {
            eprintln!("serves logons on {listen}");
            let server = logons::Server { listen, work, cores };
            server.serve(|peak| eprintln!("peak {peak}"))
        }
        Command::ServeUdpEcho { name, listen } => udp::serve_echo(&name, listen),
        Command::SendUdp { target, count, size, same_port, json } => {
            let tally = udp::echo_many(target, count, size, same_port, Duration::from_secs(1))?;
            if json {
                println!("{}", serde_json::to_string(&tally)?);
            } else {
                print_counts(&tally.by_server);
                println!("{:>8} lost", tally.lost);
            }
            exit_if(tally.lost > 0)
        }
        Command::RealserverAgent(agent) => realserver_agent::cli::execute(agent),
        Command::Ping { target, size } => {
            let time = ping::ping(target, size, Duration::from_secs(1))?;
            println!("{target} answered in {time:?}");
            Ok(())
        }
    }
}

/// Builds the topology, says how to enter it, and leaves the rest to the interrupt thread.
fn hold(kind: topology::Kind) -> Result<()> {
    let topology = topology::Topology::build(kind, &topology::Options::default())?;
    for host in topology.hosts() {
        println!("ip netns exec {} sh", host.namespace());
    }
    println!("lab {} stands; Ctrl-C removes it", topology.lab.tag());
    std::io::stdout().flush()?;
    loop {
        std::thread::park();
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("start a runtime")
}

/// Address, address with port, or `http://` and one of them; port 80 unless it says another.
/// Names are not looked up: a lab has no DNS.
fn http_target(text: &str) -> Result<SocketAddr> {
    let authority = text.strip_prefix("http://").unwrap_or(text);
    let authority = authority.split('/').next().unwrap_or(authority);
    let address = authority.trim_matches(['[', ']']).parse::<IpAddr>();
    match address {
        Ok(address) => Ok(SocketAddr::new(address, 80)),
        Err(_) => authority
            .parse()
            .with_context(|| format!("{text:?} is not an address like 192.0.2.10:80")),
    }
}

/// A line that counts up, when a person is watching.
fn show_progress() -> impl FnMut(http::Progress) {
    let terminal = std::io::stderr().is_terminal();
    move |progress| {
        if terminal {
            let http::Progress { done, failed, count } = progress;
            eprint!("\r{done} of {count}, {failed} failed ");
            if done == count {
                eprintln!();
            }
        }
    }
}

fn print_counts(counts: &std::collections::BTreeMap<String, u64>) {
    for (name, count) in counts {
        println!("{count:>8} {name}");
    }
}

/// Exit code 1 for traffic that failed: 0 is for success, 2 for a bad command line.
fn exit_if(failed: bool) -> Result<()> {
    if failed {
        std::process::exit(1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_may_leave_out_scheme_port_and_brackets() {
        for (text, target) in [
            ("http://192.0.2.10/", "192.0.2.10:80"),
            ("192.0.2.10:8080", "192.0.2.10:8080"),
            ("2001:db8:1::10", "[2001:db8:1::10]:80"),
            ("http://[2001:db8:1::10]/x", "[2001:db8:1::10]:80"),
            ("[2001:db8:1::10]:8080", "[2001:db8:1::10]:8080"),
        ] {
            assert_eq!(http_target(text).unwrap(), target.parse().unwrap(), "{text}");
        }
        assert!(http_target("vip.example").is_err());
    }
}
