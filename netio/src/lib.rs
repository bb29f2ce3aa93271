//! System calls: AF_XDP, eBPF, AF_PACKET, TUN and pcap behind one [`Port`] trait.
//!
//! Knows frames, queues and the kernel's interfaces to them. Must not know services, servers,
//! connections or buckets. The only crate of the workspace with `unsafe` code.

pub mod bpf;
mod capture;
mod checksum;
pub mod clock;
pub mod cooked;
mod counting;
pub mod ethernet;
pub mod ethtool;
mod fault;
pub mod interface;
pub mod interrupts;
mod line;
mod mapping;
mod memory;
mod niceness;
mod open_error;
mod packet;
mod pcap;
mod pool;
mod port;
mod prefetch;
pub mod raw;
mod segment;
mod service_manager;
pub mod silence;
mod sockopt;
mod trace;
pub mod tun;
pub mod udp;
mod xsk;

pub use capture::CaptureError;
pub use checksum::complete_checksum;
pub use counting::CountingAllocator;
pub use fault::{FaultInjector, Faults};
pub use interface::InterfaceError;
pub use line::{HalfWords, Line, Lines, Words, Zeroed};
pub use mapping::Pages;
pub use memory::{MemoryPort, Packet, Wire};
pub use niceness::{set_group_niceness, set_niceness};
pub use open_error::OpenError;
pub use packet::{PacketOptions, PacketPort};
pub use pcap::PcapPort;
pub use pool::{Frame, HEADROOM, PartialChecksum, Pool};
pub use port::{Held, Port, PortCounters};
pub use prefetch::prefetch;
pub use service_manager::ServiceManager;
pub use trace::Trace;
pub use xsk::{Bind, Rings, XskOptions, XskPort, XskStatistics};
