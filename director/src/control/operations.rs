//! What the control server asks of the director. The director's table implements it; tests of the
//! server and of the tools use one of their own.

use super::api::{
    ConnectionView, Refusal, ServerSpec, ServiceKey, ServiceSpec, ServiceView, Status, Timeouts,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// One change. In JSON an object with `op` and the fields of the variant.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Command {
    /// `ipvsadm -A`
    AddService {
        /// What to add.
        service: ServiceSpec,
    },
    /// `ipvsadm -E`
    EditService {
        /// What it shall be; `key` names it.
        service: ServiceSpec,
    },
    /// `ipvsadm -D`
    DeleteService {
        /// Which.
        service: ServiceKey,
    },
    /// `ipvsadm -C`
    Flush,
    /// `ipvsadm -a`
    AddServer {
        /// To which service.
        service: ServiceKey,
        /// What to add.
        server: ServerSpec,
    },
    /// `ipvsadm -e`
    EditServer {
        /// Of which service.
        service: ServiceKey,
        /// What it shall be; `address` names it.
        server: ServerSpec,
    },
    /// `ipvsadm -d`
    DeleteServer {
        /// Of which service.
        service: ServiceKey,
        /// Which.
        server: SocketAddr,
    },
    /// `ipvsadm -Z`
    Zero {
        /// One service with its servers, or all.
        #[serde(default)]
        service: Option<ServiceKey>,
    },
    /// `ipvsadm --set`
    SetTimeouts {
        /// 0 leaves a value as it is.
        timeouts: Timeouts,
    },
    /// `sysctl -w net.ipv4.vs.NAME=VALUE`
    SetSettings {
        /// Values by name; what is not named stays as it is.
        settings: BTreeMap<String, u32>,
    },
}

/// The director, seen from the control API. Calls are quick and may be made on the runtime's thread.
pub trait Operations: Send + Sync {
    /// Makes one change.
    ///
    /// # Errors
    /// A refusal changes nothing.
    fn apply(&self, command: Command) -> Result<(), Refusal>;

    /// All services in kernel order.
    fn services(&self) -> Vec<ServiceView>;

    /// The timeouts.
    fn timeouts(&self) -> Timeouts;

    /// The settings, by name.
    fn settings(&self) -> BTreeMap<String, u32>;

    /// A part of the connection table: calls `each` for the connections of shard `shard`, and
    /// says whether there is a further shard. Short: it holds one shard's lock while it copies.
    fn connections(&self, shard: usize) -> Option<Vec<ConnectionView>>;

    /// What the director is and does.
    fn status(&self) -> Status;
}
