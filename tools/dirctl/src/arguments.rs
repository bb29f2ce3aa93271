//! The command line: every subcommand, its options and its help. What they do is in a module each;
//! `main` leads from one to the other.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::capture::{self, Capture};
use crate::doctor::{self, Doctor};
use crate::drops::{self, Drops};
use crate::explain::{self, Explain};
use crate::nlb::Nlb;
use crate::plan::{Apply, PlanFile, Settle};
use crate::replay::{self, Replay};
use crate::settings::Assignment;
use crate::top;

/// Asks the director how it is, and commands the nodes of a cluster without one. Services and servers
/// are managed with ipvsadm.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
pub struct Arguments {
    /// Control socket of the director
    ///
    /// Without this option it is what SWITCHYARD_SOCKET says, or /run/director/control.sock.
    #[arg(long, global = true, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    #[command(subcommand)]
    /// What to do
    pub command: Subcommands,
}

/// Every subcommand.
#[derive(Debug, Subcommand)]
pub enum Subcommands {
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
    /// Examine this machine, director or real server, and say what is wrong and what remedies it
    #[command(after_help = doctor::HELP)]
    Doctor(Doctor),
    /// Tell what would become of a packet, and why: every decision, and what is changed in it
    #[command(after_help = explain::HELP)]
    Explain(Explain),
    /// Run a capture through the pipeline, and tell what becomes of each packet
    #[command(after_help = replay::HELP)]
    Replay(Replay),
    /// Capture packets from the running director, each with what became of it and why
    #[command(after_help = capture::HELP)]
    Capture(Capture),
    /// Show why packets are dropped or passed to the kernel, and how many
    #[command(after_help = drops::HELP)]
    Drops(Drops),
    /// Show what would change if the director followed another configuration file
    Plan(PlanFile),
    /// Have the director follow another configuration file: all of it or none, for good or on trial
    Apply(Apply),
    /// Keep a file that was applied with --confirm
    Confirm(Settle),
    /// Take back a file that was applied with --confirm, now
    Revert(Settle),
    /// Show services, servers, traffic and drops on the whole terminal, as they change
    #[command(after_help = top::HELP)]
    Top(top::Words),
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
  3   the director cannot be asked: no permission, no answer, another version; or the output
      cannot be written
  64  wrong usage of this command, or a setting that the director refuses";
