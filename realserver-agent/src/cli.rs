//! The command line, and what it does.

use std::io::IsTerminal;
use std::net::IpAddr;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use ipnet::IpNet;
use tokio::signal::unix::{SignalKind, signal};

use crate::decapsulation::Policy;
use crate::device::{self, Device};
use crate::host::Preparation;
use crate::kind::Kind;
use crate::tunnel::Tunnel;

/// Makes this machine a real server of a Switchyard (or IPVS) director.
#[derive(Debug, Parser)]
#[command(
    name = "realserver-agent",
    version,
    about,
    after_help = "Which forwarding method needs what on a real server:\n  \
        nat      nothing of this: the director is the default route\n  \
        direct   run --vip ADDRESS ...\n  \
        tunnel   run --vip ADDRESS ... --tunnel ipip | gue[:PORT] | gre"
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const ABOUT_RUN: &str = "\
Take part in direct routing or tunnelling until SIGTERM or Ctrl-C, then undo everything.

The VIPs are put on lo, and the machine keeps quiet about them, for only the director may answer \
ARP for a VIP: net.ipv4.conf.all.arp_ignore=1 and arp_announce=2. Services must listen on the VIP \
or on all addresses. Answers go straight to the clients, so this machine needs a route to them \
that does not lead through the director.

With --tunnel the director's packets are unpacked here, whichever IP is inside and outside \
(4in4, 6in4, 4in6, 6in6), and given to the kernel through a TUN device. The type is the one that \
the director has for this server: ipip is IP in IP (protocols 4 and 41), gue is generic UDP \
encapsulation on a port of your choice with any of its checksum variants (nocsum, csum, remcsum), \
gre is generic routing encapsulation (protocol 47) with or without checksum; give --tunnel several \
times to take several. A packet filter on this machine must let them in. The reverse path filter is \
switched off (net.ipv4.conf.all.rp_filter=0), for clients' packets come out of a device that does \
not lead to the clients. Packets for other addresses than the VIPs are dropped and counted.

What this command found in place (an address, a setting) it leaves in place.";

const EXAMPLES: &str = "\
Examples:
  realserver-agent run --vip 192.0.2.10 --vip 2001:db8:1::10
      a server for direct routing
  realserver-agent run --vip 192.0.2.10 --tunnel ipip --from 10.77.0.1/32
      a server behind a tunnel that only the director at 10.77.0.1 may use
  realserver-agent run --vip 192.0.2.10 --tunnel gue:5555 --tunnel gre
      a server that takes GUE on UDP port 5555, and GRE

RUST_LOG=realserver_agent=debug shows more.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Take part: have the VIPs, unpack the tunnel, until SIGTERM or Ctrl-C
    #[command(long_about = ABOUT_RUN, after_long_help = EXAMPLES)]
    Run(Run),
}

/// The options of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// A virtual address to serve; may be given several times
    #[arg(long, required = true, value_name = "ADDRESS")]
    vip: Vec<IpAddr>,
    /// Unpack what the director tunnels to us: ipip, gue, gue:PORT (6080 if not said) or gre; may be
    /// given several times
    #[arg(long, value_name = "TYPE")]
    tunnel: Vec<Kind>,
    /// Unpack only what comes from this network; may be given several times [default: anybody]
    #[arg(long, value_name = "NETWORK", requires = "tunnel")]
    from: Vec<IpNet>,
    /// The name of the TUN device
    #[arg(long, value_name = "NAME", default_value = "switchyard0", requires = "tunnel")]
    device: String,
}

/// Does what the command line says, on a runtime of its own, and returns when it is told to stop.
///
/// # Errors
/// When the host cannot be prepared or the tunnel breaks; everything has been undone by then.
pub fn execute(cli: Cli) -> Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    // Fails when the program that we are part of has set up its own log: then that one is used.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .try_init();
    let Command::Run(options) = cli.command;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?
        .block_on(run(options))
}

async fn run(options: Run) -> Result<()> {
    // Before anything is changed: a signal from now on finds somebody who undoes it. While the
    // host is being prepared it has to wait, so that no change is half made.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut preparation = Preparation::new()?;
    let result = match prepare(&mut preparation, &options).await {
        Ok(tunnel) => tokio::select! {
            result = serve(tunnel.as_ref()) => result,
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
        },
        Err(error) => Err(error),
    };
    tracing::info!("stopping: everything is put back as it was");
    preparation.undo().await;
    result
}

/// Makes the host a real server; the tunnel, when there is one, is open then.
async fn prepare(preparation: &mut Preparation, options: &Run) -> Result<Option<(Tunnel, Device)>> {
    preparation.add_vips(&options.vip).await?;
    let vips = &options.vip;
    if options.tunnel.is_empty() {
        tracing::info!(?vips, "ready: the VIPs are on lo");
        return Ok(None);
    }
    let device = device::open(&options.device)?;
    preparation.open_device(&options.device).await?;
    let policy = Policy { vips: vips.clone(), from: options.from.clone() };
    let tunnel = Tunnel::open(&options.tunnel, policy)?;
    let kinds: Vec<_> = options.tunnel.iter().map(Kind::to_string).collect();
    tracing::info!(
        ?vips,
        device = options.device,
        "ready: the VIPs are on lo, unpacked is {}",
        kinds.join(", ")
    );
    Ok(Some((tunnel, device)))
}

/// Unpacks for ever; without a tunnel there is nothing to do but to be there.
async fn serve(tunnel: Option<&(Tunnel, Device)>) -> Result<()> {
    match tunnel {
        Some((tunnel, device)) => tunnel.run(device).await,
        None => std::future::pending().await,
    }
}
