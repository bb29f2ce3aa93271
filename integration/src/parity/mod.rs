//! Switchyard and the kernel side by side: the same commands, the same packets in the same order,
//! and every difference in what comes of them.
//!
//! ```text
//!                    world: all clients, all servers, their gateway
//!                eth0 |                              | eth1
//!          "theirs" --+--                          --+-- "ours"
//!                     | eth0 -> vec0                 | eth0
//!               kernel IPVS                     Switchyard
//!               192.0.2.1, 10.77.0.1, VIPs      the same addresses
//! ```
//!
//! Both directors have the same addresses and the same (static) neighbours, each on a segment of
//! its own. Clients and servers are MAC addresses of one program, which writes every frame itself:
//! there is no kernel in between that would choose ports, retransmit or answer by itself, so the
//! two sides are given exactly the same packets, and what they send is compared byte by byte.
//!
//! A [`Scenario`] says what happens; [`run`] makes it happen on both sides and reports. The
//! scenarios that the tests run are in [`scenarios`].
//!
//! Knows how to compare. Must not know how either side decides.

mod arrival;
mod chunks;
mod compare;
mod errors;
mod frames;
mod listing;
mod marks;
mod pieces;
mod place;
mod report;
mod runner;
pub mod scenarios;
mod stage;
mod step;
mod world;

pub use chunks::Chunks;
pub use report::Report;
pub use runner::run;
pub(crate) use stage::Stage;
pub use step::{
    Flow, From, IcmpError, Kind, Packet, Piece, Problem, Protocol, Scenario, Segment, Step,
};
