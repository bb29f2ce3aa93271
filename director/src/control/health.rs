//! How servers are, as the control API tells it (`GET /v1/servers`).

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::api::ServiceKey;

/// How a server stands in a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HealthState {
    /// Nothing watches it.
    #[default]
    Unchecked,
    /// It serves.
    Up,
    /// It gets no new connections, and keeps those that it has.
    Draining,
    /// It has failed.
    Down,
}

impl HealthState {
    /// All of them.
    pub const ALL: [HealthState; 4] =
        [HealthState::Unchecked, HealthState::Up, HealthState::Draining, HealthState::Down];

    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            HealthState::Unchecked => "unchecked",
            HealthState::Up => "up",
            HealthState::Draining => "draining",
            HealthState::Down => "down",
        }
    }
}

/// How many servers are how. A server of two services counts in each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthSummary {
    /// They serve.
    pub up: u32,
    /// They get no new connections.
    pub draining: u32,
    /// They have failed.
    pub down: u32,
    /// Nobody watches them.
    pub unchecked: u32,
}

impl HealthSummary {
    /// Of these servers; `None` when nobody watches any of them.
    pub fn of(servers: &[ServerHealth]) -> Option<HealthSummary> {
        let mut summary = HealthSummary::default();
        for server in servers {
            *match server.state {
                HealthState::Up => &mut summary.up,
                HealthState::Draining => &mut summary.draining,
                HealthState::Down => &mut summary.down,
                HealthState::Unchecked => &mut summary.unchecked,
            } += 1;
        }
        (summary.unchecked as usize != servers.len()).then_some(summary)
    }
}

/// One server of one service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerHealth {
    /// The service.
    pub service: ServiceKey,
    /// The server.
    pub address: SocketAddr,
    /// As it was asked for.
    pub weight: i32,
    /// What the scheduler goes by: 0 when the server must get nothing.
    pub effective_weight: i32,
    /// How it is.
    pub state: HealthState,
    /// Seconds since it is so.
    pub since: u64,
    /// Why it is so, in words; empty when all is well.
    pub reason: String,
    /// Whether it takes connections only because all servers of the service have failed.
    pub kept: bool,
    /// Connections in an active state.
    pub active: u32,
    /// Other connections.
    pub inactive: u32,
    /// Its checks, in the order of the file.
    pub checks: Vec<CheckView>,
    /// The link to its agent, when it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<DirectionView>,
}

/// One check of one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckView {
    /// Kind, in the file's words.
    pub kind: String,
    /// What it says of the server.
    pub state: HealthState,
    /// The last outcomes alike in a row.
    pub in_a_row: u32,
    /// What the last one was, in words.
    pub last: String,
    /// How long the last one took, milliseconds.
    pub took: f64,
    /// How many have been made.
    pub made: u64,
    /// How many of those failed.
    pub failed: u64,
}

/// The link between director and a server's agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectionView {
    /// `unknown`, `udp`, `tcp` or `lost`.
    pub mode: String,
    /// How often it was lost, or the host started anew: connections made before are dead.
    pub incarnation: u32,
    /// The host's boot nonce, hexadecimal, once it was heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// Round trip, milliseconds: smoothed.
    pub round_trip: f64,
    /// Probes without an answer among the last 100, percent.
    pub lost: f64,
    /// Answers that did not count.
    pub refused: u64,
    /// What the agent says of its state: `up`, `draining`, `down`.
    pub agent_state: String,
    /// The load it reports, 0..=10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<u16>,
    /// The connections it reports.
    pub connections: u32,
    /// Those that wait to be accepted there.
    pub queue: u32,
}
