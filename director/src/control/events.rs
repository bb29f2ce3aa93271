//! What happens to servers and with files, as the control API tells it: one JSON object per event and line.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::api::ServiceKey;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Counted from 1 since the director started.
    pub number: u64,
    /// Milliseconds since 1970-01-01 UTC.
    pub time: u64,
    /// What happened.
    pub kind: EventKind,
    /// Of which service, when it is one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceKey>,
    /// Of which server; with port 0 of all servers at that address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<SocketAddr>,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Of a weight: what it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<i32>,
    /// Of a weight: what it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<i32>,
}

/// A line of `GET /v1/events`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Told {
    /// So many events between the last line and the next are forgotten.
    Lost {
        /// How many.
        lost: u64,
    },
    /// An event.
    Event(Event),
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A server is up (again).
    #[default]
    ServerUp,
    /// A server has failed: no new connections, and the old ones are torn down.
    ServerDown,
    /// A server takes no new connections; those that it has stay.
    ServerDraining,
    /// Nothing is heard from a server's agent any more.
    DirectionLost,
    /// A server's agent is heard again.
    DirectionBack,
    /// An agent is reached in another way (UDP, TCP).
    DirectionMode,
    /// A server's host has started anew: its connections are dead.
    ServerRestarted,
    /// An effective weight is another one.
    WeightChanged,
    /// All servers of a service have failed.
    AllDown,
    /// A service has a server again.
    SomeUp,
    /// An agent's answers do not count: another version, key or nonsense.
    AgentRefused,
    /// A check could not be made here.
    CheckUnable,
    /// The director's own file was read again and is followed.
    FileReloaded,
    /// It was read again, and what runs stayed as it was.
    ReloadRefused,
    /// Another file is followed, for good or on trial.
    FileApplied,
    /// One that was on trial stays.
    FileConfirmed,
    /// One that was on trial was taken back.
    FileReverted,
    /// One that was on trial was taken back because nobody had confirmed it.
    FileRolledBack,
}

impl EventKind {
    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::ServerUp => "server_up",
            EventKind::ServerDown => "server_down",
            EventKind::ServerDraining => "server_draining",
            EventKind::DirectionLost => "direction_lost",
            EventKind::DirectionBack => "direction_back",
            EventKind::DirectionMode => "direction_mode",
            EventKind::ServerRestarted => "server_restarted",
            EventKind::WeightChanged => "weight_changed",
            EventKind::AllDown => "all_down",
            EventKind::SomeUp => "some_up",
            EventKind::AgentRefused => "agent_refused",
            EventKind::CheckUnable => "check_unable",
            EventKind::FileReloaded => "file_reloaded",
            EventKind::ReloadRefused => "reload_refused",
            EventKind::FileApplied => "file_applied",
            EventKind::FileConfirmed => "file_confirmed",
            EventKind::FileReverted => "file_reverted",
            EventKind::FileRolledBack => "file_rolled_back",
        }
    }

    /// Whether an operator should look at it.
    pub fn is_bad(self) -> bool {
        !matches!(
            self,
            EventKind::ServerUp
                | EventKind::DirectionBack
                | EventKind::DirectionMode
                | EventKind::WeightChanged
                | EventKind::SomeUp
                | EventKind::FileReloaded
                | EventKind::FileApplied
                | EventKind::FileConfirmed
                | EventKind::FileReverted
        )
    }

    /// Whether it is about a file, of which the log has more to say by itself.
    fn is_of_a_file(self) -> bool {
        use EventKind::{
            FileApplied, FileConfirmed, FileReloaded, FileReverted, FileRolledBack, ReloadRefused,
        };
        matches!(
            self,
            FileReloaded
                | ReloadRefused
                | FileApplied
                | FileConfirmed
                | FileReverted
                | FileRolledBack
        )
    }
}

impl Event {
    /// One of a server in a service.
    pub fn of(service: ServiceKey, server: SocketAddr, reason: impl Into<String>) -> Event {
        Event {
            service: Some(service),
            server: Some(server),
            reason: reason.into(),
            ..Event::default()
        }
    }

    /// Writes it into the log: what is bad as a warning.
    pub(crate) fn log(&self) {
        if self.kind.is_of_a_file() {
            return;
        }
        let text = |thing: Option<String>| thing.unwrap_or_default();
        let service = text(self.service.map(|service| service.to_string()));
        let server = text(self.server.map(|server| server.to_string()));
        let (event, reason) = (self.kind.name(), &self.reason);
        let weights = self.before.zip(self.after);
        match (self.kind.is_bad(), weights) {
            (true, _) => tracing::warn!(event, service, server, "{reason}"),
            (false, None) => tracing::info!(event, service, server, "{reason}"),
            (false, Some((before, after))) => {
                tracing::info!(event, service, server, before, after, "{reason}");
            }
        }
    }
}
