//! Memory and process: services, connections, the packet pipeline and its control.
//!
//! A packet enters at [`worker::Worker::breath`], its fate is decided in [`dispatch`], services
//! and servers are kept in [`table`], and watched by [`health`]; [`process`] puts it all together.
//! [`world`] is all that decides about packets without any of that; [`capture`] is packets for those who
//! want to see them.
//! [`filter`] is what a host of `mode = "nlb"` has in the kernel, and `node` is that host.

#![forbid(unsafe_code)]

pub mod capture;
pub mod cli;
pub mod config;
pub mod control;
pub mod dispatch;
pub mod explain;
pub mod filter;
pub mod fwmark;
pub mod health;
pub mod keeper;
pub mod network;
mod node;
pub mod plan;
pub mod process;
pub mod steer;
pub mod table;
pub mod worker;
pub mod world;
