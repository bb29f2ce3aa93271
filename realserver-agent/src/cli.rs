//! The command line.

use std::io::IsTerminal;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use ipnet::IpNet;

use crate::control::{self, NotRunning, Request};
use crate::daemon::{self, Options};
use crate::kernel_tunnel::By;
use crate::kind::Kind;
use crate::settings::CONTROL;

/// Makes this machine a real server of a Switchyard (or IPVS) director.
#[derive(Debug, Parser)]
#[command(
    name = "realserver-agent",
    version,
    about,
    after_help = "Start with the director's own file, the same on every machine:\n  \
        realserver-agent run --config /etc/switchyard/switchyard.toml\n\n\
        Without a file, by forwarding method:\n  \
        nat      run --config only: there is nothing to prepare, but load and state to tell\n  \
        direct   run --vip ADDRESS ...\n  \
        tunnel   run --vip ADDRESS ... --tunnel ipip | gue[:PORT] | gre[:csum|:nocsum]\n\n\
        Exit codes: 0 done, 1 cannot, 2 no agent is running, 64 the command line is wrong"
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const ABOUT_RUN: &str = "\
Take part until SIGTERM or Ctrl-C, then undo everything.

With --config the director's file tells what this host is there for: it looks for its own addresses \
among the servers of all services, has their VIPs and unpacks their tunnels. The table [agent] of the \
file says the rest: who may ask and with which key, what the load is made of, which local checks \
decide the state. SIGHUP reads the file again; a file that is wrong changes nothing.

The VIPs are put on lo, and the machine keeps quiet about them, for only the director may answer \
ARP for a VIP: net.ipv4.conf.all.arp_ignore=1 and arp_announce=2. Services must listen on the VIP \
or on all addresses. Answers go straight to the clients, so this machine needs a route to them \
that does not lead through the director.

With a tunnel the director's packets are unpacked here, whichever IP is inside and outside \
(4in4, 6in4, 4in6, 6in6), and given to the kernel. The type is the one that the director has for \
this server: ipip is IP in IP (protocols 4 and 41), gue is generic UDP encapsulation on a port of \
your choice with any of its checksum variants (nocsum, csum, remcsum), gre is generic routing \
encapsulation (protocol 47) with or without checksum; give --tunnel several times to take several. \
Where the kernel has devices for it, these unpack (--tunnel-by); one for GRE takes either packets with \
checksums or those without, so gre alone is unpacked by the agent, gre:csum and gre:nocsum by the kernel. \
A packet filter on this machine must let them in. The reverse path filter is switched off \
(net.ipv4.conf.all.rp_filter=0), for clients' packets come out of a device that does not lead to the \
clients. When the agent unpacks, packets for other addresses than the VIPs are dropped and counted.

Probes are answered on port 6086, UDP and TCP: state, load, connections. On the same TCP port a \
balancer that waits in silence gets HAProxy's agent-check line (agent-check agent-port 6086).

What is changed is kept so: whoever takes a VIP away or sets a setting back finds it as it was two \
seconds later. What was found in place (an address, a setting) is left in place, also at the end.

With a file, SIGTERM drains first: the director is told, and connections have 30 seconds to end \
(drain_deadline, --drain-deadline); a second signal ends it at once.";

const EXAMPLES: &str = "\
Examples:
  realserver-agent run --config /etc/switchyard/switchyard.toml
      whatever the file says of this host
  realserver-agent run --vip 192.0.2.10 --vip 2001:db8:1::10
      a server for direct routing
  realserver-agent run --vip 192.0.2.10 --tunnel ipip --from 10.77.0.1/32
      a server behind a tunnel that only the director at 10.77.0.1 may use
  realserver-agent run --vip 192.0.2.10 --tunnel gue:5555 --tunnel gre
      a server that takes GUE on UDP port 5555, and GRE

RUST_LOG=realserver_agent=debug shows more.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Take part: have the VIPs, unpack the tunnel, answer probes, until SIGTERM or Ctrl-C
    #[command(long_about = ABOUT_RUN, after_long_help = EXAMPLES)]
    Run(Run),
    /// Tell the directors to send nothing new here; the connections that there are may end
    Drain(Socket),
    /// Take new connections again
    Undrain(Socket),
    /// Show what the agent has prepared, what it says of this host, and who asks
    Status {
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        socket: Socket,
    },
}

/// Which agent is meant.
#[derive(Debug, Args)]
struct Socket {
    /// The control socket of the agent
    #[arg(long, value_name = "PATH", default_value = CONTROL)]
    control: PathBuf,
}

/// The options of `run`.
#[derive(Debug, Args)]
struct Run {
    /// The configuration file: the director's
    #[arg(long, short, value_name = "FILE", required_unless_present = "vip")]
    config: Option<PathBuf>,
    /// A virtual address to serve, in addition to the file's; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    vip: Vec<IpAddr>,
    /// Unpack what the director tunnels to us: ipip, gue, gue:PORT (6080 if not said), gre, gre:csum
    /// or gre:nocsum, in addition to the file's; may be given several times
    #[arg(long, value_name = "TYPE")]
    tunnel: Vec<Kind>,
    /// Answer, and unpack what comes from, directors in this network only; may be given several
    /// times [default: anybody]
    #[arg(long, value_name = "NETWORK")]
    from: Vec<IpNet>,
    /// The name of the TUN device that unpacked packets come out of
    #[arg(long, value_name = "NAME", default_value = "switchyard0")]
    device: String,
    /// Who unpacks: the kernel's own devices (ipip, sit, ip6tnl, gre, ip6gre) and ports (fou), the
    /// agent, or the kernel where it can
    #[arg(long, value_name = "WHO", default_value = "auto")]
    tunnel_by: By,
    /// Answer probes here instead of where the file says; may be given several times
    /// [default: all addresses, port 6086]
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "no_answer")]
    listen: Vec<SocketAddr>,
    /// Answer no probes
    #[arg(long)]
    no_answer: bool,
    /// How long SIGTERM waits for connections to end [default: the file's, or 30; without a file 0]
    #[arg(long, value_name = "SECONDS")]
    drain_deadline: Option<u64>,
    /// The control socket [default: the file's, or /run/realserver-agent/control.sock]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// The boot nonce, for tests
    #[arg(long, hide = true)]
    boot_nonce: Option<u64>,
}

impl From<Run> for Options {
    fn from(run: Run) -> Options {
        let Run {
            config,
            vip,
            tunnel,
            from,
            device,
            tunnel_by,
            listen,
            no_answer,
            drain_deadline,
            control,
            boot_nonce,
        } = run;
        Options {
            config,
            vip,
            tunnel,
            from,
            device,
            tunnel_by,
            listen,
            no_answer,
            drain_deadline,
            control,
            boot_nonce,
        }
    }
}

/// The exit code for an error: 2 when no agent is running, else 1.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<NotRunning>() { 2 } else { 1 }
}

/// The exit code when the command line is wrong.
pub const USAGE: u8 = 64;

/// Does what the command line says; `run` on a runtime of its own, until it is told to stop.
///
/// # Errors
/// When it cannot: for `run` everything has been undone by then.
pub fn execute(cli: Cli) -> Result<()> {
    match cli.command {
        Command::Run(options) => run(options.into()),
        Command::Drain(socket) => tell(socket, Request::Drain),
        Command::Undrain(socket) => tell(socket, Request::Undrain),
        Command::Status { json, socket } => {
            let reply = control::ask(&socket.control, Request::Status)?;
            let status = reply.status.context("the agent tells no status")?;
            print(&match json {
                true => serde_json::to_string(&status)? + "\n",
                false => status.to_string(),
            });
            Ok(())
        }
    }
}

fn tell(socket: Socket, request: Request) -> Result<()> {
    let reply = control::ask(&socket.control, request)?;
    let because = if reply.reason.is_empty() { "" } else { ": " };
    print(&format!("{}{because}{}\n", reply.state, reply.reason));
    Ok(())
}

/// A reader that has left is no concern of ours.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn run(options: Options) -> Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    // Fails when the program that we are part of has set up its own log: then that one is used.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .try_init();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?
        .block_on(daemon::run(options))
}
