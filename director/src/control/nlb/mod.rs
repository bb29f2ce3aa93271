//! What may be asked of a node of a cluster without a dispatcher (`mode = "nlb"`), and its answers:
//! the bodies of `POST /v1/nlb`, which also travel between nodes (UDP 2504).
//!
//! [`NlbCommand`] what is asked, [`target`] of which port rules, [`views`] what is shown.

mod by_host;
pub mod target;
pub mod views;

use std::collections::BTreeMap;
use std::net::IpAddr;

use ::nlb::membership::Answer;
use serde::{Deserialize, Serialize};

pub use target::{BadTarget, PortTarget};
pub use views::NlbView;

/// A question or command to nodes. In JSON an object with `op` and the fields of the variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum NlbCommand {
    /// Where it stands, and the cluster as it sees it.
    #[default]
    Query,
    /// Join the cluster; ends a drain.
    Start,
    /// Leave at once; its connections break.
    Stop,
    /// Take no new flows, leave when the last has ended.
    Drainstop {
        /// Seconds after which it leaves whatever is left; without it as `drain_timeout` says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<u64>,
    },
    /// Leave at once and refuse everything but `resume`.
    Suspend,
    /// Ends a suspension; the host is stopped then.
    Resume,
    /// Read the configuration file again.
    Reload,
    /// Serve port rules again.
    Enable {
        /// Which.
        target: PortTarget,
    },
    /// Serve port rules no more.
    Disable {
        /// Which.
        target: PortTarget,
    },
    /// Take no new flows of port rules.
    Drain {
        /// Which.
        target: PortTarget,
    },
    /// Another share in port rules.
    Weight {
        /// Which.
        target: PortTarget,
        /// 0 to 100; 0 takes nothing.
        weight: u8,
    },
    /// What it runs with.
    Params,
    /// All there is, for a report: `params`, `query`, `history`.
    Display,
    /// The Ethernet addresses that follow from a primary address.
    Ip2mac {
        /// Which; without it the cluster's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<IpAddr>,
    },
    /// What becomes of a packet, and why.
    Filter(FilterQuestion),
    /// Past convergences.
    History,
    /// Flows held here.
    Connections {
        /// Show so many at most.
        #[serde(default = "many")]
        limit: usize,
    },
    /// Who has how many buckets, and who would have if.
    Map(WhatIf),
    /// What the filter costs here. Takes a tenth of a second of a processor; not from afar.
    Capacity,
}

/// How many connections are shown when nobody says.
fn many() -> usize {
    1000
}

/// A packet to ask about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterQuestion {
    /// `tcp`, `udp`, `gre` or `icmp` (an echo request).
    pub protocol: FlowProtocol,
    /// Who sends it.
    pub client: IpAddr,
    /// From which port; not of `gre` and `icmp`.
    #[serde(default)]
    pub client_port: u16,
    /// To which address.
    pub vip: IpAddr,
    /// To which port; not of `gre` and `icmp`.
    #[serde(default)]
    pub port: u16,
    /// Of TCP: `syn`, `ack`, `fin`, `rst`; without any it begins a connection (`syn`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<TcpFlag>,
}

/// What is balanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // Their names say it.
pub enum FlowProtocol {
    Tcp,
    Udp,
    Gre,
    Icmp,
}

/// Flags of TCP that say where in a connection a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // Their names say it.
pub enum TcpFlag {
    Syn,
    Ack,
    Fin,
    Rst,
}

/// Changes in thought.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhatIf {
    /// Hosts that would be there besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<u8>,
    /// Hosts that would not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<u8>,
    /// Weights by host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "by_host")]
    pub weights: BTreeMap<u8, u8>,
}

/// The body of `POST /v1/nlb`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NlbRequest {
    /// What is asked.
    #[serde(flatten)]
    pub command: NlbCommand,
    /// Of whom: nothing for this host, `all`, or a host by id, name or address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<String>,
}

/// The answer to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NlbReply {
    /// One for each host that answered, by id.
    pub answers: Vec<NlbAnswer>,
    /// Hosts that were asked and did not answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<u8>,
}

/// What one host answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NlbAnswer {
    /// Its id.
    pub host: u8,
    /// Its name.
    pub name: String,
    /// Where it stands afterwards: `converged`, `stopped`, ...
    pub state: String,
    /// What became of the command.
    pub result: NlbResult,
    /// What there is to add to it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<Box<NlbView>>,
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NlbResult {
    /// Done, or begun.
    Done,
    /// Nothing to do: it is so already.
    Already,
    /// Done; a drain was cut short by it.
    DrainInterrupted,
    /// Refused: suspended.
    Suspended,
    /// Refused: stopped.
    Stopped,
    /// Refused: no such port rule.
    NotFound,
    /// Refused: out of its range.
    BadParameters,
    /// Failed; the message says why.
    Failed,
}

impl NlbResult {
    /// Whether the host is as the command wants it.
    pub fn is_good(self) -> bool {
        matches!(self, NlbResult::Done | NlbResult::Already | NlbResult::DrainInterrupted)
    }

    /// The word in JSON.
    pub fn label(self) -> &'static str {
        match self {
            NlbResult::Done => "done",
            NlbResult::Already => "already",
            NlbResult::DrainInterrupted => "drain-interrupted",
            NlbResult::Suspended => "suspended",
            NlbResult::Stopped => "stopped",
            NlbResult::NotFound => "not-found",
            NlbResult::BadParameters => "bad-parameters",
            NlbResult::Failed => "failed",
        }
    }
}

impl From<Answer> for NlbResult {
    fn from(answer: Answer) -> NlbResult {
        match answer {
            Answer::Done => NlbResult::Done,
            Answer::Already => NlbResult::Already,
            Answer::DrainInterrupted => NlbResult::DrainInterrupted,
            Answer::Suspended => NlbResult::Suspended,
            Answer::Stopped => NlbResult::Stopped,
            Answer::NotFound => NlbResult::NotFound,
            Answer::BadParameters => NlbResult::BadParameters,
        }
    }
}

#[cfg(test)]
mod tests;
