//! What is said about following another configuration file: requests, and what would change.
//!
//! Values only. How a plan is made is in `crate::plan`; who carries it out is in `process`.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::api::ServiceKey;

/// Bytes of a file's text at most, as it may be sent.
pub const LONGEST_TEXT: usize = 16 << 20;

/// For how long an applied file may wait to be confirmed, seconds.
pub const CONFIRM: RangeInclusive<u32> = 1..=86_400;

/// Body of `POST /v1/plan`: the text of a file. The director never opens what `file` names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRequest {
    /// What it is called in answers and error texts.
    pub file: String,
    /// All of it.
    pub text: String,
}

/// Body of `POST /v1/apply`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyRequest {
    /// What it is called in answers and error texts.
    pub file: String,
    /// All of it.
    pub text: String,
    /// Seconds within which it must be confirmed, [`CONFIRM`]; `None`: it is meant to stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<u32>,
    /// Whether the director's own file is to get this text, once it is meant to stay.
    #[serde(default)]
    pub save: bool,
    /// Whether keys that need a restart may differ. They are not followed.
    #[serde(default)]
    pub ignore_restart: bool,
}

/// What would change, or has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The file.
    pub file: String,
    /// Services: those that go, then the others in the order of the file.
    pub services: Vec<ServiceChange>,
    /// Settings by name.
    pub settings: Vec<FieldChange>,
    /// `tcp`, `tcp_fin`, `udp`, seconds.
    pub timeouts: Vec<FieldChange>,
    /// The rules that set firewall marks, when they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<MarksChange>,
    /// Keys that differ and that only a restart follows.
    pub restart: Vec<String>,
}

impl Plan {
    /// Whether nothing differs that can be followed without a restart.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
            && self.settings.is_empty()
            && self.timeouts.is_empty()
            && self.marks.is_none()
    }
}

/// What becomes of a service or a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It comes.
    Added,
    /// It goes.
    Removed,
    /// It stays and is another.
    Changed,
}

/// What becomes of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceChange {
    /// Which.
    pub service: ServiceKey,
    /// What.
    pub action: Action,
    /// What of the service itself differs.
    pub fields: Vec<FieldChange>,
    /// Its servers that come, go or differ.
    pub servers: Vec<ServerChange>,
    /// Connections that it has now, on all servers.
    pub connections: u64,
    /// What becomes of them, where the service itself decides that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fate: Option<Fate>,
    /// Whether its scheduler begins anew and remembers nothing.
    #[serde(default)]
    pub forgets: bool,
}

/// What becomes of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerChange {
    /// Which.
    pub address: SocketAddr,
    /// What.
    pub action: Action,
    /// What differs.
    pub fields: Vec<FieldChange>,
    /// Connections that it has now.
    pub connections: u64,
    /// What becomes of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fate: Option<Fate>,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldChange {
    /// Its name in the control API: `weight`, `persistence.timeout`.
    pub field: String,
    /// As it is; empty: it is not there.
    pub old: String,
    /// As it would be; empty: it would not be there.
    pub new: String,
}

/// The rules that set firewall marks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarksChange {
    /// Those that go.
    pub removed: Vec<String>,
    /// Those that come. When both are empty only the order differs.
    pub added: Vec<String>,
}

/// What becomes of connections that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// They go on as they are.
    Stay,
    /// They go on by the forwarding method that they were made with.
    KeepMethod,
    /// They end at once: `expire_nodest_conn`.
    End,
    /// Their packets are dropped until the server is back or they expire: `gone_server = "drop"`.
    Drop,
    /// Clients are told with their next packet: `gone_server = "rst"`.
    Reset,
    /// What may open a connection opens one to another server: `gone_server = "reschedule"`.
    Reschedule,
}

impl Fate {
    /// The same as a sentence about connections.
    pub fn sentence(self) -> &'static str {
        match self {
            Fate::Stay => "stay as they are",
            Fate::KeepMethod => "keep the method that they were made with",
            Fate::End => "end at once (expire_nodest_conn)",
            Fate::Drop => {
                "get no answer any more until the server is back or they expire (gone_server = \"drop\")"
            }
            Fate::Reset => "are reset with their next packet (gone_server = \"rst\")",
            Fate::Reschedule => {
                "open new ones to other servers where that can work, else are reset (gone_server = \"reschedule\")"
            }
        }
    }
}

/// Answer to `POST /v1/apply`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileApplied {
    /// What has changed.
    pub plan: Plan,
    /// Seconds within which it must be confirmed; `None`: it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<u32>,
    /// What has become of the director's own file.
    pub saved: Saved,
}

/// What has become of the director's own file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "saved")]
pub enum Saved {
    /// It was not to be written: a restart or a reload goes back to it.
    #[default]
    NotAsked,
    /// It will be, with the confirmation.
    Later,
    /// It has the text now.
    Done {
        /// Where it is.
        path: String,
    },
    /// It has that text already.
    Same {
        /// Where it is.
        path: String,
    },
    /// It was not written and is as it was.
    Failed {
        /// Where it is.
        path: String,
        /// Why.
        reason: String,
    },
}

/// Body of `POST /v1/settle`: what is to become of an applied file that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettleRequest {
    /// Which.
    pub verdict: Verdict,
}

/// See [`SettleRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It stays.
    Confirm,
    /// All is to be as it was before.
    Revert,
}

/// Answer to `POST /v1/settle`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// The file that waited.
    pub file: String,
    /// What has become of it.
    pub verdict: Verdict,
    /// What has become of the director's own file.
    pub saved: Saved,
}
