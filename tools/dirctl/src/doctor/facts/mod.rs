//! Gathers what the examination goes by: procfs, ethtool, netlink, the segment, the control sockets
//! of director and agent. What it means is not known here.
//!
//! What cannot be asked is `None`, or a text that says why: a doctor that may see half tells of that
//! half.

pub mod agent;
pub mod cards;
pub mod file;
pub mod listeners;
pub mod machine;
pub mod running;
pub mod segment;
pub mod settings;
