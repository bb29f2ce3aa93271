//! System calls: AF_XDP, eBPF, AF_PACKET, TUN and pcap behind one [`Port`] trait.
//!
//! Knows frames, queues and the kernel's interfaces to them. Must not know services, servers,
//! connections or buckets. The only crate of the workspace with `unsafe` code.

mod pool;
mod port;
pub mod raw;

pub use pool::{Frame, HEADROOM, PartialChecksum, Pool};
pub use port::{Port, PortCounters};
