//! A cluster in virtual time: hosts, the segment between them, clients, and what may go wrong.
//!
//! Knows [`membership`](crate::membership) from outside, as the node's program does. No clock and
//! no randomness but a seed's: a case that fails once fails always.
//!
//! [`World`] is the cluster; [`cases`] is the list of what is tried with it; [`table`] runs all of
//! it and prints what an operator would measure:
//!
//! | column | meaning |
//! |---|---|
//! | noticed | from the event until the last host sees the cluster as it is now |
//! | settled | until all hosts have converged and every bucket is served by exactly one |
//! | unserved | share of the load without a server, integrated: seconds of the whole load |
//! | gap | longest time any one bucket was unserved |
//! | twice | share of the load with two servers, integrated |

pub mod cases;
mod measure;
mod network;
mod node;
mod random;
mod rules;
pub mod table;
mod world;

pub use measure::Measures;
pub use network::Network;
pub use node::{Node, plan, settings};
pub use random::Random;
pub use world::{Violation, World};
