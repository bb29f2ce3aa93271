//! The command line of `dirctl replay`.

use std::path::PathBuf;

use clap::Args;

/// Runs a capture through the pipeline, and tells what becomes of each packet
#[derive(Debug, Args)]
pub struct Replay {
    /// The capture, pcap or pcapng; - is standard input
    #[arg(value_name = "CAPTURE")]
    pub(super) capture: PathBuf,
    /// Write the packets as they would leave to this pcap file
    #[arg(short, long, value_name = "FILE")]
    pub(super) write: Option<PathBuf>,
    /// Configuration file; without it, the file of the running director
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Another configuration file: tell which flows would go to somebody else with it
    #[arg(long, value_name = "FILE")]
    pub(super) compare: Option<PathBuf>,
    /// MTU of the director's interfaces, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1280..=65_535))]
    pub(super) mtu: u32,
    /// Print a JSON object to a line: packets, and the summary last
    #[arg(long)]
    pub(super) json: bool,
    /// Print only the summary
    #[arg(long, short)]
    pub(super) quiet: bool,
}

/// Help below the options.
pub const HELP: &str = "\
The director of the file has just started, its servers are all up, and every next hop answers.
Times are those of the capture: connections expire as they would have. A time that runs backwards
stands still, and a gap of more than a day counts as a day. Nothing is sent, and no running
director is changed.

Capture what arrives: `tcpdump -Q in -i eth0 -w in.pcap`. Where the director takes packets by
AF_XDP, tcpdump on the same card does not see them: `dirctl capture -w in.pcapng` does.

Examples:
  dirctl replay in.pcap                                    # through the running director's file
  dirctl replay in.pcap --config new.toml --quiet          # only counts
  dirctl replay in.pcap -w out.pcap --config new.toml      # and the packets as they would leave
  dirctl replay in.pcap --config old.toml --compare new.toml --quiet
  dirctl replay in.pcap --json | jq -c 'select(.verdict == \"dropped\")'

Exit codes:
  0   the whole capture was replayed; with --compare no flow moves
  1   the capture is cut short or damaged (what came before it is told), or flows move
  2   the director is not running (without --config)
  3   the director cannot be asked (without --config)
  64  wrong usage, a file that cannot be read or written, no capture, a wrong configuration";
