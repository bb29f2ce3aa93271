//! Ownership: in a cluster without a dispatcher every node receives all packets of a virtual
//! address; which of them takes a packet.
//!
//! Knows packets as bytes, hosts as numbers and time as an argument. Must not know interfaces,
//! sockets, eBPF or a clock.
//!
//! [`host`] and [`buckets`] are the words and [`key`] is what all hosts share. [`rules`] says which
//! map of buckets a packet goes by ([`slot`]), [`hash`] which bucket it is in, [`map`] which host
//! owns that. [`filter`] makes one decision of it for every frame, and says why. [`heartbeat`] and
//! [`membership`] keep the hosts agreed on who is there, and [`simulation`] is a cluster in virtual
//! time; [`control`] is commands from elsewhere. [`delivery`] and [`capacity`] know what it takes, and costs, that all hosts receive
//! everything.

#![forbid(unsafe_code)]

pub mod buckets;
pub mod capacity;
pub mod control;
pub mod delivery;
pub mod filter;
pub mod hash;
pub mod heartbeat;
pub mod host;
pub mod key;
pub mod map;
pub mod membership;
pub mod rules;
pub mod simulation;
pub mod slot;
pub mod tuple;
