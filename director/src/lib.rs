//! Memory and process: services, connections, the packet pipeline and its control.

#![forbid(unsafe_code)]

pub mod config;
pub mod control;
pub mod dispatch;
pub mod network;
pub mod steer;
