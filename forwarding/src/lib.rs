//! Bytes: headers, checksums and the rewrite each forwarding method makes.
//!
//! Knows octets. Must not know connections, services, clocks or I/O; never allocates, and no
//! function panics on any input once [`parse`](fn@parse) has accepted the frame it is given.

#![forbid(unsafe_code)]

pub mod checksum;
pub mod direct;
pub mod fragment;
pub mod helpers;
pub mod icmp;
pub mod mss;
pub mod nat;
pub mod plain;
pub mod reset;
pub mod rouse;
pub mod tunnel;
pub mod wire;

mod address;
mod headers;
mod packet;
mod parse;
mod reply;

pub use headers::{Family, Fragment, Headers, Malformed};
pub use packet::Packet;
pub use parse::parse;

#[cfg(test)]
mod tests;
