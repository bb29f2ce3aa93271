//! The control API: HTTP and JSON on a unix socket, the same for `ipvsadm`, `dirctl` and
//! `curl --unix-socket`.
//!
//! ```text
//!   tools/ipvsadm  tools/dirctl  curl            director
//!        client::Client ----- unix socket ----- socket -> server -> routes -> dyn Operations
//!                       HTTP/1.1, JSON (api)                  |        metrics
//!                                                             stream (connections, part by part)
//!                                                             listing (services, one by one)
//!                                                             capture (packets, as they come)
//! ```
//!
//! The words on the wire are in [`api`] and [`operations::Command`]; `docs/control-api.md` shows
//! them with `curl`. This module knows HTTP and those words. It knows nothing of tables, workers or
//! packets: all of that is behind [`operations::Operations`].

pub mod api;
mod batch;
pub mod capture;
pub mod client;
mod client_error;
pub mod events;
pub mod explain;
pub mod exporter;
mod extras;
pub mod filter;
mod follow;
mod guard;
pub mod health;
mod listing;
mod method;
mod metrics;
pub mod nlb;
pub mod operations;
pub mod plan;
pub mod remote;
mod replies;
mod routes;
pub mod server;
mod server_view;
pub mod socket;
mod stream;
#[cfg(test)]
mod tests;
pub mod workers;

pub use client_error::ClientError;

/// Where the director listens unless its configuration says otherwise.
pub const DEFAULT_SOCKET: &str = "/run/director/control.sock";

/// Response header that carries the director's version; a server that does not send it is not a
/// director.
pub const VERSION_HEADER: &str = "switchyard-version";

/// This build's version, as the header and `Status.version` have it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
