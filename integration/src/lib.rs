//! The lab of network namespaces, and what runs in it: traffic servers and clients, the standard
//! topology, the end-to-end tests, the demo and the benchmarks.
//!
//! Knows everything below it, and is known by nobody. Start reading at [`lab`], then [`topology`].

#![forbid(unsafe_code)]

pub mod bench;
pub mod cluster;
pub mod demo;
pub mod dns;
pub mod glass;
pub mod golden;
pub mod http;
pub mod kernel_host;
pub mod lab;
pub mod logons;
pub mod nginx;
pub mod parity;
pub mod ping;
pub mod programs;
pub mod running;
pub mod topology;
pub mod udp;
pub mod vsftpd;
pub mod written;
