//! Ownership: in a cluster without a dispatcher every node receives all packets of a virtual
//! address; which of them takes a packet.
//!
//! Knows packets as bytes, hosts as numbers and time as an argument. Must not know interfaces,
//! sockets, eBPF or a clock.
//!
//! [`host`] and [`buckets`] are the words, [`key`] what all hosts share, [`slot`] how port rules
//! are numbered, [`map`] who owns what. Port rules, the filter's decision and membership are being
//! built; the director refuses `mode = "nlb"` by name until they are.

#![forbid(unsafe_code)]

pub mod buckets;
pub mod control;
pub mod heartbeat;
pub mod host;
pub mod key;
pub mod map;
pub mod membership;
pub mod simulation;
pub mod slot;
