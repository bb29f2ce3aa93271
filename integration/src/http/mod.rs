//! HTTP/1.1 traffic: a small server that says who it is, and a client that counts who answered.

mod client;
mod server;

pub use client::{Plan, Progress, Tally, fetch_many};
pub use server::{Answer, serve};

/// The header in which a server gives its name.
pub const SERVER_HEADER: &str = "x-server";
